"""Opening Parquet so that no thread of Arrow's is left with a file of Python's.

Arrow decodes, and reads ahead, in threads of its own, which let go of what they read from a moment
after the reader has it all. Where that is a file of Python's and the interpreter ends in this
moment, the thread cannot have it any more, and the process is aborted (SIGABRT, "terminate called
without an active exception"): one of fifty that read a small file so and end.
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq


def parquet_file(source: Any, **options: Any) -> pq.ParquetFile:
    """The file, read by the thread that asks; give `use_threads=False` to what reads rows."""
    return pq.ParquetFile(source, pre_buffer=False, **options)
