#!/bin/sh
# The demo: BIN TRACE WORK. Import a real trace, replay it, plant one lie, find it.
set -eu
bin=$1 trace=$2 work=$3
version=$("$bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["gitVersion"])' "$trace/about.json")
rm -rf "$work"
mkdir -p "$work"
say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; "$@"; }
say "$bin/tracekit" import watch "$trace/watch.jsonl.zst" -o "$work/real" --kubernetes-version "$version"
say "$bin/tracekit" replay "$work/real" --diff
printf '\nThe same record with one pod of one Job removed from it:\n'
say "$bin/python" traces/plant_lie.py "$trace/watch.jsonl.zst" "$work/lie.jsonl"
say "$bin/tracekit" import watch "$work/lie.jsonl" -o "$work/lie" --kubernetes-version "$version"
status=0
say "$bin/tracekit" replay "$work/lie" --diff || status=$?
test "$status" -eq 1 || { printf '\nThe lie was not found (exit status %s).\n' "$status" >&2; exit 1; }
printf '\nThe lie was found: exit status 1.\n'
