"""Names under which DuckDB opens the very files that were verified, and no others.

DuckDB opens files by name; a name in a trace may be deleted by a compaction at any moment, may hold
characters that DuckDB takes for a pattern, may lead elsewhere the next time. The system's folder of
open descriptors has a name for each open file that stands for that file alone.

A session that only reads tells DuckDB the names that are allowed. DuckDB resolves them at that
moment, to the name in the trace, which would no longer do once the file is deleted: so each
descriptor gets a number that is still free when its name is told, and is put there afterwards. From
2.0.1 on DuckDB resolves the name of a deleted file, too, to what the kernel calls it then.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from tracekit.errors import TracekitError
from tracekit.trace.format.opening import more_files
from tracekit.trace.format.segments import Segment

#: Where the system shows this process's open files.
_FOLDER = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")
#: Ordinary files get the lowest free number: none of theirs lies up here.
_NUMBERS_FROM = 500
#: What Linux adds to the name of an open file that was deleted.
_DELETED = " (deleted)"
_COUNT = pa.schema([("files", pa.int64())])


class OpenFile(Protocol):
    """A file that was opened, and its name."""

    @property
    def segment(self) -> Segment:
        """Where it lies."""

    def fileno(self) -> int:
        """The descriptor of the open file."""


class Handles:
    """Names for the files of a session."""

    def __init__(self, files: Sequence[OpenFile]) -> None:
        self._files = list(files)
        self._numbers = _free_numbers(self._files)
        self._open: list[FileIO] = []

    def allowed(self) -> list[str]:
        """What DuckDB must be told, before `open`.

        The names while they lead nowhere, and what they lead to, with its name and without.
        """
        names: list[str] = []
        for file, number in zip(self._files, self._numbers, strict=True):
            path = str(file.segment.path.resolve())
            names += (str(_FOLDER / str(number)), path, path + _DELETED)
        return names

    def open(self) -> None:
        """Make the names lead to the files."""
        for file, number in zip(self._files, self._numbers, strict=True):
            try:
                os.fstat(number)
            except OSError:
                os.dup2(file.fileno(), number, inheritable=False)
                self._open.append(FileIO(number, "rb"))
                continue
            raise TracekitError(
                "another part of this program opened so many files just now that the trace could "
                "not be opened: run again"
            )

    def as_rows(self) -> pa.RecordBatchReader:
        """How many files are open, as rows of Arrow: who holds on to these keeps them open."""
        return pa.RecordBatchReader.from_batches(_COUNT, self._count())

    def _count(self) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[len(self._open)]], _COUNT)

    def name(self, file: OpenFile) -> str:
        """The name of one of the files."""
        return str(_FOLDER / str(self._numbers[self._files.index(file)]))

    def close(self) -> None:
        """Give the files back."""
        for file in self._open:
            file.close()
        self._open.clear()


def _free_numbers(files: Sequence[OpenFile]) -> list[int]:
    taken: list[int] = []
    try:
        for file in files:
            taken.append(_high_number(file))  # noqa: PERF401 - what was taken must be given back
    except OSError as error:
        raise TracekitError(
            f"{len(files):,} files cannot be open at once ({error.strerror}): allow more with "
            "`ulimit -n`, or name fewer traces"
        ) from error
    finally:
        for number in taken:
            os.close(number)
    return taken


def _high_number(file: OpenFile) -> int:
    try:
        return fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, _NUMBERS_FROM)
    except OSError:
        if not more_files():
            raise
    return fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, _NUMBERS_FROM)
