"""Verdicts: which observed write does which run of the controller explain."""
