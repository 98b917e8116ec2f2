"""Arrays of texts out of bytes that are known to be UTF-8: each text is copied once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pyarrow as pa


def texts_of(texts: Sequence[bytes | memoryview], valid: Sequence[bool] | None = None) -> pa.Array:
    """An array of the texts; those that are not valid are null, and empty."""
    offsets = pa.array(accumulate(map(len, texts), initial=0), pa.int32())
    bitmap = None
    if valid is not None and not all(valid):
        bitmap = pa.array(valid, pa.bool_()).buffers()[1]
    return pa.StringArray.from_buffers(
        len(texts), offsets.buffers()[1], pa.py_buffer(b"".join(texts)), bitmap
    )
