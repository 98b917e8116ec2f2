"""A trace judged by several processes: the same answers, and no key costs another one its own."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import orjson
import pytest

from tests.replay.test_planted_lies import planted
from tests.scale.executors import Here, Sums, halves
from tests.support.traces import TRACES, import_log
from tracekit.check.diff.report import DiffReport
from tracekit.cli.imports import take_effect_before
from tracekit.cli.main import main
from tracekit.judge import partitioned
from tracekit.judge.executors.processes import Processes
from tracekit.judge.executors.tasks import Done, Lost
from tracekit.judge.judged import Asked, Judge, resolve_era
from tracekit.judge.partition import Unit, cut, families
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.whole import compact_in_place

#: What each has that others have not: CronJobs of a polling controller, TTLs, twins.
NAMES = ("v1.17.17-all", "v1.36.3-all", "v1.25.4-twins")
#: Lies that only all keys together tell.
LIES = ("sync-late", "retry-early")


@pytest.fixture(scope="module", params=[*NAMES, *LIES])
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TraceReader:
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    if name in NAMES:
        return import_log(TRACES / name / "watch.jsonl.zst", folder / "trace", name)
    found = planted(name)
    assert found is not None
    origin, rows, _ = found
    log = folder / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return import_log(log, folder / "trace", origin)


@pytest.fixture(scope="module")
def whole(reader: TraceReader) -> Judge:
    """Who judges it as a whole, and keeps what he found."""
    return Judge(reader, resolve_era(reader, None, None))


def told(report: DiffReport) -> tuple[object, ...]:
    return (
        report.judgements,
        report.jobs,
        report.summary(),
        report.actions,
        report.decided,
        report.longest_lag_ns,
    )


def test_pieces_say_what_the_whole_says(reader: TraceReader, whole: Judge) -> None:
    executor = Here(size=3)
    parts = Judge(reader, whole.era, executor=executor)
    assert told(parts.report()) == told(whole.report())
    assert told(parts.tally()) == told(whole.tally())
    assert len(executor.done) > 6
    where = whole.report().judgements[0].object
    for asked in (
        Asked(job=f"{where.namespace}/{where.name}"),
        Asked(namespace=where.namespace, controllers=("job", "ttl")),
    ):
        assert told(parts.tally(asked)) == told(whole.tally(asked))


def test_units_read_alone_say_the_same(
    reader: TraceReader, whole: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no folder is shared, each unit reads its own rows."""
    monkeypatch.setattr(
        partitioned.PartitionedJudge, "_spread", lambda _self, units, _folder: list(units)
    )
    assert told(Judge(reader, whole.era, executor=Here()).report()) == told(whole.report())


def test_pieces_of_a_narrow_trace_say_what_the_wide_one_says(tmp_path: Path) -> None:
    wide = import_log(TRACES / NAMES[2] / "watch.jsonl.zst", tmp_path / "trace", NAMES[2])
    era = resolve_era(wide, None, None)
    expected = told(Judge(wide, era).report())
    compact_in_place(tmp_path / "trace")
    narrow = TraceReader(tmp_path / "trace")
    assert all(file.is_narrow for file in narrow.snapshot.files)
    assert told(Judge(narrow, era, executor=Here(size=3)).report()) == expected


def test_what_belongs_together_is_in_one_unit_and_all_is_in_some(
    reader: TraceReader, whole: Judge
) -> None:
    found, objects = families(reader), whole.objects
    assert set(objects.jobs) <= {job for family in found for job in family.jobs}
    assert sorted(key for f in found for key in f.cron_jobs) == sorted(objects.cronjobs)
    for small_last in (False, True):
        units = cut(found, 5, small_last=small_last)
        assert sorted(o for u in units for o in u.objects) == sorted(
            o for f in found for o in f.objects
        )
        assert [u.rows for u in units] == sorted((u.rows for u in units), reverse=True)


def test_the_last_units_are_smaller() -> None:
    found = [Unit((("ns", f"job-{number:03}"),), (), 10) for number in range(160)]
    sizes = [unit.rows for unit in cut(found, 16, small_last=True)]
    assert sizes[:14] == [100] * 14
    assert set(sizes[14:]) == {20}
    assert sum(sizes) == 1600


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = "v1.36.3-twins" if (TRACES / "v1.36.3-twins").exists() else "v1.25.4-twins"
    target = tmp_path_factory.mktemp("processes") / "trace"
    import_log(TRACES / name / "watch.jsonl.zst", target, name)
    return target


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([*words])
    out, err = capsys.readouterr()
    return int(str(left.value.code)), out, err


@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_the_same_bytes_for_any_number_of_processes(
    output: str,
    trace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = []
    for number in ("1", "2"):
        monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / number))
        words = ("replay", str(trace), "--diff", "-o", output, "--processes", number)
        answers.append(run(capsys, *words))
    assert answers[0] == answers[1]
    assert answers[0][0] == 0


def test_a_key_that_cannot_be_judged_is_named_and_the_rest_is_answered(
    trace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    reader = TraceReader(trace)
    namespace, name = families(reader)[0].jobs[0]
    judge = partitioned.judge_as_known

    def poisoned(history, rules, context):
        if (history.namespace, history.name) == (namespace, name):
            raise ZeroDivisionError("of no use")
        return judge(history, rules, context)

    monkeypatch.setattr(partitioned, "judge_as_known", poisoned)
    monkeypatch.setattr("tracekit.judge.executors.processes.Processes", Here)
    status, out, err = run(capsys, "replay", str(trace), "--diff", "--processes", "2", "-o", "json")
    assert status == 2
    assert f"{namespace}/{name} could not be judged (ZeroDivisionError: of no use)" in err
    assert err.count("could not be judged") == 1
    summary = orjson.loads(out)["summary"]
    whole = Judge(reader, resolve_era(reader, None, None)).report()
    lost = sum((j.object.namespace, j.object.name) == (namespace, name) for j in whole.judgements)
    assert lost
    counted = sum(n for of in summary.values() for cells in of.values() for n in cells.values())
    assert counted == whole.actions - lost


#### The crew ####


def test_a_killed_process_costs_a_retry_and_a_poison_task_itself(tmp_path: Path) -> None:
    tasks = [tuple(range(10 * n, 10 * n + 10)) for n in range(4)]
    with Processes(2, partial(take_effect_before, "tracekit.judge.partitioned")) as executor:
        once = Sums(once=25, memory=str(tmp_path / "died"))
        found = list(executor.run(once, tasks, halves))
        assert sorted(o.result for o in found if isinstance(o, Done)) == [45, 145, 245, 345]
        found = list(executor.run(Sums(poison=13), tasks, halves))
    lost = [outcome for outcome in found if isinstance(outcome, Lost)]
    assert [outcome.task for outcome in lost] == [(13,)]
    assert sum(o.result for o in found if isinstance(o, Done)) == sum(range(40)) - 13


def _dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("seconds", [0, 3])  # is it seen before the tasks are given out, or after?
def test_a_process_that_dies_before_there_is_work_is_replaced(seconds: int) -> None:
    with Processes(2, partial(take_effect_before, "tracekit.judge.partitioned")) as executor:
        executor.begin(_dies)
        time.sleep(seconds)
        found = list(executor.run(Sums(), [(1, 2), (3, 4)], halves))
    assert sorted(o.result for o in found if isinstance(o, Done)) == [3, 7]
