"""Which traces a word names, and by what it is seen that one is still as it was.

Files of a trace never change once in place, so their names, sizes and times tell a trace from any
other without one byte of them being read.
"""

from __future__ import annotations

from glob import glob, has_magic
from pathlib import Path

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.model import HEADER_NAME, LOG_DIR, MANIFEST_NAME
from tracekit.trace.stores.place import expand_url, is_url
from tracekit.trace.stores.rotated import rotated_traces
from tracekit.trace.stores.store import complaints, open_store

Stamp = tuple[tuple[str, int | None, int | None], ...]


def named_traces(word: str) -> list[str]:
    """The traces that a directory, a folder of rotated ones, a URL or a pattern names, in order."""
    if is_url(word):
        return expand_url(word)
    if not has_magic(word) or Path(word).exists():
        below = [] if (Path(word) / HEADER_NAME).exists() else rotated_traces(Path(word))
        return [str(path) for path in below] or [word]
    names = sorted(glob(word))  # noqa: PTH207 - the word may be absolute
    found = [name for name in names if (Path(name) / HEADER_NAME).is_file()]
    if not found:
        raise TraceFormatError(
            f"{word} matches no trace: a trace is a directory with a {HEADER_NAME}, as "
            "`tracekit import` and `tracekit record` write it"
        )
    return found


def stamp_of(word: str) -> Stamp:
    """Names, sizes and times of all files that make a trace what it is."""
    if is_url(word):
        store = open_store(word)
        with complaints(store.address):
            top, log = store.listed(store.path), store.listed(f"{store.path}/{LOG_DIR}")
        small = {name: top[name] for name in (HEADER_NAME, MANIFEST_NAME) if name in top}
        return tuple(
            (name, info.size, info.mtime_ns) for name, info in sorted({**log, **small}.items())
        )
    trace = Path(word)
    files = [trace / HEADER_NAME, trace / MANIFEST_NAME]
    if (trace / LOG_DIR).is_dir():
        files += sorted((trace / LOG_DIR).iterdir())
    return tuple(
        (path.name, path.stat().st_size, path.stat().st_mtime_ns)
        for path in files
        if path.is_file()
    )
