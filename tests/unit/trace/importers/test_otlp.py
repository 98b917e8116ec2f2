"""Logs of OpenTelemetry's collector (OTLP as JSON): what two of its receivers ship of the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.watchlog import job, pod
from tests.unit.trace.importers.test_wrappers import any_value
from tracekit.base.coverage import Scope
from tracekit.base.errors import TraceFormatError
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.reader import TraceReader

SECOND = 10**9
AT = parse_rfc3339("2026-03-01T10:00:00Z") or 0


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in values.items()]


def batch(*records: dict[str, Any], resource: dict[str, Any] | None = None) -> str:
    """A line of the file exporter."""
    scope = {"scope": {}, "logRecords": list(records)}
    about = {"attributes": attributes(resource or {})}
    return json.dumps({"resourceLogs": [{"resource": about, "scopeLogs": [scope]}]})


def record(body: Any, at_s: int, **said: Any) -> dict[str, Any]:
    return {"observedTimeUnixNano": str(AT + at_s * SECOND), "body": any_value(body), "traceId": "",
            "attributes": attributes(said), "spanId": ""}  # fmt: skip


def of(make: Any, version: str, kind: str, name: str, number: int) -> dict[str, Any]:
    obj = make(name)
    meta = {**obj["metadata"], "uid": f"u-{name}", "resourceVersion": str(number)}
    return {"apiVersion": version, "kind": kind, **obj, "metadata": meta}


def a_job(name: str, number: int) -> dict[str, Any]:
    return of(job, "batch/v1", "Job", name, number)


def imported(tmp_path: Path, *lines: str, scope: Scope | None = None) -> tuple[Any, TraceReader]:
    path = tmp_path / "logs.json"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace", scope=scope))
    assert result.kind == "kubectl"
    return result, TraceReader(tmp_path / "trace")


def rows(reader: TraceReader, *columns: str) -> list[tuple[Any, ...]]:
    found = reader.table(("type", *columns)).to_pylist()
    return [
        (r["type"], *(r[c] for c in columns))
        for r in found
        if r["type"] not in ("LIST_BEGIN", "LIST_END", "GAP")
    ]


def test_watch_events_have_the_times_at_which_they_came(tmp_path: Path) -> None:
    lines = [
        batch(record({"type": kind, "object": a_job("a", rv)}, at, **{"k8s.resource.name": "jobs"}))
        for kind, rv, at in (("ADDED", 5, 1), ("MODIFIED", 6, 2), ("DELETED", 7, 3))
    ]
    result, reader = imported(tmp_path, *lines)
    assert result.shapes == {"watch event": 3}
    assert result.problems == {"jobs: the stream begins without a list": 1}  # and so it does
    assert not result.times
    assert rows(reader, "name", "rv", "recv_ns") == [
        ("LIST", "a", 5, AT + 1 * SECOND),
        ("MODIFIED", "a", 6, AT + 2 * SECOND),
        ("DELETED", "a", 7, AT + 3 * SECOND),
    ]
    raw = reader.table(("raw",), types=["MODIFIED"]).to_pylist()[0]["raw"]
    assert json.loads(raw) == a_job("a", 6)  # whole numbers are numbers again


def test_what_was_pulled_at_one_time_is_one_look_in_however_many_lines(tmp_path: Path) -> None:
    lines = [
        batch(record(a_job("a", 5), 1)),
        batch(record(a_job("b", 6), 1), record(of(pod, "v1", "Pod", "p", 9), 1)),
        batch(record({"type": "PullEnd", "object": {"kind": "jobs"}}, 2)),
        batch(record(a_job("a", 5), 61), record(a_job("c", 20), 61)),
    ]
    result, reader = imported(tmp_path, *lines)
    assert result.shapes == {"pulled object": 5}
    assert sum(row[0] == "LIST" and row[1] == "p" for row in rows(reader, "name")) == 1
    jobs = [(t, n) for t, n, s in rows(reader, "name", "stream") if s == "jobs"]
    # Nobody says what was asked for: that b is not in the second list tells nothing.
    assert "DELETED" not in {t for t, _ in jobs}
    assert {n for _, n in jobs} == {"a", "b", "c"}
    spans = [s for s in coverage_of(reader).spans if s.stream == "jobs"]
    assert {s.scope for s in spans} == {Scope(frozenset())}


def test_of_pulls_the_command_line_may_say_what_they_asked_for(tmp_path: Path) -> None:
    lines = [
        batch(record(a_job("a", 5), 1), record(a_job("b", 6), 1)),
        batch(record(a_job("a", 5), 61)),
    ]
    _, reader = imported(tmp_path, *lines, scope=Scope(None))
    assert ("DELETED", "b") in rows(reader, "name")


def shipped(uid: str, **more: Any) -> str:
    """An Event as `k8s_events` takes it apart."""
    said = {
        "k8s.event.reason": "SuccessfulCreate", "k8s.event.action": "", "k8s.event.count": 3,
        "k8s.event.start_time": "2026-03-01 09:59:58 +0000 UTC", "k8s.event.name": "a.17f",
        "k8s.event.uid": uid, "k8s.namespace.name": "ns", **more,
    }  # fmt: skip
    about = {"k8s.node.name": "", "k8s.object.kind": "Job", "k8s.object.name": "a",
             "k8s.object.uid": "u-a", "k8s.object.api_version": "batch/v1"}  # fmt: skip
    one = {
        **record("Created pod: a-x", 2, **said),
        "severityText": "Normal",
        "timeUnixNano": str(AT + SECOND),
    }
    return batch(one, resource=about)


def test_an_event_in_attributes_is_an_event(tmp_path: Path) -> None:
    result, reader = imported(tmp_path, shipped("e-1"), shipped("e-2"))
    assert result.shapes == {"shipped Event": 2}
    assert result.problems == {"objects without resourceVersion, kept": 2}
    columns = ("uid", "reason", "message", "involved_name", "involved_uid", "job", "count")
    assert [r[1:] for r in rows(reader, *columns)] == [
        (uid, "SuccessfulCreate", "Created pod: a-x", "a", "u-a", "a", 3) for uid in ("e-1", "e-2")
    ]
    assert {r[1:] for r in rows(reader, "created_ns", "last_ns", "event_type")} == {
        (AT - 2 * SECOND, AT + SECOND, "Normal")
    }


def test_before_the_object_had_attributes_of_its_own(tmp_path: Path) -> None:
    said = {"k8s.event.uid": "e", "k8s.event.name": "a.1", "k8s.namespace.name": "ns",
            "k8s.job.name": "a", "k8s.job.uid": "u-a"}  # fmt: skip
    _, reader = imported(tmp_path, batch(record("done", 1, **said)))
    assert rows(reader, "involved_kind", "involved_name", "involved_uid") == [
        ("LIST", "Job", "a", "u-a")
    ]


def test_other_records_are_counted(tmp_path: Path) -> None:
    lines = [
        batch(
            record({"type": "ADDED", "object": a_job("a", 5)}, 1), record("a line of a program", 2)
        ),
        batch(record({"type": "ADDED", "object": {"kind": "Service", "apiVersion": "v1"}}, 3)),
        batch(record({"level": "info"}, 4)),
    ]
    result, reader = imported(tmp_path, *lines)
    assert len(rows(reader)) == 1
    assert result.problems == {
        "log records that hold no object, left out": 1,
        "objects of the kind Service, left out": 1,
        "objects that name no kind, left out": 1,
    }


def test_a_log_of_programs_alone_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="nothing that can be imported"):
        imported(tmp_path, batch(record("a line of a program", 2)))
