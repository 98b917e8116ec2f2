"""One API server over HTTP: whole answers, watch streams, and what can go wrong with them.

`transport` is the face: `ApiClient`. `kinds` and `probe` ask it what there is to record.
"""
