#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the API-level suite on the oldest Kubernetes that is supported (hack/controlplane/oldest says which). make test runs it on
# the newest. The first run on a machine builds the binaries, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

own_cluster
unset KUBEBUILDER_ASSETS CLUSTER # it is the release that counts here, not what is at hand
export KUBERNETES=oldest
start=$SECONDS
if ! KUBEBUILDER_ASSETS=$(go run ./hack/localplane assets); then
  echo "FAIL: there is no control plane of the oldest release to test with"
  exit 1
fi
export KUBEBUILDER_ASSETS
release=$("$KUBEBUILDER_ASSETS/kube-apiserver" --version)
echo "== test/api on $release"
if ! "$(tool gotestsum)" --format pkgname -- -timeout 30m -count=1 ./test/api; then
  echo "FAIL: the API-level suite does not pass on $release ($((SECONDS - start)) s)"
  exit 1
fi
echo "PASS: the API-level suite passes on $release ($((SECONDS - start)) s)"
