"""What the findings look at: the record's objects with their revisions, and what replay said.

Rows of the trace (its typed columns, by name) become Jobs with their pods, CronJobs, Events and
leaders. Revisions are in the order of the store. Times are Unix ns on the recorder's clock, unless
a name says otherwise.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tracekit.answers.admission import Admission
from tracekit.answers.event_index import (
    by_name,
    claim_of,
    held_by_queue,
    involved,
    owner_of_index,
    owner_of_pod,
    refuses_job,
)
from tracekit.answers.evidence import Preemptor, Suspension
from tracekit.answers.judgements import Judgements
from tracekit.answers.model import Target
from tracekit.answers.node_events import NodeEvent
from tracekit.answers.pauses import Gap, Pause
from tracekit.answers.quotas import Quota
from tracekit.answers.words import clock
from tracekit.base.coverage import Coverage
from tracekit.base.cron import Generation
from tracekit.base.kube import job_status
from tracekit.base.kube.printed.model import Shown, ShownEvent
from tracekit.base.kube.stored import spec_of, texts_of
from tracekit.base.once import once
from tracekit.base.spans import Spans
from tracekit.check.verdict import Judgement
from tracekit.versions.release import Release
from tracekit.versions.release_bugs import Bug, KnownBug

Row = Mapping[str, Any]
TRACKING = "batch.kubernetes.io/job-tracking"
#: The columns of the trace that the facts are made of.
COLUMNS = (
    "stream", "type", "recv_ns", "rv", "seq", "synthesized", "actor", "actor_agent", "verb",
    "namespace", "name", "uid", "job", "cronjob", "created_ns", "deleted_ns", "deletion_grace_s",
    "finalizers", "owner_kind", "owner_name", "owner_uid", "labels", "annotations", "managers",
    "spec", "phase", "reason", "message", "conditions", *job_status.NAMES, "node_name", "pod_ready",
    "containers", "restarts", "completion_index", "involved_kind", "involved_name", "involved_uid",
    "event_type", "count", "first_ns", "last_ns", "last_schedule_ns", "last_successful_ns",
    "cron_active", "holder", "renew_ns", "acquire_ns",
)  # fmt: skip
STREAMS = ("jobs", "pods", "cronjobs", "events", "leases")
#: HTTP status of a creation. Upstream: apimachinery, pkg/api/errors (NewAlreadyExists).
NAME_TAKEN = 409
#: Reasons of Events: the API server refused a creation; an owner is in another namespace.
REFUSED_CREATION, FOREIGN_OWNER = "FailedCreate", "OwnerRefInvalidNamespace"
#: What every row is put in its place by.
KEYS = ("stream", "type", "recv_ns", "rv", "seq", "namespace", "name", "uid")
Keyed = tuple[Row, str | None, str, int | None, int | None, int | None, str | None, str | None,
              str | None]  # fmt: skip
"""A row, and its values of `KEYS`."""


class Seen(NamedTuple):
    """What a text that kubectl printed for people shows once, and when that was, Unix ns."""

    at_ns: int
    shown: Shown | ShownEvent


class State:
    """One revision of an object: its row with a few things read out of it."""

    __slots__ = ("at_ns", "gone", "row", "rv", "seq")

    def __init__(
        self, row: Row, at_ns: int = 0, rv: int = 0, seq: int = 0, *, gone: bool = False
    ) -> None:
        """What every rule asks is told beside the row."""
        self.row = row
        #: When it was received.
        self.at_ns = at_ns
        #: Its revision.
        self.rv = rv
        #: Its place in the record.
        self.seq = seq
        #: Whether this is the object's end.
        self.gone = gone

    def is_live_pod_of(self, owner_uid: str) -> bool:
        """Whether it is a pod of this owner that has neither ended nor begun to."""
        row = self.row
        return (
            not self.gone
            and row["owner_uid"] == owner_uid
            and row["deleted_ns"] is None
            and row["phase"] not in ("Succeeded", "Failed")
        )

    @property
    def first_ns(self) -> int:
        """Of an Event: when it was first emitted, else when it was received."""
        return int(self.row["first_ns"] or self.at_ns)

    @property
    def last_ns(self) -> int:
        """Of an Event: when it was last emitted, else when it was received."""
        return int(self.row["last_ns"] or self.at_ns)

    @property
    def spec(self) -> Mapping[str, Any]:
        """`.spec`."""
        return spec_of(self.row["stream"], self.row["spec"])

    @property
    def annotations(self) -> Mapping[str, Any]:
        """`.metadata.annotations`."""
        return texts_of(self.row["annotations"])

    @property
    def finalizers(self) -> Sequence[str]:
        """`.metadata.finalizers`."""
        return self.row["finalizers"] or ()

    def number(self, column: str) -> int:
        """A counter, 0 when absent."""
        return int(self.row[column] or 0)

    def true(self, kind: str) -> Mapping[str, Any] | None:
        """The condition of that type, if it is True."""
        for condition in self.row["conditions"] or ():
            if condition["type"] == kind:
                return condition if condition["status"] == "True" else None
        return None

    @property
    def is_finished(self) -> bool:
        """Whether, of a Job, Complete or Failed is True."""
        return (self.true("Complete") or self.true("Failed")) is not None

    def condition(self, kind: str) -> Mapping[str, Any] | None:
        """The condition of that type."""
        return next((c for c in self.row["conditions"] or () if c["type"] == kind), None)


@dataclass
class Life:
    """An object and its revisions."""

    states: list[State]

    @once
    def first(self) -> State:
        """The oldest revision that was seen."""
        return self.states[0]

    @once
    def last(self) -> State:
        """The newest."""
        return self.states[-1]

    @once
    def namespace(self) -> str:
        """Its namespace."""
        return self.first.row["namespace"] or ""

    @once
    def name(self) -> str:
        """Its name."""
        return self.first.row["name"] or ""

    @once
    def uid(self) -> str:
        """Its uid."""
        return self.first.row["uid"] or ""

    @once
    def seen_from_birth(self) -> bool:
        """Whether its creation was seen."""
        return bool(self.first.row["type"] == "ADDED")

    @once
    def created_ns(self) -> int:
        """When it was created, whole seconds where its creation was not seen."""
        if self.seen_from_birth:
            return self.first.at_ns
        return int(self.first.row["created_ns"] or self.first.at_ns)

    @once
    def gone_ns(self) -> int | None:
        """When its end was received."""
        return next((s.at_ns for s in self.states if s.gone), None)

    @once
    def deletion(self) -> State | None:
        """The revision that first shows it being deleted, or gone."""
        return self.first_at(lambda state: state.gone or state.row["deleted_ns"] is not None)

    @once
    def deletion_ns(self) -> int | None:
        """When that was received."""
        return None if self.deletion is None else self.deletion.at_ns

    @once
    def labels(self) -> Mapping[str, Any]:
        """Its last labels."""
        return texts_of(self.last.row["labels"])

    def first_at(self, test: Any) -> State | None:
        """The first revision that passes a test."""
        for state in self.states:
            if test(state):
                return state
        return None

    def before(self, rv: int) -> State | None:
        """The newest revision below one of the store."""
        place = bisect_right(self.states, rv - 1, key=lambda s: s.rv)
        return self.states[place - 1] if place else None

    def before_ns(self, at_ns: int) -> State | None:
        """The newest revision that had been received before a time."""
        found = [s for s in self.states if s.at_ns < at_ns]
        return found[-1] if found else None


class Pod(Life):
    """A pod, mostly of a Job."""

    @once
    def index(self) -> int | None:
        """Completion index."""
        found = self.last.row["completion_index"]
        return None if found is None else int(found)

    @once
    def owner_uid(self) -> str:
        """The uid of the Job that owned it first."""
        return next((s.row["owner_uid"] for s in self.states if s.row["owner_uid"]), "")

    @once
    def end(self) -> State | None:
        """The revision in which its phase was first Succeeded or Failed."""
        return self.first_at(lambda s: s.row["phase"] in ("Succeeded", "Failed"))

    @once
    def ended_ns(self) -> int | None:
        """When that was received."""
        end = self.end
        return None if end is None else end.at_ns

    @once
    def ended_alone(self) -> bool:
        """Whether it ended while nobody had asked for its deletion: by an error of its own."""
        return self.end is not None and self.end.row["deleted_ns"] is None

    @once
    def over_ns(self) -> int:
        """When it ended: by its containers, where the look came later; 0 while it has not."""
        ends = [int(c["finished_ns"] or 0) for c in self.last.row["containers"] or ()]
        return min(max(ends, default=0) or self.ended_ns or 0, self.ended_ns or 0)

    @property
    def phase(self) -> str:
        """Its last phase."""
        return self.last.row["phase"] or "Pending"

    @once
    def ran(self) -> bool:
        """Whether it ever got beyond Pending."""
        return any(s.row["phase"] not in (None, "", "Pending") for s in self.states)

    def live_at(self, rv: int, owner_uid: str) -> bool:
        """Whether, just before a revision of the store, it was the owner's and had not ended."""
        state = self.before(rv)
        return state is not None and state.is_live_pod_of(owner_uid)

    @once
    def born_to(self) -> str | None:
        """The uid of the Job that it was created for; None if its creation was not seen."""
        return self.first.row["owner_uid"] if self.seen_from_birth else None

    @once
    def ran_at_all(self) -> bool:
        """Whether it was ever Running."""
        return any(s.row["phase"] == "Running" for s in self.states)

    @once
    def exit(self) -> Mapping[str, Any] | None:
        """The regular container that ended with an error first, else one that ended well."""
        for state in reversed(self.states):
            ended = [
                c
                for c in state.row["containers"] or ()
                if c["state"] == "terminated" and not c["init"]
            ]
            if ended:
                first: Mapping[str, Any] = min(
                    ended, key=lambda c: (not c["exit_code"], c["finished_ns"] or 0,
                                          -(c["exit_code"] or 0))
                )  # fmt: skip
                return first
        return None

    @once
    def waiting(self) -> str | None:
        """The last reason for which a container waited, while it did."""
        for container in self.last.row["containers"] or ():
            if container["state"] == "waiting" and container["reason"]:
                return str(container["reason"])
        return None

    @once
    def disruption(self) -> str | None:
        """The reason of an eviction, preemption, lost node."""
        if self.last.row["reason"] in ("Evicted", "NodeLost", "Preempting", "NodeShutdown"):
            return str(self.last.row["reason"])
        found = self.last.true("DisruptionTarget")
        return None if found is None else str(found["reason"] or "DisruptionTarget")


class Job(Life):
    """A Job (one uid) with its pods."""

    def __init__(self, states: list[State]) -> None:
        """Begin without pods."""
        super().__init__(states)
        self.pods: list[Pod] = []

    @once
    def target(self) -> Target:
        """It as the object of a finding."""
        return Target("Job", self.namespace, self.name, self.uid)

    @once
    def cronjob(self) -> str | None:
        """The CronJob that owns it."""
        return next((s.row["cronjob"] for s in self.states if s.row["cronjob"]), None)

    @once
    def spec(self) -> Mapping[str, Any]:
        """Its last spec."""
        return self.last.spec

    @once
    def managed(self) -> bool:
        """Whether the Job controller looks after it."""
        return self.spec.get("managedBy") in (None, "kubernetes.io/job-controller")

    @once
    def end(self) -> State | None:
        """The revision in which it was first Complete or Failed."""
        return next((s for s in self.states if s.is_finished), None)

    @once
    def ended_ns(self) -> int | None:
        """When that was received."""
        end = self.end
        return None if end is None else end.at_ns

    @once
    def failure(self) -> Mapping[str, Any] | None:
        """The condition Failed."""
        return next((c for s in self.states if (c := s.true("Failed"))), None)


class CronJob(Life):
    """A CronJob (one uid)."""

    @once
    def target(self) -> Target:
        """It as the object of a finding."""
        return Target("CronJob", self.namespace, self.name, self.uid)


def writes_of(job: Job) -> Iterator[int]:
    """When it was written, and its pods were first, as far as a watch shows it."""
    for state in (*job.states, *(pod.first for pod in job.pods)):
        if state.row["type"] in ("ADDED", "MODIFIED"):
            yield state.at_ns


@dataclass(slots=True)
class Facts:
    """All that findings are decided from."""

    jobs: list[Job]
    cronjobs: list[CronJob]
    strays: list[Pod]  # pods of no Job that was seen, and of no service
    events: list[State]
    pauses: list[Pause]  # no controller manager led
    ticks: Sequence[Row]  # the rows of the view cron_ticks, times in ns
    judgements: Judgements
    not_judged: str | None  # why there are no verdicts
    gaps: Sequence[Gap]
    streams: Mapping[str, int]  # rows by stream
    problems: Sequence[str]
    first_ns: int
    end_ns: int
    generation: Generation
    namespaces: Sequence[str] = ()  # those that the record was limited to
    #: By namespace and pod: rows of the view logs, what containers that ended had said.
    last_words: Mapping[tuple[str, str], Sequence[Row]] = field(default_factory=dict)
    #: By the uid of pods that had not ended: what only the raw object tells of their containers.
    container_notes: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    #: Requests for Jobs and CronJobs that the API server refused, out of an audit log.
    refused_calls: Sequence[Row] = ()
    #: Evictions that were refused, and writes that met a conflict, with `done_ns`: when the same
    #: was done after all.
    refused_again: Sequence[Row] = ()
    #: Deletions of Jobs and CronJobs of which an audit log has the request, and no body.
    bare_deletions: Sequence[Row] = ()
    #: Of a trace that was made of text for people: all that it shows, in order.
    shown: Sequence[Seen] = ()
    is_whole: bool = True  # whether these are all Jobs: else nothing is known of a backlog
    release: Release = field(default_factory=Release)  # what is known of it
    #: Where and when each stream was seen; without a span nobody says it: all of the time.
    coverage: Coverage = field(default_factory=Coverage)
    #: By namespace: when its deletion was asked for, Unix ns.
    terminating: Mapping[str, int] = field(default_factory=dict)
    #: Who asked for that, as an audit log tells.
    namespace_deleters: Mapping[str, str] = field(default_factory=dict)
    quotas: Mapping[str, Sequence[Quota]] = field(default_factory=dict)  # by namespace, at the end
    #: By the uid of its owner: what Kueue's Workload says at the end.
    admissions: Mapping[str, Admission] = field(default_factory=dict)
    #: By uid of what is suspended at the end.
    suspended_by: Mapping[str, Suspension] = field(default_factory=dict)
    #: By uid of Jobs that were started by hand: the CronJob, which owns and does not control them.
    started_from: Mapping[str, str] = field(default_factory=dict)
    #: By node: what Events tell of trouble with it.
    node_events: Mapping[str, Sequence[NodeEvent]] = field(default_factory=dict)
    #: By uid: pods that others gave way to, as far as the record has them.
    preemptors: Mapping[str, Preemptor] = field(default_factory=dict)
    #: By the uid of their Job: Events of creations that were refused.
    refusals_of: Mapping[str, list[State]] = field(default_factory=dict)
    pod_events: Mapping[str, list[State]] = field(default_factory=dict)
    #: By namespace and the name of their Job, if they have one: Events about pods.
    named_pod_events: Mapping[tuple[str, str], list[State]] = field(default_factory=dict)
    indexed_pod_events: Mapping[tuple[str, str], list[State]] = field(default_factory=dict)
    #: By uid: what the garbage collector says of an owner that is not there.
    owner_events_of: Mapping[str, list[State]] = field(default_factory=dict)
    #: By namespace and name of a PersistentVolumeClaim: the Events about it.
    claim_events: Mapping[tuple[str, str], list[State]] = field(default_factory=dict)
    #: By namespace and name of a Job: what a queueing system says of why it waits.
    queue_words: Mapping[tuple[str, str], list[State]] = field(default_factory=dict)
    #: By uid of a CronJob: the Events about it of type Warning.
    cron_warnings: Mapping[str, list[State]] = field(default_factory=dict)
    #: By kind, namespace, name, uid: Events that a Job was refused, of owners but CronJobs.
    refused_parents: Mapping[tuple[str, str, str, str], list[State]] = field(default_factory=dict)
    #: By stream, namespace and name of the owner: creations that an audit log says were refused.
    refused_creations: Mapping[tuple[str, str, str], list[Row]] = field(default_factory=dict)
    #: Times in which many waited for the Job controller, once somebody asked for them.
    backlogs: list[tuple[int, int, int]] | None = None
    #: When Jobs were written (`writes_of`), in order, once somebody asked for it.
    writes: Sequence[int] | None = None
    _looks: dict[tuple[str, ...], int] = field(default_factory=dict)
    #: Of the pauses.
    pause_spans: Spans = field(default_factory=lambda: Spans(()))

    def __post_init__(self) -> None:
        """Index the Events by what they are about, and refusals by Job."""
        refusals: defaultdict[str, list[State]] = defaultdict(list)
        of_pods: defaultdict[str, list[State]] = defaultdict(list)
        owners: defaultdict[str, list[State]] = defaultdict(list)
        of_crons: defaultdict[str, list[State]] = defaultdict(list)
        parents: defaultdict[tuple[str, str, str, str], list[State]] = defaultdict(list)
        for event in self.events:
            uid, kind = event.row["involved_uid"] or "", event.row["involved_kind"]
            if event.row["reason"] == REFUSED_CREATION:
                refusals[event.row["involved_uid"]].append(event)
            elif event.row["reason"] == FOREIGN_OWNER:
                owners[uid].append(event)
            if kind not in ("Job", "CronJob", "Pod") and refuses_job(event.row):
                parents[kind or "", *involved(event.row)].append(event)
            if kind == "Pod":
                of_pods[uid].append(event)
            elif kind == "CronJob" and event.row["event_type"] == "Warning":
                of_crons[uid].append(event)
        self.refusals_of, self.pod_events = dict(refusals), dict(of_pods)
        self.owner_events_of, self.cron_warnings = dict(owners), dict(of_crons)
        self.refused_parents = dict(parents)
        self.named_pod_events = by_name(self.events, owner_of_pod)
        self.indexed_pod_events = by_name(self.events, owner_of_index)
        self.claim_events = by_name(self.events, claim_of)
        self.queue_words = by_name(self.events, held_by_queue)
        calls: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
        for call in self.refused_calls:
            owner = call["job"] if call["stream"] == "pods" else call["cronjob"]
            if call["verb"] == "create" and owner and call["code"] != NAME_TAKEN:
                calls[call["stream"], call["namespace"] or "", owner].append(call)
        self.refused_creations = dict(calls)
        self.led_but_for(self.pauses)

    @property
    def bugs(self) -> Mapping[Bug, KnownBug]:
        """Those of the release."""
        return self.release.bugs

    def suspension(self, uid: str) -> str:
        """Who suspended it, as a part of a sentence; empty where nothing tells."""
        found = self.suspended_by.get(uid)
        if found is None:
            return ""
        at = "" if found.at_ns is None else f" ({found.evidence.value}, {clock(found.at_ns)})"
        return f"; suspended by {found.who}{at}"

    def events_of_named(self, job: Job) -> Sequence[State]:
        """The Events about pods that are a Job's by their name, of which nothing else is left."""
        found = self.named_pod_events.get((job.namespace, job.name), ())
        if job.spec.get("completionMode") != "Indexed":
            return found
        return [*found, *self.indexed_pod_events.get((job.namespace, job.name), ())]

    def events_of_pod(self, pod: Pod) -> Sequence[State]:
        """The Events about a pod, oldest first."""
        return self.pod_events.get(pod.uid, ())

    def verdict(self, life: Life, action: str, subject: str, rv: int = 0) -> Judgement | None:
        """What replay said of a write to an object, or of one of its revisions."""
        found = self.judgements.of_write((life.namespace, life.name), action, subject)
        return next((j for j in found if not rv or j.resource_version == str(rv)), None)

    def led_but_for(self, pauses: list[Pause]) -> None:
        """Take these for the times in which nobody led."""
        self.pauses = pauses
        self.pause_spans = Spans((pause.from_ns, pause.until_ns) for pause in pauses)

    def _pauses_near(self, from_ns: int, until_ns: int) -> Iterator[Pause]:
        return (self.pauses[place] for place in self.pause_spans.near(from_ns, until_ns))

    def pause_between(self, from_ns: int, until_ns: int) -> Pause | None:
        """The longest pause without a leader that overlaps a time."""
        near = self._pauses_near(from_ns, until_ns)
        found = [p for p in near if p.from_ns < until_ns and from_ns < p.until_ns]
        return max(found, key=lambda p: p.seconds, default=None)

    def led_since(self, from_ns: int, until_ns: int) -> int:
        """From when on, in a time, somebody led: after its last pause; its end, if nobody does."""
        near = self._pauses_near(from_ns, until_ns)
        ends = [p.until_ns for p in near if p.from_ns < until_ns and from_ns < p.until_ns]
        return min(until_ns, max([from_ns, *ends]))

    def led_ns(self, from_ns: int, until_ns: int) -> int:
        """For how long in a time somebody led."""
        led_ns = until_ns - from_ns
        for pause in self._pauses_near(from_ns, until_ns):
            led_ns -= max(0, min(until_ns, pause.until_ns) - max(from_ns, pause.from_ns))
        return led_ns

    def writes_between(self, from_ns: int, until_ns: int) -> int:
        """How many writes of Jobs there were between two times."""
        if self.writes is None:
            self.writes = sorted(at_ns for job in self.jobs for at_ns in writes_of(job))
        return bisect_left(self.writes, until_ns) - bisect_right(self.writes, from_ns)

    def blind(self, namespace: str, from_ns: int, until_ns: int) -> bool:
        """Whether Jobs or pods of a namespace could not be seen for a part of a time."""
        streams = ("jobs", "pods") if self.coverage.spans else ()
        return bool(self.coverage.blind(streams, namespace, from_ns, until_ns))

    def as_of(self, namespace: str, *streams: str) -> int:
        """The last time at which all of these streams were seen; 0 if one of them never was.

        What is still there, or still not, is so as of then: the record goes on where they are
        watched. Lists without times and revisions are taken to have been asked for together.
        """
        asked = (namespace, *streams)
        if asked not in self._looks:
            self._looks[asked] = self._last_look(namespace, streams)
        return self._looks[asked]

    def _last_look(self, namespace: str, streams: Sequence[str]) -> int:
        coverage = self.coverage
        if not coverage.spans:
            return self.end_ns
        looks = (coverage.seen_until(name, namespace, self.end_ns) for name in streams)
        return min(looks, default=self.end_ns)
