"""Where each stream of an existing trace ends, so that `--append` can go on from there.

The position is the newest revision of a watch event, a bookmark or a finished list. Rows of a list
that never finished count for nothing: the objects it had not reached yet may have changed, so the
stream goes on from before that list and the server tells the rest (or says 410, which is a gap).

The trace is gone through once, for all streams together, and of what a recorder that was killed
left untyped only identity and revision are read: typing it is compaction's work, later and beside
the recorder, and took most of a start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import msgspec
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.numbers import whole_number
from tracekit.record.container_logs.logs import STREAM as LOG_STREAM
from tracekit.record.server.kinds import StreamSpec
from tracekit.record.streams.positions import ResumePoint
from tracekit.trace.format.segments import Segment
from tracekit.trace.reading.reader import TraceReader

_POSITION_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "LIST_END"})
_STATE_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "LIST"})
_BOUND_TYPES = frozenset({"LIST_BEGIN", "LIST_END"})
_USED_TYPES = sorted(_POSITION_TYPES | _STATE_TYPES | _BOUND_TYPES)
_COLUMNS = ("seq", "stream", "type", "recv_ns", "synthesized", "rv", "uid", "namespace", "name")
_PLAIN_COLUMNS = ("seq", "stream", "type", "recv_ns", "synthesized", "raw")
_BATCH_ROWS = 8192


class _Row(NamedTuple):
    """What a position is found by."""

    seq: int
    stream: str
    type: str
    recv_ns: int | None
    synthesized: bool
    rv: int | None
    uid: str | None
    #: Namespace, of namespaces the name: tells the parts of a stream apart.
    part: str | None


class _Metadata(msgspec.Struct, gc=False):
    resourceVersion: str | None = None  # noqa: N815 (the API's spelling)
    uid: str | None = None
    name: str | None = None
    namespace: str | None = None


class _Body(msgspec.Struct, gc=False):
    """An object, or the bound of a list."""

    metadata: _Metadata | None = None
    resourceVersion: str | None = None  # noqa: N815
    namespace: str | None = None


_decode = msgspec.json.Decoder(_Body).decode


@dataclass(slots=True)
class _Scan:
    """What a pass over one stream's rows has found so far."""

    position: int | None = None
    #: What the position falls back to while a list is under way.
    before_list: int | None = None
    listing: bool = False
    listed_once: bool = False
    seen_ns: int = 0
    #: uid → (revision, position in the trace) of live objects.
    live: dict[str, tuple[int, int]] = field(default_factory=dict)


def resume_points(reader: TraceReader, specs: Iterable[StreamSpec]) -> dict[str, ResumePoint]:
    """Find where to go on, by stream name; a stream without a finished list is not there."""
    specs = list(specs)
    scans = {spec.name: _Scan() for spec in specs}
    by_place = {(spec.resource, spec.part): scans[spec.name] for spec in specs}
    have_parts = any(spec.part is not None for spec in specs)
    for row in _rows(reader, sorted({spec.resource for spec in specs}), have_parts=have_parts):
        scan = by_place.get((row.stream, row.part if have_parts else None))
        # One of several namespaces: streams without parts (leases) are there too.
        scan = scan or by_place.get((row.stream, None))
        if scan is not None:
            _note(scan, row)
    points = {}
    for spec in specs:
        scan = scans[spec.name]
        if scan.listing:
            scan.position = scan.before_list
        if scan.position is None or not scan.listed_once:
            continue
        bodies = _bodies(reader, spec, scan) if spec.keeps_bodies else {}
        points[spec.name] = ResumePoint(
            resource_version=str(scan.position),
            seen_ns=scan.seen_ns,
            objects={uid: (str(rv), bodies.get(seq, b"")) for uid, (rv, seq) in scan.live.items()},
        )
    return points


def known_logs(reader: TraceReader) -> frozenset[str]:
    """List the runs of containers whose logs a trace has."""
    return frozenset(
        uid
        for table in reader.batches(("uid",), streams=[LOG_STREAM])
        for uid in table["uid"].to_pylist()
        if uid is not None
    )


def _note(scan: _Scan, row: _Row) -> None:
    kind, rv = row.type, row.rv
    scan.seen_ns = row.recv_ns or scan.seen_ns
    if kind == "LIST_BEGIN":
        if not scan.listing:
            scan.before_list = scan.position
        scan.listing = True
    elif kind == "LIST_END":
        # Not the greatest: a list says where the server is, even if that went back.
        scan.position, scan.listing, scan.listed_once = rv, False, True
    elif kind in _POSITION_TYPES and rv is not None and not row.synthesized:
        scan.position = rv if scan.position is None else max(scan.position, rv)
    if kind not in _STATE_TYPES or row.uid is None or rv is None:
        return
    known = scan.live.get(row.uid)
    if kind == "DELETED":
        if known is None or rv >= known[0]:
            scan.live.pop(row.uid, None)
    elif known is None or rv >= known[0]:
        scan.live[row.uid] = (rv, row.seq)


#### Rows ####


def _rows(reader: TraceReader, streams: list[str], *, have_parts: bool) -> Iterator[_Row]:
    """Go through the rows of some streams in order of arrival."""
    for is_plain, segments in groupby(reader.segments, key=reader.is_plain):
        for segment in segments if is_plain else _joined(segments):
            selection = {
                "streams": streams,
                "types": _USED_TYPES,
                "first_seq": segment.first,
                "last_seq": segment.last,
            }
            if is_plain:
                table = reader.table(_PLAIN_COLUMNS, **selection)
                yield from _plain_rows(table, have_parts=have_parts)
            else:
                bounds = {}
                if have_parts:
                    # Only `raw` says which part of the stream a list was of.
                    selection_of_bounds = {**selection, "types": sorted(_BOUND_TYPES)}
                    found = reader.table(("seq", "raw"), **selection_of_bounds).to_pylist()
                    bounds = {
                        row["seq"]: orjson.loads(row["raw"]).get("namespace") for row in found
                    }
                yield from _typed_rows(reader.table(_COLUMNS, **selection), bounds)


def _joined(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Give the rows of segments that follow each other as one range."""
    found = list(segments)
    yield Segment(found[0].first, found[-1].last, found[0].path)


def _typed_rows(table: pa.Table, bounds: dict[int, str | None]) -> Iterator[_Row]:
    for batch in table.to_batches(_BATCH_ROWS):
        columns = (column.to_pylist() for column in batch.columns)
        for seq, stream, kind, recv_ns, synthesized, rv, uid, namespace, name in zip(
            *columns, strict=True
        ):
            part = name if stream == "namespaces" else namespace
            if kind in _BOUND_TYPES:
                part = bounds.get(seq)
            yield _Row(seq, stream, kind, recv_ns, bool(synthesized), rv, uid, part)


def _plain_rows(table: pa.Table, *, have_parts: bool) -> Iterator[_Row]:
    for batch in table.to_batches(_BATCH_ROWS):
        columns = (column.to_pylist() for column in batch.columns)
        for seq, stream, kind, recv_ns, synthesized, raw in zip(*columns, strict=True):
            try:
                body = _decode(raw or "")
            except (msgspec.DecodeError, RecursionError):
                continue  # typing it will say so
            about = body.metadata or _Metadata()
            part = None
            if have_parts:
                part = about.name if stream == "namespaces" else about.namespace
            revision = about.resourceVersion
            if kind in _BOUND_TYPES:
                revision, part = body.resourceVersion, body.namespace
            rv = whole_number(revision)
            yield _Row(seq, stream, kind, recv_ns, bool(synthesized), rv, about.uid, part)


def _bodies(reader: TraceReader, spec: StreamSpec, scan: _Scan) -> dict[int, bytes]:
    """Read the last state of every live object, by position in the trace."""
    wanted = pa.array(sorted(seq for _, seq in scan.live.values()), pa.int64())
    bodies: dict[int, bytes] = {}
    if not len(wanted):
        return bodies
    first, last = wanted[0].as_py(), wanted[-1].as_py()
    for table in reader.batches(
        ("seq", "raw"), streams=[spec.resource], first_seq=first, last_seq=last
    ):
        found = table.filter(pc.is_in(table["seq"], value_set=wanted))
        for seq, raw in zip(found["seq"].to_pylist(), found["raw"].to_pylist(), strict=True):
            bodies[seq] = raw.encode()
    return bodies
