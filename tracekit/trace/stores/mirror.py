"""Copies of traces that lie in object storage, kept on this machine and brought up to date.

A trace is a small header and files that are never changed once in place: each time a URL is opened
its folder is listed, and only what is new is fetched. Of a large file that is the end, which says
where its row groups lie and what they must come to; these follow when they are read (`origin.py`).
Everything that reads a trace then reads the copy, its verdicts are kept beside it, and a second
look at a trace of gigabytes costs one listing. Which files count is decided on the names alone, as
for a trace in a directory (`trace/format/segments.py`): what compaction has merged is not fetched.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from pyarrow import fs

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.header import replace_file
from tracekit.trace.format.model import HEADER_NAME, LOG_DIR, MANIFEST_NAME
from tracekit.trace.format.seal import rest_offset
from tracekit.trace.format.segments import (
    TEMPORARY_PREFIX,
    all_segments,
    named_segments,
    split_covered,
)
from tracekit.trace.stores.cache_folder import CACHE_VARIABLE, cache_folder
from tracekit.trace.stores.origin import Origin, count_fetched
from tracekit.trace.stores.store import REQUESTS_AT_ONCE, Address, Store, complaints, open_store

#: What is known of the fetched files: name -> size and time of the object.
STATE_NAME = ".mirror.json"
_ROUNDS = 5
_CHUNK = 1 << 20
#: Fetched whole: requests cost more than such a file's bytes.
_WHOLE_BYTES = 256 << 10
#: Fetched of the end of every other file; most footers are smaller.
_END_BYTES = 64 << 10

Stamp = list[int | None]


def mirrored(url: str) -> tuple[Path, Origin]:
    """The directory of an up-to-date copy of the trace that a URL names, and its origin."""
    store = open_store(url)
    with complaints(store.address):
        return _brought_up_to_date(store), Origin(store)


def matching(pattern: str) -> list[str]:
    """The URLs of the traces that a pattern over folders names; a URL without one names itself."""
    if not has_magic(pattern):
        return [pattern]
    store = open_store(pattern)
    with complaints(store.address):
        found = [path for path in _paths(store) if _is_file(store, f"{path}/{HEADER_NAME}")]
    if not found:
        raise TraceFormatError(
            f"{pattern} matches no trace: a trace is a folder with {HEADER_NAME} and {LOG_DIR} in "
            "it"
        )
    # As it was written up to the bucket; what follows is what was found.
    scheme, _, rest = pattern.partition("://")
    start = f"{scheme}://{rest.partition('/')[0]}"
    within = (path.removeprefix(f"{scheme.lower()}://").partition("/")[2] for path in found)
    return sorted(f"{start}/{path}" for path in within)


def _paths(store: Store) -> list[str]:
    parts = store.path.split("/")
    first = next(i for i, part in enumerate(parts) if has_magic(part))
    if has_magic(store.address.path.partition("/")[0]):
        raise TraceFormatError(
            f"{store.address.url} names no bucket: a pattern may begin only after its name"
        )
    found = ["/".join(parts[:first])]
    for part in parts[first:]:
        found = [
            f"{path}/{name}"
            for path in found
            for name in (store.folders(path) if has_magic(part) else (part,))
            if not has_magic(part) or fnmatchcase(name, part)
        ]
    return found


def _is_file(store: Store, path: str) -> bool:
    return bool(store.files.get_file_info(path).type == fs.FileType.File)


#### Where copies lie ####


def folder_of(address: Address) -> Path:
    """The copy's directory: the URL's own parts, so that its name and messages tell the trace."""
    scheme = f"{address.scheme}@{address.place}" if address.place else address.scheme
    parts = [scheme, *address.path.split("/")]
    return Path(cache_folder(), "traces", *(_safe(part) for part in parts if part))


def _safe(part: str) -> str:
    """The part as a file name that leads nowhere else."""
    name = quote(part, safe=" @=+,~:")
    return re.sub(r"^\.+", lambda dots: "%2E" * len(dots[0]), name)


#### Bringing a copy up to date ####


def _brought_up_to_date(store: Store) -> Path:
    url, target = store.address.url, folder_of(store.address)
    for rounds_left in reversed(range(_ROUNDS)):
        if HEADER_NAME not in store.listed(store.path):
            raise TraceFormatError(
                f"{url} is not a trace: it has no {HEADER_NAME}; name the folder that "
                f"{HEADER_NAME} and {LOG_DIR} lie in"
            )
        try:
            (target / LOG_DIR).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceFormatError(
                f"{url} cannot be copied to {target} ({error.strerror}): name a directory that can "
                f"be written to in {CACHE_VARIABLE}"
            ) from error
        try:
            _fetch_trace(store, target)
        except FileNotFoundError:
            if not rounds_left:
                raise
            continue  # compacted between the listing and now: list again
        break
    return target


def _fetch_trace(store: Store, target: Path) -> None:
    # Before the log is listed: what the manifest promises is in place by then.
    manifest = _content(store, MANIFEST_NAME)
    log = f"{store.path}/{LOG_DIR}"
    listing = store.listed(log)
    live, _ = split_covered(named_segments(listing, target / LOG_DIR))
    wanted = {segment.path.name: _stamp(listing[segment.path.name]) for segment in live}
    known = _read_state(target)
    new = [name for name in wanted if not _is_there(target, name, wanted[name], known)]
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        fetched = [
            pool.submit(_fetch, store, listing[name], target / LOG_DIR / name) for name in new
        ]
        for one in fetched:
            one.result()
    # After the segments: a header never tells of sessions whose rows are not there yet.
    header = _content(store, HEADER_NAME)
    if header is None:
        raise FileNotFoundError(f"{store.address.url}/{HEADER_NAME}")
    if manifest is not None:
        replace_file(target / MANIFEST_NAME, manifest)
    else:
        (target / MANIFEST_NAME).unlink(missing_ok=True)
    replace_file(target / HEADER_NAME, header)
    replace_file(target / STATE_NAME, json.dumps(wanted).encode())
    for segment in all_segments(target):
        if segment.path.name not in wanted:
            segment.path.unlink(missing_ok=True)


def _content(store: Store, name: str) -> bytes | None:
    """One of the small files of the trace; None if it has none of that name."""
    if name not in store.listed(store.path):
        return None
    with store.files.open_input_stream(f"{store.path}/{name}") as source:
        content: bytes = source.read()
    count_fetched(len(content))
    return content


def _fetch(store: Store, info: fs.FileInfo, target: Path) -> None:
    """Fetch one file, or its end, under a temporary name and put it in place."""
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{target.name}")
    try:
        with temporary.open("wb") as copy:
            if store.reads_ranges and (info.size or 0) > _WHOLE_BYTES:
                with store.files.open_input_file(info.path) as source:
                    _copy_end(source, info.size, copy)
            else:
                with store.files.open_input_stream(info.path) as source:
                    while chunk := source.read(_CHUNK):
                        count_fetched(copy.write(chunk))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _copy_end(source: Any, size: int, copy: IO[bytes]) -> None:
    """Copy what of a file must be there for it to be opened; a hole is left for the rest."""
    start, end = size, b""
    wanted = max(0, size - _END_BYTES)
    while wanted < start:
        end = source.read_at(start - wanted, wanted) + end
        start, wanted = wanted, rest_offset(end, size)
    count_fetched(len(end))
    copy.truncate(size)
    copy.seek(start)
    copy.write(end)


def _stamp(info: fs.FileInfo) -> Stamp:
    return [info.size, info.mtime_ns]


def _is_there(target: Path, name: str, stamp: Stamp, known: Mapping[str, Stamp]) -> bool:
    try:
        size = (target / LOG_DIR / name).stat().st_size
    except FileNotFoundError:
        return False
    return known.get(name) == stamp and stamp[0] in (size, None)


def _read_state(target: Path) -> Mapping[str, Stamp]:
    try:
        state = json.loads((target / STATE_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}
