"""What the controller remembers across a time that only the recorder did not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.erasures import with_gap
from tests.support.judged_rows import judge_of
from tests.support.traces import json_lines

DATA = Path(__file__).parents[1] / "data" / "replay"
RECORD = DATA / "finalizer-given-back-after-it-counted"
RESUMED = DATA / "resumed-in-a-back-off-before-the-record"
S = 10**9


def test_a_finalizer_whose_removal_was_sent_before_is_still_waited_for() -> None:
    """No sync counts a pod whose finalizer it waits for, which another adoption gave back."""
    rows = list(json_lines(RECORD / "watch.jsonl.zst"))
    from_ns = 1795408211 * S
    with judge_of(with_gap(rows, from_ns, from_ns + 2 * S), RECORD) as judge:
        report = judge.report()
    assert report.divergences == []
    assert any(j.object.name == "c0003-idx" for j in report.judgements)


@pytest.mark.parametrize(
    ("reason", "message"),
    [("Suspended", "Job suspended"), ("Completed", "Job completed"), ("Resumed", "Job went on")],
)
def test_an_unknown_memory_excuses_no_other_event(reason: str, message: str) -> None:
    """What syncs that leave only an Event may hand out is still asked of the controller."""
    rows = list(json_lines(RESUMED / "watch.jsonl.zst"))
    resumed = [
        row
        for row in rows
        if row["resource"] == "events"
        and row["type"] == "ADDED"
        and row["object"]["reason"] == "Resumed"
    ]
    resumed[0]["object"] |= {"reason": reason, "message": message}
    with judge_of(rows, RESUMED) as judge:
        told = {(j.object.name, j.action, j.verdict.value) for j in judge.report().divergences}
    assert told == {("c0004-policy", "event", "extra")}
