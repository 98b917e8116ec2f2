"""Twins of traces/upgrades: what the old side foretells is what the new side shows, and why."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.traces import ROOT, TRACES, import_log
from tracekit.answers.whatif.answers import Answers
from tracekit.answers.whatif.cron_answers import CronAnswer
from tracekit.answers.whatif.cron_course import CronCourse
from tracekit.answers.whatif_traces import Running, Selected, answer_all
from tracekit.judge.judged import resolve_era
from tracekit.trace.reading.reader import TraceReader

UPGRADES = TRACES / "upgrades"
PAGES = ROOT / "docs" / "upgrades"
#: Name, class and row of each line of the table.
_LINE = re.compile(
    r"^\| \[[^\]]+\]\((\S+)\.md\) \| \S+ \| \S+ \| `(\w+)` \| `(\w+)` \|$", re.MULTILINE
)
LISTED = _LINE.findall((PAGES / "README.md").read_text())
#: Ends so close together, in seconds, are the same: the whole seconds of the API, a batch, a drift.
SAME_S = 3


@cache
def sides(name: str, folder: Path) -> tuple[Answers, Answers]:
    """What the old side foretells by the new side's rules, and what the new side shows."""
    readers: list[TraceReader] = []
    for side in ("before", "after"):
        place = UPGRADES / name / side
        readers.append(import_log(place / "watch.jsonl.zst", folder / name / side, place))
    old, new = (resolve_era(reader, None, None) for reader in readers)
    told = answer_all(readers[0], old, [new], Selected())[0]
    real = answer_all(readers[1], new, [new], Selected(), None, Running(causes=False))[0]
    return told, real


def named(name: str, kind: str) -> list[str]:
    """The Jobs or CronJobs that a pair is about."""
    about = json.loads((UPGRADES / name / "before" / "about.json").read_text())
    return list(about.get(kind, ()))


def ticks(answer: CronAnswer, course: CronCourse | None) -> list[tuple[str, float | None]]:
    """What became of each tick of a CronJob, and after how many seconds its Job was started."""
    assert course is not None, answer.why
    return [
        (tick.outcome, None if tick.started_ns is None else (tick.started_ns - tick.due_ns) / 1e9)
        for tick in course.ticks
    ]


@pytest.mark.parametrize(("name", "verdict", "row"), LISTED)
def test_the_old_side_foretells_the_new_one(
    name: str, verdict: str, row: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before, after = sides(name, tmp_path_factory.getbasetemp())
    told, real = (
        [job for job in side.jobs if job.key in named(name, "jobs")] for side in (before, after)
    )
    assert {job.key for job in told} == {job.key for job in real} == set(named(name, "jobs"))
    for answer, happened in zip(told, real, strict=True):
        target, came = answer.target, happened.recorded
        assert target is not None, answer.why
        assert answer.verdict == verdict
        assert (target.ended, target.reason) == (came.ended, came.reason)
        counts = (target.pods, target.succeeded, target.failed)
        assert counts == (came.pods, came.succeeded, came.failed)
        if target.finished_after_s is not None and came.finished_after_s is not None:
            assert target.finished_after_s == pytest.approx(came.finished_after_s, abs=SAME_S)
        assert row in [cause.name for cause in answer.because]


@pytest.mark.parametrize(("name", "verdict", "row"), LISTED)
def test_the_old_side_foretells_the_ticks_of_the_new_one(
    name: str, verdict: str, row: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The recordings are not of one length: of each CronJob the ticks that both have, but the last."""
    wanted = named(name, "cronjobs")
    if not wanted:
        assert named(name, "jobs")
        return
    before, after = sides(name, tmp_path_factory.getbasetemp())
    for key in wanted:
        answer = [c for c in before.cron_jobs if c.key == key][-1]
        happened = [c for c in after.cron_jobs if c.key == key][-1]
        assert answer.verdict == verdict
        assert row in [cause.name for cause in answer.because]
        target = ticks(answer, answer.target)
        came = ticks(happened, happened.recorded)
        both = min(len(target), len(came)) - 1
        assert both > 0
        for (said, said_s), (was, was_s) in zip(target[:both], came[:both], strict=True):
            assert said == was
            assert said_s == was_s is None or said_s == pytest.approx(was_s, abs=SAME_S)


@pytest.mark.parametrize(("name", "verdict", "row"), LISTED)
def test_each_page_says_what_the_table_says(name: str, verdict: str, row: str) -> None:
    page = (PAGES / f"{name}.md").read_text()
    assert f"class `{verdict}`" in page
    assert f"`{row}`" in page
    for side, option in (("before", "-o run"), ("after", "whatif run")):
        version = json.loads((UPGRADES / name / side / "about.json").read_text())["gitVersion"]
        assert re.search(rf"{option} --kubernetes-version {re.escape(version)}\b", page)


def test_the_table_lists_all_pairs() -> None:
    assert sorted(name for name, _, _ in LISTED) == sorted(p.name for p in UPGRADES.iterdir())
    assert len(LISTED) > 12
