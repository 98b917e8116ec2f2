"""Clock changes, the day rule and the ends of the search, one row of the specification each."""

from __future__ import annotations

import pytest

from tracekit.base.cron import Generation, load_zone, next_activations_ns, parse
from tracekit.base.cron.schedule import civil_from_days, days_from_civil
from tracekit.base.kube.timestamps import format_rfc3339, parse_rfc3339

GEN1, GEN3 = Generation.GEN1, Generation.GEN3


def upcoming(
    spec: str, start: str, *, zone: str = "UTC", generation: Generation = GEN3, count: int = 1
) -> list[str | None]:
    from_ns = parse_rfc3339(start)
    assert from_ns is not None
    found = next_activations_ns(
        spec, from_ns=from_ns, count=count, generation=generation, zone=load_zone(zone)
    )
    return [format_rfc3339(at_ns) for at_ns in found]


@pytest.mark.parametrize("generation", [GEN1, GEN3])
@pytest.mark.parametrize(
    ("spec", "zone", "start", "expected"),
    [
        # A skipped local time: the firing is dropped.
        ("30 2 * * *", "America/New_York", "2023-03-11T12:00:00Z", ["2023-03-13T06:30:00Z"]),
        ("30 2 * * *", "Europe/Berlin", "2023-03-25T12:00:00Z", ["2023-03-27T00:30:00Z"]),
        # A repeated local time: it fires twice.
        (
            "30 1 * * *",
            "America/New_York",
            "2023-11-05T00:00:00Z",
            ["2023-11-05T05:30:00Z", "2023-11-05T06:30:00Z", "2023-11-06T06:30:00Z"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2023-10-28T12:00:00Z",
            ["2023-10-29T00:30:00Z", "2023-10-29T01:30:00Z"],
        ),
        # Every second hour: 02:00 is skipped, 04:00 is next.
        (
            "0 */2 * * *",
            "America/New_York",
            "2023-03-12T05:00:00Z",
            ["2023-03-12T08:00:00Z"],
        ),
        (
            "5 2-4 * * *",
            "America/New_York",
            "2023-03-12T05:00:00Z",
            ["2023-03-12T07:05:00Z", "2023-03-12T08:05:00Z"],
        ),
        # No midnight on that day.
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", ["2018-11-05T02:00:00Z"]),
        ("0 0 * * *", "Africa/Cairo", "2023-04-27T12:00:00Z", ["2023-04-28T21:00:00Z"]),
        # A change of half an hour loses that day's firing.
        ("0 3 * * *", "Australia/Lord_Howe", "2023-09-30T00:00:00Z", ["2023-10-01T16:00:00Z"]),
    ],
)
def test_clock_changes(
    spec: str, zone: str, start: str, expected: list[str], generation: Generation
) -> None:
    assert upcoming(spec, start, zone=zone, generation=generation, count=len(expected)) == expected


def test_a_weekly_run_after_a_day_without_midnight_is_lost_by_the_first_generation_only() -> None:
    start = "2018-11-02T15:00:00Z"
    zone = "America/Sao_Paulo"
    assert upcoming("0 0 * * 1", start, zone=zone, generation=GEN1) == ["2018-11-12T02:00:00Z"]
    assert upcoming("0 0 * * 1", start, zone=zone, generation=GEN3) == ["2018-11-05T02:00:00Z"]


def test_the_repair_of_midnight_loses_the_gap_day_east_of_utc() -> None:
    start = "2023-04-27T10:00:00Z"
    zone = "Africa/Cairo"
    assert upcoming("0 12 * * 5", start, zone=zone, generation=GEN1) == ["2023-04-28T09:00:00Z"]
    assert upcoming("0 12 * * 5", start, zone=zone, generation=GEN3) == ["2023-05-05T09:00:00Z"]


def test_a_starred_day_field_with_a_step_means_and_only_in_the_first_generation() -> None:
    start = "2023-11-01T12:00:00Z"
    assert upcoming("0 0 */10 * 5", start, generation=GEN1) == ["2023-12-01T00:00:00Z"]
    assert upcoming("0 0 */10 * 5", start, generation=GEN3) == ["2023-11-03T00:00:00Z"]


@pytest.mark.parametrize("spec", ["0 0 31 2 *", "59 23 31 4,6,9,11 *", ", * * * *", "* , * * *"])
def test_impossible_dates_and_empty_sets_never_fire(spec: str) -> None:
    assert upcoming(spec, "2024-01-01T00:00:00Z") == []


def test_a_leap_day_is_found_within_five_years_but_not_across_the_year_2100() -> None:
    assert upcoming("0 0 29 2 *", "2024-03-01T00:00:00Z") == ["2028-02-29T00:00:00Z"]
    assert upcoming("0 0 29 2 *", "2096-03-01T00:00:00Z") == []


def test_a_local_day_that_does_not_exist_ends_the_search_instead_of_spinning() -> None:
    # Samoa skipped 30 December 2011; the Go library's day loop never gets past it.
    for generation in Generation:
        assert (
            upcoming(
                "0 0 5 * *", "2011-12-28T00:00:00Z", zone="Pacific/Apia", generation=generation
            )
            == []
        )


def test_the_zone_prefix_wins_over_the_zone_of_the_instant() -> None:
    spec = "TZ=Asia/Tokyo 0 9 * * *"
    for zone in ("UTC", "America/New_York"):
        assert upcoming(spec, "2024-01-01T12:00:00Z", zone=zone) == ["2024-01-02T00:00:00Z"]


def test_every_counts_from_the_instant_asked_about() -> None:
    assert upcoming("@every 1h30m", "2024-01-01T00:10:20.7Z", count=2) == [
        "2024-01-01T01:40:20Z",
        "2024-01-01T03:10:20Z",
    ]


@pytest.mark.parametrize("text", ["500ms", "1.5s", "-5m", "0"])
def test_every_is_whole_seconds_and_at_least_one(text: str) -> None:
    assert upcoming(f"@every {text}", "2024-01-01T00:00:00Z") == ["2024-01-01T00:00:01Z"]


def test_a_start_within_a_second_looks_at_the_next_second() -> None:
    assert upcoming("* * * * *", "2024-01-01T00:00:59.9Z") == ["2024-01-01T00:01:00Z"]
    assert upcoming("* * * * *", "2024-01-01T00:01:00Z") == ["2024-01-01T00:02:00Z"]


def test_schedules_are_parsed_once() -> None:
    assert parse("*/5 * * * *") is parse("*/5 * * * *")


def test_calendar_arithmetic_inverts_itself() -> None:
    for days in range(-800_000, 800_000, 997):
        assert days_from_civil(*civil_from_days(days)) == days
    assert days_from_civil(2023, 13, 32) == days_from_civil(2024, 2, 1)
