"""What follows from the content of a trace alone, kept on this machine beside its verdicts.

A verb that shows one Job needs to know what the whole trace says of the controller's process and of
its gates, which takes a reading of all of it. Each such fact is a small JSON file under the digest
of the trace's checksums, its header and the code; its name ends with its own digest, and one that
does not fit is made again. Rows that are read are compared with their checksums by who reads them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TypeVar

import msgspec

from tracekit.base.coverage import Coverage
from tracekit.judge.verdict_cache import verdicts_key
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.reading.objects import Objects, objects_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.snapshot import Snapshot
from tracekit.trace.stores.cache_folder import cache_folder, make_room
from tracekit.versions.overrides import AskedRules

T = TypeVar("T")
_SUFFIX = ".json"
#: Seven for each trace, of which those of its objects and of its cases may have megabytes, and one
#: for each object of it that somebody explained.
_FILES_MAX = 3_000
_BYTES_MAX = 512 << 20


def cached_fact(
    snapshot: Snapshot,
    name: str,
    kind: Any,
    make: Callable[[], T],
    *,
    rules: AskedRules | None = None,
    about: Sequence[str] = (),
) -> T:
    """What was kept under the name; else it is made, and kept. `kind`: its type, for msgspec.

    `rules`: what the user says of them, where it follows from these, too; `about`: which part of
    the trace. Of one that has lost something, or that has no checksums, nothing is kept.
    """
    files = snapshot.files
    if snapshot.losses or not all(isinstance(f, SegmentFile) and f.is_sealed for f in files):
        return make()
    if about:
        name = f"{name}-{_digest(repr((*about,)).encode())}"
    key = verdicts_key(snapshot) if rules is None else verdicts_key(snapshot, *rules.era)
    folder, stem = cache_folder() / "facts", f"{name}-{key}"
    with suppress(OSError, RuntimeError, msgspec.MsgspecError):
        for path in folder.glob(f"{stem}.*{_SUFFIX}"):
            text = path.read_bytes()
            if path.name == _name(stem, text):
                os.utime(path)  # used just now
                found: T = msgspec.json.decode(text, type=kind)
                return found
            path.unlink(missing_ok=True)
    made = make()
    with suppress(OSError, RuntimeError):
        _keep(folder, stem, msgspec.json.encode(made))
    return made


def cached_coverage(reader: TraceReader) -> Coverage:
    """What a trace covers; read from its rows once."""
    return cached_fact(reader.snapshot, "coverage", Coverage, lambda: coverage_of(reader))


def cached_objects(reader: TraceReader) -> Objects:
    """The Jobs and CronJobs of a trace; read from its rows once."""
    return cached_fact(reader.snapshot, "objects", Objects, lambda: objects_of(reader))


def _keep(folder: Path, stem: str, text: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_room(folder, _FILES_MAX, _BYTES_MAX)
    file = NamedTemporaryFile(dir=folder, delete=False)  # noqa: SIM115
    try:
        with file:
            file.write(text)
        Path(file.name).replace(folder / _name(stem, text))
    except OSError:
        Path(file.name).unlink(missing_ok=True)
        raise


def _name(stem: str, text: bytes) -> str:
    return f"{stem}.{_digest(text)}{_SUFFIX}"


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()
