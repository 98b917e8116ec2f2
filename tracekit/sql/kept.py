"""Verdicts that were computed before, kept in the user's own cache directory.

Under `TRACEKIT_CACHE_DIR`, else `$XDG_CACHE_HOME/tracekit` (`~/.cache/tracekit`), one file for each
key, never in a trace: a trace is anybody's, and what it brings along is no verdict of ours. Each
file begins with a checksum of the rest; one that does not fit is made again. A machine without a
place to write to goes without.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import NamedTemporaryFile

import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.trace.stores.place import cache_folder

_FOLDER = "verdicts"
_SUFFIX = ".verdicts"
_DIGEST_BYTES = 32
#: The ones used longest ago go when there are more.
_FILES_MAX = 500
#: Their data decides when a schedule is due.
_DATA_PACKAGES = ("tzdata",)


def load(key: str, schema: pa.Schema) -> pa.Table | None:
    """What was stored under the key; None if there is nothing that can be believed."""
    with suppress(OSError, RuntimeError, pa.ArrowException):
        path = cache_folder() / _FOLDER / f"{key}{_SUFFIX}"
        content = path.read_bytes()
        if _digest(content[_DIGEST_BYTES:]) == content[:_DIGEST_BYTES]:
            table = pq.read_table(pa.BufferReader(content[_DIGEST_BYTES:]), schema=schema)
            os.utime(path)  # used just now
            return table
    return None


def store(key: str, table: pa.Table) -> None:
    """Keep a table under the key, if there is a place for it."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content = sink.getvalue().to_pybytes()
    with suppress(OSError, RuntimeError):
        folder = cache_folder() / _FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_room(folder)
        with NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(_digest(content) + content)
        Path(file.name).replace(folder / f"{key}{_SUFFIX}")


def _make_room(folder: Path) -> None:
    kept = [(path.stat().st_mtime_ns, path) for path in folder.iterdir()]
    for _, path in sorted(kept)[: max(0, len(kept) + 1 - _FILES_MAX)]:
        path.unlink(missing_ok=True)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


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

    add(files("tracekit"), "")
    for package in _DATA_PACKAGES:
        with suppress(PackageNotFoundError):
            digest.update(f"{package} {version(package)}".encode())
    return digest.hexdigest()
