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
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: generate
generate: ## Write the deep-copy code of the API types.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: ## Write the CRDs and the manager's role.
	rm -rf bin/crd
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:dir=bin/crd
	go run ./hack/crdtrim -path work.job.template bin/crd/*.yaml
	mkdir -p config/crd/bases
	rm -f config/crd/bases/*.yaml
	mv bin/crd/*.yaml config/crd/bases/
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./controllers/... paths=./internal/... output:rbac:dir=config/rbac

.PHONY: build
build: ## Build bin/manager with its version.
	go build -ldflags '-s -w -X reprise.dev/reprise/internal/version.Version=$(VERSION)' -o bin/manager ./cmd/manager

.PHONY: test
test: ## Run all tests; PKG=./internal/... for some, RACE=1 with the race detector, CLUSTER=existing CONTEXT=name for your cluster.
	hack/test.sh

.PHONY: bench
bench: ## Run the benchmarks; PKG=./test/bench for some.
	hack/bench.sh

.PHONY: crash
crash: ## Crash the manager at every write, by a deterministic sample in 15 minutes; CRASH_SEED=n for another one.
	CRASH=sample hack/crash.sh

.PHONY: crash-full
crash-full: ## Crash the manager at every write, all of it: hours.
	CRASH=full hack/crash.sh

.PHONY: mutants
mutants: ## Break each rule in a scratch copy and see a test notice; MUTANT=name for one.
	hack/mutants.sh

.PHONY: model
model: ## Check the protocol's formal model exhaustively, and that no rule of it can be left out.
	hack/model.sh

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

.PHONY: controlplane
controlplane: ## Run a local control plane with the CRDs until Ctrl-C; DIR=path keeps its data.
	go build -o bin/localplane ./hack/localplane
	exec bin/localplane up $(if $(DIR),-dir '$(DIR)')

.PHONY: clean
clean: ## Remove what was built here.
	rm -rf bin dist coverage.out
