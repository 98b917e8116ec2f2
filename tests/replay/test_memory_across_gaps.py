"""What the controller remembers across a time that only the recorder did not see."""

from __future__ import annotations

from pathlib import Path

from tests.support.erasures import with_gap
from tests.support.judged_rows import judge_of
from tests.support.traces import json_lines

RECORD = Path(__file__).parents[1] / "data" / "replay" / "finalizer-given-back-after-it-counted"
S = 10**9


def test_a_finalizer_whose_removal_was_sent_before_is_still_waited_for() -> None:
    """No sync counts a pod whose finalizer it waits for, which another adoption gave back."""
    rows = list(json_lines(RECORD / "watch.jsonl.zst"))
    from_ns = 1795408211 * S
    with judge_of(with_gap(rows, from_ns, from_ns + 2 * S), RECORD) as judge:
        report = judge.report()
    assert report.divergences == []
    assert any(j.object.name == "c0003-idx" for j in report.judgements)
