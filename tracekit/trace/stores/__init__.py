"""Where a trace lies: a directory, one of a folder, or object storage with a copy of it here.

`place` is the face: from the word that a user gave to the directory that is read.
"""
