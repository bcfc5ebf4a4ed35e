#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Breaks the rules of the design one at a time, and tells which test notices. MUTANT=name tries one; -list shows them all.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

own_cluster
go build -o bin/mutants ./hack/mutants
if [[ ${1:-} != -list ]]; then
  # Once here, or the tests of the first mutant would wait for the first build of the binaries within their own timeout.
  KUBEBUILDER_ASSETS=$(go run ./hack/localplane assets)
  export KUBEBUILDER_ASSETS
fi
exec nice -n 10 bin/mutants ${MUTANT:+-only "$MUTANT"} "$@"
