#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plays random histories of the whole operator in memory, one processor each: HISTORIES of them (default 1000), from the seed
# FROM on (default 1). A failure prints its seed, shrunk; SEED=n plays that one again and tells each step.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p bin
go test -c -o bin/simulation.test ./test/simulation
cd test/simulation
if [[ -n ${SEED:-} ]]; then
  exec ../../bin/simulation.test -test.run TestReplay -test.v
fi

histories=${HISTORIES:-1000}
from=${FROM:-1}
players=$(nproc)
start=$SECONDS
running=()
for ((i = 0; i < players; i++)); do
  first=$((histories * i / players))
  share=$((histories * (i + 1) / players - first))
  HISTORIES=$share FROM=$((from + first)) ../../bin/simulation.test -test.run TestNoHistoryBreaksAnInvariant &
  running+=($!)
done
result=0
for player in "${running[@]}"; do
  wait "$player" || result=1
done
taken=$((SECONDS - start))
echo "histories: $histories played from seed $from on by $players processes in $taken s ($((histories * 60 / (taken > 0 ? taken : 1))) a minute)"
exit "$result"
