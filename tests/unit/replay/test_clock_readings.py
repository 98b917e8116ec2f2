"""What a controller can have read from its clock, beside what it had shown before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.unit.controllers.job.counting_world import job
from tracekit.base.kube.timestamps import NS_PER_S as S
from tracekit.base.kube.views import Condition, JobStatus
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS, not_before_ns, read_by_ns
from tracekit.check.replay.commit_times import WIDTH_NS
from tracekit.check.replay.run_context import RunContext

WROTE_NS = 1_700_000_000 * S
PROMPT = RunContext(WROTE_NS + 100 * S)
LATE = replace(PROMPT, late=((WROTE_NS - S, WROTE_NS + S),))


@pytest.mark.parametrize(
    ("context", "ahead_ns", "read_ns"),
    [
        (PROMPT, -5 * S, 0),
        (PROMPT, S // 10, S // 10),
        (PROMPT, CLOCK_SLACK_NS, CLOCK_SLACK_NS),
        (PROMPT, CLOCK_SLACK_NS + 1, 0),  # anybody can write a status
        (LATE, CLOCK_SLACK_NS + WIDTH_NS, CLOCK_SLACK_NS + WIDTH_NS),
        (LATE, CLOCK_SLACK_NS + WIDTH_NS + 1, 0),
    ],
)
def test_no_clock_is_behind_what_it_has_shown(
    context: RunContext, ahead_ns: int, read_ns: int
) -> None:
    shown_ns = WROTE_NS + ahead_ns
    suspended = Condition("Suspended", "True", "", "", None, shown_ns)
    for status in (JobStatus(start_ns=shown_ns), JobStatus(conditions=(suspended,))):
        held = replace(job(), status=status)
        assert read_by_ns(context, held, WROTE_NS) == WROTE_NS + read_ns


def test_times_are_known_less_closely_where_streams_were_late() -> None:
    assert not_before_ns(PROMPT, WROTE_NS) == WROTE_NS - CLOCK_SLACK_NS
    assert not_before_ns(LATE, WROTE_NS) == WROTE_NS - CLOCK_SLACK_NS - WIDTH_NS
