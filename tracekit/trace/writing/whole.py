"""Compacting a trace that nobody records: in place, or into a copy.

Files are replaced one by one as in any compaction, so a reader beside it and an interruption lose
nothing. Only when all of them have checksums do header and manifest say so.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from tracekit import __version__
from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.header import (
    read_header,
    require_text,
    sync_directory,
    sync_file,
    write_header,
)
from tracekit.trace.format.manifest import Manifest, read_manifest, write_manifest
from tracekit.trace.format.model import FORMAT_VERSION, LOG_DIR, WIDE_VERSION
from tracekit.trace.format.opening import new_file
from tracekit.trace.format.seal import DamageError
from tracekit.trace.format.segments import remove_temporaries
from tracekit.trace.reading.snapshot import Snapshot, open_snapshot
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.lock import TraceLock
from tracekit.trace.writing.placing import check_absent, placed

_CHUNK = 1 << 20


class Compacted(Struct, frozen=True):
    """What was done."""

    trace: Path
    bytes_before: int


def compact_in_place(trace: Path, *, narrow: bool = True) -> Compacted:
    """Rewrite a trace in as few bytes as it takes (`narrow`), or with every column."""
    snapshot = _whole(trace)
    lock = TraceLock(trace)
    try:
        remove_temporaries(trace)
        size = sum(file.size_bytes for file in snapshot.files)
        _close(snapshot)
        _compact(trace, narrow=narrow)
    except BaseException:
        remove_temporaries(trace)  # a disk may be full of them
        raise
    finally:
        lock.release()
    return Compacted(trace, size)


def compact_copy(trace: Path, output: Path, *, narrow: bool = True) -> Compacted:
    """The same for a copy; the trace stays as it is."""
    check_absent(output, "compacted trace")
    require_text(output)
    snapshot = _whole(trace)
    size = sum(file.size_bytes for file in snapshot.files)
    with placed(output, "compacting") as place:
        log = place / LOG_DIR
        log.mkdir(parents=True)
        lock = TraceLock(place)
        try:
            for file in snapshot.files:
                with new_file(log / file.segment.path.name) as target:
                    # The very file that was verified, whatever has its name by now.
                    for start in range(0, file.size_bytes, _CHUNK):
                        target.write(os.pread(file.fileno(), _CHUNK, start))
                    target.flush()
                    sync_file(target.fileno())
            sync_directory(log)
            if snapshot.header.sealed_from is not None:
                write_manifest(place, _manifest(snapshot))
            write_header(place, snapshot.header)
            _close(snapshot)
            _compact(place, narrow=narrow)
        finally:
            lock.release()
    return Compacted(output, size)


def _whole(trace: Path) -> Snapshot:
    """The trace, verified; one that is damaged keeps its damage, and is refused."""
    snapshot = open_snapshot(trace)
    snapshot.verify()
    damaged = [loss.sentence for loss in snapshot.losses if loss.damage]
    if damaged:
        raise TraceFormatError(damaged[0])
    return snapshot


def _manifest(snapshot: Snapshot) -> Manifest:
    """What the files there are promise."""
    files = snapshot.files
    identity = next((file.identity for file in files if file.identity is not None), None)
    rows = files[-1].segment.last + 1 if files else 0
    return Manifest(rows, identity, _namespaces(snapshot))


def _namespaces(snapshot: Snapshot) -> frozenset[str] | None:
    """The namespaces of all rows; None where some are lost, or cannot be read."""
    if snapshot.losses:
        return None
    names: set[str | None] = set()
    try:
        for file in snapshot.files:
            for group in range(file.row_groups):
                names.update(pc.unique(file.read(group, ("namespace",))["namespace"]).to_pylist())
    except DamageError:
        return None
    return frozenset(name for name in names if name is not None)


def note_namespaces(trace: Path) -> None:
    """Say in the manifest which namespaces there are; the caller holds the trace's lock."""
    header = read_header(trace)
    known = read_manifest(trace, sealed=header.sealed_from is not None)
    if known is not None and known.namespaces is None:
        snapshot = open_snapshot(trace)
        write_manifest(trace, replace(known, namespaces=_namespaces(snapshot)))
        _close(snapshot)


def _close(snapshot: Snapshot) -> None:
    for file in snapshot.files:
        file.close()


def _compact(trace: Path, *, narrow: bool) -> None:
    header = read_header(trace)
    if narrow:
        # Before the first narrow file is there: whoever cannot read it learns so from the header.
        write_header(trace, replace(header, format_version=FORMAT_VERSION))
    Compactor(trace, narrow=narrow).finish()
    snapshot = open_snapshot(trace)
    manifest = _manifest(snapshot)
    _close(snapshot)
    write_manifest(trace, manifest)
    version = FORMAT_VERSION if narrow else WIDE_VERSION
    write_header(
        trace,
        replace(header, sealed_from=0, format_version=version, tracekit_version=__version__),
    )
