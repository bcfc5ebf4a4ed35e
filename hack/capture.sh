#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Draws the pictures of the plugin in the README (docs/images/queue.svg, why.svg, tree.svg) from what it really shows.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

own_cluster
mkdir -p bin docs/images
go build -o bin/kubectl-reprise ./cmd/kubectl-reprise
go run ./hack/capture -plugin bin/kubectl-reprise -out docs/images
