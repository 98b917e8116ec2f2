"""One attempt: does a sync under this cut do exactly what was observed?

The ported controller runs against the record (`recorded_api`). What it does beyond the record, and
what of the record it leaves out, fails the attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from msgspec.structs import replace

from tracekit.base.kube.views import JobView, PodView
from tracekit.check.replay.clock_readings import sync_clock
from tracekit.check.replay.cuts import CacheCuts, Cut
from tracekit.check.replay.history import Revision, Write, WriteKind
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.recall import MemoryAsked, Recall
from tracekit.check.replay.recorded_api import (
    Assumptions,
    Mismatch,
    Problem,
    RecordedApi,
    RecordEnds,
)
from tracekit.check.replay.search_state import Began, Explanation, Retries, State
from tracekit.check.verdict import Assumption
from tracekit.ports.job.backoff import BackoffRecord
from tracekit.ports.job.context import SyncClock, SyncResult
from tracekit.ports.job.sync import sync_job

#: How many attempts a key may cost: so many, and so many more for each of its writes. Counted, not
#: timed, so that runs agree. Beyond it the verdict is `unknowable`, reason `undecided`.
ATTEMPTS = 20_000
ATTEMPTS_PER_WRITE = 60
#: How many of them turning back from one write may cost before it counts as not explained: so many
#: at most, so many at least, and between these what visits so many pods, so that the cost of a lie
#: grows with the record and not with its square.
ATTEMPTS_AT_A_DEAD_END = 4_000
ATTEMPTS_AT_LEAST = 150
PODS_VISITED = 300_000
#: And where the record as a whole contradicts the rules, of a Job outside the sample. A choice,
#: which `--search-all` lifts: with less, more that older caches explain is left unknowable.
ATTEMPTS_UNSEARCHED = 32
#: A status that is put over whatever the server holds (up to 1.22) fits each revision of the Job
#: that a cache can have held by then, later only one: so many times as much of each, at most.
CACHES_MAX = 16


class Exhausted(Exception):  # noqa: N818 - a signal of the search, not an error
    """The key has cost as many attempts as it may."""


class Attempts(CacheCuts):
    """Runs syncs of one key against its record."""

    def __init__(self, facts: KeyEvidence) -> None:
        super().__init__(facts)
        self.attempts = 0
        self.recall = Recall(MemoryAsked(facts.history, facts.rules))
        self._times = 1  # as much as dead ends have asked for
        self._budget = ATTEMPTS + ATTEMPTS_PER_WRITE * len(self.history.writes)

    def attempt(
        self, state: State, cut: Cut, now_ns: int, assume: Assumptions
    ) -> tuple[Explanation | None, list[int]]:
        """Run the sync; what it explains, and the times that its decisions asked about."""
        self.attempts += 1
        if self.attempts > self._times * self._budget and not assume.lenient:
            raise Exhausted
        clock = sync_clock(now_ns)
        api = self.facts.api(state.index, clock, self.earliest_ns(state, cut), assume, state.done)
        known = cut.memory.backoff
        began = Began(state, cut.memory, cut.handled, now_ns, assume)
        cut = replace(cut, memory=cut.memory.copy())
        result: SyncResult | None = None
        rest: Problem | None = None
        try:
            result = self._run(cut, api)
            rest = api.rest
        except Mismatch:
            return None, clock.asked
        except RecordEnds as end:
            rest = end.problem
        if not api.consumed:
            return None, clock.asked
        consumed = api.consumed
        if len(consumed) > 1:
            consumed = sorted(consumed, key=attrgetter("index"))
        if rest is not None and self._outlasts(consumed[-1], api.taken, state):
            return None, clock.asked
        if self.facts.outlived(consumed[0], consumed[-1]) and not assume.lenient:
            return None, clock.asked
        extra = self._left_over(state, consumed, api)
        if (extra or consumed[0].index != state.index) and not assume.lenient:
            return None, clock.asked
        api.problems += extra
        if cut.guess:
            cut.memory.backoff = _without_guess(cut.memory.backoff, known, state.memory.backoff)
        return self._explanation(began, cut, api, consumed, result, rest), clock.asked

    def allowance(self, dead: State) -> int:
        """How many attempts turning back from one write may cost."""
        uids = len({revision.view.uid for revision in self.history.pods})
        fair = max(ATTEMPTS_AT_LEAST, PODS_VISITED // (uids + 1))
        times = 1
        if self.rules.overwrites_status:
            write = self.history.writes[dead.index]
            jobs = self.history.jobs_below(write.rv) - self.facts.jobs_shown(write.recv_ns) + 1
            times = max(1, min(jobs, CACHES_MAX))
            self._times = max(self._times, times)
        return times * min(ATTEMPTS_AT_A_DEAD_END, fair)

    def after_the_record(self, cut: Cut, now_ns: int, assume: Assumptions) -> RecordedApi:
        """Run a sync for which no write is left: what it would do are the problems of the port."""
        api = self.facts.api(
            len(self.history.writes), SyncClock(now_ns | 1), 0, assume, frozenset()
        )
        self._run(cut, api)
        return api

    def _run(self, cut: Cut, api: RecordedApi) -> SyncResult:
        return sync_job(
            cut.job.view,
            cut.cache.pods(),
            cut.memory,
            api,
            clock=api.clock,
            rules=self.rules,
            choices=self.facts.choices(api.start),
        )

    def _explanation(
        self,
        began: Began,
        cut: Cut,
        api: RecordedApi,
        consumed: list[Write],
        result: SyncResult | None,
        rest: Problem | None,
    ) -> Explanation:
        """What a run of the sync under this cut says, and the state that it leaves.

        `result` is None where the record or the process ends inside the sync.
        """
        history, clock, job = self.history, api.clock, cut.job
        state, now_ns = began.state, began.now_ns
        first = history.writes[state.index]
        unseen = max(0, history.pods_below(first.rv) - cut.pods)
        input_ns = max(job.recv_ns, self.shown_ns(cut))
        timer_ns = max([at for at in clock.asked if at <= now_ns], default=0)
        stale = self.stale(state, cut)
        return Explanation(
            writes=tuple(consumed),
            job=job,
            pod_cut=cut.pods,
            pods_unseen=unseen,
            lag_ns=max(0, first.recv_ns - history.pods[cut.pods].recv_ns) if unseen else 0,
            now_ns=now_ns,
            due_ns=max(input_ns, timer_ns),
            timed=timer_ns > input_ns,
            events=tuple(api.events),
            problems=tuple(api.problems),
            refused=api.refused,
            idle=api.idle,
            rest=rest,
            notes=tuple(clock.notes),
            error=result is None or result.error,
            wake_after_ns=result.wake_after_ns if result is not None else None,
            state=self._state_after(state, cut, api, consumed, result),
            handlers_behind=cut.pods - cut.handled,
            silent=state.silent,
            assumptions=tuple(self._assumed(state, cut, api, rest, stale)),
            stale=stale,
            began=began,
        )

    def _state_after(
        self,
        state: State,
        cut: Cut,
        api: RecordedApi,
        consumed: list[Write],
        result: SyncResult | None,
    ) -> State:
        last = consumed[-1]
        own_status, own_pods = state.own_status, 0
        for write in consumed:
            if write.job is not None:
                own_status = write.job
            pod = write.pod
            # A DELETE answers with no revision to wait for, and so does a pod's last finalizer.
            if pod and pod.type != "DELETED" and write.kind is not WriteKind.POD_DELETE:
                own_pods = max(own_pods, pod.position + 1)
        certain, backoff_known = state.certain, state.backoff_known
        if not certain and last.kind is WriteKind.STATUS_UPDATE:
            at_ns = self.history.writes[state.index].recv_ns
            certain = cut.pods >= self.facts.pods_listed(at_ns)
        if not backoff_known:
            backoff_known = any(note.numbers.get("new_succeeded") for note in api.clock.notes)
        return State(
            index=state.index,
            memory=cut.memory,
            cache=cut.cache.copy(),
            pod_floor=cut.pods,
            job_floor=cut.job.position,
            handled=cut.handled,
            done=state.done | api.taken,
            not_before_ns=last.recv_ns,
            restarts_seen=state.restarts_seen,
            listings_seen=state.listings_seen,
            own_status=own_status,
            own_pods=own_pods or state.own_pods,
            written=last.index + 1,
            certain=certain,
            backoff_known=backoff_known,
            retries=None if api.problems else _retries_after(state.retries, result),
            heuristic=state.heuristic,
        )

    def _assumed(
        self,
        state: State,
        cut: Cut,
        api: RecordedApi,
        rest: Problem | None,
        stale: Revision[JobView] | Revision[PodView] | None,
    ) -> Iterator[Assumption]:
        """What the explanation takes for granted, with the time and the evidence."""
        first = self.history.writes[state.index]
        at_ns = first.recv_ns
        if first.shown_ns > at_ns:
            text = "newer revisions of another stream had come before this one showed it"
            yield Assumption("late-stream", at_ns, first.shown_ns, text)
        created_less = api.refused > api.refused_writes
        if created_less and (found := self.facts.refused.creations_within(state.index)):
            yield found
        if api.refused_writes and (found := self.facts.refused.writes(at_ns)):
            yield found
        hidden = self.facts.unseen_status if api.assume.unseen_status else self.facts.unseen_writes
        if api.unseen and (found := hidden(at_ns)):
            yield found
        if rest is not None:
            yield self.facts.ending(api.consumed[-1].recv_ns)
        if cut.guess:
            since_ns = self.facts.blind.last_by(at_ns)
            begun_ns = at_ns if since_ns is None else since_ns
            yield Assumption("unknown-memory", begun_ns, at_ns, cut.guess)
        if stale is not None:
            text = f"nothing else explains it than caches without resourceVersion {stale.rv}"
            yield Assumption("stale-cache", stale.recv_ns, at_ns, text)
        own = state.own_status
        if own is not None and self.lacks_own_status(state, cut.job):
            text = f"only a cache without its own status of resourceVersion {own.rv} explains it"
            yield Assumption("stale-cache", own.recv_ns, max(own.recv_ns, at_ns), text)
        for sync in state.silent:
            seen_ns = max(sync.job.recv_ns, state.not_before_ns)
            what = "failed" if sync.error else "had nothing to write"
            text = f"a sync of the Job at resourceVersion {sync.job.rv} {what}"
            yield Assumption("silent-sync", seen_ns, max(seen_ns, at_ns), text)

    def _outlasts(self, last: Write, taken: set[int], state: State) -> bool:
        """Whether the controller that a sync was cut off with goes on writing.

        A cut-off means that its process died: the key's next write is its successor's. At the end
        of a record nothing follows at all.
        """
        for write in self.history.writes[last.index + 1 :]:
            if write.index in taken or write.index in state.done:
                continue
            if write.kind is WriteKind.FINALIZER_REMOVAL and self.facts.orphan_reason(write):
                continue  # the orphan worker's, beside whatever the sync does
            if not self.facts.may_be_foreign(write):
                return not self.facts.died_between(last, write)
        return False

    def _left_over(self, state: State, consumed: list[Write], api: RecordedApi) -> list[Problem]:
        """Writes in the midst of the sync that it does not explain."""
        problems: list[Problem] = []
        if len(consumed) == consumed[-1].index - state.index + 1:
            return problems  # it makes them all
        for write in self.history.writes[state.index : consumed[-1].index]:
            if write.index in api.taken or write.index in state.done:
                continue
            if write.kind is WriteKind.FINALIZER_REMOVAL and self.facts.orphan_reason(write):
                continue
            others = self.facts.may_be_foreign(write) and (
                api.assume.second_deletes or api.assume.lenient or not self.facts.owned_up(write)
            )
            if api.assume.released and self.facts.released_by_nobody(write):
                continue
            if not others:
                problems.append(Problem(write.kind, "extra", write, "nothing of the kind"))
        return problems


def _retries_after(before: Retries | None, result: SyncResult | None) -> Retries | None:
    """What the queue counts after a sync; unknown after one that was cut off."""
    if before is None or result is None:
        return None
    failed = result.error and result.retried
    return before.after(failed=failed, cleared=not result.error and result.forget)


def _without_guess(
    after: BackoffRecord, guessed: BackoffRecord, before: BackoffRecord
) -> BackoffRecord:
    """The back-off record after a sync whose record was guessed: what it added stays."""
    if after == guessed:
        return before
    return BackoffRecord(min(after.failures_after_last_success, 1), after.last_failure_ns)
