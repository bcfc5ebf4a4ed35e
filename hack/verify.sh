#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails if a generated file is not up to date, a module file is not tidy, or a linter complains.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

# snapshot lists every file that is tracked or could be, with its content's sum: what generating changes or adds shows,
# while changes that a person is in the middle of do not.
snapshot() {
  git ls-files -z --cached --others --exclude-standard | sort -zu | while IFS= read -r -d '' file; do
    if [[ -f $file ]]; then
      sha256sum "$file"
    fi
  done
}

# `set -e` does not reach into functions that phase runs: they return by hand.
generated() {
  local before after
  before=$(snapshot) || return 1
  make --no-print-directory generate manifests || return 1
  after=$(snapshot) || return 1
  if ! diff <(echo "$before") <(echo "$after") >/dev/null; then
    echo "generated files are not up to date: run make generate manifests, and commit what it writes:"
    diff <(echo "$before") <(echo "$after") | awk '/^[<>]/ {print "  " $3}' | sort -u
    return 1
  fi
  # A clone that was clean has to be clean still, so that a generated file nobody has committed shows too.
  if [[ ${CI:-} == true && -n $(git status --porcelain) ]]; then
    echo "files differ from the commit:"
    git status --porcelain
    return 1
  fi
}

tidy() {
  local module result=0
  while read -r module; do
    (cd "$module" && go mod tidy -diff && go mod verify) || { echo "$module: go.mod or go.sum needs work"; result=1; }
  done < <(modules)
  return "$result"
}

result=0
phase "generated files" generated || result=1
phase "module files" tidy || result=1
phase "lint" hack/lint.sh run || result=1
if [[ $result != 0 ]]; then
  echo "FAIL: verify found something to do"
  exit 1
fi
echo "PASS: verified"
