"""What all layers share: Kubernetes words, cron, times, coverage, errors, safe children and HTTP.

Knows: nothing of tracekit.
Called by: everybody.
"""
