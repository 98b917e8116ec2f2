"""What may be secret, replaced by what only shows where two values were equal.

`redact` is the face; `redact_strict` says what is kept when nothing else may be.
"""
