"""Those who do work in pieces: the processes of this machine, or a cluster of many.

An executor knows nothing of traces: it takes tasks, and hands back what became of each. A task that
kills its worker is tried again alone, then in parts, until the part that kills is found.
"""
