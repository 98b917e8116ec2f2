"""`tracekit versions`: the table, one version, two versions."""

import json

import pytest
from click.testing import CliRunner

from tracekit.cli.versions import versions
from tracekit.versions.era import NEWEST


def run(*args):
    result = CliRunner().invoke(versions, args, catch_exceptions=False)
    assert result.exit_code == 0
    return result


def test_without_a_version_it_prints_every_change_one_a_line():
    lines = run().stdout.splitlines()
    assert lines[0].split() == ["VERSION", "KIND", "NAME", "CHANGE", "ABOUT"]
    assert any(
        line.startswith("v1.23.7 ") and "JobTrackingWithFinalizers" in line for line in lines
    )


def test_one_version_lists_all_that_it_decides():
    document = json.loads(run("v1.28.15", "-o", "json").stdout)
    assert document["schema_version"] == 1
    rows = {row["name"]: row["value"] for row in document["rows"]}
    assert rows["queue_backoff_ns_base"] == "1 s"
    assert rows["JobPodReplacementPolicy"] == "off (alpha)"
    assert rows["new_failure_returns_error"] == "no"


def test_two_versions_show_only_what_differs():
    document = json.loads(run("1.27.16", "1.28.0", "-o", "json").stdout)
    names = {row["name"] for row in document["differences"]}
    assert {"job_status_updates_batched", "queue_backoff_ns_base", "PodIndexLabel"} <= names
    assert "completed_event" not in names
    assert "JobTrackingWithFinalizers" not in names


def test_two_versions_alike_say_so():
    assert run("1.33.1", "1.33.2").stdout == "Nothing differs.\n"


def test_gates_set_by_hand_count():
    document = json.loads(
        run("1.23.17", "-o", "json", "--feature-gates", "JobTrackingWithFinalizers=true").stdout
    )
    rows = {row["name"]: row["value"] for row in document["rows"]}
    assert rows["JobTrackingWithFinalizers"] == "on (beta)"


@pytest.mark.parametrize("args", [("1.99",), ("1.99", "-o", "json")])
def test_a_newer_version_warns_on_stderr_and_still_answers(args):
    result = run(*args)
    assert f"newer than v{NEWEST.branch}" in result.stderr
    assert "newer" not in result.stdout.splitlines()[0]
