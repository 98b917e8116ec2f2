"""From a trace on disk to its rows, verified, and to what is missing among them.

`reader` is the face: `TraceReader`. Below it `snapshot` opens what counts and `files` reads it.
"""
