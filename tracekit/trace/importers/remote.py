"""Source files in object storage: streamed from where they lie, never kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Self, cast

from msgspec import Struct
from pyarrow import fs

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.model import HEADER_NAME
from tracekit.trace.stores.store import Store, complaints, open_store


class RemoteFile(Struct, frozen=True):
    """One file behind a URL."""

    name: str
    opened: Callable[[], BinaryIO]


def is_remote_trace(url: str) -> bool:
    """Whether a URL names a trace, not files to make one of."""
    store = open_store(url)
    with complaints(store.address):
        info = store.files.get_file_info(f"{store.path}/{HEADER_NAME}")
        return bool(info.type == fs.FileType.File)


def remote_files(url: str) -> Iterator[RemoteFile]:
    """The file that a URL names, or all files below the folder that it names, by name.

    Raises:
        TraceFormatError: There is none, or the store refuses.
    """
    store = open_store(url)
    with complaints(store.address):
        info = store.files.get_file_info(store.path)
        if info.type == fs.FileType.File:
            yield RemoteFile(url, _opener(store, store.path))
            return
        found = [] if info.type == fs.FileType.NotFound else _below(store)
    if not found:
        raise TraceFormatError(f"{url} does not exist, or is an empty folder: check its name")
    for path in found:
        rest = path.removeprefix(f"{store.path}/")
        yield RemoteFile(f"{url.rstrip('/')}/{rest}", _opener(store, path))


def _below(store: Store) -> list[str]:
    found = store.files.get_file_info(fs.FileSelector(store.path, recursive=True))
    return sorted(info.path for info in found if info.type == fs.FileType.File)


def _opener(store: Store, path: str) -> Callable[[], BinaryIO]:
    def opened() -> BinaryIO:
        with complaints(store.address):
            # What is compressed is told by its first bytes here, as for every other source.
            return cast("BinaryIO", _Stream(store, store.files.open_input_stream(path, None)))

    return opened


class _Stream:
    """A stream of which every failure is a sentence about the URL."""

    def __init__(self, store: Store, stream: Any) -> None:
        self._store, self._stream = store, stream

    def read(self, size: int) -> bytes:
        with complaints(self._store.address):
            return bytes(self._stream.read(size))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
