"""Real controllers' traces: everything explained, and as much of it as the audit log counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.traces import (
    ALL,
    AUDITED_KINDS,
    CONTROLLERS,
    TRACES,
    as_audited,
    audited_writes,
    import_log,
)
from tracekit.check.diff.report import DiffReport
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era

EXPLAINED = (Verdict.MATCH, Verdict.MATCH_LAGGED)


@pytest.fixture(scope="module", params=ALL)
def judged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, DiffReport]:
    name = request.param
    target: Path = tmp_path_factory.mktemp("trace") / name
    reader = import_log(TRACES / name / "watch.jsonl.zst", target, name)
    return name, Judge(reader, resolve_era(reader, None, None)).report()


def test_an_untouched_trace_has_no_divergence(judged: tuple[str, DiffReport]) -> None:
    name, report = judged
    assert [(j.object.name, j.action, j.verdict, j.why) for j in report.divergences] == [], name


def test_explained_actions_of_the_job_controller_are_those_that_the_audit_log_counts(
    judged: tuple[str, DiffReport],
) -> None:
    name, report = judged
    explained = Counter(
        j.action for j in report.judgements if j.controller == "job" and j.verdict in EXPLAINED
    )
    audited = audited_writes(name, CONTROLLERS["job"])
    assert as_audited(explained) == {kind: audited[kind] for kind in AUDITED_KINDS}, name


@pytest.mark.parametrize("controller", ["cronjob", "ttl"])
def test_explained_actions_of_the_other_controllers_are_those_that_the_audit_log_counts(
    judged: tuple[str, DiffReport], controller: str
) -> None:
    name, report = judged
    explained = Counter(
        j.action for j in report.judgements if j.controller == controller and j.verdict in EXPLAINED
    )
    assert explained == +audited_writes(name, CONTROLLERS[controller]), name


def test_nothing_is_unknowable_where_everything_was_recorded(
    judged: tuple[str, DiffReport],
) -> None:
    name, report = judged
    assert not [j for j in report.judgements if j.verdict is Verdict.UNKNOWABLE], name


def test_what_is_foreign_says_by_which_evidence(judged: tuple[str, DiffReport]) -> None:
    _, report = judged
    for judgement in report.judgements:
        if judgement.verdict is Verdict.FOREIGN:
            # Only the actions that others do take on a Job's pods, and never without a reason.
            # Jobs under a CronJob's next name are alice's work in the scenario cron-conflicts.
            assert (
                judgement.action in ("pod-delete", "pod-release", "job-delete")
                or (
                    judgement.action == "job-create"
                    and judgement.object.namespace == "t-cron-conflicts"
                )
                or judgement.why.startswith("managedFields name ")
            )
            assert judgement.why
