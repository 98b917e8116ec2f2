"""No verb takes more than n log n steps for n times as much of anything: counted, not timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.curves import DIMENSIONS, bend_of, steps_of

#: Of the steps with 4 times as many those that no straight line explains: quadratic is 0.375.
_BENT = 0.1


@pytest.mark.full
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_steps_grow_with_what_there_is(
    dimension: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    bent = {
        verb: steps for verb, steps in steps_of(dimension, 12, tmp_path) if bend_of(steps) > _BENT
    }
    assert bent == {}
