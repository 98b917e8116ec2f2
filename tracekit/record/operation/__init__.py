"""A recorder as something that runs: its threads and limits, rotation, compaction, metrics, rights.

`recorder` is the face: one recording from start to end.
"""
