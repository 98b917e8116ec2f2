"""Where a trace lies: a directory, or object storage with a copy of it on this machine.

`place` is the face: from the word that a user gave to the directory that is read.
"""
