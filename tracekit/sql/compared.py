"""Two Jobs side by side: what came of them, what took how long, their specs, their pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.base.kube.field_changes import FieldChange, changes
from tracekit.base.kube.job_defaults import GENERATED_LABELS
from tracekit.base.kube.stored import as_mapping, object_of
from tracekit.base.suggest import hint
from tracekit.sql.session import Session

#: What every Job has of its own: it says nothing of why one went otherwise.
_OWN: Final = GENERATED_LABELS
_OWN_ANNOTATIONS: Final = frozenset({"batch.kubernetes.io/cronjob-scheduled-timestamp"})


class Step(Struct, frozen=True):
    """One part of a Job's way, in seconds; None: it did not come so far, or that is not known."""

    name: str
    first: float | None
    second: float | None


class Fact(Struct, frozen=True):
    """One fact of both, as text; None: there is none."""

    name: str
    first: str | None
    second: str | None


class Compared(Struct, frozen=True):
    """Two Jobs."""

    keys: tuple[str, str]
    #: Why these two, where they were not both named.
    chosen: str
    facts: tuple[Fact, ...]
    steps: tuple[Step, ...]
    #: What differs of spec, labels and annotations; old is the first Job's, new the second's.
    fields: tuple[FieldChange, ...]
    pods: tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]


_JOB: Final = """
SELECT * FROM jobs WHERE namespace = $namespace AND job = $name
ORDER BY created_at DESC LIMIT 1
"""
_PODS: Final = """
SELECT pod, index, attempt, node, phase, exit_code, signal, reason, message, ended_by, deleted_by,
       queue_s, run_s, restarts,
       seconds_between(epoch_ns(created_at), epoch_ns(bound_at)) AS bound_s
FROM attempts WHERE namespace = $namespace AND job_uid = $uid
ORDER BY created_at, index, attempt, pod
"""
_WAY: Final = """
SELECT * FROM latency WHERE namespace = $namespace AND job_uid = $uid LIMIT 1
"""
_RAW: Final = """
SELECT arg_max(raw, _order) AS raw FROM internal._states
WHERE stream = 'jobs' AND namespace = $namespace AND uid = $uid
"""
_RUNS: Final = """
SELECT job, outcome, pods_failed FROM jobs WHERE namespace = $namespace AND cronjob = $name
ORDER BY created_at DESC
"""
#: Column of `jobs`, heading.
_FACTS: Final = (
    ("outcome", "outcome"), ("reason", "reason"), ("message", "message"), ("cronjob", "CronJob"),
    ("created_at", "created"), ("started_at", "started"), ("finished_at", "finished"),
    ("pods", "pods"), ("pods_failed", "pods failed"), ("retries", "retries"),
    ("restarts", "restarts"), ("image", "image"),
)  # fmt: skip


def compared(
    session: Session, first: tuple[str, str], second: tuple[str, str], chosen: str = ""
) -> Compared:
    """Two Jobs of a trace, each as namespace and name; of a name used twice the last.

    Raises:
        UsageError: One of them is no Job of the trace.
    """
    session.compute("cron_ticks")
    jobs = [_job(session, *key) for key in (first, second)]
    pods = [
        tuple(session.rows(_PODS, namespace=job["namespace"], uid=job["job_uid"])) for job in jobs
    ]
    ways = [_way(session, job) for job in jobs]
    nodes = [", ".join(dict.fromkeys(p["node"] for p in own if p["node"])) or None for own in pods]
    ends = [", ".join(dict.fromkeys(filter(None, map(_end, own)))) or None for own in pods]
    facts = [Fact(name, *(_text(job[column]) for job in jobs)) for column, name in _FACTS]
    facts += [Fact("nodes", *nodes), Fact("how pods ended", *ends)]
    return Compared(
        ("/".join(first), "/".join(second)),
        chosen,
        tuple(fact for fact in facts if fact.first or fact.second),
        tuple(Step(name, ways[0][name], ways[1][name]) for name in ways[0]),
        tuple(changes(*(_spec(session, job) for job in jobs))),
        (pods[0], pods[1]),
    )


def compared_runs(session: Session, key: tuple[str, str]) -> Compared:
    """Of a CronJob, as namespace and name: its last run that completed, and its last in trouble.

    Raises:
        UsageError: It is no CronJob, or has not both.
    """
    if key not in session.objects.cronjobs:
        raise UsageError(
            f"{'/'.join(key)} is one Job: name another to compare it with, or a CronJob"
        )
    good, bad, said = _good_and_bad(session, *key)
    return compared(session, (key[0], good), (key[0], bad), said)


def _good_and_bad(session: Session, namespace: str, cronjob: str) -> tuple[str, str, str]:
    """Names of both, and why these; best is a run that completed without a failed pod."""
    runs = session.rows(_RUNS, namespace=namespace, name=cronjob)
    complete = [run for run in runs if run["outcome"] == "Complete"]
    good = next((run for run in complete if not run["pods_failed"]), None)
    good = good or next(iter(complete), None)
    ranked = [
        *(run for run in runs if run["outcome"] == "Failed"),
        *(run for run in complete if run["pods_failed"]),
        *(run for run in runs if run["outcome"] == "Deleted"),
        *(run for run in runs if run["outcome"] in ("Running", "Suspended")),
    ]
    bad = next(iter(ranked), None)
    if good is None or bad is None or good is bad:
        lacking = "completed" if good is None else "failed or had trouble"
        raise UsageError(
            f"no run of the CronJob {namespace}/{cronjob} {lacking} in this trace: name two Jobs"
        )
    said = f"the last run of CronJob {namespace}/{cronjob} that completed, and the last in trouble"
    return good["job"], bad["job"], said


def _job(session: Session, namespace: str, name: str) -> dict[str, Any]:
    rows = session.rows(_JOB, namespace=namespace, name=name)
    if not rows:
        if (namespace, name) in session.objects.jobs:
            raise UsageError(
                f"the trace has no state of a Job {namespace}/{name}: only what belongs to it was "
                "seen, name another"
            )
        known = [f"{space}/{job}" for space, job in session.objects.jobs]
        meant = hint(f"{namespace}/{name}", known, "`tracekit jobs` lists what it has")
        raise UsageError(f"the trace has no state of a Job {namespace}/{name}{meant}")
    if rows[0]["job_uid"] is None:
        raise UsageError(
            f"the Job {namespace}/{name} has no uid: what belongs to it is not known, name another"
        )
    return rows[0]


def _way(session: Session, job: Mapping[str, Any]) -> dict[str, float | None]:
    found = session.rows(_WAY, namespace=job["namespace"], uid=job["job_uid"])
    way = found[0] if found else defaultdict(lambda: None)
    return {
        "due → Job created": way["created_s"],
        "Job → first pod": way["first_pod_s"],
        "first pod → node": way["scheduled_s"],
        "node → running": way["running_s"],
        "running → last pod ended": way["work_s"],
        "last pod ended → condition": way["accounting_s"],
        "lost to back-off": way["backoff_s"] or None,
        "start → finish (API)": job["duration_s"],
    }


def _spec(session: Session, job: Mapping[str, Any]) -> dict[str, Any]:
    """Spec, labels and annotations without what each Job has of its own."""
    (row,) = session.rows(_RAW, namespace=job["namespace"], uid=job["job_uid"])
    document = object_of(row["raw"])
    metadata, spec = (as_mapping(document.get(part)) for part in ("metadata", "spec"))
    spec.pop("selector", None)
    template = as_mapping(spec.get("template"))
    template["metadata"] = _without_own(as_mapping(template.get("metadata")))
    spec["template"] = template
    return {"metadata": _without_own(metadata), "spec": spec}


def _without_own(metadata: Mapping[str, Any]) -> dict[str, Any]:
    labels, notes = (as_mapping(metadata.get(part)) for part in ("labels", "annotations"))
    labels = {k: v for k, v in labels.items() if k not in _OWN}
    annotations = {k: v for k, v in notes.items() if k not in _OWN_ANNOTATIONS}
    return {"labels": labels, "annotations": annotations}


def _end(pod: Mapping[str, Any]) -> str | None:
    if pod["phase"] not in ("Succeeded", "Failed") and not pod["deleted_by"]:
        return None
    code = f"exit code {pod['exit_code']}" if pod["exit_code"] is not None else None
    deleter = pod["deleted_by"]
    by = f"deleted by {deleter}" if deleter and pod["ended_by"] == deleter else None
    return " ".join(p for p in (pod["phase"], code, pod["reason"], by) if p)


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value.isoformat(sep=" ")[:23] if hasattr(value, "isoformat") else str(value)
