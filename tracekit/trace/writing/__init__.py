"""From rows to a trace on disk: one writer at a time, durable at every flush.

`writer` is the face: `TraceWriter`. `compact` merges what it has written.
"""
