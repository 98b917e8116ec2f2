"""Verdicts that were computed before, kept in the user's own cache directory.

Under `TRACEKIT_CACHE_DIR`, else `$XDG_CACHE_HOME/tracekit` (`~/.cache/tracekit`), one Parquet file
for each key, never in a trace: a trace is anybody's, and what it brings along is no verdict of
ours. A file's name ends with the digest of its bytes; one that does not fit is made again. A
machine without a place to write to goes without.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.judge.plugins import load_plugins
from tracekit.trace.format.header import header_document
from tracekit.trace.format.parquet import parquet_file
from tracekit.trace.reading.snapshot import Snapshot
from tracekit.trace.stores.cache_folder import cache_folder, make_room

_FOLDER = "verdicts"
_SUFFIX = ".parquet"
_DIGEST_BYTES = 32
_CHUNK = 1 << 20
#: The ones used longest ago go when there are more, or more bytes of them.
_FILES_MAX = 500
_BYTES_MAX = 4 << 30
#: Their data decides when a schedule is due.
_DATA_PACKAGES = ("tzdata",)


def open_cached(key: str) -> tuple[Path, pq.ParquetFile] | None:
    """What was kept under the key, and where; None if there is nothing that can be believed."""
    with suppress(OSError, RuntimeError, pa.ArrowException):
        for path in (cache_folder() / _FOLDER).glob(f"{key}.*{_SUFFIX}"):
            file = path.open("rb")
            if path.name == _name(key, _digest(file)):
                os.utime(path)  # used just now
                return path, parquet_file(pa.PythonFile(file, mode="r"))
            file.close()
    return None


def keep_again(before: str, after: str) -> None:
    """Keep what was kept under one key under another one, too."""
    with suppress(OSError, RuntimeError):
        folder = cache_folder() / _FOLDER
        for path in folder.glob(f"{before}.*{_SUFFIX}"):
            shutil.copyfile(path, folder / path.name.replace(before, after))


class CacheWriter:
    """A file that is to be kept, written part by part; in vain where there is no place for it."""

    def __init__(self, key: str, schema: pa.Schema) -> None:
        self._key = key
        self._file: IO[bytes] | None = None
        self._writer: pq.ParquetWriter | None = None
        with suppress(OSError, RuntimeError):
            folder = cache_folder() / _FOLDER
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = NamedTemporaryFile(dir=folder, suffix=_SUFFIX, delete=False)  # noqa: SIM115
            self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")

    @property
    def is_open(self) -> bool:
        """Whether there is a place, and no error so far."""
        return self._writer is not None

    def write(self, table: pa.Table) -> None:
        """Add rows, as a row group of their own."""
        try:
            if self._writer is not None:
                self._writer.write_table(table)
        except OSError:
            self.discard()

    def written(self) -> Iterator[pa.Table]:
        """What was written, a row group at a time; nothing can be added any more."""
        try:
            if self._writer is not None and self._file is not None:
                self._writer.close()
                self._file.flush()
                self._file.seek(0)
                written = parquet_file(pa.PythonFile(self._file, mode="r"))
                for group in range(written.num_row_groups):
                    yield written.read_row_group(group, use_threads=False)
        except OSError:
            self.discard()

    def done(self, texts: dict[str, str]) -> None:
        """Put the file in its place; `texts` go into its footer."""
        try:
            if self._writer is not None and self._file is not None:
                self._writer.add_key_value_metadata(texts)
                self._writer.close()
                self._file.flush()
                self._file.seek(0)
                temporary = Path(self._file.name)
                folder = temporary.parent
                for old in folder.glob(f"{self._key}.*{_SUFFIX}"):
                    old.unlink(missing_ok=True)
                make_room(folder, _FILES_MAX, _BYTES_MAX)
                temporary.replace(folder / _name(self._key, _digest(self._file)))
        except OSError:
            pass
        self.discard()

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()
        if self._file is not None:
            with suppress(OSError):
                Path(self._file.name).unlink(missing_ok=True)
            with suppress(OSError):  # on a full disk it fails, too: it writes what waits
                self._file.close()
        self._file = self._writer = None


def _name(key: str, digest: str) -> str:
    return f"{key}.{digest}{_SUFFIX}"


def _digest(file: IO[bytes]) -> str:
    """The digest of all bytes of an open file, which is then at its beginning again."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def verdicts_key(
    snapshot: Snapshot,
    version: str | None = None,
    gates: str | None = None,
    process_zone: str | None = None,
    search_all: bool = False,
) -> str:
    """What the verdicts follow from: the content of the trace, the rules, the code.

    The rules are what the user says of them, as on a command line.
    """
    parts = {
        "segments": [
            (file.segment.first, file.segment.last, file.content_digest) for file in snapshot.files
        ],
        "lost": [(loss.first, loss.last) for loss in snapshot.losses],
        "header": header_document(snapshot.header),
        "version": version,
        "gates": gates,
        "process_zone": process_zone,
        "search_all": search_all,
        "code": code_digest(),
    }
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=32).hexdigest()


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of all that verdicts are computed with: this package, and data that it reads."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def add(folder: Traversable, name: str) -> None:
        for entry in sorted(folder.iterdir(), key=lambda item: item.name):
            path = f"{name}/{entry.name}"
            if entry.is_dir():
                if entry.name != "__pycache__":
                    add(entry, path)
            elif not entry.name.endswith((".pyc", ".pyo")):
                content = entry.read_bytes()
                digest.update(f"{path}\0{len(content)}\0".encode() + content)

    for name in ("tracekit", *load_plugins()):
        add(files(name), "" if name == "tracekit" else name)
    for package in _DATA_PACKAGES:
        with suppress(PackageNotFoundError):
            digest.update(f"{package} {version(package)}".encode())
    return digest.hexdigest()
