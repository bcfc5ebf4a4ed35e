#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs golangci-lint (`run` or `fmt`) over every module that has code of ours. Works offline once its modules are there.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

linter=$(tool golangci-lint)
config=$PWD/.golangci.yml
result=0
while read -r module; do
  (cd "$module" && "$linter" "$1" --config "$config" ./...) || result=1
done < <(code_modules)
exit "$result"
