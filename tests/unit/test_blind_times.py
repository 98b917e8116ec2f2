"""Blind times looked up by time say what a look at each of them says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracekit.check.replay.blind_times import BlindTimes

_TIMES = st.integers(0, 30)


@given(st.lists(_TIMES), st.lists(_TIMES), st.none() | _TIMES, _TIMES)
def test_each_answer_is_that_of_a_look_at_all(
    listed: list[int], gaps: list[int], born: int | None, at: int
) -> None:
    blind = BlindTimes(listed, tuple(sorted(gaps)), born)
    ends = [*listed, *(end for end in gaps if born is not None and born < end)]
    by_then = [end for end in ends if end <= at]
    assert len(blind) == len(ends)
    assert blind.passed(at) == len(by_then)
    assert blind.last_by(at) == max(by_then, default=None)
    assert blind.first_ns == min(ends, default=None)
    assert blind.last_ns == max(ends, default=None)
    if ends:
        assert blind.of(at) == max(by_then, default=min(ends))
