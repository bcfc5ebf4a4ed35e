#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the model of the protocol (test/model) with spin: every configuration exhaustively, then every rule left out, which
# must break the invariant that its table names. ONLY=name checks one configuration or rule. The tables are in
# test/model/protocol.pml.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

model=$PWD/test/model
depth=20000     # no search may reach it
memory=6000     # MB
bound=900       # seconds for one search

# installed sees to it that spin and a C compiler are there.
installed() {
  if command -v spin >/dev/null && command -v gcc >/dev/null; then
    return 0
  fi
  # shellcheck source=/dev/null
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null && (. /etc/os-release && [[ " $ID ${ID_LIKE:-} " =~ \ (debian|ubuntu)\  ]]); then
    echo "installing spin and gcc"
    { apt-get update -qq || true; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends spin gcc libc6-dev; } >"$work/install" 2>&1 ||
      { tail -20 "$work/install"; return 1; }
    return 0
  fi
  echo "this needs spin 6.5 and gcc. On Debian or Ubuntu: sudo apt-get install spin gcc libc6-dev; elsewhere see https://spinroot.com"
  return 1
}

# verifier compiles the model into a directory. One verifier serves all configurations and rules: it reads them from the
# environment. Further arguments go to spin.
verifier() {
  local dir=$work/$1
  shift
  mkdir -p "$dir"
  cp "$model"/*.pml "$dir"
  (cd "$dir" && spin -a "$@" protocol.pml >spin.out 2>&1) || { cat "$dir/spin.out"; return 1; }
  if [[ -s $dir/spin.out ]]; then
    cat "$dir/spin.out"
    return 1
  fi
  (cd "$dir" && gcc -O2 -w -DSAFETY -DNOREDUCE -DNOBOUNDCHECK -DMEMLIM=$memory -o pan pan.c)
}

# table prints the lines of a table in the header of the model, without its name.
table() {
  sed -n "s/^ \* $1  *//p" "$model/protocol.pml"
}

# search runs the verifier with NAME=value arguments, in a directory of its own, and leaves its output in $out.
search() {
  local dir=$work/$1
  shift
  out=$dir/out
  (cd "$dir" && nice env "$@" timeout "$bound" ./pan "-m$depth" >out 2>&1) || true
}

# found prints the invariant that the last search saw broken, nothing if it saw none.
found() {
  sed -nE 's/.*assertion violated.*(I[0-9]+|K)_[a-z_]+\).*/\1/p' "$out" | head -1
}

# exhaustive reports whether the last search went through everything and found no error.
exhaustive() {
  grep -q 'errors: 0$' "$out" && grep -q '^Full statespace search' "$out" && grep -q 'elapsed time' "$out" &&
    ! grep -qE 'Search not completed|max search depth too small|out of memory|hash compact|bit state' "$out"
}

number() {
  sed -nE "s/$1/\1/p" "$out" | head -1
}

# tell shows the way to a broken invariant, step by step.
tell() {
  [[ -d $work/trail ]] || verifier trail -DTRAIL || return 0
  search trail "$@"
  (cd "$work/trail" && env "$@" ./pan -r 2>&1) | grep -E '^ *process [0-9]+:|assertion violated' || tail -20 "$out"
}

# configuration checks one line of the table of configurations.
configuration() {
  local name=$1 invariant
  shift
  search plain "$@"
  if exhaustive; then
    printf '%-18s %-44s %11s states  depth %4s  %6s MB  %6s s  exhaustive: yes\n' "$name" "$*" "$(number ' *([0-9]+) states, stored.*')" \
      "$(number '.*depth reached ([0-9]+),.*')" "$(number ' *([0-9]+)\.[0-9]+\ttotal actual memory usage.*')" "$(number '.*elapsed time ([0-9.]+) seconds.*')"
    return 0
  fi
  invariant=$(found)
  printf '%-18s %-44s exhaustive: no  %s\n' "$name" "$*" "${invariant:+breaks $invariant}"
  if [[ -n $invariant ]]; then
    tell "$@"
  else
    tail -20 "$out"
  fi
  return 1
}

# rule checks one line of the table of rules: what is left out must be missed.
rule() {
  local name=$1 invariant=$2 config=$3 broken
  local -a parameters
  read -r -a parameters <<<"$(table config | awk -v c="$config" '$1 == c {$1 = ""; print}')"
  search plain "${parameters[@]}" "$name=0"
  broken=$(found)
  if [[ $broken == "$invariant" ]]; then
    printf 'without %-14s %-14s %-4s breaks\n' "$name" "$config" "$invariant"
    return 0
  fi
  printf 'without %-14s %-14s %-4s should break, and %s does\n' "$name" "$config" "$invariant" "${broken:-none}"
  if [[ -n $broken ]]; then
    tell "${parameters[@]}" "$name=0"
  else
    tail -20 "$out"
  fi
  return 1
}

configurations() {
  local failed=0 name rest
  while read -r name rest; do
    if [[ -z ${ONLY:-} || $ONLY == "$name" ]]; then
      # shellcheck disable=SC2086 # words
      configuration "$name" $rest || failed=1
      checked=$((checked + 1))
    fi
  done < <(table config)
  return "$failed"
}

rules() {
  local failed=0 name invariant config
  while read -r name invariant config _; do
    if [[ -z ${ONLY:-} || $ONLY == "$name" ]]; then
      rule "$name" "$invariant" "$config" || failed=1
      checked=$((checked + 1))
    fi
  done < <(table rule)
  return "$failed"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
start=$SECONDS
result=0
checked=0
installed
spin -V
phase "the model is compiled" verifier plain
phase "every configuration, exhaustively" configurations || result=1
phase "every rule left out" rules || result=1
if [[ $checked == 0 ]]; then
  echo "there is no configuration and no rule ${ONLY:-}"
  result=1
fi
if [[ $result != 0 ]]; then
  echo "FAIL: the model is not as it should be ($((SECONDS - start)) s)"
  exit 1
fi
echo "model: $(table config | wc -l) configurations and $(table rule | wc -l) rules, 0 violations ($((SECONDS - start)) s)"
