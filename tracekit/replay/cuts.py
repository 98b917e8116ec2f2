"""The search for a cut: under which state of the caches does a sync do what was observed?

A cut is a revision of the Job and a position in the pod stream, as the informers' caches had them.
They are tried newest first, each at the latest time at which the sync can have run and just before
each timer that it asks about. The ported controller then runs against the record
(`recorded_api`): it explains the writes if it does exactly what was observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tracekit.cache.pods import PodCache
from tracekit.controllers.job.context import SyncClock, SyncResult
from tracekit.controllers.job.memory import JobMemory
from tracekit.controllers.job.sync import sync_job
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView, PodView
from tracekit.replay.handlers import pod_observed
from tracekit.replay.history import Revision, Write, WriteKind
from tracekit.replay.key_facts import CLOCK_SLACK_NS, KeyFacts
from tracekit.replay.recorded_api import (
    Assumptions,
    Mismatch,
    Problem,
    RecordedApi,
    RecordEnds,
)
from tracekit.replay.search_state import Explanation, State

#: Up to 1.19: syncs of a stale Job that may follow one that wrote a failure, and fail unseen.
UNSEEN_RETRIES_PER_RETRY = 2
#: Before 1.36 a sync may begin so long after a status write without having seen it.
STALE_JOB_NS = NS_PER_S // 2


class Cut(NamedTuple):
    """What the controller's caches held when a sync began, and its memory of the key."""

    job: Revision[JobView]
    pods: int  # how many revisions of the pod stream had arrived
    cache: PodCache  # at that position
    memory: JobMemory  # a run changes it: runs get copies
    #: Of `pods`, those about which the informer's handlers have not told the memory yet.
    untold: Sequence[Revision[PodView]] = ()


class CutSearch:
    """Looks for the cuts of one key's syncs."""

    def __init__(self, facts: KeyFacts) -> None:
        self.facts = facts
        self.history = facts.history
        self.rules = facts.rules
        #: Whether retries of the key decide about the end of the Job (up to 1.19).
        self._retries_count = not facts.rules.counting.backoff_limit_counts_failed_pods

    def explanations(self, state: State, *, handlers_lag: bool = False) -> Iterator[Explanation]:
        """Every cut that explains the next write, newest first.

        An informer changes its cache first and runs the handlers in a goroutine of their own after
        that. With `handlers_lag` the search goes on with syncs that came between the two.
        """
        interrupted = self.facts.interrupted(self.history.writes[state.index].recv_ns)
        for refusals in (False, True) if self.facts.failed_creates else (False,):
            for cuts_off in (False, True) if interrupted else (False,):
                for retries_unseen in self._retries_unseen(state):
                    assume = Assumptions(refusals, cuts_off, retries_unseen)
                    for job in self.job_candidates(state):
                        yield from self._under_job(state, job, assume)
        if handlers_lag:
            for job in self.job_candidates(state):
                yield from self._under_job(state, job, Assumptions(), untold=1)

    def _retries_unseen(self, state: State) -> tuple[int, ...]:
        """How many retries of the key to assume beside those of the syncs that are explained.

        Right after a sync has written a failure, syncs that still have the Job as it was before see
        the same failure as new, write nothing that shows and fail again. So there are at most a few
        for each retry that shows; refused creations are retried as often as it takes.
        """
        if not self._retries_count:
            return (0,)
        most = UNSEEN_RETRIES_PER_RETRY * state.memory.requeues
        if self.facts.failed_creates:
            most = max(most, len(self.history.events))
        return (0, most) if most else (0,)

    # What the caches may have held.

    def job_candidates(self, state: State) -> Iterator[Revision[JobView]]:
        """Revisions of the Job that its cache can have held at the next write, newest first."""
        newest = self.history.job_before(self.history.writes[state.index].rv)
        if newest is None:
            return
        floor = max(state.job_floor, self._own_write_floor(state))
        for position in range(newest.position, floor - 1, -1):
            revision = self.history.jobs[position]
            if revision.type != "DELETED":
                yield revision

    def _own_write_floor(self, state: State) -> int:
        """The oldest revision of the Job that the controller's cache can still have held.

        A key is never synced twice at a time, so a sync begins after the last one's status write;
        from 1.36 on it is refused until the informer has shown that write, before it may come a
        moment earlier.
        """
        at_ns = self.history.writes[state.index].recv_ns
        written = state.own_status
        if written is None or self.rules.overwrites_status:
            return 0
        if not self.rules.refuses_stale_sync and at_ns - written.recv_ns < STALE_JOB_NS:
            return 0
        return written.position

    def cuts(
        self,
        state: State,
        job: Revision[JobView],
        *,
        deepest: int | None = None,
        untold: int = 0,
    ) -> Iterator[Cut]:
        """The positions of the pod stream, newest first; at most `deepest` revisions back.

        All cuts share one cache, which moves with them. The handlers are `untold` revisions behind.
        """
        newest = self.history.pods_below(self.history.writes[state.index].rv)
        floor = state.pod_floor if deepest is None else max(state.pod_floor, newest - deepest)
        if self.rules.refuses_stale_sync:
            # From 1.36 on a sync is refused until the informer has shown what the last one wrote.
            floor = max(floor, state.own_pods)
        floor += untold
        if newest < floor:
            return
        pods = self.history.pods
        cache = state.cache.copy()
        cache.move_to(pods, newest)
        told = newest - untold
        yield Cut(job, newest, cache, self.memory_at(state, told, job.view.uid), pods[told:newest])
        memories = (
            [memory.copy() for memory in self._remembering(state, newest, job.view.uid)]
            if newest > floor
            else []
        )
        for position in range(newest - 1, floor - 1, -1):
            cache.move_to(pods, position)
            told = position - untold
            yield Cut(job, position, cache, memories[told - state.pod_floor], pods[told:position])

    def memory_at(self, state: State, position: int, job_uid: str) -> JobMemory:
        """The key's memory when the pod informer has shown `position` revisions."""
        *_, memory = self._remembering(state, position, job_uid)
        return memory

    def _remembering(self, state: State, newest: int, job_uid: str) -> Iterator[JobMemory]:
        """The key's memory at each position of the pod stream from the floor on: one, changing.

        A Job's end clears it for the next one of the same name.
        """
        before = self.history.jobs[state.job_floor].view.uid if self.history.jobs else job_uid
        memory = state.memory.copy() if before == job_uid else JobMemory()
        yield memory
        for revision in self.history.pods[state.pod_floor : newest]:
            _tell(memory, revision, job_uid)
            yield memory

    # One attempt.

    def _under_job(
        self, state: State, job: Revision[JobView], assume: Assumptions, *, untold: int = 0
    ) -> Iterator[Explanation]:
        for cut in self.cuts(state, job, untold=untold):
            found = self._at_its_time(state, cut, assume)
            if found is not None:
                yield found

    def _at_its_time(self, state: State, cut: Cut, assume: Assumptions) -> Explanation | None:
        """Try the latest time at which the sync can have run, and just before each timer."""
        earliest_ns = self._earliest_ns(state, cut)
        asked: set[int] = set()
        tried: set[int] = set()
        queue = [self.history.writes[state.index].recv_ns]
        while queue:
            now_ns = queue.pop()
            if now_ns in tried:
                continue
            tried.add(now_ns)
            found, timers = self.attempt(state, cut, now_ns, assume)
            if found is not None:
                return found
            for timer in timers:
                if timer not in asked and earliest_ns - CLOCK_SLACK_NS <= timer <= now_ns:
                    asked.add(timer)
                    queue.append(timer - 1)
        return None

    def _earliest_ns(self, state: State, cut: Cut) -> int:
        """When a sync that had seen so much can have begun at the earliest."""
        seen_ns = self.history.pods[cut.pods - 1].recv_ns if cut.pods else 0
        latest_ns = self.history.writes[state.index].recv_ns
        return min(max(cut.job.recv_ns, seen_ns, state.last_write_ns), latest_ns)

    def attempt(
        self, state: State, cut: Cut, now_ns: int, assume: Assumptions
    ) -> tuple[Explanation | None, list[int]]:
        """Run the sync; what it explains, and the times that its decisions asked about."""
        # A time that no API object can hold marks what the controller took from its clock.
        clock = SyncClock(now_ns if now_ns % NS_PER_S else now_ns + 1)
        api = self._api(state.index, clock, self._earliest_ns(state, cut), assume, state.done)
        cut = cut._replace(memory=cut.memory.copy())
        result: SyncResult | None = None
        try:
            result = self._run(cut, api)
        except Mismatch:
            return None, clock.asked
        except RecordEnds:
            pass
        for revision in cut.untold:
            _tell(cut.memory, revision, cut.job.view.uid)
        if not api.consumed:
            return None, clock.asked
        consumed = sorted(api.consumed, key=lambda write: write.index)
        if result is None and self._lives_on(consumed[-1], api.taken, state):
            return None, clock.asked
        extra = self._left_over(state, consumed, api.taken)
        if (extra or consumed[0].index != state.index) and not assume.lenient:
            return None, clock.asked
        api.problems += extra
        return self._explanation(state, cut, api, consumed, now_ns, result), clock.asked

    def after_the_record(self, cut: Cut, now_ns: int, assume: Assumptions) -> RecordedApi:
        """Run a sync for which no write is left: what it would do are the problems of the port."""
        api = self._api(len(self.history.writes), SyncClock(now_ns | 1), 0, assume, frozenset())
        self._run(cut, api)
        return api

    def _api(
        self,
        start: int,
        clock: SyncClock,
        earliest_ns: int,
        assume: Assumptions,
        skip: frozenset[int],
    ) -> RecordedApi:
        return RecordedApi(
            self.history,
            start,
            clock,
            earliest_ns,
            assume,
            skip,
            CLOCK_SLACK_NS,
            self.rules,
            self.facts.run_context.namespaces_ending.get(self.history.namespace),
        )

    def _run(self, cut: Cut, api: RecordedApi) -> SyncResult:
        return sync_job(
            cut.job.view,
            cut.cache.pods(),
            cut.memory,
            api,
            clock=api.clock,
            rules=self.rules,
            choices=self.facts.choices(api.start, retries_unseen=api.assume.retries_unseen),
        )

    def _explanation(
        self,
        state: State,
        cut: Cut,
        api: RecordedApi,
        consumed: list[Write],
        now_ns: int,
        result: SyncResult | None,
    ) -> Explanation:
        """What a run of the sync under this cut says, and the state that it leaves.

        `result` is None where the record ends inside the sync.
        """
        history, clock, job = self.history, api.clock, cut.job
        first = history.writes[state.index]
        newest = history.pods_below(first.rv)
        unseen = history.pods[cut.pods : newest]
        input_ns = max(job.recv_ns, history.pods[cut.pods - 1].recv_ns if cut.pods else 0)
        timer_ns = max((at for at in clock.asked if at <= now_ns), default=0)
        wrote_status = consumed[-1].kind is WriteKind.STATUS_UPDATE
        own_status = [write.job for write in consumed if write.job is not None][-1:]
        # A DELETE answers with no revision to wait for, and so does a pod's last finalizer.
        own_pods = [
            write.pod.position + 1
            for write in consumed
            if write.pod is not None
            and write.kind is not WriteKind.POD_DELETE
            and write.pod.type != "DELETED"
        ]
        after = State(
            index=state.index,
            memory=cut.memory,
            cache=cut.cache.copy(),
            pod_floor=cut.pods,
            job_floor=job.position,
            done=state.done | api.taken,
            last_write_ns=consumed[-1].recv_ns,
            restarts_seen=state.restarts_seen,
            listings_seen=state.listings_seen,
            own_status=own_status[0] if own_status else state.own_status,
            own_pods=max(own_pods, default=state.own_pods),
            certain=state.certain
            or (wrote_status and cut.pods >= self.facts.pods_listed(first.recv_ns)),
        )
        return Explanation(
            writes=tuple(consumed),
            job=job,
            pod_cut=cut.pods,
            pods_unseen=len(unseen),
            lag_ns=max(0, first.recv_ns - unseen[0].recv_ns) if unseen else 0,
            now_ns=now_ns,
            due_ns=max(input_ns, timer_ns),
            timed=timer_ns > input_ns,
            events=tuple(api.events),
            problems=tuple(api.problems),
            refused=api.refused,
            cut_off=result is None,
            notes=tuple(clock.notes),
            woke_itself=result is None or result.error or result.wake_after_ns is not None,
            state=after,
            handlers_behind=bool(cut.untold),
        )

    def _lives_on(self, last: Write, taken: set[int], state: State) -> bool:
        """Whether the controller that a sync was cut off with goes on writing.

        A cut-off means that its process died: the key's next write is its successor's. At the end
        of a record nothing follows at all.
        """
        for write in self.history.writes[last.index + 1 :]:
            if write.index in taken or write.index in state.done:
                continue
            if not self.facts.may_be_foreign(write):
                return not self.facts.died_between(last, write)
        return False

    def _left_over(self, state: State, consumed: list[Write], taken: set[int]) -> list[Problem]:
        """Writes in the midst of the sync that it does not explain."""
        problems = []
        for write in self.history.writes[state.index : consumed[-1].index]:
            if write.index in taken or write.index in state.done:
                continue
            if write.kind is WriteKind.FINALIZER_REMOVAL and self.facts.orphan_reason(write):
                continue
            if not self.facts.may_be_foreign(write):
                problems.append(Problem(write.kind, "extra", write, "nothing of the kind"))
        return problems


def _tell(memory: JobMemory, revision: Revision[PodView], job_uid: str) -> None:
    """Run the pod handlers on one revision."""
    old = revision.previous.view if revision.previous is not None else None
    pod_observed(memory, old, revision.view, deleted=revision.type == "DELETED", job_uid=job_uid)
