"""The verb `cron next`: both outputs, and one sentence for what it cannot do."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tracekit.base.errors import UsageError
from tracekit.cli.cron import cron


def ask(*args: str) -> str:
    result = CliRunner().invoke(cron, ["next", *args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_names_the_library_and_gives_every_time_in_three_forms() -> None:
    document = json.loads(
        ask("30 2 * * *", "--time-zone", "Europe/Berlin", "--from", "2025-03-29T12:00:00Z",
            "--count", "2", "-o", "json")
    )  # fmt: skip
    assert document["library"] == "robfig/cron v3.0.1"
    assert document["next"][0] == {
        "time": "2025-03-31T02:30:00+02:00",
        "utc": "2025-03-31T00:30:00Z",
        "unixSeconds": 1743381000,
    }
    assert len(document["next"]) == 2
    assert document["neverAgain"] is False


def test_the_kubernetes_version_picks_the_generation() -> None:
    asked = ("0 0 */10 * 5", "--from", "2023-11-01T12:00:00Z", "--count", "1", "-o", "json")
    old = json.loads(ask(*asked, "--kubernetes-version", "v1.21.14+k3s1"))
    new = json.loads(ask(*asked, "--kubernetes-version", "1.22"))
    assert old["library"] == "robfig/cron v1.1.0"
    assert old["next"][0]["utc"] == "2023-12-01T00:00:00Z"
    assert new["next"][0]["utc"] == "2023-11-03T00:00:00Z"


def test_the_table_shows_utc_and_the_zone() -> None:
    text = ask("0 9 * * *", "--time-zone", "Asia/Tokyo", "--from", "2024-01-01T12:00:00Z")
    assert "2024-01-02T00:00:00Z" in text
    assert "2024-01-02T09:00:00+09:00" in text


def test_an_impossible_date_is_said_to_never_fire() -> None:
    assert "no activation is found within five years" in ask("0 0 31 2 *")


def test_a_zone_prefix_is_noted_where_new_cronjobs_may_not_have_it() -> None:
    document = json.loads(ask("TZ=UTC 0 0 * * *", "-o", "json"))
    assert "1.29" in document["notes"][0]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("61 * * * *",), "end of range (61) above maximum (59): 61"),
        (("TZ=0",), "slice bounds out of range"),
        (("* * * * *", "--time-zone", "Nowhere/City"), "no time zone that Kubernetes takes"),
        (("* * * * *", "--time-zone", "local"), "no time zone that Kubernetes takes"),
        (("TZ=UTC * * * * *", "--time-zone", "Asia/Tokyo"), "refuses a CronJob with both"),
        (
            ("* * * * *", "--time-zone", "Asia/Tokyo", "--kubernetes-version", "1.23"),
            "has no spec.timeZone",
        ),
        (("* * * * *", "--process-zone", "Nowhere"), "--process-zone"),
        (("* * * * *", "--from", "some day"), "is no time"),
        (("* * * * *", "--from", "-99999999d"), "is not after the beginning of the year 1"),
        (("TZ=UTC * * * * *", "--kubernetes-version", "1.21"), "Expected exactly 5 fields"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(args: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        CliRunner().invoke(cron, ["next", *args], catch_exceptions=False)
    assert words in str(caught.value)
