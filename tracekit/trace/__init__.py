"""Traces: what was seen of a cluster, on disk.

`format` says what lies there, `stores` where, `reading` and `writing` go between it and rows,
`importers` make it of what others have recorded. What a trace means is `tracekit.judge`'s.

Knows: Kubernetes words; no rules, no verdicts.
Called by: record, and all that reads a trace.
"""
