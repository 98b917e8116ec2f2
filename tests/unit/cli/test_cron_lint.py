"""The verb `cron lint`: a schedule, a crontab, manifests, a trace; one sentence for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tests.support.traces import TRACES, import_log
from tracekit.base.errors import UsageError
from tracekit.cli.main import cli, main
from tracekit.sql.session import Session
from tracekit.trace.format.header import read_header, write_header
from tracekit.versions.era import NEWEST
from tracekit.versions.overrides import AskedRules

FROM = ("--from", "2026-01-01T00:00:00Z")
CRONTAB = """\
# /etc/crontab: what Debian ships, and three lines of a team
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin

17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly
47 6\t* * 7\troot\ttest -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.weekly )
CRON_TZ="Europe/Berlin"
30 2 * * * backup --password=hunter2
@daily root report
"""


def lint(*args: str) -> str:
    result = CliRunner().invoke(cli, ["cron", "lint", *args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def lint_json(*args: str) -> dict:
    return json.loads(lint(*args, *FROM, "-o", "json"))


def names(schedule: dict) -> list[str]:
    return [note["name"] for note in schedule["notes"]]


@pytest.mark.parametrize(
    ("classes", "status"),
    [
        ("one-value-range", 1),
        ("random, one-value-range", 1),
        ("any", 1),
        ("random", 0),
        ("overlap,weekday-7", 0),
    ],
)
def test_it_fails_on_the_classes_that_are_named(classes: str, status: int) -> None:
    words = ["cron", "lint", "5-5 * * * *", *FROM, "--fail-on", classes]
    result = CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
    assert result.return_value == status


def test_a_class_that_there_is_not_is_refused() -> None:
    words = ["cron", "lint", "5 * * * *", "--fail-on", "weekday7"]
    with pytest.raises(UsageError, match=r"'weekday7' is no class.*weekday-7"):
        CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)


def test_a_schedule_shows_both_readings_and_the_class() -> None:
    text = lint("5-5 * * * *", *FROM)
    assert text.startswith("5-5 * * * *: one-value-range\n")
    assert f"Kubernetes {NEWEST}: 2026-01-01T00:05:00Z, 2026-01-01T01:05:00Z" in text
    assert "croniter: 2026-01-01T00:01:00Z, 2026-01-01T00:02:00Z" in text


def test_the_first_times_that_differ_are_shown() -> None:
    text = lint("30 2 * * *", "--time-zone", "Europe/Berlin", *FROM)
    assert "clock-change" in text
    assert "2026-03-30T02:30:00+02:00" in text
    assert "2026-03-29T03:00:00+02:00" in text
    assert "change on 2026-03-29: the run of 02:30 is dropped" in text
    assert "change on 2026-10-25: the run of 02:30 fires twice" in text


def test_the_generations_are_told_apart() -> None:
    new = lint_json("0 0 */2 * 1")
    old = lint_json("0 0 */2 * 1", "--kubernetes-version", "v1.21.14")
    assert (new["library"], old["library"]) == ("robfig/cron v3.0.1", "robfig/cron v1.1.0")
    assert new["schedules"][0]["agree"]
    assert old["schedules"][0]["classes"] == ["day-rule"]
    assert "generation" in names(new["schedules"][0])


def test_readers_that_agree_are_shown_from_the_asked_time_on() -> None:
    document = lint_json("15 * * * *", "--time-zone", "America/New_York")
    assert document["schedules"][0]["kubernetes"]["next"][0] == "2026-01-01T00:15:00Z"


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (("@every 45s", "--starting-deadline", "20"), "never-due"),
        (("*/5 * * * *", "--starting-deadline", "0"), "never-due"),
        (
            ("* * * * *", "--starting-deadline", "5", "--kubernetes-version", "v1.20.15"),
            "missed-at-random",
        ),
        (("0 0 31 2 *",), "no-date"),
        (("TZ=UTC 0 0 * * *",), "kubernetes"),
    ],
)
def test_what_will_surprise_is_noted(args: tuple[str, ...], name: str) -> None:
    assert name in names(lint_json(*args)["schedules"][0])


@pytest.mark.parametrize(
    "args",
    [
        ("@every 45s", "--starting-deadline", "45"),
        ("* * * * *", "--starting-deadline", "5"),
        ("* * * * *", "--time-zone", "Europe/Berlin"),
        ("15 * * * *", "--time-zone", "America/New_York"),
    ],
)
def test_what_works_is_not_noted(args: tuple[str, ...]) -> None:
    assert names(lint_json(*args)["schedules"][0]) == []


def test_a_crontab_is_read_line_by_line_and_no_command_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_text(CRONTAB)
    document = lint_json(str(path))
    assert [(s["where"], s["spec"], s["timeZone"]) for s in document["schedules"]] == [
        ("crontab:5", "17 * * * *", None),
        ("crontab:6", "47 6 * * 7", None),
        ("crontab:8", "30 2 * * *", "Europe/Berlin"),
        ("crontab:9", "@daily", "Europe/Berlin"),
    ]
    assert document["summary"]["classes"] == {"clock-change": 1, "weekday-7": 1}
    text = lint(str(path), *FROM)
    assert "hunter2" not in text
    assert text.endswith("4 schedules, 2 read differently\n")


def test_manifests_are_read_lists_too(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "kind: CronJob\nmetadata: {name: a, namespace: shop}\n"
        "spec: {schedule: '@every 45s', startingDeadlineSeconds: 20}\n---\n"
        "kind: List\nitems:\n- kind: CronJob\n  metadata: {name: b}\n"
        "  spec: {schedule: '0 9 * * *', timeZone: Mars/Base}\n"
    )
    first, second = lint_json(str(path))["schedules"]
    assert (first["where"], first["classes"], names(first)) == ("shop/a", ["every"], ["never-due"])
    assert (second["where"], second["classes"]) == ("b", ["time-zone"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_manifest_is_read_as_editors_and_shells_write_it(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_bytes("kind: CronJob\nspec: {schedule: '0 9 * * *'}\n".encode(encoding))
    (only,) = lint_json(str(path))["schedules"]
    assert only["spec"] == "0 9 * * *"


def test_a_trace_brings_its_version_deadlines_and_run_times(tmp_path: Path) -> None:
    import_log(TRACES / "v1.36.3-all/watch.jsonl.zst", tmp_path / "t", "v1.36.3-all")
    document = lint_json(str(tmp_path / "t"))
    assert document["kubernetesVersion"] == "v1.36.3"
    by_name = {schedule["where"]: schedule for schedule in document["schedules"]}
    assert names(by_name["t-cronjobs/bad"]) == ["never-due"]
    (overlap,) = by_name["t-cronjobs/forbid"]["notes"]
    assert overlap["name"] == "overlap"
    assert "Forbid skips" in overlap["text"]
    assert names(by_name["t-cronjobs/allow"]) == []


@pytest.mark.full
def test_explain_notes_what_lint_says_and_no_verdict_rests_on_it(tmp_path: Path) -> None:
    trace = tmp_path / "t"
    import_log(TRACES / "v1.36.3-all/watch.jsonl.zst", trace, "v1.36.3-all")
    told = {}
    for name in ("bad", "forbid", "allow"):
        words = ["explain", str(trace), f"t-cronjobs/{name}"]
        found = json.loads(CliRunner().invoke(cli, [*words, "-o", "json"]).stdout)
        assert found["divergences"] == []
        told[name] = [note["name"] for note in found.get("schedule_notes", [])]
    assert told == {"bad": ["every", "never-due"], "forbid": ["overlap"], "allow": []}
    text = CliRunner().invoke(cli, ["explain", str(trace), "t-cronjobs/bad"]).stdout
    assert "schedule never-due: @every counts from the last 20 s" in text


@pytest.mark.full
def test_the_view_of_cronjobs_has_the_notes_of_explain(tmp_path: Path) -> None:
    trace = import_log(TRACES / "v1.36.3-all/watch.jsonl.zst", tmp_path / "t", "v1.36.3-all").path
    ask = "SELECT cronjob, schedule_notes AS notes FROM cronjobs ORDER BY cronjob"
    noted = {row["cronjob"]: row["notes"] for row in Session([trace]).table(ask).to_pylist()}
    assert [note["name"] for note in noted["bad"]] == ["every", "never-due"]
    assert [note["name"] for note in noted["forbid"]] == ["overlap"]
    assert noted["allow"] == []
    words = ["explain", str(trace), "t-cronjobs/bad", "-o", "json"]
    assert json.loads(CliRunner().invoke(cli, words).stdout)["schedule_notes"] == noted["bad"]
    old = Session([trace], rules=AskedRules("v1.21.14"))
    assert "time-zone" in {n["name"] for row in old.table(ask).to_pylist() for n in row["notes"]}


def test_without_a_known_version_the_view_has_no_notes(tmp_path: Path) -> None:
    trace = import_log(TRACES / "v1.36.3-all/watch.jsonl.zst", tmp_path / "t", "v1.36.3-all").path
    write_header(trace, replace(read_header(trace), kubernetes_version=None))
    ask = "SELECT DISTINCT schedule_notes AS notes FROM cronjobs"
    assert Session([trace]).table(ask).to_pylist() == [{"notes": None}]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nothing-there",), "neither a file, a trace nor a schedule"),
        (("61 * * * *",), "neither Kubernetes"),
        (("* * *",), "neither Kubernetes"),
        (("\0 * * * *",), "neither Kubernetes"),
        (("* * * * *", "--process-zone", "Nowhere"), "--process-zone"),
        (("* * * * *", "--from", "some day"), "is no time"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(args: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CliRunner().invoke(cli, ["cron", "lint", *args], catch_exceptions=False)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("crontab", b"# nothing\n", "holds no schedule"),
        ("crontab", b"* * * * *\n", "crontab:1 is no line of a crontab"),
        ("crontab", b"\xff\xfe\x00", "is no text"),
        ("jobs.yaml", b"kind: Pod\n", "holds no CronJob"),
        ("jobs.yaml", b"a: [\n", "is no YAML"),
    ],
)
def test_a_bad_file_is_one_sentence_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SystemExit) as left:
        main(["cron", "lint", str(tmp_path / name)])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_directory_that_is_no_trace_and_options_of_a_spec_beside_a_file(tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text(CRONTAB)
    for args, words in (
        ([str(tmp_path)], "is not a trace"),
        ([str(tmp_path / "crontab"), "--time-zone", "UTC"], "belong to a SPEC"),
    ):
        with pytest.raises(Exception, match=words):
            CliRunner().invoke(cli, ["cron", "lint", *args], catch_exceptions=False)
