#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills the manager, and all that it needs, and checks every invariant: first the built manager, the API server and etcd as
# processes, then the manager at its writes, with faulty requests, old caches and second leaders. CRASH chooses how much:
# sample (default; what two cores manage in a quarter of an hour, chosen by CRASH_SEED), full, fast, or list for the writes
# alone. One history again: CRASH_ONLY='http-1 12a' (that scenario, a death after write 12), or SEED as a failure prints it.
# VERBOSE=1 prints what the tests log, too.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

own_cluster
export CRASH=${CRASH:-sample}
if ! KUBEBUILDER_ASSETS=$(go run ./hack/localplane assets); then
  echo "FAIL: there is no control plane to test with"
  exit 1
fi
export KUBEBUILDER_ASSETS

# interventions is how many processes are killed or stopped.
interventions() {
  case $CRASH in
    fast) echo 10 ;;
    sample) echo 100 ;;
    full) echo 2000 ;;
  esac
}

processes() {
  PROCESS_KILLS=${PROCESS_KILLS:-$(interventions)} SEED=${CRASH_SEED:-1} go test ./test/crash/process -count=1 -run TestNoInvariantIsBroken -v -timeout 6h |
    grep -vE '^(=== |\?)'
}

# writes runs the suite as a program, and not by go test, so that its table comes last.
writes() {
  local flags=(-test.timeout 24h)
  if [[ -n ${CRASH_ONLY:-} ]]; then
    flags+=(-test.run TheManagerMayDieAtAnyWrite)
  elif [[ -n ${SEED:-} ]]; then
    flags+=(-test.run 'TestNoInvariant|TestADeposed')
  fi
  if [[ ${VERBOSE:-} == 1 ]]; then
    flags+=(-test.v)
  fi
  mkdir -p bin
  go test -c -o bin/crash.test ./test/crash
  (cd test/crash && ../../bin/crash.test "${flags[@]}")
}

result=0
if [[ $CRASH != list && -z ${CRASH_ONLY:-}${SEED:-} ]]; then
  phase "processes" processes || result=1
fi
writes || result=1
exit "$result"
