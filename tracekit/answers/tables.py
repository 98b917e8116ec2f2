"""Answers as rows: findings, causes, how pods and Jobs ended, what those wait for that have not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracekit.answers.endings import ending_of, left_message
from tracekit.answers.evidence import Evidence
from tracekit.answers.findings import job_failures, waiting
from tracekit.answers.findings.advice import advice, advice_of
from tracekit.answers.findings.uncounted import uncounted
from tracekit.answers.findings.unended import UNENDED
from tracekit.answers.model import Case, Finding
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.answers.waits import Wait, held_by
from tracekit.answers.words import named

Row = dict[str, Any]
_FAILURES = frozenset(rule.id for rule in job_failures.RULES)
#: Findings about what an unfinished Job waits for.
_WAITS = frozenset({
    "TK209", "TK210", "TK211", "TK212", "TK404", "TK405", "TK411", "TK412", "TK413", "TK414",
    "TK428", "TK429", "TK430", "TK436", "TK437", "TK438", "TK439", "TK441", "TK442", "TK454",
    "TK456",
})  # fmt: skip
_FINDING_OF = {
    Wait.GATES: waiting.CANNOT_START,
    Wait.CONFIGURATION: waiting.CANNOT_START,
    Wait.MOUNT: waiting.CANNOT_START,
    Wait.INIT_FAILS: waiting.FAILS_AGAIN,
    Wait.CRASHES: waiting.FAILS_AGAIN,
    Wait.TERMINATING: waiting.TERMINATING,
    Wait.SIDECAR: waiting.RUNS_ON,
    Wait.NATIVE_SIDECAR: waiting.RUNS_ON,
    Wait.UNENDED: UNENDED,
    Wait.GRACE: waiting.TERMINATING,
    Wait.INIT_RUNS: waiting.INIT_RUNS,
    Wait.NODE_LOST: waiting.NODE_LOST,
}


def finding_rows(findings: Sequence[Finding], called: str | None) -> Iterator[Row]:
    """A row for each object of each finding, worst first; commands call the trace `called`."""
    for rank, finding in enumerate(findings, 1):
        for case in finding.cases:
            yield {
                **_object(case.target.kind, case.target.namespace, case.target.name),
                "uid": case.target.uid, "cronjob": case.cronjob, "rank": rank, "id": finding.id,
                "severity": case.badness.value, "claim": case.claim, "detail": case.detail,
                "from_ns": case.from_ns, "until_ns": case.until_ns,
                "advice": advice_of(case, called),
                "caused_by": None if case.cause is None else case.cause.id,
                "thread": finding.thread,
                "facts": json.dumps(case.evidence, default=str, sort_keys=True),
            }  # fmt: skip


def cause_rows(findings: Sequence[Finding], called: str | None) -> Iterator[Row]:
    """A row for each cause that follows from no other, with what it cost in all."""
    beneath = {id(victim.cases) for finding in findings for victim in finding.victims}
    for rank, finding in enumerate(findings, 1):
        if id(finding.cases) in beneath:
            continue
        harm, first = finding.harm_in_all, finding.cases[0].target
        actors = dict.fromkeys(case.actor for case in finding.cases if case.actor)
        yield {
            "rank": rank, "id": finding.id, "severity": finding.severity.value,
            "cause": finding.claim, "kind": first.kind, "namespace": first.namespace,
            "name": first.name, "objects": [str(target) for target in finding.objects],
            "actor": named(list(actors)) or None,
            "from_ns": finding.from_ns, "until_ns": finding.until_ns,
            "failed_jobs": harm.failed_jobs, "unfinished_jobs": harm.unfinished_jobs,
            "missed_runs": harm.missed_runs, "late": harm.late, "lost_pod_s": harm.lost_pod_s,
            "other_objects": harm.objects,
            "victims": [f"{v.id} {target}" for v in finding.victims for target in v.objects],
            "advice": advice(finding, called), "thread": finding.thread,
        }  # fmt: skip


def ending_rows(facts: Facts, findings: Sequence[Finding]) -> Iterator[Row]:
    """A row for each pod and each Job that ended, with its cause and from what that is known."""
    failed = _by_uid(findings, _FAILURES)
    for job in facts.jobs:
        yield from _of_job(job, failed.get(job.uid))
        yield from (row for pod in job.pods if (row := _of_pod(facts, pod, job.name)) is not None)


def _of_job(job: Job, failed: Case | None) -> Iterator[Row]:
    end = job.end
    where = {**_object("Job", job.namespace, job.name), "uid": job.uid, "job": job.name}
    if end is None:
        if job.gone_ns is not None:
            yield _ending(where, job.gone_ns, "deleted unfinished", Evidence.STATUS)
        return
    condition = job.failure or end.true("Complete") or {}
    row = _ending(where, job.ended_ns, "completed", Evidence.STATUS)
    row["reason"], row["message"] = condition.get("reason"), condition.get("message")
    if job.failure is not None:
        row["cause"] = "failed" if failed is None else failed.claim
        row["finding"] = None if failed is None else failed.rule.id
    yield row


def _of_pod(facts: Facts, pod: Pod, job: str) -> Row | None:
    where = {**_object("Pod", pod.namespace, pod.name), "uid": pod.uid, "job": job}
    if pod.end is None:
        if pod.gone_ns is None:
            return None
        return _ending(where, pod.gone_ns, "deleted before it ended", Evidence.STATUS)
    found = ending_of(pod)
    row = _ending(where, pod.ended_ns, "its own exit code", Evidence.STATUS)
    if found is not None:
        row["cause"], row["evidence"] = found.cause.value, found.evidence.value
        row["reason"], row["message"] = found.reason or None, found.message or None
    if pod.exit is not None:
        row["exit_code"] = pod.exit["exit_code"]
    if row["message"] is None and (left := left_message(facts, [pod])) is not None:
        row["message"] = left.message
    return row


def _ending(where: Row, at_ns: int | None, cause: str, evidence: Evidence) -> Row:
    return {
        **where, "ended_ns": at_ns, "cause": cause, "evidence": evidence.value, "reason": None,
        "message": None, "exit_code": None, "finding": None,
    }  # fmt: skip


def wait_rows(facts: Facts, findings: Sequence[Finding], called: str | None) -> Iterator[Row]:
    """A row for each unfinished Job that waits for something, and for each pod that holds it."""
    cases = _by_uid(findings, _WAITS)
    for job in facts.jobs:
        if job.ended_ns is not None or job.gone_ns is not None:
            continue
        case = cases.get(job.uid)
        todo = None if case is None else advice_of(case, called)
        if case is not None:
            yield _wait(
                "Job", job, job.name, job.uid, case.claim, case.from_ns,
                {"message": case.detail, "finding": case.rule.id, "advice": todo},
            )  # fmt: skip
        # What pods another controller makes, and what holds them, is for that one to tell.
        held_up = held_by(facts, job) if job.managed else []
        if case is None and not held_up:
            yield _plain_wait(facts, job)
        for held in held_up:
            yield _wait(
                "Pod", job, held.pod.name, held.pod.uid, held.wait.value, held.since_ns,
                {"container": held.container or None, "reason": held.reason or None,
                 "message": held.message or None, "restarts": held.restarts,
                 "exit_code": held.exit_code, "finding": _FINDING_OF[held.wait].id,
                 "evidence": held.evidence.value, "advice": todo},
            )  # fmt: skip


def _plain_wait(facts: Facts, job: Job) -> Row:
    """What an unfinished Job waits for that no finding is about: its pods, else its controller."""
    pods = [pod for pod in job.pods if pod.end is None and pod.gone_ns is None]
    running = [pod for pod in pods if pod.ran_at_all]
    since_ns = min((pod.created_ns for pod in running or pods), default=job.created_ns)
    if not job.managed:
        what, since_ns = f"{job.spec.get('managedBy')}, which manages it", job.created_ns
    elif running:
        what = "its pods, which run"
    elif pods:
        what = "its pods to start"
    else:
        what, since_ns = _next_of_controller(facts, job)
    return _wait("Job", job, job.name, job.uid, what, since_ns, {})


def _next_of_controller(facts: Facts, job: Job) -> tuple[str, int]:
    """What the Job controller has yet to do for a Job without a pod that lives, and since when."""
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    if not as_of_ns:
        return "unknown", job.created_ns
    if job.spec.get("suspend") is True:
        return "nothing: it is suspended", job.created_ns
    for kind in ("SuccessCriteriaMet", "FailureTarget"):
        if (met := job.last.true(kind)) is not None:
            since_ns = int(met["last_transition_ns"] or job.last.at_ns)
            return f"its controller, to end it ({kind})", since_ns
    if ended := uncounted(facts, job, as_of_ns, for_ns=0):
        return "its controller, to count pods that ended", ended[0][0]
    if job.spec.get("parallelism") == 0:
        return "nothing: parallelism is 0", job.created_ns
    since_ns = max((pod.over_ns for pod in job.pods), default=job.created_ns)
    return "its controller, to create pods", since_ns


def _wait(
    kind: str, job: Job, name: str, uid: str, what: str, since_ns: int, more: Mapping[str, Any]
) -> Row:
    empty = dict.fromkeys(("container", "reason", "message", "restarts", "exit_code", "finding"))
    return {
        **_object(kind, job.namespace, name), "uid": uid, "job": job.name, "waits_for": what,
        "since_ns": since_ns, **empty, "evidence": Evidence.STATUS.value, "advice": None, **more,
    }  # fmt: skip


def _object(kind: str, namespace: str, name: str) -> Row:
    return {"kind": kind, "namespace": namespace, "name": name}


def _by_uid(findings: Sequence[Finding], ids: frozenset[str]) -> dict[str, Case]:
    """The first case of each object among some kinds: the worst."""
    found: dict[str, Case] = {}
    for finding in findings:
        if finding.id in ids:
            for case in finding.cases:
                found.setdefault(case.target.uid, case)
    return found
