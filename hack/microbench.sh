#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the Go benchmarks beside the code, of every package that has some, or of PKG; BENCH=name for some of them.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

own_cluster
if [[ -n ${PKG:-} ]]; then
  read -r -a packages <<<"$PKG"
else
  # Only these: a package's other set-up, such as a control plane, would start for nothing.
  mapfile -t packages < <(git grep --untracked -l '^func Benchmark' -- '*_test.go' | xargs -r -n1 dirname | sort -u | sed 's|^|./|')
fi
if [[ ${#packages[@]} == 0 ]]; then
  echo "there are no benchmarks"
  exit 1
fi
KUBEBUILDER_ASSETS=$(go run ./hack/localplane assets)
export KUBEBUILDER_ASSETS
# One package at a time: they would disturb each other's numbers.
go test -p 1 -run '^$' -bench "${BENCH:-.}" -benchmem -timeout 60m "${packages[@]}"
