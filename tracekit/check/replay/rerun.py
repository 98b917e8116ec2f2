"""An explained sync once more: same caches, clock and memory, same answers, every call noted.

The search keeps of a sync what it explains. Who wants to know each call of it, also those that left
no trace, or what other rules would have done in its place, runs it anew from what it began with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S, floor_second
from tracekit.base.kube.views import Condition, JobStatus, JobView, PodView
from tracekit.check.replay.clock_readings import sync_clock
from tracekit.check.replay.history import Revision
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.recorded_api import Assumptions, Mismatch, RecordEnds
from tracekit.check.replay.search_state import Explanation
from tracekit.ports.actions import Created, CreatePod, JobApi, Outcome
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.context import SyncClock, SyncResult
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.status_validation import status_refusals
from tracekit.ports.job.sync import sync_job
from tracekit.versions.job import JobRules


class Call(NamedTuple):
    """One call of a sync to the API server, in program order."""

    verb: str  # create, delete, remove-finalizer, adopt, release, status, event
    subject: Any  # a CreatePod, a pod's uid, a JobStatus, an Event's (type, reason, message)
    answer: Any = None


@dataclass(slots=True)
class Course:
    """What one sync did."""

    calls: list[Call] = field(default_factory=list)
    #: None where the record or the process ended within the sync.
    result: SyncResult | None = None
    #: The Job as the last successful status write left it; the one it began with without any.
    job: JobView | None = None
    now_ns: int = 0

    def of(self, *verbs: str) -> list[Call]:
        """The calls of some verbs, in their order."""
        return [call for call in self.calls if call.verb in verbs]


class Noted:
    """A port that notes each call on its way to another."""

    def __init__(self, inner: JobApi, course: Course) -> None:
        self._inner = inner
        self._course = course

    def create_pods(self, job: JobView, intents: list[CreatePod]) -> list[Created]:
        """POST one slow-start batch."""
        answers = self._inner.create_pods(job, intents)
        self._course.calls += [
            Call("create", intent, answer) for intent, answer in zip(intents, answers, strict=True)
        ]
        return answers

    def _pod(self, verb: str, pod: PodView, answer: Outcome) -> Outcome:
        self._course.calls.append(Call(verb, pod.uid, answer))
        return answer

    def delete_pods(self, job: JobView, pods: Sequence[PodView]) -> list[Outcome]:
        """DELETE pods."""
        answers = self._inner.delete_pods(job, pods)
        return [self._pod("delete", pod, a) for pod, a in zip(pods, answers, strict=True)]

    def remove_finalizers(self, pods: Sequence[PodView]) -> list[Outcome]:
        """PATCH the tracking finalizers away."""
        answers = self._inner.remove_finalizers(pods)
        return [self._pod("remove-finalizer", pod, a) for pod, a in zip(pods, answers, strict=True)]

    def adopt_pod(self, job: JobView, pod: PodView, *, add_finalizer: bool) -> Outcome:
        """PATCH the controller reference in."""
        answer = self._inner.adopt_pod(job, pod, add_finalizer=add_finalizer)
        return self._pod("adopt", pod, answer)

    def release_pod(self, job: JobView, pod: PodView) -> Outcome:
        """PATCH the controller reference out."""
        return self._pod("release", pod, self._inner.release_pod(job, pod))

    def can_adopt(self, job: JobView) -> bool:
        """GET of the Job."""
        return self._inner.can_adopt(job)

    def update_status(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        """PUT the status."""
        answer, after = self._inner.update_status(job, status)
        if status != job.status:
            self._course.calls.append(Call("status", status, (answer, after)))
        if answer is Outcome.OK:
            self._course.job = after
        return answer, after

    def record_event(self, job: JobView, event_type: str, reason: str, message: str) -> None:
        """Hand an Event to the broadcaster."""
        self._inner.record_event(job, event_type, reason, message)
        self._course.calls.append(Call("event", (event_type, reason, message)))


class SameAnswers:
    """The API server as another sync met it: the same call gets the same answer.

    A call that the other sync did not make goes through. Status writes are validated by the rules
    of this side.
    """

    def __init__(self, other: Course, rules: JobRules, now_ns: int) -> None:
        self._rules = rules
        self._now_ns = now_ns
        self._creates = other.of("create")
        self._statuses = other.of("status")
        self._pods: dict[tuple[str, str], Outcome] = {
            (call.verb, call.subject): call.answer
            for call in other.of("delete", "remove-finalizer", "adopt", "release")
        }
        self._refused = next(
            (c.answer for c in self._creates if c.answer.outcome is not Outcome.OK), None
        )

    def create_pods(self, job: JobView, intents: list[CreatePod]) -> list[Created]:
        """POST one slow-start batch."""
        del job
        return [self._created(intent) for intent in intents]

    def _created(self, intent: CreatePod) -> Created:
        for place, call in enumerate(self._creates):
            if call.subject.completion_index == intent.completion_index:
                del self._creates[place]
                answer: Created = call.answer
                return answer
        return self._refused or Created(Outcome.OK, f"{intent.generate_name}?")

    def delete_pods(self, job: JobView, pods: Sequence[PodView]) -> list[Outcome]:
        """DELETE pods."""
        del job
        return [self._pods.get(("delete", pod.uid), Outcome.OK) for pod in pods]

    def remove_finalizers(self, pods: Sequence[PodView]) -> list[Outcome]:
        """PATCH the tracking finalizers away."""
        return [self._pods.get(("remove-finalizer", pod.uid), Outcome.OK) for pod in pods]

    def adopt_pod(self, job: JobView, pod: PodView, *, add_finalizer: bool) -> Outcome:
        """PATCH the controller reference in."""
        del job, add_finalizer
        return self._pods.get(("adopt", pod.uid), Outcome.OK)

    def release_pod(self, job: JobView, pod: PodView) -> Outcome:
        """PATCH the controller reference out."""
        del job
        return self._pods.get(("release", pod.uid), Outcome.OK)

    def can_adopt(self, job: JobView) -> bool:
        """GET of the Job."""
        return job.deleted_ns is None

    def update_status(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        """PUT the status."""
        if status == job.status:
            return Outcome.OK, job
        if status_refusals(job, status, self._rules.status_validation):
            return Outcome.REFUSED, job
        answer, after = Outcome.OK, None
        if self._statuses:
            answer, after = self._statuses.pop(0).answer
        if answer is not Outcome.OK and answer is not Outcome.REFUSED:
            return answer, job
        written = wire_status(status, self._now_ns, after.status if after is not None else None)
        return Outcome.OK, replace(job, status=written, rv=after.rv if after else job.rv)

    def record_event(self, job: JobView, event_type: str, reason: str, message: str) -> None:
        """Hand an Event to the broadcaster."""


def wire_status(status: JobStatus, now_ns: int, like: JobStatus | None) -> JobStatus:
    """A status as the server keeps it: times in whole seconds, fresh ones as in `like`'s newest."""
    second_ns = floor_second(now_ns)
    if like is not None:
        times = [like.start_ns, like.completion_ns]
        times += [c.last_transition_ns for c in like.conditions]
        fresh = [t for t in times if t is not None and abs(t - second_ns) <= 2 * NS_PER_S]
        second_ns = max(fresh, default=second_ns)

    def on_wire(at_ns: int | None) -> int | None:
        if at_ns == now_ns:
            return second_ns
        return None if at_ns is None else floor_second(at_ns)

    def kept(condition: Condition) -> Condition:
        return condition._replace(
            last_probe_ns=on_wire(condition.last_probe_ns),
            last_transition_ns=on_wire(condition.last_transition_ns),
        )

    return replace(
        status,
        start_ns=on_wire(status.start_ns),
        completion_ns=on_wire(status.completion_ns),
        conditions=tuple(kept(c) for c in status.conditions),
    )


class Rerunner:
    """Runs syncs of one key once more, by its own rules against the record, or by others."""

    def __init__(self, facts: KeyEvidence) -> None:
        self.facts = facts
        self._cache = PodCache()
        self._explained: dict[int, Course | None] = {}  # by the sync's first write

    def pods_at(self, position: int) -> list[PodView]:
        """The pods in the cache after so many revisions, in the order in which they came."""
        if position < self._cache.position:
            self._cache = PodCache()  # going back would leave them in another order
        self._cache.move_to(self.facts.history.pods, position)
        return self._cache.pods()

    def explained(self, sync: Explanation) -> Course | None:
        """A sync that the search has explained, by the record's own rules; run once.

        None if it does what was not observed.
        """
        began, job = sync.began, sync.job
        if began is None or job is None:
            return None
        place = sync.writes[0].index
        if place not in self._explained:
            self._explained[place] = self.recorded(
                job,
                sync.pod_cut,
                began.memory,
                began.now_ns,
                start=began.state.index,
                assume=began.assume,
                skip=began.state.done,
                earliest_ns=sync.due_ns,
            )
        return self._explained[place]

    def recorded(
        self,
        job: Revision[JobView],
        pod_cut: int,
        memory: JobMemory,
        now_ns: int,
        *,
        start: int,
        assume: Assumptions,
        skip: frozenset[int],
        earliest_ns: int,
    ) -> Course | None:
        """A sync by the record's own rules; None if it does what was not observed."""
        clock = sync_clock(now_ns)
        course = Course(job=job.view, now_ns=clock.now_ns)
        api = self.facts.api(start, clock, earliest_ns, assume, skip)
        try:
            course.result = sync_job(
                job.view,
                self.pods_at(pod_cut),
                memory.copy(),
                Noted(api, course),
                clock=clock,
                rules=self.facts.rules,
                choices=self.facts.choices(start),
            )
        except Mismatch:
            return None
        except RecordEnds:
            return course
        return course

    def by_other_rules(
        self,
        job: JobView,
        pod_cut: int,
        memory: JobMemory,
        rules: JobRules,
        other: Course,
        *,
        start: int,
    ) -> Course:
        """The same sync by other rules, where the API server answers as it did."""
        clock = SyncClock(other.now_ns)
        course = Course(job=job, now_ns=clock.now_ns)
        course.result = sync_job(
            job,
            self.pods_at(pod_cut),
            memory,
            Noted(SameAnswers(other, rules, clock.now_ns), course),
            clock=clock,
            rules=rules,
            choices=self.facts.choices(start),
        )
        return course
