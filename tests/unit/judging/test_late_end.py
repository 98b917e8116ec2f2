"""What a late stream had not shown when the record ended is not missing."""

from __future__ import annotations

import pytest

from tracekit.check.diff.cross_key_timing import CrossKeyTiming
from tracekit.check.diff.lateness import KeyTiming, PendingAction
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import Judgement, ObjectRef, Verdict

S = 10**9
END_NS = 100 * S
DUE_NS = 80 * S
#: The stream that shows what each controller writes.
SHOWN_IN = {
    ("job", "pod-create"): "pods",
    ("job", "status-update"): "jobs",
    ("cronjob", "job-delete"): "jobs",
    ("cronjob", "status-update"): "cronjobs",
}


def missing(controller: str, action: str, late: str) -> list[Judgement]:
    """What is told as left undone for 20 s, where a stream is late by as much."""
    ref = ObjectRef("CronJob", "ns", "name", "uid")
    pending = Judgement(controller, ref, action, Verdict.MISSING, END_NS, "1", "it", "demanded")
    cross_key = CrossKeyTiming(controller)
    cross_key.add(KeyTiming((), (), (), (PendingAction(DUE_NS, pending),), (), ()))
    context = RunContext(END_NS, seen_rv={late: 5}, written_ns={5: DUE_NS})
    return cross_key.settled(context).missing


@pytest.mark.parametrize(("controller", "action"), SHOWN_IN)
@pytest.mark.parametrize("late", ["pods", "jobs", "cronjobs"])
def test_only_the_stream_that_would_show_it_counts(controller: str, action: str, late: str) -> None:
    found = missing(controller, action, late)
    assert [j.action for j in found] == ([] if SHOWN_IN[controller, action] == late else [action])
