# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Nothing here needs a C compiler. Tests, tools and the manager share what the compiler has done, since all are built alike.
export CGO_ENABLED ?= 0

CONTROLLER_GEN := go tool controller-gen

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: generate
generate: ## Write the deep-copy code of the API types.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: ## Write the CRDs and the manager's role, and what is made of them: the chart's copies, dist/install.yaml and the API reference.
	rm -rf bin/crd
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:dir=bin/crd
	go run ./hack/crdtrim -path work.job.template bin/crd/*.yaml
	mkdir -p config/crd/bases
	rm -f config/crd/bases/*.yaml
	mv bin/crd/*.yaml config/crd/bases/
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./controllers/... paths=./internal/... output:rbac:dir=config/rbac
	hack/chart.sh
	IMAGE= hack/dist.sh
	hack/reference.sh

.PHONY: build
build: ## Build bin/manager with its version.
	go build -ldflags '-s -w -X reprise.dev/reprise/internal/version.Version=$(VERSION)' -o bin/manager ./cmd/manager

.PHONY: plugin
plugin: ## Build the kubectl plugin into bin: kubectl-reprise, and kubectl_complete-reprise for completion; DIR=path elsewhere.
	VERSION='$(VERSION)' DIR='$(or $(DIR),bin)' hack/plugin.sh

.PHONY: image
image: ## Build the manager's image into bin/images, without a container engine; IMAGE=name:tag names it.
	hack/image.sh

.PHONY: image-release
image-release: ## Build its image for all platforms, with its SBOM, as an OCI layout in bin/images.
	hack/image.sh release

.PHONY: dist
dist: ## Write dist/install.yaml, everything in one file; IMAGE=name:tag is the image it runs.
	hack/dist.sh

.PHONY: chart
chart: ## Package the Helm chart into dist.
	hack/chart.sh package

.PHONY: test
test: ## Run all tests; PKG=./internal/... for some, RACE=1 with the race detector, CLUSTER=existing CONTEXT=name for your cluster.
	hack/test.sh

.PHONY: bench
bench: ## Measure beside a raw writer and Kubernetes' own controllers; ROWS='skew|cost' for some, REPEATS=n, CHECK=1 fails if worse.
	hack/bench.sh

.PHONY: bench-full
bench-full: ## Measure the long rows, too: hours.
	FULL=1 JSON='$(or $(JSON),bin/bench-full.json)' hack/bench.sh

.PHONY: microbench
microbench: ## Run the Go benchmarks beside the code; PKG=./internal/admission for some.
	hack/microbench.sh

.PHONY: crash
crash: ## Crash the manager at every write, by a deterministic sample in 15 minutes; CRASH_SEED=n for another one.
	CRASH=sample hack/crash.sh

.PHONY: crash-full
crash-full: ## Crash the manager at every write, all of it: hours.
	CRASH=full hack/crash.sh

.PHONY: simulation
simulation: ## Play random histories of the whole operator in memory; HISTORIES=n, FROM=seed, SEED=n to replay one.
	hack/simulation.sh

.PHONY: mutants
mutants: ## Break each rule in a scratch copy and see a test notice; MUTANT=name for one.
	hack/mutants.sh

.PHONY: model
model: ## Check the protocol's formal model exhaustively, and that no rule of it can be left out.
	hack/model.sh

.PHONY: e2e
e2e: ## Run the tests on a real cluster with real pods: a node made here (root), kind, or CLUSTER=existing CONTEXT=name.
	hack/e2e.sh

.PHONY: e2e-full
e2e-full: ## Run all of them, the slow ones too.
	E2E=full hack/e2e.sh

.PHONY: skew
skew: ## Run the API-level tests on the oldest API server that is supported.
	hack/skew.sh

.PHONY: verify
verify: ## Fail if generated files, modules or lint need work.
	hack/verify.sh

.PHONY: lint
lint: ## Run the linters.
	hack/lint.sh run

.PHONY: fmt
fmt: ## Format the Go code.
	hack/lint.sh fmt

.PHONY: demo
demo: ## Show the main job, from nothing to recovery; KEEP=1 leaves the control plane up.
	go build -o bin/demo ./hack/demo
	exec bin/demo

.PHONY: node
node: ## Run a cluster of one real node, without a container engine, until Ctrl-C; as root, on Debian or Ubuntu.
	hack/image.sh
	go build -o bin/realnode ./hack/realnode
	exec bin/realnode up bin/images/manager.tar bin/images/work.tar bin/images/pause.tar

.PHONY: controlplane
controlplane: ## Run a local control plane with the CRDs until Ctrl-C; DIR=path keeps its data.
	go build -o bin/localplane ./hack/localplane
	exec bin/localplane up $(if $(DIR),-dir '$(DIR)')

.PHONY: clean
clean: ## Remove what was built here.
	rm -rf bin coverage.out dist/*.tgz
