"""Counting instead of keeping, and judging a record while it grows, give the very same verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from tests.replay.test_planted_lies import planted
from tests.support.traces import TRACES, import_log
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.key_queue import FirstWrite
from tracekit.check.diff.lateness import Pace, Positions, Process, Service, Services
from tracekit.check.diff.trace import judge_groups as judge_groups_of
from tracekit.check.replay.instants import RecordedNs
from tracekit.check.replay.recorder_clock import Epoch, RecorderClock
from tracekit.check.verdict import Judgement
from tracekit.judge.judged import Asked, Judge, resolve_era
from tracekit.judge.rolling import ROW_COLUMNS, SETTLED_NS, RollingJudge
from tracekit.judge.verdict_cache import verdicts_key
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.table_reader import in_file_order, read_held

#: Lies that only the process as a whole tells, and some that a key tells alone.
KINDS = ("sync-late", "retry-early", "interim-missing")


def judge_of(reader: TraceReader) -> Judge:
    return Judge(reader, resolve_era(reader, None, None))


@pytest.fixture(scope="module", params=KINDS)
def lied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TraceReader:
    """A trace with a lie in it."""
    folder = tmp_path_factory.mktemp(request.param)
    found = planted(request.param)
    assert found is not None
    name, rows, _ = found
    log = folder / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return import_log(log, folder / "trace", name)


@pytest.fixture(scope="module")
def whole(lied: TraceReader) -> Judge:
    """Its judge, who keeps what he found for all views of it."""
    return judge_of(lied)


def said(judgements: list[Judgement]) -> Counter[tuple[object, ...]]:
    return Counter(
        (j.object, j.action, j.resource_version, j.subject, j.verdict) for j in judgements
    )


def rolled(reader: TraceReader, rows_at_a_time: int) -> tuple[list[Judgement], list[Judgement]]:
    """What is said while the record grows, and what at its end."""
    judge = judge_of(reader)
    rows = reader.table(ROW_COLUMNS)
    rolling = RollingJudge(judge.era)
    early: list[Judgement] = []
    for start in range(0, rows.num_rows, rows_at_a_time):
        rolling.feed(rows.slice(start, rows_at_a_time))
        early += rolling.judgements(judge.run_context)
    return early, rolling.close(judge.run_context)


def test_what_is_only_counted_is_what_would_be_kept(lied: TraceReader, whole: Judge) -> None:
    report, tally = whole.report(), judge_of(lied).tally()
    assert report.divergences
    assert tally.divergences == tally.judgements == report.divergences
    assert tally.summary() == report.summary()
    assert tally.jobs == report.jobs
    for name in ("actions", "decided", "explained", "longest_lag_ns", "observations"):
        assert getattr(tally, name) == getattr(report, name)


def test_what_is_kept_on_this_machine_is_what_would_be_judged(
    lied: TraceReader, whole: Judge
) -> None:
    key, new = verdicts_key(lied.snapshot), whole.report()
    for _ in range(2):  # judged and kept; read
        kept = Judge(lied, resolve_era(lied, None, None), kept_as=key)
        assert kept.report().judgements == new.judgements
        assert kept.tally().summary() == new.summary()
        assert kept.report().jobs == new.jobs


def test_a_part_is_counted_as_it_would_be_kept(lied: TraceReader, whole: Judge) -> None:
    where = whole.report().divergences[0].object
    for asked in (
        Asked(job=f"{where.namespace}/{where.name}"),
        Asked(namespace=where.namespace, controllers=("job",)),
    ):
        report, tally = whole.report(asked), judge_of(lied).tally(asked)
        assert (tally.summary(), tally.divergences) == (report.summary(), report.divergences)
        assert tally.jobs == report.jobs


@pytest.mark.parametrize("rows_at_a_time", [250, 900])
def test_a_growing_record_gets_the_verdicts_of_the_whole(
    rows_at_a_time: int, tmp_path: Path
) -> None:
    reader = import_log(TRACES / "v1.36.3-all" / "watch.jsonl.zst", tmp_path / "t", "v1.36.3-all")
    early, rest = rolled(reader, rows_at_a_time)
    assert len(early) > len(rest)
    assert said(early + rest) == said(
        judge_of(reader).report(Asked(controllers=("job", "ttl"))).judgements
    )


@pytest.mark.full
def test_what_a_clock_hid_until_it_was_known_is_judged_by_it_then(tmp_path: Path) -> None:
    """Jobs of which all is not said yet are searched again, and the rest by the right clock."""
    reader = import_log(TRACES / "v1.36.3-all" / "watch.jsonl.zst", tmp_path / "t", "v1.36.3-all")
    judge, rows = judge_of(reader), reader.table(ROW_COLUMNS)
    wrong = RecorderClock((Epoch(0, RecordedNs(0), RecordedNs(1 << 62), 7 * NS_PER_S),))
    rolling, half = RollingJudge(judge.era), rows.num_rows * 9 // 10
    rolling.feed(rows.slice(0, half))
    before = rolling.judgements(replace(judge.run_context, clock=wrong))
    rolling.feed(rows.slice(half))
    after = [*rolling.judgements(judge.run_context), *rolling.close(judge.run_context)]
    known = {(j.object, j.action, j.resource_version, j.subject) for j in before}
    assert any(j.divergent for j in before)
    wanted = said(judge.report(Asked(controllers=("job", "ttl"))).judgements)
    assert said(after) == Counter({of: n for of, n in wanted.items() if of[:4] not in known})


def test_a_lie_in_a_growing_record_is_told(lied: TraceReader, whole: Judge) -> None:
    early, rest = rolled(lied, 700)
    found = whole.report(Asked(controllers=("job", "ttl")))
    assert {j.object for j in early + rest if j.divergent} == {j.object for j in found.divergences}


def test_a_job_that_rests_is_let_go_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[Any] = []

    def judge_groups(*arguments: Any) -> Iterator[Any]:
        for judged in judge_groups_of(*arguments):
            searched.append(judged.replay.history.key)
            yield judged

    reader = import_log(TRACES / "v1.36.3-all" / "watch.jsonl.zst", tmp_path / "t", "v1.36.3-all")
    rows, context = reader.table(ROW_COLUMNS), judge_of(reader).run_context
    rolling = RollingJudge(judge_of(reader).era)
    rolling.feed(rows)
    first = rolling.judgements(context)
    assert first
    later_ns = max(rows["recv_ns"].to_pylist()) + 3 * SETTLED_NS
    lease = reader.table(ROW_COLUMNS, streams=["leases"]).slice(0, 1)
    place = lease.schema.get_field_index("recv_ns")
    tick = lease.set_column(place, lease.schema.field(place), pa.array([later_ns]))
    rolling.feed(tick)  # time goes on
    rolling.judgements(context)
    assert not rolling.searched
    # A row of each comes, and it is searched again from its first row on: nothing is said twice.
    kinds = rows["type"].to_pylist()
    gone = {
        job for job, kind in zip(rows["job"].to_pylist(), kinds, strict=True) if kind == "DELETED"
    }
    there = rows.filter(pc.invert(pc.is_in(rows["job"], pa.array(sorted(gone - {None})))))
    rolling.feed(there.slice(there.num_rows // 2))
    monkeypatch.setattr("tracekit.judge.rolling.judge_groups", judge_groups)
    again = rolling.judgements(context)
    assert searched
    assert not said(again) & said(first)


@pytest.mark.full
def test_a_gap_hides_no_lateness_of_what_was_over_before() -> None:
    found = planted("sync-late")
    assert found is not None
    name, rows, _ = found
    folder = Path(mkdtemp(prefix="tracekit-test-"))
    (folder / "w").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    reader = import_log(folder / "w", folder / "trace", name)
    wanted = judge_of(reader).report().divergences
    assert wanted
    last = reader.table(NAMES).sort_by("seq").to_pylist()[-1]
    gap = dict.fromkeys(NAMES) | {
        "seq": last["seq"] + 1, "recv_ns": last["recv_ns"] + NS_PER_S, "stream": "jobs",
        "type": "GAP", "gap_from_ns": last["recv_ns"], "gap_reason": "cut",
    }  # fmt: skip
    table = reader.table(NAMES)
    gapped = pa.concat_tables([table, pa.Table.from_pylist([gap], table.schema)])
    held = read_held(in_file_order(gapped.unify_dictionaries()), reader.header, folder)
    assert [gap.until_ns for gap in held.gaps()] == [None]
    assert said(judge_of(held).report().divergences) == said(wanted)


def service(key: str, served_s: int, earliest_s: int) -> Service:
    first = FirstWrite(key, "pod-create", "1")
    return Service(first, served_s * NS_PER_S, earliest_s * NS_PER_S, 0, timed=False, judged=True)


def test_of_two_served_at_once_the_first_by_name_is_the_witness() -> None:
    services = Services()
    for key in ("ns/b", "ns/a", "ns/c"):
        services.add([service(key, 50, 40)])
    proof = Process(services, []).proof(0, 60 * NS_PER_S, timed=False)
    assert proof is not None
    assert proof.startswith("ns/a, which cannot have been ready before")


def test_what_was_explained_wrongly_is_no_witness() -> None:
    services = Services()
    services.add([service("ns/a", 50, 40)])
    calls_ns = [at * NS_PER_S for at in range(0, 61, 4)]
    assert Process(services, calls_ns).proof(0, 60 * NS_PER_S, timed=False) is not None
    left = services.without({"ns/a"})
    assert Process(left, calls_ns).proof(0, 60 * NS_PER_S, timed=False) is None
    assert services[0].earliest_ns == 40 * NS_PER_S


def test_who_reads_before_it_writes_gets_in_line_twice() -> None:
    """The PUT asks for its token when the GET is answered: others may have asked meanwhile."""
    services = Services()
    for key, served, earliest in (("ns/a", 50, 40), ("ns/b", 55, 45)):
        services.add([service(key, served, earliest)])
    calls_ns = [at * NS_PER_S for at in range(0, 101, 4)]
    until_ns = 100 * NS_PER_S
    process = Process(services, calls_ns)
    assert process.proof(0, until_ns, timed=False) is not None
    # Both were ready before the first of them was served: the GET came before that, no more.
    assert process.proof(0, until_ns, timed=False, idle=1) is None
    services.add([service("ns/c", 80, 60)])
    proof = Process(services, calls_ns).proof(0, until_ns, timed=False, idle=1)
    assert proof is not None
    assert proof.startswith("ns/c")
    assert Process(services, calls_ns).proof(0, until_ns, timed=False, idle=2) is None


@pytest.mark.parametrize(
    ("calls", "blind", "silent"),
    [
        ([], [], "00:00:03Z to 1970-01-01T00:00:30Z"),  # from the time at which it was ready
        ([9, 12, 15, 18, 24, 29], [], "00:00:03Z to 1970-01-01T00:00:09Z"),
        ([4, 8, 12, 18, 22, 26], [], "00:00:12Z to 1970-01-01T00:00:18Z"),
        ([4, 8, 12, 18, 22, 28], [(13, 14)], "00:00:22Z to 1970-01-01T00:00:28Z"),
        ([4, 8, 12, 16, 20, 24], [], "00:00:24Z to 1970-01-01T00:00:30Z"),
        ([4, 8, 12, 16, 20, 24, 28], [], None),
        ([4, 8, 12, 16, 20, 24], [(25, 26)], None),
    ],
)
def test_a_silence_of_the_controller_is_found_wherever_it_lies(
    calls: list[int], blind: list[tuple[int, int]], silent: str | None
) -> None:
    process = Process(
        Services(),
        [at * NS_PER_S for at in calls],
        [(a * NS_PER_S, b * NS_PER_S) for a, b in blind],
    )
    proof = process.proof(0, 30 * NS_PER_S, timed=False)
    assert (proof is None) == (silent is None)
    assert silent is None or silent in str(proof)


@pytest.mark.parametrize(
    ("calls", "blind", "proved"),
    [
        ([5, 16, 17, 28], [], True),  # one pass, from 16 to 17 at the latest
        ([5, 16, 17, 26], [], False),  # less than it rests between two
        ([0, 16, 17, 28], [], False),  # it may have begun before the key was ready
        ([5, 16, 17, 31], [], False),  # it may go on
        ([5, 16, 17, 28], [(16, 17)], False),  # it may have died
    ],
)
def test_a_pass_between_two_rests_came_to_every_key(
    calls: list[int], blind: list[tuple[int, int]], proved: bool
) -> None:
    calls_ns = [at * NS_PER_S for at in calls]
    blind_ns = [(a * NS_PER_S, b * NS_PER_S) for a, b in blind]
    pace = Pace(10 * NS_PER_S, 0, 10 * NS_PER_S, passes=True)
    process = Process(Services(), calls_ns, blind_ns, pace=pace)
    proof = process.proof(0, 30 * NS_PER_S, timed=False)
    assert (proof is not None) == proved
    queued = Process(Services(), calls_ns, blind_ns, pace=Pace(10 * NS_PER_S))
    assert queued.proof(0, 30 * NS_PER_S, timed=False) is None


def test_what_is_forgotten_leaves_the_last_word() -> None:
    services, positions = Services(), Positions()
    for key, served, earliest in (("ns/a", 10, 9), ("ns/b", 20, 5), ("ns/c", 90, 1)):
        services.add([service(key, served, earliest)])
        positions.at_ns.append(served)
        positions.rv.append(earliest)
    left = services.since(50 * NS_PER_S)
    assert [left[number].first.key for number in range(len(left))] == ["ns/a", "ns/c"]
    assert positions.since(50).sorted() == [(10, 9)]
