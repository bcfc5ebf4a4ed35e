#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the rows of test/bench, or those that the regular expression ROWS matches, REPEATS times (default 5); FULL=1 has the
# long rows, too. The figures are kept in JSON (default bin/bench.json). CHECK=1 fails if one is worse than its range.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

own_cluster
mkdir -p bin
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
go build -ldflags "-X reprise.dev/reprise/internal/version.Version=$version" -o bin/bench ./test/bench
arguments=(-repeats "${REPEATS:-5}" -json "${JSON:-bin/bench.json}")
if [[ -n ${ROWS:-} ]]; then
  arguments+=(-rows "$ROWS")
fi
if [[ ${FULL:-} == 1 ]]; then
  arguments+=(-full)
fi
if [[ ${CHECK:-} == 1 ]]; then
  arguments+=(-check)
fi
exec bin/bench "${arguments[@]}"
