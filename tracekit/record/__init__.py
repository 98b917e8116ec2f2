"""The recorder: list and watch a cluster, write what was seen, say what was not.

The only package that talks to a network. `operation.recorder` starts one `streams.watcher` thread
per stream; all of them feed one writer thread through `streams.sink`. `credentials` and `server`
are how it reaches the API server, `container_logs` what it fetches of logs, `redaction` what it
hides.

Knows: traces, an API server.
Called by: cli.
"""
