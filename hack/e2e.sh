#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests on a real cluster: that of CLUSTER=existing CONTEXT=<name>, which must be able to pull MANAGER_IMAGE and
# WORK_IMAGE; else kind, where a Docker engine answers; else a node of our own, which needs root on Debian or Ubuntu.
# E2E=full runs the slow ones too, RUN=regexp only some. NAME lets several runs be side by side on one machine.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

own_cluster
export E2E=${E2E:-default}
name=${NAME:-e2e}
export E2E_NAME=$name
kind_name=reprise-$name

# build makes all that the tests run: inside a node of ours there is no network.
build() {
  mkdir -p bin &&
    go test -c -o bin/e2e.test ./test/e2e &&
    go build -o bin/realnode ./hack/realnode &&
    hack/plugin.sh &&
    HELM=$(go tool -modfile=hack/helm/go.mod -n helm) &&
    export HELM
}

# suite prints the command that runs the tests, a word a line. It is a program and not `go test`, so that the table comes last.
suite() {
  local limit=20m
  if [[ $E2E == full ]]; then
    limit=2h
  fi
  printf '%s\n' "$PWD/bin/e2e.test" -test.timeout "$limit"
  if [[ -n ${RUN:-} ]]; then
    printf '%s\n' -test.run "$RUN"
  fi
}

docker_answers() {
  command -v docker >/dev/null && timeout 10 docker info >/dev/null 2>&1
}

on_existing() {
  if [[ -z ${MANAGER_IMAGE:-} || -z ${WORK_IMAGE:-} ]]; then
    echo "CLUSTER=existing needs MANAGER_IMAGE and WORK_IMAGE, which the cluster can pull: build them with hack/image.sh and push them"
    return 1
  fi
  (cd test/e2e && "${command[@]}")
}

# on_kind leaves a cluster of the same name from an earlier run no chance to be mistaken for a fresh one.
on_kind() {
  local result=0
  mkdir -p bin/e2e
  export KIND_NAME=$kind_name CLUSTER=existing CONTEXT=kind-$kind_name KUBECONFIG=$PWD/bin/e2e/$kind_name.kubeconfig
  KIND=$(tool kind) && export KIND && kind_suite || result=1
  "$KIND" delete cluster --name "$kind_name" || result=1
  return "$result"
}

kind_suite() {
  "$KIND" delete cluster --name "$kind_name" &&
    "$KIND" create cluster --name "$kind_name" --wait 2m &&
    "$KIND" load image-archive bin/images/manager.tar --name "$kind_name" &&
    "$KIND" load image-archive bin/images/work.tar --name "$kind_name" &&
    (cd test/e2e && "${command[@]}")
}

on_own_node() {
  (cd test/e2e && exec ../../bin/realnode enter -name "$name" -- "${command[@]}")
}

start=$SECONDS
phase "build the tests" build
mapfile -t command < <(suite)
if [[ ${CLUSTER:-} == existing ]]; then
  where=existing
else
  phase "build the images" hack/image.sh
  where=own_node
  if docker_answers; then
    where=kind
  fi
fi
if ! "on_$where"; then
  echo "FAIL: e2e ($((SECONDS - start)) s)"
  exit 1
fi
echo "PASS: e2e ($((SECONDS - start)) s)"
