"""Sorting more than memory holds: sorted runs in temporary files, merged when they are read.

A record is a key, which must sort, and a text of bytes. Runs are compressed; all of them are gone
with the directory that they were put into.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import zstandard

Key = TypeVar("Key", bound=tuple[Any, ...])

_RUN_BYTES = 48 * 1024 * 1024
#: What a record costs in memory beside its bytes.
_OVERHEAD_BYTES = 300
_LENGTH_BYTES = 4
_LEVEL = 1


class Spill(Generic[Key]):
    """Records that come in any order and go out sorted by key."""

    def __init__(
        self, directory: Path, name: str, kind: type[Key], run_bytes: int = _RUN_BYTES
    ) -> None:
        self._directory = directory
        self._name = name
        self._decode = msgspec.msgpack.Decoder(tuple[kind, bytes]).decode  # type: ignore[valid-type]
        self._encode = msgspec.msgpack.Encoder().encode
        self._run_bytes = run_bytes
        self._held: list[tuple[Key, bytes]] = []
        self._held_bytes = 0
        self._runs: list[Path] = []
        self.records = 0

    def add(self, key: Key, data: bytes) -> None:
        """Take one record."""
        self._held.append((key, data))
        self._held_bytes += len(data) + _OVERHEAD_BYTES
        self.records += 1
        if self._held_bytes >= self._run_bytes:
            self._write_run()

    def sorted(self) -> Iterator[tuple[Key, bytes]]:
        """All records by key; those of equal keys in no order."""
        self._held.sort()
        if not self._runs:
            held, self._held = self._held, []
            yield from held
            return
        self._write_run()
        yield from heapq.merge(*(self._read(path) for path in self._runs))

    def _write_run(self) -> None:
        if not self._held:
            return
        self._held.sort()
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{self._name}-{len(self._runs)}.run"
        compressor = zstandard.ZstdCompressor(level=_LEVEL)
        with path.open("wb") as file, compressor.stream_writer(file) as out:
            for record in self._held:
                text = self._encode(record)
                out.write(len(text).to_bytes(_LENGTH_BYTES, "big"))
                out.write(text)
        self._runs.append(path)
        self._held, self._held_bytes = [], 0

    def _read(self, path: Path) -> Iterator[tuple[Key, bytes]]:
        with path.open("rb") as file:
            source = zstandard.ZstdDecompressor().stream_reader(file, read_size=64 * 1024)
            while True:
                head = _exactly(source, _LENGTH_BYTES)
                if not head:
                    break
                yield self._decode(_exactly(source, int.from_bytes(head, "big")))
        path.unlink()


def _exactly(source: Any, size: int) -> bytes:
    """That many bytes; fewer only at the end."""
    parts = []
    while size:
        part = source.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
