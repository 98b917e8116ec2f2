"""A record that grows is judged as the whole is: each thing once, none too early, none made up."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from zlib import crc32

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.lies import plant
from tests.support.traces import TRACES, import_log, json_lines
from tests.support.views import offset
from tracekit.answers.findings.divergences import rule_of
from tracekit.answers.model import Family, Severity
from tracekit.answers.trace_model import Facts
from tracekit.base.kube.leases import LEASE_DURATION_NS
from tracekit.judge.judged import Judge, resolve_era
from tracekit.judge.rolling import SETTLED_NS
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session
from tracekit.sql.trace_model import facts_from_reader
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.watch import live as live_module
from tracekit.watch.leader import SILENT_NS
from tracekit.watch.live import WINDOW_NS, LiveJudge
from tracekit.watch.news import News
from tracekit.watch.steady_clock import SteadyClock
from tracekit.watch.waiting import WaitingJobs
from tracekit.watch.window import relisted

NAME = "v1.36.3-all"
S = 10**9


@cache
def lied() -> TraceReader:
    """A real record with two lies in it, early enough to be certain before its end."""
    rows = list(json_lines(TRACES / NAME / "watch.jsonl.zst"))
    for kind in ("status-ready-high", "cron-body-label"):
        planted = plant(kind, rows, random.Random(3))
        assert planted is not None
        rows = planted[0]
    folder = Path(mkdtemp(prefix="tracekit-test-"))
    log = folder / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return import_log(log, folder / "trace", NAME)


def grown_with(kind: str) -> tuple[list[tuple[str, str]], list[News], list[News]]:
    """What the whole record with a lie tells, and what is told while it grows and at its end."""
    rows = list(json_lines(TRACES / NAME / "watch.jsonl.zst"))
    planted = plant(kind, rows, random.Random(crc32(f"{kind}/{NAME}".encode())))
    assert planted is not None
    folder = Path(mkdtemp(prefix="tracekit-test-"))
    (folder / "watch.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in planted[0]))
    reader = import_log(folder / "watch.jsonl", folder / "trace", NAME)
    era = resolve_era(reader, None, None)
    whole = [(rule_of(j).id, j.object.name) for j in Judge(reader, era).report().divergences]
    live = LiveJudge(reader.header, era)
    table, told = reader.table(NAMES).sort_by("seq"), []
    for start in range(0, table.num_rows, 200):
        live.feed(table.slice(start, 200))
        told += live.judge()
    return whole, told, live.judge(last=True)


def divergences(news: list[News]) -> list[tuple[str, str]]:
    return [(n.id, n.name) for n in news if n.id < "TK2"]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("finalizer-kept", "TK112"),  # never comes: others' syncs prove it
        ("ttl-missing", "TK157"),  # never comes, and no row of the Job does: time alone tells
        ("sync-late", "TK130"),
    ],
)
def test_what_never_came_and_what_the_ttl_asks_for_are_told_meanwhile(kind: str, rule: str) -> None:
    whole, told, rest = grown_with(kind)
    assert rule in {found for found, _ in divergences(told)}
    assert sorted(divergences(told + rest)) == sorted(whole)


@cache
def grown() -> list[list[News]]:
    """What is told after each piece of 20 s, and at the end."""
    reader = lied()
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    table = reader.table(NAMES)
    times = table["recv_ns"].to_pylist()
    told: list[list[News]] = []
    start, until_ns = 0, times[0]
    while start < len(times):
        until_ns += 20 * S
        end = next((i for i in range(start, len(times)) if times[i] >= until_ns), len(times))
        live.feed(table.slice(start, end - start))
        told.append(live.judge())
        start = end
    told.append(live.judge(last=True))
    return told


def test_the_divergences_are_those_of_the_whole_each_once() -> None:
    whole = Judge(lied(), resolve_era(lied(), None, None)).report().divergences
    wanted = sorted((rule_of(j).id, j.object.name, j.time_ns) for j in whole)
    found = sorted((n.id, n.name, n.at_ns) for news in grown() for n in news if n.id < "TK2")
    assert found == wanted
    assert wanted


@pytest.mark.full
def test_nothing_is_told_before_it_is_certain() -> None:
    for news in grown()[:-1]:
        for one in news:
            if one.id < "TK2":
                assert one.reported_ns - one.at_ns >= SETTLED_NS


def test_a_divergence_is_told_long_before_the_end() -> None:
    early = [n for news in grown()[:-1] for n in news if n.id < "TK2"]
    assert early
    for one in early:
        assert one.reported_ns - one.at_ns <= 100 * S


def test_findings_are_told_once_and_are_those_of_the_whole() -> None:
    session = Session([lied().path])
    whole = {(f.id, t.kind, t.name) for f in findings_of(session) for t in f.objects}
    session.close()
    told = [(n.id, n.kind, n.name) for news in grown() for n in news if n.id >= "TK2"]
    assert len(told) == len(set(told))
    assert told
    assert set(told) <= whole


@pytest.mark.full
@pytest.mark.parametrize("name", ["v1.21.14-all", "v1.36.3-churn7"])
def test_a_record_that_was_there_before_is_told_as_it_would_have_been(
    name: str, tmp_path: Path
) -> None:
    """It comes all at once: nothing is let go before it is told, and no verdict before its rows."""
    reader = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name)
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    news = [one for rows in reader.batches(NAMES) for one in live.feed(rows)]
    news += live.judge(last=True)
    with closing(Session([reader.path])) as session:
        wanted = {
            (finding.id, case.target.kind, case.target.name)
            for finding in findings_of(session)
            for case in finding.cases
            if finding.severity is not Severity.INFO and finding.rule.family is not Family.RECORD
        }
    told = Counter((one.id, one.kind, one.name) for one in news)
    assert set(told) == wanted
    assert set(told.values()) == {1}


def test_what_was_judged_as_a_whole_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of `watch --once` tells the divergences of the verdicts, and searches no Job."""
    session = Session([lied().path])
    whole = facts_from(session)
    session.close()
    monkeypatch.setattr(live_module.RollingJudge, "close", lambda *_: pytest.fail("judged again"))
    live = LiveJudge(lied().header, resolve_era(lied(), None, None))
    for batch in lied().batches(NAMES):
        live.feed(batch)
    told = [(n.id, n.name, n.at_ns) for n in live.judge(last=True, whole=whole) if n.id < "TK2"]
    wanted = [(rule_of(j).id, j.object.name, j.time_ns) for j in whole.judgements.divergent]
    assert sorted(told) == sorted(wanted)
    assert told


def jobs_at(at_ns: int) -> pa.Table:
    row = lied().table(NAMES, streams=["jobs"], types=["MODIFIED"]).slice(0, 1)
    place = row.schema.get_field_index("recv_ns")
    return row.set_column(place, row.schema.field(place), pa.array([at_ns]))


def test_that_nobody_leads_is_told_once_until_somebody_does() -> None:
    reader = lied()
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    live.feed(reader.table(NAMES))
    renewed_ns = max(reader.table(("recv_ns",), streams=["leases"])["recv_ns"].to_pylist())
    # A recorder that brings nothing proves nothing, unless it does so for long.
    assert list(live.leader(renewed_ns + SILENT_NS - 1)) == []
    assert list(live.leader(live.now_ns + SILENT_NS)) == []  # a note of its clock may come yet
    (told,) = live.leader(live.now_ns + SILENT_NS + S)
    assert (told.id, told.name) == ("TK208", "kube-controller-manager")
    assert list(live.leader(live.now_ns + SILENT_NS + 2 * S)) == []


def test_rows_of_others_prove_that_the_lease_is_not_renewed_any_more() -> None:
    reader = lied()
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    live.feed(reader.table(NAMES))
    renewed_ns = max(reader.table(("recv_ns",), streams=["leases"])["recv_ns"].to_pylist())
    assert list(live.leader(live.now_ns)) == []
    live.feed(jobs_at(renewed_ns + LEASE_DURATION_NS - 1))
    assert list(live.leader(renewed_ns + 2 * LEASE_DURATION_NS)) == []
    live.feed(jobs_at(renewed_ns + LEASE_DURATION_NS))
    assert list(live.leader(renewed_ns + LEASE_DURATION_NS)) == []
    assert len(list(live.leader(renewed_ns + LEASE_DURATION_NS + S))) == 1


def lease(rv: int, at_ns: int, kind: str, holder: str = "one") -> pa.Table:
    last = lied().table(NAMES, streams=["leases"]).slice(0, 1).to_pylist()[0]
    row = {**last, "rv": rv, "recv_ns": at_ns, "type": kind, "holder": holder}
    row["name"], row["namespace"] = "kube-controller-manager", "kube-system"
    return pa.Table.from_pylist([row], lied().table(NAMES).schema)


def test_a_rotation_tells_a_lost_leader_no_second_time() -> None:
    reader = lied()
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    live.feed(lease(7, 100 * S, "MODIFIED"))
    live.feed(jobs_at(120 * S))
    assert told(live, 120 * S) == [("TK208", 100 * S)]
    # The trace that a rotation begins lists the very same lease, which renews nothing.
    live = live.renewed(reader.header)
    live.feed(lease(7, 130 * S, "LIST"))
    live.feed(jobs_at(170 * S))
    assert told(live, 170 * S) == []
    live.feed(lease(8, 180 * S, "MODIFIED", "two"))
    live.feed(jobs_at(200 * S))
    assert told(live, 200 * S) == [("TK208", 180 * S)]


def told(live: LiveJudge, now_ns: int) -> list[tuple[str, int]]:
    """What is said of the leader within two seconds."""
    return [(n.id, n.at_ns) for at_ns in (now_ns, now_ns + 2 * S) for n in live.leader(at_ns)]


def set_by(seq: int, at_ns: int, step_ns: int) -> pa.Table:
    """The recorder's note that its clock, which shows this now, was set."""
    table = lied().table(NAMES)
    row = dict.fromkeys(table.column_names) | {
        "seq": seq, "stream": "clocks", "type": "NOTE", "recv_ns": at_ns,
        "raw": f'{{"before_ns": {at_ns - step_ns}, "step_ns": {step_ns}}}',
    }  # fmt: skip
    return pa.Table.from_pylist([row], table.schema)


@pytest.mark.parametrize("step_ns", [-600 * S, -20 * S, 20 * S, 600 * S])
def test_a_clock_that_is_set_is_no_silence(step_ns: int) -> None:
    reader = lied()
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    live.feed(lease(7, 1000 * S, "MODIFIED"))
    live.feed(jobs_at(1001 * S + step_ns))  # the row that the note comes behind
    assert list(live.leader(1001 * S + step_ns)) == []
    live.feed(set_by(10**6, 1001 * S + step_ns, step_ns))
    assert told(live, 1002 * S + step_ns) == []
    live.feed(jobs_at(1014 * S + step_ns))
    assert told(live, 1014 * S + step_ns) == []
    live.feed(jobs_at(1016 * S + step_ns))
    (loss,) = told(live, 1016 * S + step_ns)
    assert loss[0] == "TK208"
    assert live.waiting.longest_ns(1016 * S + step_ns) <= 16 * S


def test_a_record_that_has_just_begun_is_judged() -> None:
    reader = lied()
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    assert live.judge() == []
    table = reader.table(NAMES)
    for start, rows in ((0, 1), (1, 1), (2, 1), (3, 1), (4, 4), (8, 8), (16, 24)):
        live.feed(table.slice(start, rows))
        assert live.judge() == []


def test_older_rows_become_a_list_of_what_lives() -> None:
    table = lied().table(NAMES)
    times = table["recv_ns"].to_pylist()
    middle = times[len(times) // 2]
    window, over = relisted(table, middle)
    names = ("stream", "uid", "rv", "type", "recv_ns", "namespace", "job")
    rows = window.select(names).to_pylist()

    def is_cut(row: dict[str, Any]) -> bool:
        together = row["job"] is None or (row["namespace"], row["job"]) in over
        return together and row["recv_ns"] < middle and row["stream"] != "leases"

    old = [r for r in rows if is_cut(r)]
    assert {r["type"] for r in old} == {"LIST", "LIST_BEGIN", "LIST_END"}
    listed = {(r["stream"], r["uid"]): r["rv"] for r in old if r["type"] == "LIST"}
    assert len(listed) == sum(r["type"] == "LIST" for r in old)
    live: dict[tuple[str, str], int] = {}
    for r in table.select(names).to_pylist():
        if is_cut(r) and r["uid"]:
            key = (r["stream"], r["uid"])
            live.pop(key, None) if r["type"] == "DELETED" else live.update({key: r["rv"]})
    assert listed == live
    whole = [r for r in rows if not is_cut(r) and r["stream"] != "leases"]
    assert whole == [
        r for r in table.select(names).to_pylist() if not is_cut(r) and r["stream"] != "leases"
    ]
    # A Job to which something happens keeps all of its rows, so that nothing is made up of it.
    assert any(r["recv_ns"] < middle for r in whole)
    assert over


def test_where_nothing_lives_on_nothing_older_is_kept() -> None:
    table = lied().table(NAMES, types=["DELETED"])
    after_ns = max(table["recv_ns"].to_pylist()) + 1
    assert relisted(table, after_ns)[0].num_rows == 0
    new = table.set_column(
        table.schema.get_field_index("recv_ns"), "recv_ns",
        pa.array([after_ns] * table.num_rows, table.schema.field("recv_ns").type),
    )  # fmt: skip
    assert relisted(new, after_ns)[0].num_rows == table.num_rows > 0


def jobs(*rows: dict[str, object]) -> pa.Table:
    base = {"stream": "jobs", "type": "MODIFIED", "start_ns": None, "spec": "{}",
            "conditions": None, "created_ns": None}  # fmt: skip
    schema = lied().table(("uid", "type", "recv_ns", "start_ns", "spec", "conditions",
                           "created_ns", "stream", "seq", "raw")).schema  # fmt: skip
    return pa.Table.from_pylist([{**base, **row} for row in rows], schema)


def test_a_job_waits_until_its_first_status() -> None:
    clock = SteadyClock()
    waiting = WaitingJobs(clock)

    def feed(*rows: dict[str, object]) -> None:
        waiting.feed(clock.feed(jobs(*rows)))

    feed(
        {"uid": "a", "type": "ADDED", "recv_ns": 1 * S},
        {"uid": "b", "type": "ADDED", "recv_ns": 2 * S, "spec": '{"suspend":true}'},
        {"uid": "c", "type": "ADDED", "recv_ns": 9 * S},
    )
    assert waiting.count == 1
    assert waiting.longest_ns(11 * S) == 10 * S
    feed({"uid": "a", "recv_ns": 12 * S, "start_ns": 12 * S})
    assert waiting.longest_ns(12 * S) == 3 * S
    feed({"uid": "c", "type": "DELETED", "recv_ns": 13 * S})
    assert (waiting.count, waiting.longest_ns(13 * S)) == (0, 0)


@pytest.mark.full
def test_a_job_that_is_named_as_a_slot_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = lied()
    table = reader.table(NAMES)
    alone = pc.and_(pc.equal(table["stream"].cast("string"), "jobs"), pc.is_null(table["cronjob"]))
    table = table.filter(pc.fill_null(alone, False))  # noqa: FBT003
    place = table.schema.get_field_index("name")
    names = pa.array(["backup-20240101"] * table.num_rows, table.schema.field(place).type)
    table = table.set_column(place, table.schema.field(place), names)
    looked: list[TraceReader] = []

    def facts(reader: TraceReader, *rest: Any) -> Facts:
        looked.append(reader)
        return facts_from_reader(reader, *rest)

    monkeypatch.setattr(live_module, "facts_from_reader", facts)
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    live.feed(table)
    live.judge()
    (held,) = looked
    assert sorted(held.table(("seq",))["seq"].to_pylist()) == table["seq"].to_pylist()
    assert table.num_rows > 10


def test_what_is_old_when_it_is_first_judged_is_told_once() -> None:
    reader = lied()
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    live.feed(reader.table(NAMES))
    live.feed(jobs_at(live.now_ns + 3 * WINDOW_NS))
    assert [n for n in live.judge() if n.id >= "TK2"]
    assert live.judge() == []


@cache
def lied_by(ahead_s: float) -> TraceReader:
    """The same record as a recorder had it whose clock was ahead by so much."""
    text = lied().path.with_name("watch.jsonl").read_bytes()
    rows = [orjson.loads(line) for line in text.splitlines()]
    folder = Path(mkdtemp(prefix="tracekit-test-"))
    (folder / "watch.jsonl").write_bytes(
        b"".join(orjson.dumps(row) + b"\n" for row in offset(rows, random.Random(), by_s=ahead_s))
    )
    return import_log(folder / "watch.jsonl", folder / "trace", NAME)


@pytest.mark.parametrize("ahead_s", [-0.3, 5])
def test_a_recorders_clock_that_is_off_changes_nothing_while_it_grows(ahead_s: float) -> None:
    """Else a clock 0.3 s behind makes what is in time early."""
    reader = lied_by(ahead_s)
    whole = Judge(reader, resolve_era(reader, None, None)).report().divergences
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    table = reader.table(NAMES)
    told: list[News] = []
    for start in range(0, table.num_rows, 200):
        live.feed(table.slice(start, 200))
        told += live.judge()
    early = {(n.id, n.name) for n in told if n.id < "TK2"}
    told += live.judge(last=True)
    wanted = sorted((rule_of(j).id, j.object.name, j.time_ns) for j in whole)
    assert sorted((n.id, n.name, n.at_ns) for n in told if n.id < "TK2") == wanted
    assert early
    assert [(of, name, at_ns - round(ahead_s * S)) for of, name, at_ns in wanted] == sorted(
        (n.id, n.name, n.at_ns) for news in grown() for n in news if n.id < "TK2"
    )
