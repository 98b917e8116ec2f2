"""What changed in which Kubernetes version: one table of data, resolved once per replay.

Knows: Kubernetes words alone.
Called by: all that judges, predicts or shows rules.
"""
