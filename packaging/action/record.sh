#!/usr/bin/env bash
# Record while the command runs; the exit status is the command's.
set -euo pipefail
tracekit="$RUNNER_TEMP/tracekit/bin/tracekit"
scope=()
for namespace in $NAMESPACES; do scope+=(-n "$namespace"); done
if [ ${#scope[@]} = 0 ]; then scope=(-A); fi
config=()
if [ -n "$CONFIG" ]; then config=(--kubeconfig "$CONFIG"); fi
(umask 077 && mkdir -p "$OUTPUT")
"$tracekit" record "${scope[@]}" "${config[@]}" -o "$OUTPUT/trace" 2> >(umask 077 && tee "$OUTPUT/record.log" >&2) &
recorder=$!
# The command begins once a first look has been written: what it does is then seen from its start.
for _ in $(seq 300); do
  if ls "$OUTPUT"/trace/log/* >/dev/null 2>&1; then break; fi
  if ! kill -0 "$recorder" 2>/dev/null; then
    wait "$recorder" || true
    echo "::error title=tracekit::the recorder ended before the command began: see record.log"
    exit 2
  fi
  sleep 0.1
done
status=0
bash -eo pipefail -c "$COMMAND" || status=$?
# What the controllers still write for the command arrives within seconds.
sleep "${TRACEKIT_SETTLE_SECONDS:-5}"
kill -INT "$recorder"
wait "$recorder" || true
exit "$status"
