#!/usr/bin/env bash
# Searches every run of commit.pml: none may break a claim, and with a broken rule (MUTATION) one must decide two records.
# --long adds searches of minutes. Ends with status 77 when spin is not installed.
set -euo pipefail
cd "$(dirname "$0")"

memory_mb=700
seconds=240
compress=
long=no
[[ ${1:-} != --long ]] || long=yes

if ! command -v spin >/dev/null; then
  echo "model: spin is not installed; script/bootstrap installs it"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp commit.pml "$folder"
cd "$folder"
failed=0

# check safe|broken|reached NAME DEFINE...: safe: every state was seen, none breaks a claim; otherwise an assertion must fail.
check() {
  local expected=$1 name=$2 got=unfinished
  shift 2
  spin -a "$@" commit.pml >spin.log || { cat spin.log; exit 1; }
  gcc -O2 -w -DSAFETY -DNOREDUCE ${compress:+-DCOLLAPSE} -DMEMLIM="$memory_mb" -o pan pan.c
  timeout "$seconds" ./pan -m10000 -w22 >pan.log 2>&1 || true
  if grep -q 'assertion violated' pan.log; then
    got=violated
  elif grep -q 'errors: 0' pan.log && ! grep -Eq 'not completed|max search depth|MEMLIM' pan.log; then
    got=safe
  fi
  if [[ $got == "$expected" || ($got == violated && $expected != safe) ]]; then
    echo "ok    $name: $expected, $(awk '/states, stored/ {print $1}' pan.log) states"
    return
  fi
  echo "FAIL  $name: $got, not $expected"
  tail -n 40 pan.log
  if [[ $got == violated ]]; then
    spin -t -p "$@" commit.pml | tail -n 60 || true
  fi
  failed=1
}

check safe "three ballots, crashes" -DBALLOTS=3
check safe "two ballots, crashes and failed writes" -DBALLOTS=2 -DFAILED_WRITES
check safe "one ballot, an owner that proposes both records" -DBALLOTS=1 -DLIAR
check reached "a decision after rival proposals" -DBALLOTS=3 -DCANARY=2

check broken "M1 ballot 0 by anybody" -DBALLOTS=3 -DMUTATION=1 -DAGREEMENT_ONLY
check broken "M2 ballots without owners" -DBALLOTS=2 -DMUTATION=2 -DAGREEMENT_ONLY
check broken "M3 promise not durable" -DBALLOTS=3 -DMUTATION=3 -DAGREEMENT_ONLY
check broken "M4 accept not durable" -DBALLOTS=3 -DMUTATION=4 -DAGREEMENT_ONLY
check broken "M6 PROPOSE before the own accept" -DBALLOTS=2 -DMUTATION=6 -DAGREEMENT_ONLY
check broken "M7 promised record ignored" -DBALLOTS=3 -DMUTATION=7 -DAGREEMENT_ONLY
check broken "M8 lowest accepted record taken" -DBALLOTS=3 -DMUTATION=8 -DAGREEMENT_ONLY
check broken "M9 accept below the promise" -DBALLOTS=3 -DMUTATION=9 -DAGREEMENT_ONLY
check broken "M10 two records in one ballot, with that owner" -DBALLOTS=1 -DMUTATION=10 -DLIAR -DAGREEMENT_ONLY

if [[ $long == yes ]]; then
  memory_mb=4000
  seconds=3600
  compress=yes
  check safe "three ballots, crashes and failed writes" -DBALLOTS=3 -DFAILED_WRITES
  check safe "four ballots, crashes" -DBALLOTS=4
fi
exit "$failed"
