"""Facts of rows that are in memory: the same as of the trace on disk, by the era that is given."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.traces import TRACES, import_log
from tracekit.answers.trace_model import Facts
from tracekit.base.errors import TracekitError
from tracekit.judge.judged import resolve_era
from tracekit.sql import trace_model
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session
from tracekit.sql.trace_model import facts_from_reader
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.table_reader import in_file_order, read_held
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.era import Era

NAME = "v1.36.3-all"
S = 10**9
#: 2026-01-05T00:00:00Z
DAY_NS = 1_767_571_200 * S


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> TraceReader:
    folder = tmp_path_factory.mktemp("held")
    return import_log(TRACES / NAME / "watch.jsonl.zst", folder / "trace", NAME)


def held(reader: TraceReader) -> TraceReader:
    """The same rows without a file, numbered with holes, as a window of a record has them."""
    table = reader.table(NAMES)
    return read_held(in_file_order(table.slice(7)), reader.header, Path("rows"))


def ticks(facts: Facts) -> Counter[tuple[str, int, str, str | None, str]]:
    names = ("cronjob", "due_ns", "outcome", "job", "why")
    return Counter(tuple(tick[name] for name in names) for tick in facts.ticks)  # type: ignore[misc]


def test_ticks_are_those_of_the_trace(recorded: TraceReader) -> None:
    session = Session([recorded.path])
    whole = facts_from(session)
    session.close()
    facts = facts_from_reader(held(recorded), [], resolve_era(recorded, None, None))
    assert ticks(facts) == ticks(whole)
    assert len(facts.ticks) > 10


def cron_job_record(folder: Path, header: TraceHeader) -> TraceReader:
    """A CronJob of 06:00, by the clock where its controller runs, watched from 00:00 to 12:00."""
    cron_job = {
        "kind": "CronJob",
        "metadata": {
            "name": "daily", "namespace": "shop", "uid": "u", "resourceVersion": "5",
            "creationTimestamp": "2026-01-05T00:00:00Z",
        },
        "spec": {"schedule": "0 6 * * *", "concurrencyPolicy": "Allow",
                 "jobTemplate": {"spec": {}}},
    }  # fmt: skip
    with TraceWriter(folder, header) as writer:
        writer.append("cronjobs", "ADDED", DAY_NS, cron_job)
        later = {**cron_job, "metadata": {**cron_job["metadata"], "resourceVersion": "6"}}  # type: ignore[dict-item]
        writer.append("cronjobs", "MODIFIED", DAY_NS + 12 * 3600 * S, later)
    return TraceReader(folder)


@pytest.mark.parametrize(("zone", "hour"), [("UTC", 6), ("Europe/Berlin", 5)])
def test_ticks_are_due_by_the_clock_of_the_era(tmp_path: Path, zone: str, hour: int) -> None:
    reader = cron_job_record(tmp_path / "t", TraceHeader())
    era = replace(Era.resolve("v1.36.3"), process_zone=zone)
    facts = facts_from_reader(reader, [], era)
    assert [tick["due_ns"] for tick in facts.ticks] == [DAY_NS + hour * 3600 * S]


def test_a_zone_of_the_trace_that_is_none_does_not_hide_ticks(tmp_path: Path) -> None:
    header = TraceHeader(scope={"process_zone": "Nowhere/Land"})
    reader = cron_job_record(tmp_path / "t", header)
    era = resolve_era(reader, "v1.36.3", None, "UTC")
    assert len(facts_from_reader(reader, [], era).ticks) == 1


def test_what_goes_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Session) -> None:
        raise TracekitError("no ticks can be had")

    monkeypatch.setattr(trace_model, "ticks_of", fails)
    reader = cron_job_record(tmp_path / "t", TraceHeader())
    with pytest.raises(TracekitError, match="no ticks can be had"):
        facts_from_reader(reader, [], Era.resolve("v1.36.3"))


@pytest.mark.parametrize(
    ("version", "after_s", "outcome"),
    [("v1.20.15", 7, "pending"), ("v1.20.15", 40, "missed"), ("v1.36.3", 7, "missed")],
)
def test_a_cronjob_that_is_deleted_at_once_has_missed_nothing(
    tmp_path: Path, version: str, after_s: int, outcome: str
) -> None:
    """The polling controller looks every ten seconds: by then there may be no CronJob."""
    recorded = cron_job_record(tmp_path / "whole", TraceHeader())
    rows = recorded.table(("raw",)).to_pylist()
    due_ns = DAY_NS + 6 * 3600 * S
    with TraceWriter(tmp_path / "t", TraceHeader()) as writer:
        for bound in ("LIST_BEGIN", "LIST_END"):
            writer.append("jobs", bound, DAY_NS, b'{"resourceVersion":"1","scope":"all"}')
        writer.append("cronjobs", "ADDED", DAY_NS, rows[0]["raw"].encode())
        writer.append("cronjobs", "DELETED", due_ns + after_s * S, rows[1]["raw"].encode())
        writer.append("namespaces", "ADDED", due_ns + 3600 * S, b'{"metadata":{"name":"shop"}}')
    facts = facts_from_reader(TraceReader(tmp_path / "t"), [], Era.resolve(version))
    (tick,) = facts.ticks
    assert (tick["due_ns"], tick["outcome"]) == (due_ns, outcome)
    assert ("deleted" in tick["why"]) is (outcome == "pending")
