"""The very files that were verified, for DuckDB to read, and no way to write them.

DuckDB opens files by name; a name in a trace may be deleted by a compaction at any moment, may hold
characters that DuckDB takes for a pattern, may lead elsewhere the next time. And the names that a
session may open are allowed for writing as well as for reading. So a session that only reads is
allowed no name of the system's: DuckDB reads the descriptors that were opened and verified, by
positions, through a file system that has nothing but these and opens them for reading alone.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from tracekit.base.errors import TracekitError
from tracekit.trace.format.opening import more_files
from tracekit.trace.reading.footer_statements import Ranges, with_ones

if TYPE_CHECKING:
    import duckdb

_PROTOCOL: Final = "verified"


class OpenFile(Protocol):
    """A file that was opened."""

    @property
    def unread(self) -> Ranges:
        """Bytes that DuckDB is shown as ones: they would make it pass rows over, unseen."""

    def fileno(self) -> int:
        """The descriptor of the open file."""


class Handles:
    """Names for the files of a session."""

    def __init__(self, files: Sequence[OpenFile]) -> None:
        self._files = list(files)
        self._descriptors = _Descriptors(files)

    def show(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let the connection read the files by their names.

        A relation is computed when it is fetched, maybe long after its session is forgotten: the
        connection keeps the files open for as long as it lives.
        """
        if self._files:
            connection.register_filesystem(_file_system()(self._descriptors))

    def allowed(self) -> list[str]:
        """What DuckDB must be told that it may open."""
        return [_name(number) for number in range(len(self._files))]

    def name(self, file: OpenFile) -> str:
        """The name of one of the files."""
        return _name(self._files.index(file))

    def __contains__(self, file: OpenFile) -> bool:
        """Whether it is one of the files."""
        return file in self._files

    def close(self) -> None:
        """Give the files back."""
        self._descriptors.close()


def _name(number: int) -> str:
    return f"{_PROTOCOL}://{number}"


class _Descriptors:
    """Descriptors of our own of some files, for reading."""

    def __init__(self, files: Sequence[OpenFile]) -> None:
        self._numbers: list[int] = []
        self._unread = [file.unread for file in files]
        try:
            for file in files:
                self._numbers.append(_duplicate(file.fileno()))
        except OSError as error:
            self.close()
            raise TracekitError(
                f"{len(files):,} files cannot be open at once ({error.strerror}): allow more with "
                "`ulimit -n`, or name fewer traces"
            ) from error

    def read(self, name: str, size: int, place: int) -> bytes:
        """So many bytes of the file of a name, fewer only at its end."""
        data = os.pread(self[name], size, place)
        return with_ones(data, place, self._unread[self._at(name)])

    def __getitem__(self, name: str) -> int:
        """The descriptor of a name; `FileNotFoundError` if there is none."""
        return self._numbers[self._at(name)]

    def _at(self, name: str) -> int:
        digits = name.removeprefix(f"{_PROTOCOL}://")
        if not (digits.isascii() and digits.isdecimal() and int(digits) < len(self._numbers)):
            raise FileNotFoundError(name)
        return int(digits)

    def close(self) -> None:
        while self._numbers:
            os.close(self._numbers.pop())

    def __del__(self) -> None:
        self.close()


def _duplicate(descriptor: int) -> int:
    try:
        return os.dup(descriptor)
    except OSError:
        if not more_files():
            raise
    return os.dup(descriptor)


class _Reading:
    """An open file, read by positions.

    Several threads of DuckDB's read one at once, each where it sought.
    """

    def __init__(self, descriptors: _Descriptors, name: str) -> None:
        self._descriptors = descriptors
        self._name = name
        self._at = threading.local()

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place; DuckDB knows all sizes, and counts from the start."""
        if whence != os.SEEK_SET:
            raise OSError("only places from the start are known")
        self._at.place = place
        return place

    def tell(self) -> int:
        """The place where the thread reads next."""
        return int(getattr(self._at, "place", 0))

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at the end."""
        data = self._descriptors.read(self._name, size, self.tell())
        self._at.place = self.tell() + len(data)
        return data

    def seekable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """The session closes the descriptor."""


def _file_system() -> type[Any]:
    """The class of the file system; the library is imported when the first session begins."""
    from fsspec import AbstractFileSystem  # noqa: PLC0415 - only SQL needs it

    class FileSystem(AbstractFileSystem):  # type: ignore[misc]
        """What DuckDB asks of a file system, of files that are open and can only be read."""

        protocol = _PROTOCOL
        cachable = False

        def __init__(self, descriptors: _Descriptors) -> None:
            super().__init__()
            self._descriptors = descriptors

        def open(self, path: str, mode: str = "rb", **_: Any) -> _Reading:
            if mode != "rb":
                raise PermissionError(f"{path} is open for reading alone")
            return _Reading(self._descriptors, path)

        def exists(self, path: str, **_: Any) -> bool:
            try:
                self._descriptors[path]
            except FileNotFoundError:
                return False
            return True

        isfile = exists

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path] if self.exists(path) else []

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            status = os.fstat(self._descriptors[path])
            kind = "file" if stat.S_ISREG(status.st_mode) else "other"
            return {"name": path, "size": status.st_size, "type": kind, "mtime": status.st_mtime}

        def modified(self, path: str) -> Any:
            from datetime import UTC, datetime  # noqa: PLC0415 - as the library is imported

            return datetime.fromtimestamp(os.fstat(self._descriptors[path]).st_mtime, UTC)

        def _refuse(self, *_: Any, **__: Any) -> Any:
            raise PermissionError("the files of a trace are open for reading alone")

        rm = rm_file = mv = move = copy = cp_file = mkdir = makedirs = rmdir = touch = _refuse

    return FileSystem
