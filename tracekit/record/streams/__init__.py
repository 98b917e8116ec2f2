"""From the watch streams of the kinds to rows of a trace.

`watcher` is the face: one thread per stream, all through `sink` into the writer thread of `feed`.
"""
