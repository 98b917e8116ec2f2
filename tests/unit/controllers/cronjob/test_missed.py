"""Missed starts and wake-ups in each generation of the arithmetic."""

from __future__ import annotations

import pytest

from tests.support.cron_world import at, cron_job, era
from tracekit.base.cron import load_zone
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.ports.cronjob.missed import (
    Missed,
    ScheduleError,
    due,
    parse_schedule,
    requeue_after_ns,
)

A0, A1, A2, A3, A4 = "1.20.15", "1.22.17", "1.25.11", "1.26.7", "1.36.3"
MS = 1_000_000
MIXED = "30 6-16/4 * * 1-5"
NOONISH = "30 10,11,12 * * 1-5"


def slot(version: str, now: str, **fields) -> str | None:
    rules = era(version)
    cj = cron_job(**fields)
    return format_rfc3339(due(cj, parse_schedule(cj, rules), at(now), rules).slot_ns)


def wait_ms(version: str, now: str, zone: str = "UTC", **fields) -> int:
    rules = era(version)
    cj = cron_job(**fields)
    return requeue_after_ns(cj, parse_schedule(cj, rules), at(now), rules, load_zone(zone)) // MS


@pytest.mark.parametrize(
    ("schedule", "last", "now", "expected"),
    [
        # The rows of the specification's table D.4: A0, A1/A2, A3/A4.
        (
            MIXED,
            "2016-05-19T10:30:00Z",
            "2016-05-20T10:31:00Z",
            ("2016-05-20T10:30:00Z", "2016-05-20T06:30:00Z", "2016-05-20T10:30:00Z"),
        ),
        (
            NOONISH,
            "2016-05-19T10:30:00Z",
            "2016-05-20T16:30:00Z",
            ("2016-05-20T12:30:00Z", "2016-05-20T16:30:00Z", None),
        ),
        (
            "0 0 1 * *",
            "2023-01-01T00:00:00Z",
            "2023-04-05T00:00:00Z",
            ("2023-04-01T00:00:00Z", "2023-03-29T00:00:00Z", "2023-04-01T00:00:00Z"),
        ),
        (
            "0 9,17 * * *",
            "2016-05-16T17:00:00Z",
            "2016-05-18T10:00:00Z",
            ("2016-05-18T09:00:00Z", "2016-05-18T09:00:00Z", "2016-05-18T09:00:00Z"),
        ),
        (
            "0 * * * *",
            "2016-05-19T10:00:00Z",
            "2016-05-19T10:59:59Z",
            (None, None, None),
        ),
        (
            "0 * * * *",
            "2016-05-19T10:00:00Z",
            "2016-05-19T11:00:00Z",
            ("2016-05-19T11:00:00Z",) * 3,
        ),
        (
            "0 * * * *",
            "2016-05-19T10:00:00Z",
            "2016-05-19T13:10:00Z",
            ("2016-05-19T13:00:00Z",) * 3,
        ),
    ],
)
def test_the_newest_missed_slot(
    schedule: str, last: str, now: str, expected: tuple[str | None, ...]
) -> None:
    fields = {"schedule": schedule, "last": last, "created": "2016-01-01T00:00:00Z"}
    listed, divided, walked = expected
    assert slot(A0, now, **fields) == listed
    assert slot(A1, now, **fields) == slot(A2, now, **fields) == divided
    assert slot(A3, now, **fields) == slot(A4, now, **fields) == walked


def test_a_clock_behind_the_last_run_has_nothing_due() -> None:
    for version in (A0, A1, A2, A3, A4):
        assert slot(version, "09:30:00", last="10:00:00") is None


def test_a_deadline_moves_the_start_of_the_search() -> None:
    # At 10:00:20 a deadline of 10 s looks back to 10:00:10: the slot of 10:00 is out of reach.
    for version in (A0, A1, A4):
        assert slot(version, "10:00:20", last="09:00:00", deadline=10) is None
        assert slot(version, "10:00:09", last="09:00:00", deadline=10) is not None


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.22.17", "time difference between two schedules less than 1 second"),
        ("1.25.16", "time difference between two schedules less than 1 second"),
        ("1.26.0", "time difference between two schedules less than 1 second"),
        ("1.26.13", "time difference between two schedules is less than 1 second"),
        ("1.26.15", "time difference between two schedules is less than 1 second"),
        ("1.36.3", "time difference between two schedules is less than 1 second"),
    ],
)
def test_an_impossible_date_is_an_error(version: str, text: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        slot(version, "10:00:00", schedule="59 23 31 2 *")
    assert str(caught.value) == text


def test_an_impossible_date_in_1_20_is_capped_where_upstream_never_returns() -> None:
    with pytest.raises(ScheduleError, match="never returns"):
        slot(A0, "10:00:00", schedule="59 23 31 2 *")


def test_every_keeps_its_beat_and_counts_many_missed_ones() -> None:
    rules = era(A4)
    cj = cron_job(schedule="@every 1h", last="2016-05-19T10:01:00Z")
    now_ns = at("10:01:00") - 60 * 10**9 + 168 * 3600 * 10**9
    found = due(cj, parse_schedule(cj, rules), now_ns, rules)
    assert found.slot_ns == at("10:01:00") + 167 * 3600 * 10**9
    assert found.missed is Missed.MANY


HOUR_MS, DELTA_MS = 3_600_000, 100


@pytest.mark.parametrize(
    ("sentence", "schedule", "last", "now", "expected_ms"),
    [
        (
            "uneven hours, a day later",
            MIXED,
            "2016-05-19T10:30:00Z",
            "2016-05-20T10:31:00Z",
            4 * HOUR_MS - 60_000 + DELTA_MS,
        ),
        (
            "late hours only, over a weekend",
            NOONISH,
            "2016-05-19T10:30:00Z",
            "2016-05-20T16:30:00Z",
            66 * HOUR_MS + DELTA_MS,
        ),
        (
            "weekly, missed twice",
            "0 10 * * 4",
            "2016-05-05T10:00:00Z",
            "2016-05-24T09:30:00Z",
            (48 + 0) * HOUR_MS + 30 * 60_000 + DELTA_MS,
        ),
        ("never ran", "0 6 * * *", None, "2016-05-19T10:00:00Z", 20 * HOUR_MS + DELTA_MS),
    ],
)
def test_the_next_wake_up(
    sentence: str, schedule: str, last: str | None, now: str, expected_ms: int
) -> None:
    del sentence
    fields = {"schedule": schedule, "last": last, "created": "2016-05-19T10:00:00Z"}
    if last is not None:
        fields["created"] = last
    assert wait_ms(A4, now, **fields) == expected_ms


def test_where_the_walk_finds_nothing_a3_spins_and_a4_waits() -> None:
    fields = {"schedule": NOONISH, "last": "2016-05-19T10:30:00Z"}
    now = "2016-05-20T16:30:00Z"
    assert wait_ms(A3, now, **fields) < 0
    assert wait_ms(A4, now, **fields) == 66 * HOUR_MS + DELTA_MS


def test_every_waits_from_now_in_a1_and_from_the_last_run_later() -> None:
    fields = {"schedule": "@every 1h", "last": "10:00:00"}
    assert wait_ms(A1, "10:20:00", **fields) == HOUR_MS + DELTA_MS
    assert wait_ms(A2, "10:20:00", **fields) == 40 * 60_000 + DELTA_MS
    assert wait_ms(A4, "10:20:00", **fields) == 40 * 60_000 + DELTA_MS


def test_a_slot_found_by_division_carries_utc_even_in_a_process_elsewhere() -> None:
    # Missed at 12:00Z and 13:00Z: A2 anchors at a UTC instant and reads the next 09:00 in UTC.
    fields = {"schedule": "0 9 * * *", "last": "2016-05-16T00:00:00Z"}
    now = "2016-05-19T10:00:00Z"
    in_utc = wait_ms(A2, now, "Asia/Tokyo", **fields)
    in_tokyo = wait_ms(A4, now, "Asia/Tokyo", **fields)
    assert in_tokyo == 14 * HOUR_MS + DELTA_MS
    assert in_utc != in_tokyo


def test_the_zone_field_decides_where_the_slot_lies() -> None:
    cj = {"schedule": "0 9 * * *", "zone": "America/New_York", "created": "2016-05-19T00:00:00Z"}
    assert slot(A4, "2016-05-19T12:59:59Z", **cj) is None
    assert slot(A4, "2016-05-19T13:00:00Z", **cj) == "2016-05-19T13:00:00Z"


def test_before_the_zone_field_existed_it_is_ignored() -> None:
    cj = {"schedule": "0 9 * * *", "zone": "America/New_York", "created": "2016-05-19T00:00:00Z"}
    assert slot("1.24.0", "2016-05-19T09:00:00Z", **cj) == "2016-05-19T09:00:00Z"
    assert slot("1.25.0", "2016-05-19T09:00:00Z", **cj) is None
