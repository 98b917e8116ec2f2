"""Sorting more than memory holds: sorted runs in temporary files, merged when they are read.

A record is a key, which must sort, and a text of bytes. Runs are compressed; all of them are gone
with the directory that they were put into. So many runs are merged at a time at most, so that
memory does not grow with their number.
"""

from __future__ import annotations

import heapq
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec
import zstandard

Key = TypeVar("Key", bound=tuple[Any, ...])

_RUN_BYTES = 48 * 1024 * 1024
#: What a record costs in memory beside its bytes.
_OVERHEAD_BYTES = 300
_LENGTH_BYTES = 4
_BUFFER_BYTES = 256 * 1024
#: A reader of a run holds a window of it.
_WINDOW_LOG = 18
_RUNS_AT_ONCE = 24
_PARAMETERS = zstandard.ZstdCompressionParameters.from_level(1, window_log=_WINDOW_LOG)


class Spill(Generic[Key]):
    """Records that come in any order and go out sorted by key."""

    def __init__(
        self, directory: Path, name: str, kind: type[Key], run_bytes: int = _RUN_BYTES
    ) -> None:
        self._directory = directory
        self._name = name
        self._decode = msgspec.msgpack.Decoder(list[tuple[kind, bytes]]).decode  # type: ignore[valid-type]
        self._encode = msgspec.msgpack.Encoder().encode
        self._run_bytes = run_bytes
        self._held: list[tuple[Key, bytes]] = []
        self._held_bytes = 0
        self._runs: list[Path] = []
        self._written = 0
        self.records = 0

    def add(self, key: Key, data: bytes) -> None:
        """Take one record."""
        self._held.append((key, data))
        self._held_bytes += len(data) + _OVERHEAD_BYTES
        self.records += 1
        if self._held_bytes >= self._run_bytes:
            self._set_aside()

    def sorted(self) -> Iterator[tuple[Key, bytes]]:
        """All records by key; those of equal keys in no order."""
        while len(self._runs) > _RUNS_AT_ONCE:
            some, self._runs = self._runs[:_RUNS_AT_ONCE], self._runs[_RUNS_AT_ONCE:]
            self._runs.append(self._write_run(self._merged(some)))
        # What is held has its room already: it is no run that is written to be read at once.
        held, self._held, self._held_bytes = self._held, [], 0
        held.sort(reverse=True)
        yield from heapq.merge(self._merged(self._runs), _let_go(held))

    def _set_aside(self) -> None:
        self._held.sort()
        held, self._held, self._held_bytes = self._held, [], 0
        self._runs.append(self._write_run(held))

    def _merged(self, runs: Iterable[Path]) -> Iterator[tuple[Key, bytes]]:
        return heapq.merge(*(self._read(path) for path in runs))

    def _write_run(self, records: Iterable[tuple[Key, bytes]]) -> Path:
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{self._name}-{self._written}.run"
        self._written += 1
        compressor = zstandard.ZstdCompressor(compression_params=_PARAMETERS)
        with path.open("wb") as file, compressor.stream_writer(file) as out:
            waiting: list[tuple[Key, bytes]] = []
            waiting_bytes = 0
            for record in records:
                waiting.append(record)
                waiting_bytes += len(record[1])
                if waiting_bytes >= _BUFFER_BYTES:
                    self._write(out, waiting)
                    waiting, waiting_bytes = [], 0
            self._write(out, waiting)
        return path

    def _write(self, out: BinaryIO, records: list[tuple[Key, bytes]]) -> None:
        """Some records as one piece: far quicker than one at a time."""
        text = self._encode(records)
        out.write(len(text).to_bytes(_LENGTH_BYTES, "big"))
        out.write(text)

    def _read(self, path: Path) -> Iterator[tuple[Key, bytes]]:
        with path.open("rb") as file:
            plain = zstandard.ZstdDecompressor().stream_reader(file, read_size=64 * 1024)
            source = io.BufferedReader(plain, _BUFFER_BYTES)
            while head := source.read(_LENGTH_BYTES):
                yield from self._decode(source.read(int.from_bytes(head, "big")))
        path.unlink()


def _let_go(records: list[tuple[Key, bytes]]) -> Iterator[tuple[Key, bytes]]:
    """The records from the last one on, none of which is held any longer once it is given."""
    while records:
        yield records.pop()
