#!/usr/bin/env bash
# Judge the trace: a summary, SARIF, and the exit status that the input fail-on asks for.
set -euo pipefail
umask 077  # what is written holds what the cluster said
tracekit="$RUNNER_TEMP/tracekit/bin/tracekit"
version=()
if [ -n "$VERSION" ]; then version=(--kubernetes-version "$VERSION"); fi
case "$FAIL_ON" in
  divergence | never) fail=() ;;
  warning | error) fail=(--fail-on "$FAIL_ON") ;;
  *) echo "::error title=tracekit::fail-on is divergence, warning, error or never"; exit 2 ;;
esac
replay=0
"$tracekit" replay "$OUTPUT/trace" --diff -o json "${version[@]}" >"$OUTPUT/replay.json" || replay=$?
if [ "$replay" -gt 1 ]; then
  echo "::error title=tracekit::the trace could not be judged"
  exit "$replay"
fi
"$tracekit" diagnose "$OUTPUT/trace" -o sarif "${version[@]}" >"$OUTPUT/tracekit.sarif"
found=0
"$tracekit" diagnose "$OUTPUT/trace" -o markdown "${version[@]}" "${fail[@]}" >"$OUTPUT/summary.md" || found=$?
cat "$OUTPUT/summary.md" >>"$GITHUB_STEP_SUMMARY"
{
  echo "trace=$OUTPUT/trace"
  echo "sarif=$OUTPUT/tracekit.sarif"
  "$RUNNER_TEMP/tracekit/bin/python" -I -c 'import json, sys; print("divergences=%d" % len(json.load(open(sys.argv[1]))["divergences"]))' "$OUTPUT/replay.json"
} >>"$GITHUB_OUTPUT"
if [ "$found" -gt 1 ]; then exit "$found"; fi
if [ "$FAIL_ON" = never ]; then exit 0; fi
if [ "$replay" = 1 ]; then
  echo "::error title=tracekit::the controllers diverged from their rules: see the step summary"
  exit 1
fi
exit "$found"
