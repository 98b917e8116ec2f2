"""RFC 3339 and nanoseconds, there and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.base.kube.timestamps import NS_PER_S, floor_second, format_rfc3339, parse_rfc3339

READ: dict[str, tuple[str, int | None]] = {
    "the epoch": ("1970-01-01T00:00:00Z", 0),
    "seconds": ("2026-11-21T05:42:42Z", 1_795_239_762 * NS_PER_S),
    "microseconds": ("2026-11-21T05:42:42.000001Z", 1_795_239_762 * NS_PER_S + 1000),
    "nanoseconds": ("1970-01-01T00:00:00.123456789Z", 123_456_789),
    "one decimal": ("1970-01-01T00:00:00.5Z", 500_000_000),
    "more decimals than nanoseconds": ("1970-01-01T00:00:00.1234567891Z", 123_456_789),
    "an offset": ("1970-01-01T01:30:00+01:30", 0),
    "a negative offset with decimals": ("1969-12-31T19:00:00.25-05:00", 250_000_000),
    "before the epoch": ("1969-12-31T23:59:59Z", -NS_PER_S),
    "a leap day": ("2024-02-29T00:00:00Z", 1_709_164_800 * NS_PER_S),
    "a small t": ("1970-01-01t00:00:00Z", 0),
    "the year 0 in UTC": ("0001-01-01T00:00:00+23:59", -62_135_683_140 * NS_PER_S),
    "the year 10000 in UTC": ("9999-12-31T23:59:59-23:59", 253_402_387_139 * NS_PER_S),
    "no leap day": ("2025-02-29T00:00:00Z", None),
    "no such month": ("2025-13-01T00:00:00Z", None),
    "no such hour": ("2025-01-01T24:00:01Z", None),
    "no offset": ("2025-01-01T00:00:00", None),
    "a date": ("2025-01-01", None),
    "nothing": ("", None),
    "a word of the right length": ("this is no timestamp", None),
    "other separators": ("2025/01/01 00:00:00Z", None),
    "letters for digits": ("2O25-01-01T00:00:00Z", None),
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ.keys())
def test_parse(text: str, expected: int | None) -> None:
    assert parse_rfc3339(text) == expected


WRITTEN: dict[str, tuple[int | None, str | None]] = {
    "nothing": (None, None),
    "the epoch": (0, "1970-01-01T00:00:00Z"),
    "a second": (NS_PER_S, "1970-01-01T00:00:01Z"),
    "a nanosecond": (1, "1970-01-01T00:00:00.000000001Z"),
    "half a second": (NS_PER_S // 2, "1970-01-01T00:00:00.5Z"),
    "a second before the epoch": (-NS_PER_S, "1969-12-31T23:59:59Z"),
    "a nanosecond before the epoch": (-1, "1969-12-31T23:59:59.999999999Z"),
}


@pytest.mark.parametrize(("at_ns", "expected"), WRITTEN.values(), ids=WRITTEN.keys())
def test_format(at_ns: int | None, expected: str | None) -> None:
    assert format_rfc3339(at_ns) == expected


TIMES = st.integers(-(10**9) * NS_PER_S, 7 * 10**9 * NS_PER_S)


@given(TIMES)
def test_a_time_survives_being_written_and_read(at_ns: int) -> None:
    text = format_rfc3339(at_ns)
    assert text is not None
    assert parse_rfc3339(text) == at_ns


@given(
    st.datetimes(datetime(1950, 1, 1), datetime(2190, 1, 1)),  # noqa: DTZ001 - made aware below
    st.integers(-14 * 60, 14 * 60),
)
def test_reading_agrees_with_the_standard_library(moment: datetime, offset_min: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=offset_min)))
    delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
    expected = (delta.days * 86_400 + delta.seconds) * NS_PER_S + delta.microseconds * 1000
    assert parse_rfc3339(aware.isoformat()) == expected


@given(TIMES)
def test_floor_cuts_and_never_rounds(at_ns: int) -> None:
    floor = floor_second(at_ns)
    assert floor % NS_PER_S == 0
    assert 0 <= at_ns - floor < NS_PER_S


@given(st.text(max_size=30))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = parse_rfc3339(text)
    assert found is None or isinstance(found, int)


@given(st.text("0123456789-:.TZ+ ", max_size=30))
def test_almost_a_timestamp_is_read_without_an_error(text: str) -> None:
    found = parse_rfc3339(text)
    assert found is None or isinstance(found, int)
