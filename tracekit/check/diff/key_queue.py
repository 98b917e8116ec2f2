"""When a key can have been in the work queue: what was too early, and since when a sync was due.

A key is put into the queue by the handlers' reaction to changes of its Job and pods (at once,
after the batch period, or up to 1.27 after its back-off), by the timers that its syncs armed, by
the retry of one that failed, and by a new process. Upstream keeps one earliest ready time for each
key (client-go: util/workqueue/delaying_queue.go), so each of these may be what a sync followed. A
sync that none of them can have made ready by then is early. What lies between is bounded: an
informer may be behind by `INFORMER_LAG_NS` and not more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView, PodView
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.explanations import CutSearch
from tracekit.check.replay.history import History, Revision, Write, WriteKind
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.run_context import INFORMER_LAG_NS
from tracekit.check.replay.search_state import Explanation, Retries, SilentSync
from tracekit.versions.job import JobRules

#: Among so many syncs before one that looks early those are looked for that left no write.
SILENT_REACH = 8
#: Two rows may reach the recorder so much closer together, or further apart, than they were made.
DELIVERY_JITTER_NS = NS_PER_S // 5


class Due(Struct, frozen=True):
    """From when on a sync was certainly due, and before when it cannot have been."""

    certain_ns: int  # by then its key was in the queue, for an informer that had seen all
    earliest_ns: int  # before that nothing can have put the key into the queue
    timed: bool  # whether a timer of the controller's own made it due: no informer is asked


class Wake(Struct, frozen=True):
    """Something that may have put the key into the queue."""

    earliest_ns: int  # the key was not ready by it before
    certain_ns: int  # by then it was, for an informer that had seen all
    timed: bool = False  # a timer of the controller's own: no informer is asked


class FirstWrite(NamedTuple):
    """The first write of a sync, by which its judgement is found."""

    key: str
    action: str
    resource_version: str


class EarlyCandidate(NamedTuple):
    """A sync for which only old wakes are left: early, if the process must have used them up.

    With a `doubt` something that left no trace has woken it, or something is wrong.
    """

    first: FirstWrite
    at_ns: int
    wakes: tuple[Wake, ...]
    doubt: str = ""


def reads_before(rules: JobRules, kind: WriteKind) -> int:
    """How often the Job is read from the API server before such a write: that leaves no trace.

    Before the first adoption of a sync, and up to 1.22 before each PUT of a status. Upstream:
    pkg/controller/controller_ref_manager.go:CanAdopt, pkg/controller/job/job_controller.go:
    updateJobStatus.
    """
    overwrites = kind is WriteKind.STATUS_UPDATE and rules.overwrites_status
    return int(overwrites or kind is WriteKind.POD_ADOPT)


def first_write(key: str, first: Write) -> FirstWrite:
    """By what the judgement of a sync's first write is found."""
    return FirstWrite(key, first.kind.action, str(first.rv))


def early_candidates(search: CutSearch, syncs: Sequence[Explanation]) -> Iterator[EarlyCandidate]:
    """Syncs that nothing recent can have made ready by then."""
    facts = search.facts
    before: Explanation | None = None
    timers: list[Wake] = []
    for number, sync in enumerate(syncs):
        if sync.job is None:
            before = None
            continue
        at_ns = sync.writes[0].recv_ns + DELIVERY_JITTER_NS
        if before is not None and not excused(facts, before, sync):
            wakes = all_old(open_wakes(facts, before, sync, timers), at_ns)
            if wakes is not None:
                silents = search.silent_between(before, sync)
                woken = any(_woke(facts, silent, at_ns) for silent in silents)
                retries = all_old(_silent_retries(search, syncs[:number], at_ns), at_ns)
                # Who is refused creations, of which Events tell, is retried.
                unreported = not facts.run_context.events_recorded
                doubt = _RETRIED if woken or retries is None or unreported else ""
                doubt = doubt or (_INHERITED if _inherited(facts, sync, at_ns) else "")
                first = first_write(facts.history.key, sync.writes[0])
                yield EarlyCandidate(
                    first, sync.writes[0].recv_ns, (*wakes, *(retries or ())), doubt
                )
        timers += timers_of(facts, sync)
        before = sync


_RETRIED = "only the retry of a sync that left no write can have made it ready, or it was early"
_INHERITED = "only the retry of a sync not seen, of another Job of its name, or it was early"


def _inherited(facts: KeyEvidence, sync: Explanation, at_ns: int) -> bool:
    """Whether a Job of that name may have left a retry behind while the record could not see it.

    The queue knows keys, not Jobs: what waits for its time survives the Job that it was for.
    """
    longest_ns, history = facts.rules.retries.backoff_ns_max, facts.history
    ends_ns = [e.recv_ns for e in history.events if e.type == "LIST" and e.recv_ns <= at_ns]
    until_ns = max((*ends_ns, facts.blind.last_by(at_ns) or 0))
    if until_ns + longest_ns < at_ns or sync.job is None:
        return False
    others = [event.involved_uid for event in history.events if event.recv_ns <= until_ns]
    others += [job.view.uid for job in history.jobs if job.recv_ns <= until_ns]
    return any(uid != sync.job.view.uid for uid in others)


def all_old(wakes: Iterable[Wake], at_ns: int) -> list[Wake] | None:
    """Those that had made the key ready so long before that a sync must have used them up.

    None if one had not: nearly always the first that is looked at.
    """
    old: list[Wake] = []
    for wake in wakes:
        if wake.earliest_ns <= at_ns:
            if wake.certain_ns + INFORMER_LAG_NS >= at_ns:
                return None
            old.append(wake)
    return old


def _silent_retries(search: CutSearch, syncs: Sequence[Explanation], at_ns: int) -> list[Wake]:
    """Retries still to come, when the last sync began, of syncs before it that left no write.

    What wakes the key meanwhile does not take them off the queue's list of those who wait.
    """
    facts, found = search.facts, []
    used_up_ns = syncs[-1].due_ns - DELIVERY_JITTER_NS
    reached: list[Explanation | None] = list(syncs[-SILENT_REACH - 1 :])
    if len(reached) <= SILENT_REACH:
        reached.insert(0, None)  # the beginning of the key
    for before, sync in pairwise(reached):
        if sync is None or sync.job is None or (before is not None and before.job is None):
            continue
        # A sync counts one retry more than its state did: even its wait is over by then.
        longest_ns = facts.rules.retries.backoff_ns(1 + (_most_retries(before) if before else 0))
        if sync.writes[0].recv_ns + longest_ns + CLOCK_SLACK_NS < used_up_ns:
            continue
        for silent in search.silent_between(before, sync):
            if silent.error:
                wait_ns = facts.rules.retries.backoff_ns(max(1, silent.retries))
                earliest_ns = silent.earliest_ns + wait_ns - CLOCK_SLACK_NS
                certain_ns = sync.writes[0].recv_ns + wait_ns + CLOCK_SLACK_NS
                if earliest_ns <= at_ns and certain_ns >= used_up_ns:
                    found.append(Wake(earliest_ns, certain_ns))
    return found


def _most_retries(before: Explanation) -> int:
    counted = before.state.retries
    return max(before.state.memory.requeues, counted.least if counted is not None else 0, 0)


def _woke(facts: KeyEvidence, silent: SilentSync, at_ns: int) -> bool:
    """Whether a sync without a write may have woken the key again by then."""
    if silent.timer_ns is not None and silent.timer_ns - CLOCK_SLACK_NS <= at_ns:
        return True
    retry_ns = facts.rules.retries.backoff_ns(max(1, silent.retries)) - CLOCK_SLACK_NS
    return silent.error and silent.earliest_ns + retry_ns <= at_ns


def timers_of(facts: KeyEvidence, sync: Explanation) -> Iterator[Wake]:
    """What a sync armed: a timer of its own, or the retry of its failure."""
    if sync.wake_after_ns is not None:
        at_ns = sync.now_ns + sync.wake_after_ns
        yield Wake(at_ns - CLOCK_SLACK_NS, at_ns + CLOCK_SLACK_NS, timed=True)
    if sync.error:
        retries, ended_ns = facts.rules.retries, sync.writes[-1].recv_ns
        least, longest_ns = sync.state.memory.requeues, retries.backoff_ns_max
        counted = _counted(facts, sync)
        if counted is not None:
            least, longest_ns = counted.least, retries.backoff_ns(counted.most + 1)
        retry_ns = retries.backoff_ns(max(1, least)) - CLOCK_SLACK_NS
        yield Wake(ended_ns + retry_ns, ended_ns + longest_ns + CLOCK_SLACK_NS)


def excused(facts: KeyEvidence, before: Explanation, sync: Explanation) -> bool:
    """Whether something of which no time is known may have woken the key."""
    if before.problems or before.refused or before.cut_off or sync.silent:
        return True
    if not (before.state.certain and before.state.backoff_known):
        return True
    first = sync.writes[0]
    if facts.run_context.interrupted(before.due_ns - INFORMER_LAG_NS, first.recv_ns):
        return True
    # A sync of a Job that was over, for a while, has forgotten the key's failures.
    return any(
        job.rv < first.rv and (sync.job is None or job.view.uid == sync.job.view.uid)
        for job in facts.ended
    )


def open_wakes(
    facts: KeyEvidence, before: Explanation, sync: Explanation, timers: Sequence[Wake]
) -> Iterator[Wake]:
    """What may have put the key into the queue, and `before` cannot have used up."""
    first = sync.writes[0]
    used_up_ns = before.due_ns - DELIVERY_JITTER_NS
    for recv_ns, delay_ns, longest_ns in _wakes(facts, first.rv, before, used_up_ns, -1):
        # Handled late, or still waiting, when the last sync began: ready at any time since.
        certain_ns = max(recv_ns + longest_ns, before.writes[-1].recv_ns)
        yield Wake(max(recv_ns + delay_ns, used_up_ns), certain_ns)
    yield from (timer for timer in timers if timer.certain_ns >= used_up_ns)
    # A sync without a write may have armed the timer that this one found passed.
    own = (sync.due_ns,) if sync.timed else ()
    for at_ns in (*own, *_deadlines(facts.history, first.rv)):
        if at_ns + CLOCK_SLACK_NS >= used_up_ns:
            yield Wake(at_ns - CLOCK_SLACK_NS, at_ns + CLOCK_SLACK_NS, timed=True)


def _wakes(
    facts: KeyEvidence, before_rv: int, before: Explanation, since_ns: int, step: int
) -> Iterator[tuple[int, int, int]]:
    """The changes that may wake the key from then on: when they came, the least and longest wait.

    Each sync asks, so that those of long ago are passed over, not looked at one by one. `step`: 1
    for the oldest first, -1 for the newest: who asks is mostly done with the first.
    """
    history, rules = facts.history, facts.rules
    handled_ns = since_ns - INFORMER_LAG_NS
    any_pod = (rules.sync_batch_ns,) * 2 if rules.batches_pod_events else (0, 0)
    failures = _FailureWaits(facts, before, any_pod) if rules.queue_delays_failures else None
    longest_ns = any_pod[1] if failures is None else failures.longest_ns
    first = bisect_left(history.pods_latest_ns, handled_ns - longest_ns)
    for pod in history.pods[first : history.pods_below(before_rv)][::step]:
        may_wait = failures is not None and held_back(rules, pod)
        for least_ns, most_ns in failures.of(pod) if failures and may_wait else (any_pod,):
            if pod.recv_ns + pod.late_ns + most_ns >= handled_ns:
                yield pod.recv_ns, least_ns, most_ns + pod.late_ns
    first = bisect_left(history.jobs_latest_ns, handled_ns - rules.sync_batch_ns)
    for job in history.jobs[first : history.jobs_below(before_rv)][::step]:
        delay_ns = rules.sync_batch_ns if _batched(job, rules) else 0
        if job.recv_ns + job.late_ns + delay_ns >= handled_ns:
            yield job.recv_ns, delay_ns, delay_ns + job.late_ns


def held_back(rules: JobRules, pod: Revision[PodView]) -> bool:
    """Whether a change of a pod may wait for the back-off of its key: a failure."""
    if pod.view.phase != "Failed" or pod.type == "DELETED" or pod.view.deleted_ns is not None:
        return False
    failed_before = pod.previous is not None and pod.previous.view.phase == "Failed"
    return not (failed_before and rules.handlers.only_first_pod_failure_delays_sync)


def _counted(facts: KeyEvidence, sync: Explanation) -> Retries | None:
    """The retries that the queue counts after a sync of a tracked Job; None where not known.

    Only where nothing but a success or a suspension clears them, which leaves a write, and where
    no refusals can have failed more syncs than one.
    """
    rules, retries = facts.rules, sync.state.retries
    if not rules.queue_delays_failures or not rules.retries.status_write_keeps_retries:
        return None
    if sync.job is None or not rules.tracks(sync.job.view):
        return None
    refused = facts.refused.last_ns(sync.writes[-1].recv_ns) is not None
    return None if refused else retries


def conflicts(facts: KeyEvidence, before: Explanation) -> int:
    """So many retries more may be counted of an untracked Job, by syncs that left no write.

    Where a status write clears nothing, each may have made one sync conflict that had not seen it.
    """
    retries = facts.rules.retries
    counts = retries.status_write_keeps_retries and retries.conflict_is_retried
    if not counts or before.job is None or facts.rules.tracks(before.job.view):
        return 0
    return facts.history.status_writes(0, before.writes[-1].index + 1)


class _FailureWaits:
    """How long a pod's failure holds its key back at least and at most (up to 1.27)."""

    def __init__(self, facts: KeyEvidence, before: Explanation, any_pod: tuple[int, int]) -> None:
        rules = facts.rules
        self._retries, self._before = rules.retries, before
        self._any_pod = self._unknown = any_pod
        self._counted = _counted(facts, before)
        tracked = before.job is not None and rules.tracks(before.job.view)
        if rules.queue_delays_failures and tracked:
            # In most versions tracked Jobs clear their retries in ways that leave no trace.
            self._unknown = any_pod[0], rules.retries.backoff_ns_max
        elif rules.queue_delays_failures:
            requeues = before.state.memory.requeues
            self._unknown = (
                max(any_pod[0], rules.retries.backoff_ns(requeues) - CLOCK_SLACK_NS),
                max(any_pod[1], rules.retries.backoff_ns(requeues + 1 + conflicts(facts, before))),
            )
        self.longest_ns = max(self._unknown)

    def of(self, pod: Revision[PodView]) -> Iterator[tuple[int, int]]:
        """The handler asks for the count when it learns of the failure: one wait for each count."""
        after, began = self._counted, self._before.began
        if after is None or began is None or began.state.retries is None:
            yield self._unknown
            return
        least, first, last = 0, self._before.writes[0], self._before.writes[-1]
        if pod.rv > last.rv and pod.recv_ns > last.recv_ns + DELIVERY_JITTER_NS:
            least = after.least
        earlier = pod.shown_ns + INFORMER_LAG_NS < first.recv_ns
        most = began.state.retries.most if earlier else after.most
        for retries in range(least, most + 2):
            wait_ns = self._retries.backoff_ns(retries)
            least_ns = max(self._any_pod[0], wait_ns - CLOCK_SLACK_NS)
            yield least_ns, max(self._any_pod[1], wait_ns)


def _batched(job: Revision[JobView], rules: JobRules) -> bool:
    """Whether an update of the Job waits for the batch period: one that keeps the generation."""
    return (
        rules.batches_job_updates
        and job.type == "MODIFIED"
        and job.previous is not None
        and job.previous.view.generation == job.view.generation
    )


def _deadlines(history: History, before_rv: int) -> Iterator[int]:
    """When a timer of activeDeadlineSeconds may have gone off."""
    for job in history.jobs[: history.jobs_below(before_rv)]:
        start_ns, deadline_s = job.view.status.start_ns, job.view.spec.active_deadline_s
        if start_ns is not None and deadline_s is not None:
            yield start_ns + deadline_s * NS_PER_S


def due(
    facts: KeyEvidence, before: Explanation | None, sync: Explanation, *, unreported: bool = True
) -> Due:
    """Since when an explained sync was due; `unreported`: with retries that left no trace."""
    first = sync.writes[0]
    held_until_ns = before.writes[-1].recv_ns if before is not None else 0
    certain_ns = max(sync.due_ns, held_until_ns, facts.inputs_shown_ns(sync.job, sync.pod_cut))
    wait_ns = 0
    refused = before is not None and before.refused
    refused = refused or facts.refused.creations(sync.due_ns) is not None
    refused_ns = facts.refused.last_ns(first.recv_ns)
    # A deadline that is armed wakes the key, and has nothing created that could be refused.
    if ended_by_its_timer(facts, before, sync):
        refused, refused_ns = False, None
    if refused_ns is not None and refused_ns > certain_ns:
        certain_ns, refused = refused_ns, True  # each refusal may have been followed by another
    if sync.due_ns <= held_until_ns or sync.silent or refused:
        wait_ns = facts.rules.retries.backoff_ns_max  # it may be a retry
    elif not sync.timed:
        wait_ns = facts.rules.sync_batch_ns
    certain_ns += max(wait_ns, queue_wait_ns(facts, before, sync.pod_cut, unreported=unreported))
    if not sync.state.backoff_known:
        certain_ns += max(facts.rules.pod_backoff_limit_ns, facts.rules.retries.backoff_ns_max)
    earliest_ns = first_wake_ns(facts, before, first.rv)
    return Due(certain_ns, earliest_ns, sync.timed and sync.due_ns > held_until_ns)


def as_woken(
    search: CutSearch, before: Explanation | None, sync: Explanation
) -> Explanation | None:
    """The sync as the last change asked for it that woke its key; None where none that is seen did.

    What befalls a pod on its way out that was taken from its Job wakes nobody (`updatePod`): the
    sync counts it whenever something else wakes the key, were it a new process.
    """
    facts, job = search.facts, sync.job
    if sync.timed or job is None:
        return sync
    pods, floor = facts.history.pods, before.pod_cut if before is not None else 0
    position = sync.pod_cut
    while (
        position > floor
        and pods[position - 1].recv_ns > job.recv_ns
        and not facts.pod_handlers.wake(pods[position - 1], job.view.uid)
    ):
        position -= 1
    if position == sync.pod_cut:
        return sync
    older = next(search.on_older_pods(sync, position), None)
    return older if older is not None and older.pod_cut == position else None


def ended_by_its_timer(facts: KeyEvidence, before: Explanation | None, sync: Explanation) -> bool:
    """Whether a sync ended its Job at the deadline for which the one before had set a timer."""
    if before is None or before.wake_after_ns is None or facts.refused.writes(sync.due_ns):
        return False
    if not facts.run_context.events_recorded:
        return False  # nothing would tell of a webhook that refused this very sync
    armed_ns = before.now_ns + before.wake_after_ns
    return armed_ns <= sync.due_ns + NS_PER_S + CLOCK_SLACK_NS and any(
        note.rule == "deadline" and note.numbers["deadline_ns"] == sync.due_ns
        for note in sync.notes
    )


def since_its_timer(
    search: CutSearch, before: Explanation | None, sync: Explanation
) -> Explanation:
    """The sync as the timer before it asked for it, where that would have made it write as well.

    What came later and was seen, too, hides that the timer had gone off and was not served.
    """
    if before is None or before.job is None or sync.job is None or sync.silent:
        return sync
    if not search.rules.counting.deadline_timer_rearmed_on_every_sync:
        return sync  # what wakes the key in between takes the timer away
    if before.job.view.uid != sync.job.view.uid:
        return sync  # the timers of a Job that is gone ask for nothing of its successor
    timers = [n.numbers["deadline_ns"] for n in sync.notes if n.rule == "deadline"]
    if before.wake_after_ns is not None:
        timers.append(before.now_ns + before.wake_after_ns)
    since_ns = before.writes[-1].recv_ns
    until_ns = min(sync.due_ns, sync.writes[0].called_ns - CLOCK_SLACK_NS)
    at_ns = max(since_ns, min((at for at in timers if isinstance(at, int)), default=until_ns))
    if at_ns >= until_ns or search.facts.run_context.interrupted(since_ns, until_ns):
        return sync
    if search.idle_at(before, sync, at_ns):
        return sync
    return replace(sync, due_ns=at_ns, timed=True, job=before.job, pod_cut=before.pod_cut)


def first_wake_ns(facts: KeyEvidence, before: Explanation | None, before_rv: int) -> int:
    """Before that nothing can have put the key into the queue since its last sync began."""
    if before is None:
        jobs = facts.history.jobs
        return jobs[0].recv_ns if jobs and jobs[0].type == "ADDED" else 0
    if before.error or before.wake_after_ns is not None or before.job is None:
        return before.due_ns
    earliest_ns: int | None = None
    for recv_ns, *_ in _wakes(facts, before_rv, before, before.due_ns, 1):
        if recv_ns <= before.due_ns:
            return before.due_ns
        earliest_ns = recv_ns if earliest_ns is None else min(earliest_ns, recv_ns)
    return before.due_ns if earliest_ns is None else earliest_ns


def deadline_lost(facts: KeyEvidence, syncs: Sequence[Explanation], at_ns: int) -> bool:
    """Whether no timer may be left that wakes the key at `at_ns`, when its deadline passes.

    Before it is armed by every sync, only the one that sets startTime does, and the handler that
    sees the deadline change. It dies with the process; and as the queue keeps the earliest wait of
    a key, whatever wakes the key before, after a while, takes its place: the sync that follows does
    not arm it again. A retry does so even where the sync that failed left no trace.
    """
    rules, jobs = facts.rules, facts.history.jobs
    if rules.counting.deadline_timer_rearmed_on_every_sync:
        return False
    if len({job.view.uid for job in jobs}) > 1:
        return True  # syncs of a Job that is gone are retried
    retry_ns = rules.retries.backoff_ns(1) - CLOCK_SLACK_NS
    if not rules.overwrites_status and any(job.recv_ns + retry_ns < at_ns for job in jobs):
        return True  # so are those that conflict with what the one before has written
    if rules.batches_pod_events and facts.history.pods:
        return True
    began_ns = max((restart.until_ns for restart in facts.run_context.restarts), default=0)
    syncs = [sync for sync in syncs if sync.job is not None and sync.due_ns >= began_ns]
    if any(sync.error for sync in syncs) or facts.refused.last_ns(at_ns) is not None:
        return True
    armed = [
        *_deadlines_changed(jobs, began_ns, rules),
        *((s.due_ns, s.now_ns + s.wake_after_ns) for s in syncs if s.wake_after_ns is not None),
    ]
    slack_ns = 2 * CLOCK_SLACK_NS
    # Of two syncs that set startTime the first one's timer goes off before the second's deadline.
    from_ns = at_ns if len(armed) > 1 else at_ns - slack_ns
    waits = [timer_ns for _, timer_ns in armed if timer_ns < from_ns]
    if len(armed) > 1:
        # One that began before its first write armed its timer for earlier, and one that wrote a
        # startTime before that second was over: it counts from the clock, not from the second.
        early = (
            min(s.due_ns, read_clock_ns(s) - 1) + s.wake_after_ns
            for s in syncs[:1]
            if s.wake_after_ns is not None
        )
        waits += [timer_ns for timer_ns in early if timer_ns < from_ns]
    return not any(
        from_ns <= timer_ns <= at_ns + slack_ns and max(waits, default=0) <= since_ns
        for since_ns, timer_ns in armed
    )


def read_clock_ns(sync: Explanation) -> int:
    """The latest time at which a sync read its clock: a startTime of its own tells the second."""
    for write in sync.writes:
        if write.kind is WriteKind.STATUS_UPDATE and write.job is not None and sync.job is not None:
            start_ns, previous = write.job.view.status.start_ns, write.job.previous
            if start_ns is None or start_ns == sync.job.view.status.start_ns:
                continue
            if previous is None or start_ns != previous.view.status.start_ns:
                return min(sync.now_ns, start_ns + NS_PER_S)
    return sync.now_ns


def _deadlines_changed(
    jobs: Sequence[Revision[JobView]], began_ns: int, rules: JobRules
) -> Iterator[tuple[int, int]]:
    """When a handler saw a deadline change, and the timer that it then armed."""
    if not rules.handlers.deadline_timer_rearmed_on_job_update:
        return
    for job in jobs:
        spec, start_ns = job.view.spec, job.view.status.start_ns
        if job.previous is None or job.recv_ns < began_ns or start_ns is None:
            continue
        deadline_s = spec.active_deadline_s
        if deadline_s is not None and deadline_s != job.previous.view.spec.active_deadline_s:
            yield job.recv_ns, start_ns + deadline_s * NS_PER_S


def queue_wait_ns(
    facts: KeyEvidence,
    before: Explanation | None,
    pod_cut: int,
    *,
    unreported: bool = True,
    unseen: int = 0,
) -> int:
    """The longest that the work queue may have held the key back (up to 1.27).

    Failed pods wake their Job after the key's back-off; when its retries are forgotten leaves no
    trace, so each failure seen before may still count, and one retry by a sync that left no write,
    or so many more as are `unseen`; after refusals, any number.
    """
    rules, history = facts.rules, facts.history
    if not rules.queue_delays_failures:
        return 0
    retries = before.state.memory.requeues if before is not None else 0
    first = before.pod_cut if before is not None else 0
    failed = any(pod.view.phase == "Failed" for pod in history.pods[first:pod_cut])
    held_by = 0 if rules.overwrites_status else retries + 1
    if failed and unreported and before is not None:
        retries += conflicts(facts, before)
    if failed and facts.refused.last_ns(history.pods[pod_cut - 1].recv_ns) is not None:
        return rules.retries.backoff_ns_max
    if failed:
        uids = {pod.view.uid for pod in history.pods[:first] if pod.view.phase == "Failed"}
        held_by = max(retries + unseen, len(uids)) + 1
    return rules.retries.backoff_ns(held_by)
