"""The command line, the JSON contract and what is said of bad input."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import tracekit
from tests.support.traces import ROOT
from tests.whatif.conftest import Import, answers, ask
from tracekit.base.errors import TracekitError

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "whatif.schema.json").read_text())
NAME = "v1.25.4-twins"
TO = ("--kubernetes-version", "v1.36.3")


def test_the_document_keeps_its_promise(imported: Import) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    one = answers(imported(NAME), "--kubernetes-version", "v1.36.3")
    validator.validate(one)
    assert one["from"] == {"kubernetes_version": "v1.25.4", "feature_gates": {}}
    assert sum(one["counts"].values()) == len(one["jobs"])
    both = answers(
        imported(NAME), "--kubernetes-version", "v1.32.2", "--kubernetes-version", "v1.36.3"
    )
    validator.validate(both)
    assert both["matrix"][1] == one


def test_upgrade_is_the_same_question(imported: Import) -> None:
    trace = imported(NAME)
    asked = ask(trace, "--to", "v1.36.3", "-o", "json", verb="upgrade")
    assert json.loads(asked.stdout) == answers(trace, "--kubernetes-version", "v1.36.3")


def test_the_summary_leads_with_the_counts_and_the_share_that_is_told(imported: Import) -> None:
    lines = ask(imported(NAME), "--kubernetes-version", "v1.36.3").stdout.splitlines()
    assert lines[0].startswith("v1.25.4 → v1.36.3: 15 Jobs, ")
    assert "calibrated" in lines[1]
    assert len(lines) < 60
    markdown = ask(imported(NAME), "--kubernetes-version", "v1.36.3", "-o", "markdown").stdout
    assert markdown.startswith("## v1.25.4 → v1.36.3")
    assert "| class |" in markdown
    wide = ask(imported(NAME), "--kubernetes-version", "v1.36.3", "-o", "wide").stdout
    assert "t-twin-slow-death/deadline" in wide


def test_more_tokens_are_a_question_as_well(imported: Import) -> None:
    document = answers(imported(NAME), "--kube-api-qps", "500", "--job", "t-twin-on-failure/some")
    assert [job["name"] for job in document["jobs"]] == ["some"]
    assert all(c["kind"] == "flag" for job in document["jobs"] for c in job["because"])


@pytest.mark.full
def test_a_part_is_answered_as_the_whole_is(imported: Import) -> None:
    """The Jobs share a process: leaving some out of the table leaves them in the run."""
    whole = answers(imported(NAME), "--kubernetes-version", "v1.36.3")
    part = answers(
        imported(NAME), "--kubernetes-version", "v1.36.3", "-n", "t-twin-failing-together"
    )
    names = ("uid", "verdict", "baseline", "target")
    wanted = [j for j in whole["jobs"] if j["namespace"] == "t-twin-failing-together"]
    assert [[j.get(n) for n in names] for j in part["jobs"]] == [
        [j.get(n) for n in names] for j in wanted
    ]


def test_a_time_is_asked_about_the_jobs_that_were_there(imported: Import) -> None:
    whole = answers(imported(NAME), *TO)["jobs"]
    times = {row["job_uid"]: row for row in tracekit.open(imported(NAME)).jobs().to_pylist()}
    ends = sorted(row["finished_at"] for row in times.values() if row["finished_at"] is not None)
    moment = ends[len(ends) // 2]
    early = answers(imported(NAME), *TO, "--to", moment.isoformat())["jobs"]
    late = answers(imported(NAME), *TO, "--from", moment.isoformat())["jobs"]
    assert early == [job for job in whole if times[job["uid"]]["created_at"] <= moment]
    assert late == [job for job in whole if (times[job["uid"]]["finished_at"] or moment) >= moment]
    assert 0 < len(late) < len(whole)
    nothing = ask(imported(NAME), *TO, "--to", "2001-01-01")
    assert "has no Job to 2001-01-01T00:00:00Z" in str(nothing.exception)


def test_why_tells_both_courses_and_where_they_part(imported: Import) -> None:
    options = ("--kubernetes-version", "v1.36.3", "--why", "t-twin-slow-death/deadline")
    text = ask(imported(NAME), *options).stdout
    assert "v1.25.4: Failed DeadlineExceeded" in text
    assert "v1.36.3: Failed DeadlineExceeded" in text
    assert "Because of" in text
    assert "one-fails" not in text


@pytest.mark.parametrize(
    ("limit", "status"), [("outcome", 0), ("pods", 0), ("timing", 1), ("fields", 1)]
)
def test_fail_on_a_class_or_worse(imported: Import, limit: str, status: int) -> None:
    options = ("--kubernetes-version", "v1.36.3", "--job", "t-twin-slow-death/deadline")
    assert ask(imported(NAME), *options, "--fail-on", limit).return_value == status


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name what is to be otherwise"),
        (("--kubernetes-version", "v9"), "is not a Kubernetes version"),
        (("--kubernetes-version", "v1.2.0"), "older than"),
        (("--set", "spec.backofLimit=3"), "did you mean backoffLimit"),
        (("--set", "spec.backoffLimit=many"), "takes a whole number"),
        (("--set", "spec.backoffLimit"), "sets nothing"),
        (("--set", "spec.completionMode=Index"), "is one of Indexed, NonIndexed"),
        (("--feature-gates", "JobRedyPods=true"), "no feature gate"),
        (("--set", "spec.suspend=1"), "takes true or false"),
        (("--kubernetes-version", "v1.36.3", "-l", "app=shop"), "no Job with labels app=shop"),
        (("--kubernetes-version", "v1.36.3", "-l", "a==="), "cannot be read"),
        (("--kubernetes-version", "v1.36.3", "--job", "t-twin-slow-death/x"), "the trace has no"),
        (("--kubernetes-version", "v1.36.3", "-n", "nowhere"), "namespace"),
    ],
)
def test_bad_input_is_one_sentence(imported: Import, options: tuple[str, ...], said: str) -> None:
    result = ask(imported(NAME), *options)
    assert isinstance(result.exception, TracekitError)
    assert said in str(result.exception)
