"""Where the copy of a trace comes from: ranges of its files in object storage, and what they cost.

A copy has the files of the trace in their full length, and of the large ones only their ends. The
rest is fetched a row group at a time, when somebody wants it, and verified before it is put into
its place (`reading/files.py`): so what is there is seen by its digest, no list of it is kept, and
two processes that fetch the same do no harm.
"""

from __future__ import annotations

import os
import threading

from msgspec import Struct

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.model import LOG_DIR
from tracekit.trace.stores.store import Store, complaints


class _Traffic:
    """What this process has fetched from object storage."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.size_bytes = 0

    def count(self, size_bytes: int) -> None:
        with self._lock:
            self.size_bytes += size_bytes


_traffic = _Traffic()


def count_fetched(size_bytes: int) -> None:
    """Count bytes of traces that came from object storage."""
    _traffic.count(size_bytes)


def fetched_bytes() -> int:
    """The bytes of traces that this process has fetched from object storage so far."""
    return _traffic.size_bytes


class Origin(Struct, frozen=True):
    """The folder in object storage that a directory of this machine is a copy of."""

    store: Store

    @property
    def url(self) -> str:
        """The URL of the trace."""
        return self.store.address.url

    def read(self, name: str, offset: int, length: int) -> bytes:
        """A range of one of its segments."""
        path = f"{self.store.path}/{LOG_DIR}/{name}"
        with complaints(self.store.address):
            try:
                with self.store.files.open_input_file(path) as source:
                    content: bytes = source.read_at(length, offset)
            except FileNotFoundError as error:
                raise TraceFormatError(
                    f"{self.url} has lost {LOG_DIR}/{name} since it was opened: it was merged or "
                    "deleted; run again"
                ) from error
        count_fetched(len(content))
        return content

    def keep(self, descriptor: int, content: bytes, offset: int) -> None:
        """Put a range into its place in the copy."""
        with complaints(self.store.address):
            view = memoryview(content)
            while view:
                written = os.pwrite(descriptor, view, offset)
                view, offset = view[written:], offset + written
