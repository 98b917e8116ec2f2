"""However long one object's history is, few of its entries are held: counted, not weighed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.trace.importers.audit_logs import SECOND, entry
from tracekit.trace.importers.audit import importer, objects
from tracekit.trace.importers.audit.entry import Entry, decode_entry, document
from tracekit.trace.importers.audit.importer import AuditReader
from tracekit.trace.importers.audit.objects import steps_of
from tracekit.trace.importers.audit.placing import placed
from tracekit.trace.importers.audit.revisions import RevisionClock
from tracekit.trace.importers.observation import Observation
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader


def test_a_long_history_of_one_object_is_not_held() -> None:
    """Renewals of a Lease: how many entries are read ahead does not grow with them."""
    taken = 0

    def entries(count: int) -> Iterator[Entry]:
        nonlocal taken
        for number in range(count):
            taken += 1
            obj = {"kind": "Lease", "metadata": {"uid": "u", "resourceVersion": str(number + 1)}}
            yield decode_entry(
                json.dumps(entry("update", "leases", "kcm", at_s=number, response=obj)).encode()
            )

    given = ahead = 0
    for found in placed(
        steps_of("leases", entries(3_000), tells_deletion=True), RevisionClock(Path()), "leases"
    ):
        assert isinstance(found, Observation)
        given += 1
        ahead = max(ahead, taken - given)
    assert given == taken == 3_000
    assert ahead <= 2


def test_servers_that_differ_are_read_by_one_clock_and_a_few_at_a_time(tmp_path: Path) -> None:
    reader = AuditReader(tmp_path, ImportResult())
    reader._clock.shifts_ns = {1: -5 * SECOND}
    given: list[int] = []
    held = 0

    def entries() -> Iterator[Entry]:
        nonlocal held
        for number in range(200):
            server = number % 2
            one = decode_entry(json.dumps(entry("get", "jobs", "j", at_s=number)).encode())
            one.server, one.shift_ns = server, -5 * SECOND * server
            held = max(held, number - len(given))
            yield one

    for one in reader._by_one_clock(entries()):
        given.append(one.at_ns or 0)
    assert len(given) == 200
    assert given == sorted(given)
    assert held <= 12


def test_a_body_that_is_a_whole_object_is_parsed_by_who_makes_its_columns_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many states an object has: before that its text goes by."""
    parsed: list[int] = []
    monkeypatch.setattr(
        objects, "document", lambda text: (parsed.append(len(memoryview(text))), document(text))[1]
    )
    lines = []
    for number in range(50):
        meta = {"name": "j", "namespace": "ns", "uid": "u", "resourceVersion": str(number + 1)}
        verb = "create" if number == 0 else "update"
        obj = {"kind": "Job", "apiVersion": "batch/v1", "metadata": meta, "spec": {"n": number}}
        lines.append(json.dumps(entry(verb, "jobs", "j", at_s=number, response=obj)))
    log = tmp_path / "audit.log"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (result,) = import_files(ImportRequest([str(log)], tmp_path / "trace"))
    assert result.streams["jobs"] == 50
    assert not result.derived
    assert parsed == []
    assert [
        row["spec"] for row in TraceReader(tmp_path / "trace").table(("spec",)).to_pylist()
    ] == [f'{{"n":{number}}}' for number in range(50)]


def test_an_event_is_parsed_by_who_makes_its_columns_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its body passes as text; one of another form than the API's is looked at, and kept too."""
    parsed: list[int] = []
    monkeypatch.setattr(
        importer, "document", lambda text: (parsed.append(len(memoryview(text))), document(text))[1]
    )
    job = {"kind": "Job", "metadata": {"name": "j", "uid": "u", "resourceVersion": "1"}}
    lines = [entry("create", "jobs", "j", at_s=0, response=job)]
    for number in range(20):
        rv: str | int = str(number + 2) if number else 2
        meta = {"name": f"j.{number}", "namespace": "ns", "uid": f"e{number}"}
        obj = {"kind": "Event", "metadata": {**meta, "resourceVersion": rv}, "reason": "Created"}
        lines.append(entry("create", "events", f"j.{number}", at_s=number, response=obj))
    log = tmp_path / "audit.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (result,) = import_files(ImportRequest([str(log)], tmp_path / "trace"))
    assert result.streams["events"] == 20
    assert len(parsed) == 1
