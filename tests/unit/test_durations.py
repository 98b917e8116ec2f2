"""Durations in words."""

from __future__ import annotations

import pytest

from tracekit.base.durations import span


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (0, "0 s"),
        (999_999, "less than 1 ms"),
        (108_123_456, "0.108 s"),
        (999_999_999, "0.999 s"),
        (1_674_000_000, "1.7 s"),
        (5_000_000_000, "5 s"),
        (9_970_000_000, "10 s"),
        (42_400_000_000, "42 s"),
        (59_700_000_000, "1 min 0 s"),
        (306_000_000_000, "5 min 6 s"),
        (7_380_000_000_000, "2 h 3 min"),
        (863_940_000_000_000, "239 h 59 min"),
        (1_062_000_000_000_000, "12 d 7 h"),
    ],
)
def test_a_duration_is_never_none_that_is_some(ns: int, words: str) -> None:
    assert span(ns) == words
