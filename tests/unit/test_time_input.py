"""Times, lengths of time and ranges as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339, parse_rfc3339
from tracekit.base.time_input import (
    FIRST_NS,
    TimeRange,
    duration_s,
    is_relative,
    moment_ns,
    time_range,
)

END = parse_rfc3339("2026-11-21T06:00:00Z") or 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-11-21T05:42:45Z", "2026-11-21T05:42:45Z"),
        ("2026-11-21T05:42:45.5+01:00", "2026-11-21T04:42:45.5Z"),
        ("2026-11-21 05:42:45", "2026-11-21T05:42:45Z"),
        ("2026-11-21T05:42", "2026-11-21T05:42:00Z"),
        ("2026-11-21T05:42Z", "2026-11-21T05:42:00Z"),
        ("2026-11-21", "2026-11-21T00:00:00Z"),
        ("-10m", "2026-11-21T05:50:00Z"),
        ("-1h30m", "2026-11-21T04:30:00Z"),
        ("-90", "2026-11-21T05:58:30Z"),
        ("-0s", "2026-11-21T06:00:00Z"),
        ("-200000d", "1479-04-23T06:00:00Z"),
        ("05:42", "2026-11-21T05:42:00Z"),
        ("5:42:45.5", "2026-11-21T05:42:45.5Z"),
        ("06:00", "2026-11-21T06:00:00Z"),
        ("06:01", "2026-11-20T06:01:00Z"),
        ("22:43Z", "2026-11-20T22:43:00Z"),
        ("07:42+02:00", "2026-11-21T05:42:00Z"),
        ("23:00-02:00", "2026-11-21T01:00:00Z"),
        ("yesterday 14:00", "2026-11-20T14:00:00Z"),
        ("Today 14:00", "2026-11-21T14:00:00Z"),
        ("yesterday", "2026-11-20T00:00:00Z"),
        ("today", "2026-11-21T00:00:00Z"),
    ],
)
def test_a_moment_is_read_as_people_write_it(text: str, said: str) -> None:
    assert format_rfc3339(moment_ns(text, END)) == said


@pytest.mark.parametrize(
    "text",
    ["", "noon", "10m", "-", "-2x", "25:42", "5:4", "tomorrow 05:42", "2026-11-31", "21.11.2026"],
)
def test_what_is_no_moment_is_an_error_that_says_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match="write it like 2026-11-21T05:42:45Z, 05:42, "):
        moment_ns(text, END)


@pytest.mark.parametrize("text", ["-740000d", "-99999999999d", "-" + "9" * 400])
def test_nothing_was_before_the_year_1(text: str) -> None:
    """It was the furthest that a trace may have, 146 years ago."""
    assert moment_ns(text, END) == FIRST_NS


@given(st.integers(0, 4 * 10**9))
def test_what_is_printed_is_read_again(seconds: int) -> None:
    at_ns = seconds * NS_PER_S
    assert moment_ns(format_rfc3339(at_ns) or "", END) == at_ns


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5h", 5400), ("1h30m", 5400), ("250ms", 0.25), ("7d", 604_800), ("0s", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1x", "1h x", "-1h", "1h30", "\u0661\u0660m"])
def test_no_duration(text: str) -> None:
    assert duration_s(text) is None


def test_a_range_has_both_its_ends() -> None:
    times = time_range(END, from_="-10m", to="-5m")
    assert times.holds(END - 600 * NS_PER_S)
    assert times.holds(END - 300 * NS_PER_S)
    assert not times.holds(END - 600 * NS_PER_S - 1)
    assert not times.holds(END - 300 * NS_PER_S + 1)
    assert times.meets(0, None)
    assert not times.meets(0, END - 601 * NS_PER_S)
    assert str(times) == "from 2026-11-21T05:50:00Z to 2026-11-21T05:55:00Z"


@pytest.mark.parametrize(
    ("from_", "to", "said"),
    [
        ("22:40", "22:45", "from 2026-11-20T22:40:00Z to 2026-11-20T22:45:00Z"),
        ("22:40", "05:50", "from 2026-11-20T22:40:00Z to 2026-11-21T05:50:00Z"),
        ("yesterday 14:00", "14:05", "from 2026-11-20T14:00:00Z to 2026-11-20T14:05:00Z"),
        (None, "05:50", "to 2026-11-21T05:50:00Z"),
        (None, "06:30", "to 2026-11-21T06:30:00Z"),  # nothing of the last day is left out
    ],
)
def test_a_range_between_times_of_day(from_: str | None, to: str, said: str) -> None:
    assert str(time_range(END, from_=from_, to=to)) == said


@pytest.mark.parametrize(
    ("text", "is_so"),
    [("-10m", True), ("22:43", True), ("yesterday", True), ("2026-11-21", False), (None, False)],
)
def test_what_depends_on_the_end_of_the_record_is_known(text: str | None, is_so: bool) -> None:
    assert is_relative(text) is is_so


def test_no_range_holds_everything() -> None:
    assert not TimeRange()
    assert TimeRange().holds(0)
    assert (
        time_range(END, since="10m") == time_range(END, from_="-10m") == time_range(END, since=600)
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"since": "1h", "from_": "-2h"}, "leave one out"),
        ({"since": "long"}, "no duration"),
        ({"from_": "-1m", "to": "-2m"}, "swap them"),
    ],
)
def test_a_range_that_cannot_be(asked: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        time_range(END, **asked)
