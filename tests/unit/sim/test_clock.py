"""The virtual clock."""

import pytest

from tracekit.base.sim.clock import VirtualClock


def test_it_moves_forward_by_times_and_by_spans():
    clock = VirtualClock(5)
    clock.advance_to(7)
    clock.advance(3)
    clock.advance_to(10)
    assert clock.now_ns == 10
    assert repr(clock) == "VirtualClock(now_ns=10)"


def test_it_refuses_to_go_back():
    clock = VirtualClock(5)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance_to(4)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-1)
