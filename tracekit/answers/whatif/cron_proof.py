"""The proof for CronJobs: other rules at every sync that explained a write, and in between.

Both rules get the same caches and clock and, for the same request, the same answer; each has a
status of its own, as its own syncs made it. Where the record's rules had nothing to do, at each
slot and after each change that stood long enough to be served, the others are asked as well. The
first sync that starts or deletes another Job, fails or comes back at another time is the *fork*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec.structs import replace

from tracekit.answers.whatif.cron_changes import CronChange
from tracekit.answers.whatif.steps import Difference, Proof, Severity
from tracekit.base.kube.cronjob_views import CronJobStatus, CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.diff.cron_keys import CronReplay
from tracekit.check.diff.cron_pending import TRIGGERS_MAX, Rest, rests
from tracekit.check.replay.cron_api import REFUSED, CronMismatch, DryCronApi, RecordedCronApi
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.cron_search import CronExplanation, Unexplained
from tracekit.check.replay.history import Revision
from tracekit.check.replay.run_context import RunContext
from tracekit.check.replay.search_state import WithoutSync, WriteWithoutSync
from tracekit.ports.cronjob.actions import (
    Answer,
    CreateJob,
    CronJobApi,
    DeleteJob,
    Intent,
    RecordEvent,
    SyncResult,
    UpdateCronJobStatus,
)
from tracekit.versions.constants import CRON_POLL_PERIOD_NS

#: A state of the caches that stood so long was certainly served, by the controller with a queue.
_SERVED_AFTER_NS: Final = 3 * NS_PER_S // 10
#: Syncs that come back so close together come back at the same time.
_SAME_REQUEUE_NS: Final = NS_PER_S
#: In which order what is at one time is taken: what explained writes first.
_WRITES, _ASKED, _BEYOND = range(3)
_TOO_MANY: Final = (
    f"it stood unchanged for more than {TRIGGERS_MAX:,} due times, and those after so many were "
    "not compared"
)


class _Moment(NamedTuple):
    """A sync that is taken twice: one that explained writes, or one that may have left none.

    Or the time from which nothing is asked any more.
    """

    at_ns: int
    order: int
    sync: CronExplanation | None
    rest: Rest | None


class CronKeyProof:
    """Walks other rules through the syncs of one CronJob's name."""

    def __init__(
        self,
        replay: CronReplay,
        context: RunContext,
        ours: CronRunner,
        theirs: CronRunner,
        change: CronChange,
    ) -> None:
        self.replay = replay
        self.history = replay.history
        self.context = context
        self.ours = ours
        self.theirs = theirs
        self.change = change
        self.proofs: dict[str, Proof] = {}
        #: By uid, the status by the other rules; not there where it is the recorded one.
        self._status: dict[str, CronJobStatus] = {}

    def run(self) -> dict[str, Proof]:
        """The proofs of the CronJobs of this name, by uid."""
        for revision in self.history.cron_jobs:
            if revision.view.uid not in self.proofs:
                self.proofs[revision.view.uid] = Proof(revision.view.uid)
                self._begin(revision)
        self._lose()
        for moment in sorted(self._moments(), key=lambda m: (m.at_ns, m.order)):
            view = moment.sync.cron_job.view if moment.sync is not None else None
            view = view or (moment.rest.cron_job if moment.rest is not None else None)
            proof = self.proofs.get(view.uid) if view is not None else None
            if proof is None or proof.fork is not None or proof.lost:
                continue
            if moment.sync is not None:
                self._step(proof, moment.sync)
            elif moment.order == _BEYOND:
                proof.lost, proof.reason = _TOO_MANY, "undecided"
            elif moment.rest is not None:
                self._ask(proof, moment.rest, moment.at_ns)
        return self.proofs

    def _begin(self, first: Revision[CronJobView]) -> None:
        """What differs before any sync."""
        proof, ours, theirs = self.proofs[first.view.uid], self.ours, self.theirs
        zoned = "TZ" in self.change(first.view).spec.schedule
        refused = theirs.era.refuses_zone_in_schedule and not ours.era.refuses_zone_in_schedule
        if first.type == "ADDED" and zoned and refused:
            text = "the API server refuses the CronJob: its schedule names a time zone"
            self._fork(proof, Severity.OUTCOME, "creation", text, first.recv_ns, first.rv)
        elif ours.polls != theirs.polls:
            text = (
                "it is looked at every 10 s by the record's rules, and at its time by the others"
                if ours.polls
                else "it is looked at in its time by the record's rules, every 10 s by the others"
            )
            self._fork(proof, Severity.TIMING, "queue", text, first.recv_ns, first.rv)

    def _fork(
        self, proof: Proof, severity: Severity, kind: str, text: str, at_ns: int, rv: int
    ) -> None:
        proof.differences.append(Difference(severity, kind, text, at_ns, str(rv), fork=True))

    def _lose(self) -> None:
        for entry in self.replay.entries:
            if isinstance(entry, CronExplanation) and not entry.problems:
                continue
            why = "the record's own rules do not explain all that was observed"
            if isinstance(entry, WriteWithoutSync):
                if entry.reason is WithoutSync.FOREIGN:
                    continue
                why = entry.why or "a write that the record cannot tell of"
            write = entry.writes[0] if isinstance(entry, CronExplanation) else entry.write
            live = self.history.live_cron_job(write.rv - 1) or self.history.live_cron_job(write.rv)
            proof = self.proofs.get(live.view.uid) if live is not None else None
            if proof is not None and not proof.lost:
                proof.lost = why
            assert isinstance(entry, CronExplanation | WriteWithoutSync | Unexplained)  # noqa: S101

    # When the two are asked.

    def _moments(self) -> Iterator[_Moment]:
        for sync in self.replay.syncs:
            yield _Moment(sync.writes[0].recv_ns, _WRITES, sync, None)
        stands_ns = CRON_POLL_PERIOD_NS if self.ours.polls else 0
        for rest in rests(self.history, self.context.end_ns):
            until_ns = rest.until_ns - _SERVED_AFTER_NS - stands_ns
            opens = not rest.opens_with_list and not rest.schedule_changed
            if opens and rest.from_ns < until_ns:
                yield _Moment(rest.from_ns, _ASKED, None, rest)
            theirs = self.change(rest.cron_job)
            at_ns: int | None = rest.from_ns
            for _ in range(TRIGGERS_MAX):
                assert at_ns is not None  # noqa: S101 - the loop ends with it
                slots = (
                    self.ours.next_slot_ns(rest.cron_job, at_ns),
                    self.theirs.next_slot_ns(theirs, at_ns),
                )
                at_ns = min((slot for slot in slots if slot is not None), default=None)
                if at_ns is None or at_ns >= until_ns:
                    break
                yield _Moment(at_ns, _ASKED, None, rest)
            else:
                assert at_ns is not None  # noqa: S101 - as above
                yield _Moment(at_ns, _BEYOND, None, rest)

    # One sync, by both.

    def _view(self, cron_job: CronJobView) -> CronJobView:
        """The CronJob as the other rules would have found it."""
        status = self._status.get(cron_job.uid)
        view = cron_job if status is None else replace(cron_job, status=status)
        return self.change(view)

    def _step(self, proof: Proof, sync: CronExplanation) -> None:
        """A sync that explained writes."""
        first, mine = sync.writes[0], {write.index for write in sync.writes}
        if sync.rest is not None:
            return  # it was cut off: nobody saw what else it would have done
        observed = RecordedCronApi(
            self.history,
            first.index,
            first.rv - 1,
            skip=_AllBut(mine),
            refuses=any(a.kind == "refused-creations" for a in sync.assumptions),
        )
        jobs = self.history.jobs_at(sync.jobs_cut)
        noted = _Noted(observed)
        try:
            ours = self.ours.run(sync.cron_job.view, jobs, sync.now_ns, noted)
        except CronMismatch:
            proof.lost = "a sync that explains its writes does otherwise when it is taken again"
            return
        proof.steps += 1

        def find(name: str) -> JobView | None:
            return self.history.live_job(name, first.rv - 1)

        self._other(proof, sync.cron_job.view, jobs, (ours, noted.answers), sync.now_ns, find)

    def _ask(self, proof: Proof, rest: Rest, at_ns: int) -> None:
        """A time at which the record's rules may have come and had nothing to do."""
        now_ns = at_ns + NS_PER_S

        def find(name: str) -> JobView | None:
            own = next((job for job in rest.jobs if job.name == name), None)
            return own if own is not None else self.history.stranger_at(name, now_ns)

        noted = _Noted(DryCronApi(rest.cron_job, find))
        ours = self.ours.run(rest.cron_job, rest.jobs, now_ns, noted)
        # A request that the server turned down, say for a name that is taken, left nothing to see.
        acts = any(
            isinstance(i, CreateJob | DeleteJob) and answer.ok for i, answer in noted.answers
        )
        if acts or _left(rest.cron_job, ours) != rest.cron_job.status:
            return  # they would have acted, so they were not served then
        self._other(proof, rest.cron_job, rest.jobs, (ours, noted.answers), now_ns, find)

    def _other(
        self,
        proof: Proof,
        cron_job: CronJobView,
        jobs: Sequence[JobView],
        ours: tuple[SyncResult, Sequence[tuple[Intent, Answer]]],
        now_ns: int,
        find: Callable[[str], JobView | None],
    ) -> None:
        view = self._view(cron_job)
        api = _SameAnswers(view, find, ours[1])
        theirs = self.theirs.run(view, jobs, now_ns, api)
        left = _left(cron_job, ours[0]), _left(view, theirs)
        found = list(_differences(ours[0], theirs, left, now_ns, str(cron_job.rv)))
        known = {difference.text for difference in proof.differences}
        proof.differences += [d for d in found if d.text not in known]
        if _plain(left[0]) == _plain(left[1]):
            self._status.pop(cron_job.uid, None)
        else:
            self._status[cron_job.uid] = left[1]


class _AllBut:
    """All numbers but some: the writes of other syncs."""

    def __init__(self, mine: set[int]) -> None:
        self._mine = mine

    def __contains__(self, index: object) -> bool:
        return index not in self._mine


@dataclass(slots=True)
class _Noted:
    """A port that notes each answer on its way."""

    inner: CronJobApi
    answers: list[tuple[Intent, Answer]] = field(default_factory=list)

    def perform(self, intent: Intent) -> Answer:
        """Hand a write on."""
        answer = self.inner.perform(intent)
        self.answers.append((intent, answer))
        return answer

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        """Live GET of a Job."""
        return self.inner.get_job(namespace, name)

    def get_cron_job(self, namespace: str, name: str) -> CronJobView | Answer:
        """Live GET of a CronJob."""
        return self.inner.get_cron_job(namespace, name)


class _SameAnswers(DryCronApi):
    """The API server as another sync met it: the same request gets the same answer."""

    def __init__(
        self,
        cron_job: CronJobView,
        find_job: Callable[[str], JobView | None],
        answers: Iterable[tuple[Intent, Answer]],
    ) -> None:
        super().__init__(cron_job, find_job)
        self._created = {i.scheduled_ns: a for i, a in answers if isinstance(i, CreateJob)}
        self._deleted = {i.uid: a for i, a in answers if isinstance(i, DeleteJob)}
        self._puts = [a for i, a in answers if isinstance(i, UpdateCronJobStatus)]
        self.refuses = any(answer == REFUSED for _, answer in answers)

    def perform(self, intent: Intent) -> Answer:
        """Answer a write as it was answered before; what is new, as an idle server would."""
        match intent:
            case CreateJob() if intent.scheduled_ns in self._created:
                return self._created[intent.scheduled_ns]
            case DeleteJob() if intent.uid in self._deleted:
                return self._deleted[intent.uid]
            case UpdateCronJobStatus() if self._puts:
                return self._puts.pop(0)
        return DryCronApi.perform(self, intent)


def _left(cron_job: CronJobView, result: SyncResult) -> CronJobStatus:
    """The status that a sync leaves behind, as the API keeps it: times in whole seconds."""
    puts = [i.status for i in result.intents if isinstance(i, UpdateCronJobStatus)]
    return puts[-1] if puts else cron_job.status


def _plain(status: CronJobStatus) -> tuple[object, ...]:
    active = tuple(sorted(ref.uid for ref in status.active))
    return active, status.last_schedule_ns, status.last_successful_ns


def _differences(
    ours: SyncResult,
    theirs: SyncResult,
    left: tuple[CronJobStatus, CronJobStatus],
    at_ns: int,
    rv: str,
) -> Iterator[Difference]:
    """Every way in which two syncs of one CronJob differ."""
    pairs = [[i for i in side.intents if isinstance(i, CreateJob)] for side in (ours, theirs)]
    if [i.scheduled_ns for i in pairs[0]] != [i.scheduled_ns for i in pairs[1]]:
        text = f"Jobs started: {len(pairs[0])} by the record's rules, {len(pairs[1])} by the others"
        if theirs.reason and not pairs[1]:
            text += f" ({theirs.reason})"
        yield Difference(Severity.OUTCOME, "job-create", text, at_ns, rv, fork=True)
        return
    for one, other in zip(*pairs, strict=True):
        names = ("name", "labels", "annotations", "owner_api", "spec", "creation_time_ns")
        parts = [n for n in names if getattr(one, n) != getattr(other, n)]
        if parts:
            text = f"Jobs have another {', '.join(part.replace('_', ' ') for part in parts)}"
            yield Difference(Severity.FIELDS, "job-body", text, at_ns, rv)
    gone = [
        {(i.uid, i.propagation) for i in side.intents if isinstance(i, DeleteJob)}
        for side in (ours, theirs)
    ]
    if gone[0] != gone[1]:
        text = f"Jobs deleted: {len(gone[0])} by the record's rules, {len(gone[1])} by the others"
        yield Difference(Severity.PODS, "job-delete", text, at_ns, rv, fork=True)
    fields = [
        name
        for name, place in (("active", 0), ("lastScheduleTime", 1), ("lastSuccessfulTime", 2))
        if _plain(left[0])[place] != _plain(left[1])[place]
    ]
    if fields:
        text = f"status: {', '.join(fields)} differ"
        yield Difference(Severity.FIELDS, "status", text, at_ns, rv)
    yield from _event_differences(ours, theirs, at_ns, rv)
    yield from _return_differences(ours, theirs, at_ns, rv)


def _event_differences(
    ours: SyncResult, theirs: SyncResult, at_ns: int, rv: str
) -> Iterator[Difference]:
    events = [[i for i in side.intents if isinstance(i, RecordEvent)] for side in (ours, theirs)]
    reasons = [sorted(event.reason for event in side) for side in events]
    if reasons[0] != reasons[1]:
        said = [", ".join(dict.fromkeys(side)) or "none" for side in reasons]
        text = f"Events: {said[0]} by the record's rules, {said[1]} by the others"
        yield Difference(Severity.FIELDS, "event", text, at_ns, rv)
        return
    for one, other in zip(*events, strict=True):
        if one.message != other.message and one.reason != "SuccessfulCreate":
            text = f"Event {one.reason} has another text"
            yield Difference(Severity.FIELDS, "event", text, at_ns, rv)


def _return_differences(
    ours: SyncResult, theirs: SyncResult, at_ns: int, rv: str
) -> Iterator[Difference]:
    if (ours.error is None) != (theirs.error is None):
        said = ["fails and is retried" if side.error else "succeeds" for side in (ours, theirs)]
        text = f"the sync {said[0]} by the record's rules, {said[1]} by the others"
        yield Difference(Severity.TIMING, "retry", text, at_ns, rv, fork=True)
        return
    left, right = ours.requeue_after_ns, theirs.requeue_after_ns
    if left == right or (
        left is not None and right is not None and abs(left - right) <= _SAME_REQUEUE_NS
    ):
        return
    said = ["never" if ns is None else f"{ns / NS_PER_S:.0f} s later" for ns in (left, right)]
    text = f"it is looked at again {said[0]} by the record's rules, {said[1]} by the others"
    yield Difference(Severity.TIMING, "queue", text, at_ns, rv, fork=True)
