"""What an export is made of: spans (of Jobs, pods and pod phases) and marks (writes, Events, …).

Every format is written from these, so that none knows more than another. A mark may be the cause of
a span or of another mark: that is a link, which viewers draw as an arrow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracekit.base.errors import UsageError
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.sql.session import Session


@dataclass(slots=True)
class Mark:
    """One moment."""

    at_ns: int
    kind: str  # action, event, verdict, tick
    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    #: Links that begin here, and links that end here.
    causes: list[int] = field(default_factory=list)
    caused_by: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Span:
    """Something with a beginning and an end."""

    name: str
    from_ns: int
    until_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    causes: list[int] = field(default_factory=list)
    caused_by: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Pod:
    """One pod: its life, and the phases inside it."""

    name: str
    uid: str
    life: Span
    phases: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Job:
    """One Job with all that happened to it."""

    namespace: str
    name: str
    uid: str
    cronjob: str | None
    life: Span
    marks: list[Mark] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the Job ended Failed."""
        return self.life.attributes.get("outcome") == "Failed"


@dataclass(slots=True)
class Happenings:
    """A whole trace, ready to be exported."""

    title: str
    version: str | None
    start_ns: int
    end_ns: int
    jobs: list[Job]
    ticks: list[tuple[str, str, Mark]]  # namespace, CronJob, tick
    gaps: list[Span]


def happenings(
    session: Session, *, namespace: str | None = None, times: TimeRange | None = None
) -> Happenings:
    """Read all that an export shows: the Jobs that lived in the time that is asked for, whole."""
    times = times or ALWAYS
    sources = session.sources
    if len(sources) != 1:
        raise UsageError("export takes one trace at a time")
    rows = session.rows("SELECT min(recv_ns) AS first, max(recv_ns) AS last FROM internal._states")
    start_ns, end_ns = rows[0]["first"] or 0, rows[0]["last"] or 0
    reader = _Reader(session, namespace, end_ns)
    jobs = [job for job in reader.jobs() if times.meets(job.life.from_ns, job.life.until_ns)]
    session.compute("cron_ticks")
    return Happenings(
        sources[0].name,
        sources[0].header.kubernetes_version,
        start_ns,
        end_ns,
        jobs,
        [tick for tick in reader.ticks() if times.holds(tick[2].at_ns)],
        [
            Span(
                f"gap in {r['stream']}",
                r["f"] or start_ns,
                r["u"] or end_ns,
                {"reason": r["reason"]},
            )
            for r in session.rows(
                "SELECT stream, reason, epoch_ns(from_at) AS f, epoch_ns(until_at) AS u FROM gaps"
            )
        ],
    )


class _Reader:
    def __init__(self, session: Session, namespace: str | None, end_ns: int) -> None:
        self.session = session
        self.namespace = namespace
        self.end_ns = end_ns
        self._links = 0

    def _ask(self, query: str) -> list[dict[str, Any]]:
        where = "($namespace::VARCHAR IS NULL OR namespace = $namespace)"
        asked = query.replace("{where}", where)
        rows = self.session.rows(asked, namespace=self.namespace)
        # An object that no API server has may be in no namespace.
        return [{**row, "namespace": row["namespace"] or ""} for row in rows]

    def jobs(self) -> list[Job]:
        pods = self._pods()
        marks, pod_creations = self._marks()
        found = []
        for row in self._ask(_JOBS):
            uid, created = row["job_uid"], row["created_ns"] or 0
            until = row["finished_ns"] or row["gone_ns"] or self.end_ns
            name = row["job"] or ""
            life = Span(name, created, max(until, created), _given(row, _JOB_ATTRIBUTES))
            job = Job(row["namespace"], name, uid, row["cronjob"], life)
            job.pods = pods.get((row["namespace"], uid), [])
            job.marks = marks.get((row["namespace"], uid), [])
            self._link(job, pod_creations)
            found.append(job)
        return found

    def _link(self, job: Job, pod_creations: Mapping[str, Mark]) -> None:
        """Arrows: a creation to its pod's life, a failed pod to the creation of the next one."""
        waiting: list[Span] = []
        changes: list[tuple[int, int, Pod]] = []
        for pod in job.pods:
            changes.append((pod.life.from_ns, 1, pod))
            if pod.life.attributes.get("phase") == "Failed":
                changes.append((pod.life.until_ns, 0, pod))
        for _, created, pod in sorted(changes, key=lambda change: change[:2]):
            if not created:
                waiting.append(pod.phases[-1] if pod.phases else pod.life)
                continue
            mark = pod_creations.get(pod.uid)
            if mark is None:
                continue
            mark.causes.append(self._new_link())
            pod.life.caused_by.append(mark.causes[-1])
            if waiting:
                failure = waiting.pop(0)
                failure.causes.append(self._new_link())
                mark.caused_by.append(failure.causes[-1])

    def _new_link(self) -> int:
        self._links += 1
        return self._links

    def _pods(self) -> dict[tuple[str, str], list[Pod]]:
        phases: defaultdict[tuple[str, str], list[Span]] = defaultdict(list)
        for row in self._ask(_PHASES):
            since = row["from_ns"] or 0
            until = max(row["until_ns"] or self.end_ns, since)
            phases[row["namespace"], row["pod_uid"]].append(Span(row["phase"], since, until))
        found: defaultdict[tuple[str, str], list[Pod]] = defaultdict(list)
        for row in self._ask(_PODS):
            spans = phases[row["namespace"], row["pod_uid"]]
            # What comes after the end of a pod is waiting for its deletion, not its life.
            living = [span for span in spans if span.name not in ("Succeeded", "Failed")]
            since = spans[0].from_ns if spans else row["created_ns"] or 0
            until = living[-1].until_ns if living else since
            name = row["pod"] or ""
            life = Span(name, since, max(until, since), _given(row, _POD_ATTRIBUTES))
            pod = Pod(name, row["pod_uid"], life, living)
            found[row["namespace"], row["job_uid"]].append(pod)
        return found

    def _marks(self) -> tuple[dict[tuple[str, str], list[Mark]], dict[str, Mark]]:
        """Marks by Job, and the creation of each pod by the pod's uid."""
        found: defaultdict[tuple[str, str], list[Mark]] = defaultdict(list)
        creations = {}
        owners = {r["pod_uid"]: r["job_uid"] for r in self._ask(_OWNERS)}
        for row in self._ask(_ACTIONS):
            mark = Mark(
                row["at_ns"] or 0, "action", row["action"], _given(row, ("object", "actor", "rv"))
            )
            uid = owners.get(row["uid"], "") if row["kind"] == "Pod" else row["uid"]
            found[row["namespace"], uid].append(mark)
            if row["action"] == "pod-create":
                creations[row["uid"]] = mark
        for row in self._ask(_EVENTS):
            mark = Mark(
                row["at_ns"] or 0,
                "event",
                row["reason"] or "Event",
                _given(row, ("event_type", "message", "component", "count")),
            )
            found[row["namespace"], row["object_uid"]].append(mark)
        for marks in found.values():
            marks.sort(key=lambda mark: mark.at_ns)
        return found, creations

    def ticks(self) -> list[tuple[str, str, Mark]]:
        """The ticks of every CronJob."""
        return [
            (
                row["namespace"],
                row["cronjob"] or "",
                Mark(row["due_ns"], "tick", row["outcome"], _given(row, ("policy", "job", "why"))),
            )
            for row in self._ask(_TICKS)
        ]


_JOB_ATTRIBUTES = (
    "outcome", "reason", "message", "cronjob", "retries", "backoff_s", "pods", "pods_failed",
    "parallelism", "completions", "job_uid",
)  # fmt: skip
_POD_ATTRIBUTES = (
    "index", "attempt", "node", "phase", "exit_code", "reason", "ended_by", "restarts", "pod_uid",
)  # fmt: skip
_JOBS = """
SELECT *, epoch_ns(created_at) AS created_ns, epoch_ns(finished_at) AS finished_ns,
       epoch_ns(gone_at) AS gone_ns
FROM jobs WHERE {where} ORDER BY created_at, namespace, job
"""
_PHASES = """
SELECT namespace, pod_uid, phase, epoch_ns(from_at) AS from_ns, epoch_ns(until_at) AS until_ns
FROM pod_phases WHERE {where} ORDER BY namespace, pod_uid, from_at
"""
_PODS = """
SELECT *, epoch_ns(created_at) AS created_ns
FROM attempts WHERE {where} ORDER BY created_at, index, attempt, pod
"""
_OWNERS = "SELECT namespace, pod_uid, job_uid FROM attempts WHERE {where}"
_ACTIONS = """
SELECT namespace, uid, kind, action, object, actor, rv, epoch_ns(seen_at) AS at_ns
FROM actions WHERE {where} AND kind <> 'CronJob' ORDER BY seen_at, seq
"""
_EVENTS = """
SELECT namespace, object_uid, reason, event_type, message, component, count,
       epoch_ns(seen_at) AS at_ns
FROM k8s_events WHERE {where} AND kind = 'Job' ORDER BY seen_at, name
"""
_TICKS = """
SELECT namespace, cronjob, epoch_ns(due_at) AS due_ns, outcome, policy, job, why
FROM cron_ticks WHERE {where} ORDER BY due_at, namespace, cronjob
"""


def _given(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in names if row[name] is not None}


def flat(found: Happenings) -> Iterator[dict[str, Any]]:
    """Everything as one list of plain rows, in order of time."""
    rows: list[dict[str, Any]] = []

    def add(what: str, at_ns: int, until_ns: int | None, *where: str | None, **rest: Any) -> None:
        namespace, job, subject, name = where
        rows.append(
            {
                "time_ns": at_ns, "until_ns": until_ns, "what": what, "namespace": namespace,
                "job": job, "object": subject, "name": name, **rest,
            }
        )  # fmt: skip

    for job in found.jobs:
        life = job.life
        where = (job.namespace, job.name)
        add("job", life.from_ns, life.until_ns, *where, job.name, life.attributes.get("outcome"),
            attributes=dict(life.attributes))  # fmt: skip
        for pod in job.pods:
            add("pod", pod.life.from_ns, pod.life.until_ns, *where, pod.name,
                pod.life.attributes.get("phase"), attributes=dict(pod.life.attributes))  # fmt: skip
            for span in pod.phases:
                add(
                    "phase", span.from_ns, span.until_ns, *where, pod.name, span.name, attributes={}
                )
        for mark in job.marks:
            add(mark.kind, mark.at_ns, None, *where, mark.attributes.get("object", job.name),
                mark.name, attributes=dict(mark.attributes))  # fmt: skip
    for namespace, cronjob, mark in found.ticks:
        add("tick", mark.at_ns, None, namespace, mark.attributes.get("job"), cronjob, mark.name,
            attributes=dict(mark.attributes))  # fmt: skip
    for gap in found.gaps:
        add("gap", gap.from_ns, gap.until_ns, None, None, None, gap.name,
            attributes=dict(gap.attributes))  # fmt: skip
    rows.sort(key=lambda row: (row["time_ns"], row["until_ns"] is None, row["what"]))
    yield from rows
