"""The command line: one module per verb, `main` is the one place that catches errors.

Knows: all layers.
Called by: the entry points.
"""
