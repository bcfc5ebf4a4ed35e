#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the kubectl plugin into bin, or into DIR: kubectl-reprise, and kubectl_complete-reprise beside it, by which kubectl
# completes its arguments. Put that directory into PATH. GOOS and GOARCH build it for another machine.
#   DIR=/usr/local/bin hack/plugin.sh
set -euo pipefail
cd "$(dirname "$0")/.."

dir=${DIR:-bin}
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
exe=
if [[ ${GOOS:-} == windows ]]; then
  exe=.exe
fi
mkdir -p "$dir"
go build -ldflags "-s -w -X reprise.dev/reprise/internal/version.Version=$version" -o "$dir/kubectl-reprise$exe" ./cmd/kubectl-reprise
# One program under two names: it sees by which it is called.
ln -sf "kubectl-reprise$exe" "$dir/kubectl_complete-reprise$exe"
