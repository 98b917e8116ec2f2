"""What one finding is the cause of follows it, in words for one object or several."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from tests.findings.conftest import Traces
from tracekit.answers.findings.advice import advice
from tracekit.answers.findings.controllers import BACKLOG, LEADER
from tracekit.answers.findings.cronjobs import NO_LEADER, NOT_STARTED
from tracekit.answers.findings.diagnosis import grouped
from tracekit.answers.findings.failures import failures_sentence, shares
from tracekit.answers.findings.job_failures import EXITED, OTHERWISE
from tracekit.answers.findings.jobs import NOT_BEGUN
from tracekit.answers.findings.overruns import OVERRUN
from tracekit.answers.findings.refused_pods import REFUSED
from tracekit.answers.findings.suspended import SUSPENDED
from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Severity, Target
from tracekit.answers.tables import finding_rows, wait_rows
from tracekit.answers.words import agreeing, of_several
from tracekit.api.trace import Trace
from tracekit.sql.session import Session
from tracekit.sql.timeline import timeline_of


def case(rule, name, claim, **more):
    return Case(rule, Target("Job", "ns", name), claim, 0, 1, "detail", **more)


def test_a_cause_stands_before_its_consequences() -> None:
    behind = "overran its deadline: its controller was behind (TK207)"
    findings = grouped(
        [
            case(NOT_BEGUN, "c", "has not begun: no node takes its pods"),
            case(OVERRUN, "a", behind, cause=BACKLOG),
            case(OVERRUN, "b", behind, cause=BACKLOG),
            Case(BACKLOG, Target("Controller", "", "the Job controller"), "fell back", 0, 1, ""),
        ]
    )
    assert [f.id for f in findings] == ["TK207", "TK424", "TK411"]
    assert findings[1].text == (
        "2 Jobs in ns: overran their deadline: their controller was behind (TK207)"
    )
    assert findings[1].thread is None, "the thread is about another cause"
    assert advice(findings[1]) == f"see TK207. {BACKLOG.todo}"
    assert advice(findings[0]) == BACKLOG.todo


def test_without_a_cause_the_order_is_by_rank() -> None:
    lone = Case(BACKLOG, Target("Controller", "", "the Job controller"), "fell back", 0, 1, "")
    found = grouped([lone, case(OVERRUN, "a", "overran its deadline: nothing woke its controller")])
    assert [f.id for f in found] == ["TK424", "TK207"]
    assert found[0].thread == OVERRUN.thread


def test_a_cause_has_what_follows_beneath_it_and_is_as_severe() -> None:
    """A Job that waits, in whose way a Forbid misses 12 runs, before one alone that failed."""
    hangs = replace(case(NOT_BEGUN, "job", "has not begun"), cronjob="cron")
    missed = Case(
        NOT_STARTED, Target("CronJob", "ns", "cron"), "was not started", 0, 1, "",
        cause=NOT_BEGUN, harm=Harm(missed_runs=12),
    )  # fmt: skip
    other = case(NOT_BEGUN, "other", "has not begun: it waits", harm=Harm(unfinished_jobs=1))
    first, beneath, last = grouped([other, missed, hangs])
    assert (first.subject, first.severity) == ("Job ns/job", Severity.ERROR)
    assert (beneath.id, first.victims[0].cases) == ("TK306", beneath.cases)
    assert (first.harm_in_all.missed_runs, first.harm.missed_runs) == (12, 0)
    assert (last.severity, last.victims) == (Severity.WARNING, ())


def test_what_hit_more_stands_first_whatever_its_kind() -> None:
    few = [case(OVERRUN, f"few-{n}", "overran", harm=Harm(late=1)) for n in range(9)]
    many = [case(NOT_BEGUN, f"n-{n}", "waits", harm=Harm(unfinished_jobs=1)) for n in range(10)]
    assert [f.id for f in grouped([*few, *many])] == ["TK411", "TK424"]
    assert [f.id for f in grouped([*few, *many[1:]])] == ["TK424", "TK411"], "about as many"
    assert [f.id for f in grouped([*few[:3], *many[6:]])] == ["TK411", "TK424"], "3 and 4"


def test_what_failed_stands_before_what_was_late_whoever_speaks_for_it() -> None:
    """One overrun Job among thirteen that waited does not lift their cause above 13 failures."""
    behind = case(
        OVERRUN, "a", "overran its deadline", cause=BACKLOG, harm=Harm(late=1)
    )  # fmt: skip
    failed = [case(EXITED, f"f-{n}", "failed", harm=Harm(failed_jobs=1)) for n in range(13)]
    controller = Target("Controller", "", "the Job controller")
    backlog = Case(BACKLOG, controller, "fell back", 0, 1, "", harm=Harm(late=13))
    assert [f.id for f in grouped([behind, backlog, *failed])] == ["TK401", "TK207", "TK424"]
    assert [f.id for f in grouped([behind, backlog, *failed[:3]])] == ["TK207", "TK424", "TK401"]


def test_of_two_pauses_the_one_in_which_it_happened_is_the_cause() -> None:
    lease = Target("Lease", "kube-system", "kube-controller-manager")
    pauses = [
        Case(LEADER, lease, f"nobody led for {n} s", at, at + 9, "", harm=Harm(late=late))
        for n, at, late in ((5, 100, 3), (9, 500, 1))
    ]
    missed = Case(
        NO_LEADER, Target("CronJob", "ns", "cron"), "was due", 503, 503, "", cause=LEADER,
        harm=Harm(missed_runs=1),
    )  # fmt: skip
    found = grouped([*pauses, missed])
    assert [(f.id, f.claim) for f in found[:2]] == [
        ("TK208", "nobody led for 9 s"),
        ("TK301", "was due"),
    ]
    assert found[0].victims[0].cases == (missed,)


def test_failed_jobs_are_put_down_to_causes_and_what_is_not_known_is_said() -> None:
    found = grouped([
        *(case(EXITED, f"a-{n}", "failed with exit code 1", harm=Harm(failed_jobs=1)) for n in range(2)),
        case(EXITED, "b", "failed with exit code 2", harm=Harm(failed_jobs=1)),
        case(REFUSED, "c", "failed: its pods are refused", harm=Harm(failed_jobs=1)),
        case(OTHERWISE, "d", "failed (BackoffLimitExceeded)", harm=Harm(failed_jobs=1), evidence={"reason": "BackoffLimitExceeded"}),
        case(OTHERWISE, "e", "failed: the kubelet refused its pods (OutOfpods)", harm=Harm(failed_jobs=1), evidence={"reason": "BackoffLimitExceeded"}),
    ])  # fmt: skip
    assert failures_sentence(found) == (
        "6 Jobs failed: 3 as their containers ended with an error (TK401), 1 as its pods are "
        "refused (TK405), 1 as the kubelet refused its pods (OutOfpods) (TK409), 1 for a reason "
        "that the record does not tell (TK409)"
    )
    # What the number leads to: two kinds of one id are two.
    assert [[f.claim for f in share.findings] for share in shares(found)] == [
        ["failed with exit code 1", "failed with exit code 2"],
        ["failed: its pods are refused"],
        ["failed: the kubelet refused its pods (OutOfpods)"],
        ["failed (BackoffLimitExceeded)"],
    ]
    assert failures_sentence(found[:0]) == ""


def test_a_verb_agrees_with_the_names_before_it() -> None:
    assert agreeing("was", ["a"]) == "a was"
    assert agreeing("was", ["a", "b"]) == "a, b were"
    assert agreeing("waits", ["a", "b", "c", "d"]) == "a, b, c and 1 more wait"


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ("has not begun: its pods wait", "have not begun: their pods wait"),
        ("was due while nobody led, and was never started",
         "were due while nobody led, and were never started"),
        ("failed: it ran longer than activeDeadlineSeconds",
         "failed: they ran longer than activeDeadlineSeconds"),
        ("was due while it was suspended", "were due while they were suspended"),
        ("failed: a rule of its own ended it (FailedIndexes)",
         "failed: a rule of their own ended them (FailedIndexes)"),
        ("was deleted, not by the Job controller: it does not run again",
         "were deleted, not by the Job controller: they do not run again"),
        ("wants no pods: parallelism is 0", "want no pods: parallelism is 0"),
        ("waits for a pod that is being deleted and does not go",
         "wait for a pod that is being deleted and does not go"),
        ("cannot pull its image shop/it:1", "cannot pull their image shop/it:1"),
        ("pods were left with the tracking finalizer after the Job was over",
         "pods were left with the tracking finalizer after the Jobs were over"),
    ],
)  # fmt: skip
def test_what_is_said_of_one_is_said_of_several(one: str, several: str) -> None:
    assert of_several(one) == several


def test_each_row_advises_about_its_own_object() -> None:
    """A finding about two Jobs names the first in its advice; a row of one of them that one."""
    cases = [
        Case(SUSPENDED, Target("Job", "ns", name, f"uid-{name}"), "is suspended", 0, 1, "detail")
        for name in ("a", "b")
    ]
    jobs = [
        SimpleNamespace(namespace="ns", name=name, uid=f"uid-{name}", ended_ns=None, gone_ns=None,
                        managed=True, pods=[])
        for name in ("a", "b")
    ]  # fmt: skip
    findings = grouped(cases)
    for rows in (
        finding_rows(findings, None),
        wait_rows(SimpleNamespace(jobs=jobs), findings, None),
    ):
        assert [(row["name"], row["advice"].split(" -p")[0]) for row in rows] == [
            ("a", "kubectl patch job -n ns a"), ("b", "kubectl patch job -n ns b"),
        ]  # fmt: skip


_FAILURES = {*(f"TK{number}" for number in range(401, 411)), "TK422", "TK427"}


@pytest.mark.parametrize("name", ["v1.36.3-all", "v1.36.3-churn7", "incidents/failed-pods-vanish"])
def test_why_a_job_failed_is_one_finding(name: str, traces: Traces) -> None:
    """What else is said of the same failure stands beneath it, or is part of it."""
    roots: dict[Target, list[str]] = {}
    for finding in traces.findings(name):
        for case in finding.cases:
            if finding.id in _FAILURES and case.cause is None:
                roots.setdefault(case.target, []).append(finding.id)
    assert [(target, ids) for target, ids in roots.items() if len(ids) > 1] == []
    assert roots


@pytest.mark.full
def test_the_timeline_says_of_a_schedule_that_is_never_due_what_diagnose_says(
    traces: Traces,
) -> None:
    name = "v1.36.3-troubles"
    never = {c.target.name for f in traces.findings(name) if f.id == "TK308" for c in f.cases}
    with closing(Session([traces.path(name)])) as session:
        ticks = session.table(
            "SELECT cronjob, policy FROM cron_ticks WHERE outcome = 'missed'"
        ).to_pylist()
        said = [h.what for h in timeline_of(session) if h.kind == "CronJob" and h.name in never]
    assert {t["policy"] for t in ticks if t["cronjob"] in never} == {"never-due"}
    assert any(what.startswith("never due: ") for what in said)
    assert not any(what.startswith("due, not started (missed)") for what in said)


@pytest.mark.full
def test_explain_knows_that_the_controller_was_behind(traces: Traces) -> None:
    """One Job's rows do not tell it: those of all Jobs are asked where something hangs on it."""
    name = "v1.27.4-churn606"
    behind = [
        c for f in traces.findings(name) for c in f.cases if c.cause is BACKLOG and f.id == "TK424"
    ]
    assert behind
    trace = Trace(str(traces.path(name)))
    for case in behind:
        found = trace.explain(case.target.name, namespace=case.target.namespace).findings
        assert f"{case.target}: {case.claim}" in [f["text"] for f in found]
