"""Times of several clocks are not mixed: mypy refuses it, and tells where it would be allowed.

`warn_unused_ignores` makes each `type: ignore` here an error as soon as mypy lets the line pass.
"""

from __future__ import annotations

import pytest

from tracekit.base.kube.timestamps import NS_PER_S as S
from tracekit.check.replay.clock_notes import ClockNote
from tracekit.check.replay.instants import JudgedNs, RecordedNs, ServerNs
from tracekit.check.replay.recorder_clock import Epoch, RecorderClock

CLOCK = RecorderClock((Epoch(0, RecordedNs(10 * S), RecordedNs(20 * S), 3 * S, "a Lease"),))


@pytest.mark.parametrize("at_s", [1, 10, 15, 20, 99])
def test_a_time_goes_to_the_clock_that_is_judged_on_and_back(at_s: int) -> None:
    judged_ns = CLOCK.judged_ns(RecordedNs(at_s * S))
    assert judged_ns == (at_s - 3) * S
    assert CLOCK.recorded_ns(judged_ns) == at_s * S


def test_a_time_of_one_clock_is_no_time_of_another() -> None:
    judged_ns, recorded_ns = JudgedNs(7 * S), RecordedNs(10 * S)
    assert CLOCK.judged_ns(judged_ns) == 4 * S  # type: ignore[arg-type]
    assert CLOCK.recorded_ns(recorded_ns) == 13 * S  # type: ignore[arg-type]
    assert CLOCK.epoch(recorded_ns) is CLOCK.epochs[0]  # type: ignore[arg-type]
    assert CLOCK.judged_ns(ServerNs(7 * S)) == 4 * S  # type: ignore[arg-type]
    assert ClockNote(1, recorded_ns, date_ns=recorded_ns).date_ns  # type: ignore[arg-type]
    assert Epoch(0, judged_ns, recorded_ns, 0).from_ns == 7 * S  # type: ignore[arg-type]
