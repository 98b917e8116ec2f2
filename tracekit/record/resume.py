"""Where each stream of an existing trace ends, so that `--append` can go on from there.

The position is the newest revision of a watch event, a bookmark or a finished list. Rows of a list
that never finished count for nothing: the objects it had not reached yet may have changed, so the
stream goes on from before that list and the server tells the rest (or says 410, which is a gap).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from tracekit.record.kinds import StreamSpec
from tracekit.record.positions import ResumePoint
from tracekit.trace.reader import TraceReader

_POSITION_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "LIST_END"})
_STATE_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "LIST"})
_COLUMNS = ("seq", "type", "recv_ns", "rv", "uid", "namespace", "name", "synthesized")
_BATCH_ROWS = 4096


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
    points = {}
    for spec in specs:
        scan = _scan(_rows(reader, spec.resource), spec)
        if scan.position is None or not scan.listed_once:
            continue
        bodies = _bodies(reader, spec, scan) if spec.keeps_bodies else {}
        points[spec.name] = ResumePoint(
            resource_version=str(scan.position),
            seen_ns=scan.seen_ns,
            objects={uid: (str(rv), bodies.get(seq, b"")) for uid, (rv, seq) in scan.live.items()},
        )
    return points


def _rows(reader: TraceReader, resource: str) -> Iterator[dict[str, Any]]:
    """Go through a stream's rows in order, a few at a time as Python values."""
    bounds = reader.table(
        ("seq", "raw"), streams=[resource], types=["LIST_BEGIN", "LIST_END"]
    ).to_pylist()
    # Only `raw` says which part of the stream a list was of.
    parts = {row["seq"]: orjson.loads(row["raw"]).get("namespace") for row in bounds}
    for batch in reader.table(_COLUMNS, streams=[resource]).to_batches(_BATCH_ROWS):
        for row in batch.to_pylist():
            if row["seq"] in parts:
                row["namespace"] = row["name"] = parts[row["seq"]]
            yield row


def _scan(rows: Iterable[dict[str, Any]], spec: StreamSpec) -> _Scan:
    scan = _Scan()
    for row in rows:
        if not _belongs(row, spec):
            continue
        kind, rv = row["type"], row["rv"]
        scan.seen_ns = row["recv_ns"] or scan.seen_ns
        if kind == "LIST_BEGIN":
            if not scan.listing:
                scan.before_list = scan.position
            scan.listing = True
        elif kind == "LIST_END":
            # Not the greatest: a list says where the server is, even if that went back.
            scan.position, scan.listing, scan.listed_once = rv, False, True
        elif kind in _POSITION_TYPES and rv is not None and not row["synthesized"]:
            scan.position = rv if scan.position is None else max(scan.position, rv)
        if kind in _STATE_TYPES:
            _note_state(scan, row)
    if scan.listing:
        scan.position = scan.before_list
    return scan


def _note_state(scan: _Scan, row: dict[str, Any]) -> None:
    uid, rv = row["uid"], row["rv"]
    if uid is None or rv is None:
        return
    known = scan.live.get(uid)
    if row["type"] == "DELETED":
        if known is None or rv >= known[0]:
            scan.live.pop(uid, None)
    elif known is None or rv >= known[0]:
        scan.live[uid] = (rv, row["seq"])


def _belongs(row: dict[str, Any], spec: StreamSpec) -> bool:
    """Tell whether a row is of this part of its stream (all are when there is one part)."""
    if spec.part is None:
        return True
    where = row["name"] if spec.resource == "namespaces" else row["namespace"]
    return bool(where == spec.part)


def _bodies(reader: TraceReader, spec: StreamSpec, scan: _Scan) -> dict[int, bytes]:
    """Read the last state of every live object, by position in the trace."""
    wanted = {seq for _, seq in scan.live.values()}
    bodies: dict[int, bytes] = {}
    if not wanted:
        return bodies
    for table in reader.batches(
        ("seq", "raw"), streams=[spec.resource], first_seq=min(wanted), last_seq=max(wanted)
    ):
        for seq, raw in zip(table["seq"].to_pylist(), table["raw"], strict=True):
            if seq in wanted:
                bodies[seq] = raw.as_py().encode()
    return bodies
