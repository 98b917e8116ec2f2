"""Lies planted in what an audit log alone tells: nearly as many are found as in a watch of that time.

What a log lacks are Events, and with them the lies about Events; and Leases, and with them the proof
that a silent controller was there: what came late or never is told by such a proof alone. It names
the actor, so nothing that the controller did can pass as somebody else's. All kinds, beside a watch's:
`python -m bench audit_lies`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import orjson
import pytest

from tests.lies import KINDS, Lie, Record, draws_of, plant
from tests.replay.test_planted_lies import FOUND, PLACES
from tests.unit.trace.importers.audit_logs import TRACES, header_of
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import Origin, TraceHeader
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.copying import ORIGIN_COLUMNS, origin_of
from tracekit.trace.writing.writer import TraceWriter

Row = Mapping[str, Any]
EVENT_KINDS = frozenset(kind for kind in KINDS if "event" in kind)
TRIED = [kind for kind in FOUND if kind not in EVENT_KINDS]
#: Told by the proof that a controller which led was idle, or came to others first.
SILENT = ("retry-late", "silent-midway")
FEW = (
    "body-image", "condition-message", "finalizer-early", "pod-extra-silent",
    "pod-removed", "status-failed-high-once", "status-ready-high", "uncounted-kept",
)  # fmt: skip
_COLUMNS = ("recv_ns", "stream", "type", "raw", "seq", *ORIGIN_COLUMNS)
_STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")


@cache
def logged(name: str) -> tuple[Record, TraceHeader]:
    """The rows of a trace made of the audit log alone, and what it says of itself."""
    with TemporaryDirectory() as folder:
        log = TRACES / name / "audit.jsonl.zst"
        return _read(str(log), Path(folder) / "trace", name)


@cache
def watched(name: str) -> tuple[Record, TraceHeader]:
    """The rows of the watch of that time."""
    with TemporaryDirectory() as folder:
        log = TRACES / name / "watch.jsonl.zst"
        return _read(str(log), Path(folder) / "trace", name)


def _read(log: str, target: Path, name: str) -> tuple[Record, TraceHeader]:
    import_files(ImportRequest([log], target, header_of(name)))
    reader = TraceReader(target)
    rows = [
        {
            "recv": row["recv_ns"],
            "resource": row["stream"],
            "type": row["type"],
            "object": orjson.loads(row["raw"]),
            "origin": origin_of(row),
        }
        for row in sorted(reader.table(_COLUMNS, types=_STATES).to_pylist(), key=_seq)
    ]
    return Record(rows), reader.header


def _seq(row: Row) -> int:
    return int(row["seq"])


def accused(rows: list[Row], header: TraceHeader) -> set[str]:
    """The objects that something divergent is told of."""
    with TemporaryDirectory() as folder:
        with TraceWriter(Path(folder) / "trace", header) as writer:
            for row in rows:
                origin = row.get("origin") or Origin()
                writer.append(
                    row["resource"],
                    row["type"],
                    row["recv"],
                    orjson.dumps(row["object"]),
                    synthesized=origin.derived_from is not None,
                    origin=origin,
                )
        reader = TraceReader(Path(folder) / "trace")
        report = Judge(reader, resolve_era(reader, None, None)).report()
        return {f"{j.object.namespace}/{j.object.name}" for j in report.divergences}


def planted(kind: str, name: str, record: Record) -> tuple[list, Lie] | None:
    return plant(kind, record, draws_of(kind, name))


def is_found(
    kind: str, name: str, record: Record, header: TraceHeader, *, strict: bool = True
) -> bool | None:
    """Whether the lie is found, None where there is no place for it; nobody else is accused.

    Not `strict`: of a record that is whole only with the Jobs that are left out here.
    """
    lied = planted(kind, name, record)
    if lied is None:
        return None
    rows, lie = lied
    touched = {id(row) for row in record.rows}
    keys = {lie.key, *lie.also}
    own = [row for row in rows if id(row) not in touched or _key(row) in keys or _loose(row)]
    found = accused(own, header)
    assert not strict or found <= keys, lie.description
    return lie.key in found or bool(lie.doubt)


def _key(row: Row) -> str:
    """The Job that a row is about, or nothing's."""
    obj, stream = row["object"], row["resource"]
    meta = obj.get("metadata") or {}
    name = meta.get("name") if stream == "jobs" else None
    if stream == "events":
        name = (obj.get("involvedObject") or {}).get("name")
    elif stream == "pods":
        owners = meta.get("ownerReferences") or ()
        name = next((o["name"] for o in owners if o.get("controller")), None)
    return f"{meta.get('namespace')}/{name}"


def _loose(row: Row) -> bool:
    """Whether it is of no Job: then it stays. CronJobs without their Jobs would be accused."""
    if row["resource"] == "pods":
        return not row["object"]["metadata"].get("ownerReferences")
    return row["resource"] not in ("jobs", "events", "cronjobs")


def in_one_place(kind: str) -> tuple[str, bool] | None:
    """The first record, from the kind's own on, that has room for the lie, and if it is found."""
    start = crc32(kind.encode()) % len(PLACES)
    for name in (*PLACES[start:], *PLACES[:start]):
        found = is_found(kind, name, *logged(name))
        if found is not None:
            return name, found
    return None


@pytest.mark.parametrize("kind", FEW)
def test_a_lie_in_an_audit_log_accuses_its_own_job(kind: str) -> None:
    place = in_one_place(kind)
    assert place is not None
    assert place[1]


@pytest.mark.parametrize("kind", ["ttl-early", "ttl-longer"])
def test_a_ttl_deletion_before_its_time_is_told_where_a_log_names_the_controller(kind: str) -> None:
    """A watch cannot tell it from a user's."""
    place = in_one_place(kind)
    assert place is not None
    assert place[1]


@pytest.mark.parametrize("kind", SILENT)
def test_what_was_never_done_accuses_nobody_without_leases(kind: str) -> None:
    place = in_one_place(kind)
    assert place is not None
    assert not place[1]
