#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs golangci-lint (`run` or `fmt`) over every module that has code of ours. Works offline once its modules are there.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

linter=$(tool golangci-lint)
config=$PWD/.golangci.yml
result=0
for module in . test/project; do
  (cd "$module" && "$linter" "$1" --config "$config" ./...) || result=1
done
exit "$result"
