"""What a controller can have read from its clock, beside what it had shown before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.unit.controllers.job.counting_world import job
from tracekit.base.kube.timestamps import NS_PER_S as S
from tracekit.base.kube.views import Condition, JobStatus
from tracekit.check.replay.clock_readings import (
    CLOCK_SLACK_NS,
    latest_readings,
    not_before_ns,
    read_by_ns,
)
from tracekit.check.replay.commit_times import HANDLING_NS, WIDTH_NS
from tracekit.check.replay.history import Revision, Write, WriteKind
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


@pytest.mark.parametrize(
    ("ahead_ns", "later_ns", "readings"),
    [
        (1, 0, [0, 1]),
        (HANDLING_NS, 0, [0, HANDLING_NS]),
        (HANDLING_NS + 1, 0, [0]),  # no request takes so long without a word of it
        (-1, 0, [0]),
        (1, HANDLING_NS, [0, 1]),  # what it wrote first shows no time
        (1, HANDLING_NS + 1, [0]),  # the next sync's
    ],
)
def test_what_a_sync_writes_shows_what_it_had_read(
    ahead_ns: int, later_ns: int, readings: list[int]
) -> None:
    due = Condition("FailureTarget", "True", "", "", None, WROTE_NS + ahead_ns)
    written = replace(job(), status=JobStatus(conditions=(due,)))
    status = Revision(2, WROTE_NS + later_ns, 2, "MODIFIED", written, None)
    writes = [
        Write(WriteKind.POD_DELETE, 1, WROTE_NS, WROTE_NS, "p"),
        Write(WriteKind.STATUS_UPDATE, 2, WROTE_NS + later_ns, WROTE_NS, "j", job=status),
    ]
    found = latest_readings(PROMPT, job(), writes, 0)
    assert [read_ns - WROTE_NS for read_ns in found] == readings
