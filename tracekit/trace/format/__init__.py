"""What a trace is on disk: its columns, segments, header, manifest, and the seals over all of them.

`schema` says which columns there are, `segments` which files count, `seal` what vouches for them.
"""
