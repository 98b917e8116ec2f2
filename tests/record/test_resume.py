"""Where `--append` goes on: the same from typed and from plain segments, and without typing them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tracekit.record.operation.resume import resume_points
from tracekit.record.server.kinds import StreamSpec
from tracekit.record.streams.positions import ResumePoint
from tracekit.trace.format import plain
from tracekit.trace.format.model import Gap
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.writer import TraceWriter

JOBS = StreamSpec(resource="jobs", group_version="batch/v1", kind="Job")
EVENTS = StreamSpec(resource="events", group_version="v1", kind="Event", keeps_bodies=False)
PARTS = [
    StreamSpec(resource=resource, group_version="v1", kind="X", namespace=part, part=part)
    for resource in ("jobs", "namespaces")
    for part in ("a", "b")
]
LEASES = StreamSpec(resource="leases", group_version="coordination.k8s.io/v1", kind="Lease")


def body(uid: str, rv: int, namespace: str = "a", **more: object) -> bytes:
    metadata = {"uid": uid, "name": uid, "namespace": namespace, "resourceVersion": str(rv)}
    return orjson.dumps({"metadata": metadata, **more})


def bound(rv: int | None, namespace: str | None = None) -> bytes:
    found = {"resourceVersion": None if rv is None else str(rv)}
    return orjson.dumps(found if namespace is None else {**found, "namespace": namespace})


def write(path: Path, rows: list[tuple[str, str, bytes]], *, segments: int = 3) -> Path:
    writer = TraceWriter(path, plain=True)
    for number, (stream, kind, raw) in enumerate(rows):
        writer.append_plain(stream, [kind], 100 + number, [raw])
        if number % segments == segments - 1:
            writer.flush()
    writer.close()
    return path


ROWS = [
    ("jobs", "LIST_BEGIN", bound(None)),
    ("jobs", "LIST", body("j1", 3)),
    ("jobs", "LIST", body("j2", 4, text="ü")),
    ("jobs", "LIST_END", bound(10)),
    ("events", "LIST_BEGIN", bound(10)),
    ("events", "LIST_END", bound(10)),
    ("events", "ADDED", body("e1", 11)),
    ("jobs", "ADDED", body("j3", 12)),
    ("jobs", "MODIFIED", body("j1", 14, status={})),
    ("jobs", "MODIFIED", body("j1", 13)),  # out of order
    ("jobs", "DELETED", body("j2", 15)),
    ("jobs", "NOTE", b'{"error":"reset"}'),
    ("jobs", "ERROR", b'{"metadata":{},"code":500}'),
    ("jobs", "BOOKMARK", b'{"metadata":{"resourceVersion":"20"}}'),
]


def typed(path: Path) -> Path:
    Compactor(path).finish()
    return path


def as_it_is(path: Path) -> Path:
    return path


@pytest.mark.parametrize("state", [as_it_is, typed])
def test_positions_and_what_lives(tmp_path: Path, state: Callable[[Path], Path]) -> None:
    points = resume_points(TraceReader(state(write(tmp_path / "t", ROWS))), [JOBS, EVENTS, LEASES])
    assert points == {
        "jobs": ResumePoint(
            resource_version="20",
            seen_ns=113,
            objects={"j1": ("14", body("j1", 14, status={})), "j3": ("12", body("j3", 12))},
        ),
        "events": ResumePoint(resource_version="11", seen_ns=106, objects={"e1": ("11", b"")}),
    }


@pytest.mark.parametrize("state", [as_it_is, typed])
def test_a_list_that_never_finished_counts_for_nothing(
    tmp_path: Path, state: Callable[[Path], Path]
) -> None:
    rows = [*ROWS, ("jobs", "LIST_BEGIN", bound(30)), ("jobs", "LIST", body("j9", 29))]
    points = resume_points(TraceReader(state(write(tmp_path / "t", rows))), [JOBS])
    assert points["jobs"].resource_version == "20"


@pytest.mark.parametrize("state", [as_it_is, typed])
def test_parts_of_a_stream(tmp_path: Path, state: Callable[[Path], Path]) -> None:
    rows = [
        *[("jobs", kind, bound(5, "a")) for kind in ("LIST_BEGIN", "LIST_END")],
        *[("jobs", kind, bound(6, "b")) for kind in ("LIST_BEGIN", "LIST_END")],
        ("jobs", "ADDED", body("j1", 7, "b")),
        ("jobs", "ADDED", body("j2", 8, "c")),
        *[("namespaces", kind, bound(5, "a")) for kind in ("LIST_BEGIN", "LIST_END")],
        ("namespaces", "ADDED", b'{"metadata":{"uid":"u","name":"a","resourceVersion":"9"}}'),
        *[("leases", kind, bound(5)) for kind in ("LIST_BEGIN", "LIST_END")],
        ("leases", "ADDED", body("l", 9, "kube-system")),
    ]
    points = resume_points(TraceReader(state(write(tmp_path / "t", rows))), [*PARTS, LEASES])
    found = {name: (p.resource_version, list(p.objects)) for name, p in points.items()}
    assert found == {
        "jobs/a": ("5", []),
        "jobs/b": ("7", ["j1"]),
        "namespaces/a": ("9", ["u"]),
        "leases": ("9", ["l"]),
    }


def test_nothing_is_typed_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typing a long recording's tail, once for each stream, made a start last tens of seconds."""
    trace = write(tmp_path / "t", ROWS)

    def refuse(*_: object) -> None:
        raise AssertionError("typed")

    monkeypatch.setattr(plain, "_type_row", refuse)
    assert resume_points(TraceReader(trace), [JOBS, EVENTS])["jobs"].resource_version == "20"


def test_typed_and_plain_segments_and_rows_that_nobody_can_read(tmp_path: Path) -> None:
    trace = typed(write(tmp_path / "t", ROWS))
    writer = TraceWriter(trace, append=True, plain=True)
    writer.gap(Gap("jobs", "410", 20, 25, 5, 6), 120)
    writer.unparsed(b"\xff", 121, "not JSON", stream="jobs")
    deep = b'{"x":' + b"[" * 5000 + b"]" * 5000 + b',"metadata":{"resourceVersion":"31"}}'
    writer.append_plain("jobs", ["ADDED", "ADDED"], 122, [deep, body("j4", 30)])
    writer.close()
    jobs = resume_points(TraceReader(trace), [JOBS])["jobs"]
    assert (jobs.resource_version, sorted(jobs.objects)) == ("30", ["j1", "j3", "j4"])
