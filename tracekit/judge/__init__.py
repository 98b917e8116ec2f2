"""A trace brought together with the engine: its era, its run as a whole, and its verdicts.

`judged` is the face: `Judge`. The rooms above ask it, and none of them judges for itself.

Knows: traces, check, versions.
Called by: answers and above.
"""
