#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests. PKG chooses packages (default: all), RACE=1 turns the race detector on.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

own_cluster
flags=(-timeout 30m)
if [[ ${RACE:-} == 1 ]]; then
  flags+=(-race)
  export CGO_ENABLED=1
fi

main_module() {
  "$(tool gotestsum)" --format pkgname --format-hide-empty-pkg -- "${flags[@]}" "${packages[@]}"
}

# other_module runs the tests of another module anew: Go does not see that what they look at, outside the module, has changed.
other_module() {
  (cd "$1" && go test -count=1 "${flags[@]}" ./...)
}

read -r -a packages <<<"${PKG:-./...}"
start=$SECONDS
result=0
# Once here, or several packages at once would each wait for the first build of the binaries within their own timeout.
if ! KUBEBUILDER_ASSETS=$(go run ./hack/localplane assets); then
  echo "FAIL: there is no control plane to test with"
  exit 1
fi
export KUBEBUILDER_ASSETS
if [[ -z ${PKG:-} ]]; then
  # For the same reason.
  for name in helm helm-unittest; do
    go tool -modfile=hack/helm/go.mod -n "$name" >/dev/null
  done
  for name in prometheus promtool; do
    CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -tags=remove_all_sd" go tool -modfile=hack/prometheus/go.mod -n "$name" >/dev/null
  done
fi
phase "tests of ${packages[*]}" main_module || result=1
if [[ -z ${PKG:-} ]]; then
  while read -r module; do
    [[ $module == . ]] || phase "tests of $module" other_module "$module" || result=1
  done < <(code_modules)
fi
if [[ $result != 0 ]]; then
  echo "FAIL: some tests failed ($((SECONDS - start)) s)"
  exit 1
fi
echo "PASS: all tests passed ($((SECONDS - start)) s)"
