#!/bin/sh
# Runs a command so many times in a row while two processes keep two cores busy, and stops where it fails: sh tests/steady.sh RUNS COMMAND…
set -u
runs=$1
shift
logs=$(mktemp -d)

burn() { while :; do :; done; }
burn &
first=$!
burn &
second=$!
trap 'kill "$first" "$second" 2>/dev/null' EXIT
# A shell that a signal ends runs no EXIT trap of its own accord.
trap 'exit 130' INT
trap 'exit 143' TERM

run=1
while [ "$run" -le "$runs" ]; do
  began=$(date +%s)
  "$@" >"$logs/$run.log" 2>&1 </dev/null
  code=$?
  echo "run $run of $runs ended with $code after $(($(date +%s) - began)) s: $(tail -n 1 "$logs/$run.log")"
  [ "$code" -eq 0 ] || { echo "What it said: $logs/$run.log" >&2; exit 1; }
  run=$((run + 1))
done
echo "Logs: $logs"
