"""Actions that the rules demand of the last state seen, and that the record does not show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.kube.views import JobView, PodView
from tracekit.check.diff.job_verdicts import judge_missing
from tracekit.check.diff.key_queue import deadline_lost, held_back, queue_wait_ns, reads_before
from tracekit.check.diff.lateness import PendingAction
from tracekit.check.diff.two_clocks import BackoffClocks
from tracekit.check.diff.unseen_retries import RETRIES_UNSEEN, retries_unseen
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.cuts import Cut
from tracekit.check.replay.explanations import CutSearch
from tracekit.check.replay.history import History, Revision, WriteKind
from tracekit.check.replay.interruptions import CUT_OFF_NS
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.recorded_api import Assumptions, RecordedApi
from tracekit.check.replay.run_context import INFORMER_LAG_NS
from tracekit.check.replay.search_state import Explanation, KeyReplay, State
from tracekit.versions.job_handlers import HandlerRules


def pending(facts: KeyEvidence, search: CutSearch, replay: KeyReplay) -> Iterator[PendingAction]:
    """What was still to be done after the last write.

    A sync that sees everything is run at the end of the record. What came after the last thing that
    woke the key, no sync may have seen: it must be demanded without that, too.
    """
    history, run_context = facts.history, facts.run_context
    if not history.jobs:
        return
    last, final = history.jobs[-1], replay.final
    yield from _pending_of_the_orphan_worker(facts, last, final.pod_floor)
    yield from _rest(facts, replay)
    if last.type == "DELETED" or last.view.status.finished is not None:
        return  # nothing is asked of what is over
    if not final.certain or not final.backoff_known:
        return
    if final.listings_seen < len(facts.blind):
        return  # no sync since the record was blind: what the controller remembers is not known
    restarts = run_context.restarts_by_end
    begun = [0, *(restart.until_ns for restart in restarts)]
    died = [*(restart.from_ns for restart in restarts), None]
    changed_ns = _last_change_ns(facts, last, replay)
    for back, (began_ns, died_ns) in enumerate(zip(reversed(begun), reversed(died), strict=True)):
        state = replay.final
        if began_ns > changed_ns:
            state = state.in_a_new_process(began_ns, len(restarts) - back)
        elif died_ns is not None and died_ns <= changed_ns:
            return
        yield from _pending_in_a_life(facts, search, replay, state, _Life(began_ns, died_ns, back))


class _Life(NamedTuple):
    """The time of one process of the controller."""

    began_ns: int
    died_ns: int | None  # None: it lived when the record ended
    back: int  # so many followed


def _pending_in_a_life(
    facts: KeyEvidence, search: CutSearch, replay: KeyReplay, state: State, life: _Life
) -> Iterator[PendingAction]:
    """What a process had to do for the last state of a key, if it changed no more in its time."""
    history = facts.history
    last, seen = history.jobs[-1], len(history.pods)
    syncs = [sync for sync in replay.syncs if sync.job is not None]
    end_ns = facts.run_context.end_ns if life.died_ns is None else life.died_ns
    assume = Assumptions(lenient=True)
    api = _sync_at(end_ns, search, state, last, seen, assume)
    deadlines = {note.numbers["deadline_ns"] for note in api.clock.notes if note.rule == "deadline"}
    if not api.problems and not deadlines:
        return  # a sync that sees everything has nothing to do, then or before
    inputs_ns = max(_last_change_ns(facts, last, replay), life.began_ns)
    timers = sorted(at_ns for at_ns in api.clock.asked if inputs_ns < at_ns <= end_ns)
    lost = [t for t in timers if t in deadlines and deadline_lost(facts, syncs, t)]
    if lost:
        # Nothing may wake the key at its deadline. What it had to do before is owed all the same.
        end_ns = min(lost) - CLOCK_SLACK_NS
        api = _sync_at(end_ns, search, state, last, seen, assume)
        timers = sorted(at_ns for at_ns in api.clock.asked if inputs_ns < at_ns <= end_ns)
    certain_ns = max([inputs_ns, *timers]) + _wait_ns(search, replay, seen, timed=bool(timers))
    if (lost or life.back) and certain_ns > end_ns:
        return
    due_ns = min(certain_ns, end_ns)
    refused = facts.refused.writes(due_ns)
    if refused is not None:
        if facts.run_context.end_ns <= refused.until_ns:
            return  # what is refused is tried again, later and later, and leaves no Event
        certain_ns = max(certain_ns, refused.until_ns)
    if facts.refused.creations(due_ns) is not None:
        if not _refused_alone(facts, due_ns):
            return
        # The sync goes on when a creation is refused: what it has to do besides is owed.
        assume = assume._replace(refusals=True)
        api = _sync_at(end_ns, search, state, last, seen, assume)
    woken = _seen_when_woken(facts, replay, timers, life.began_ns) if api.problems else seen
    seen_less = (_sync_at(end_ns, search, state, last, n, assume) for n in range(woken, seen))
    if not all(less.problems for less in seen_less) or _awaits_pods_of_another(facts, syncs, last):
        return
    for problem in api.problems:
        why = (
            f"expected {problem.what}: the rules demand it of the last state seen (Job at "
            f"resourceVersion {last.rv}), due at {format_rfc3339(certain_ns)}"
        )
        judgement = judge_missing(
            history,
            problem.kind,
            last.view.uid,
            problem.what,
            why,
            rv=last.rv,
            time_ns=facts.run_context.end_ns,
        )
        # From the next refusal on nobody knows whether it was tried.
        refused_ns = None if assume.refusals else facts.refused.next_ns(certain_ns)
        ends = [at_ns for at_ns in (refused_ns, life.died_ns) if at_ns is not None]
        until_ns = min(ends, default=None)
        timed = bool(timers)
        idle = reads_before(facts.rules, problem.kind)
        clocks = BackoffClocks(facts).due(timers[-1:])
        yield PendingAction(
            certain_ns, judgement, timed, until_ns, back=life.back, idle=idle, clocks=clocks
        )


def _refused_alone(facts: KeyEvidence, at_ns: int) -> bool:
    """Whether Events tell of each time that creations were refused then."""
    reported = facts.refused.reported_creations(at_ns, at_ns) is not None
    return reported and facts.run_context.events_recorded


def _sync_at(
    at_ns: int,
    search: CutSearch,
    state: State,
    job: Revision[JobView],
    pods: int,
    assume: Assumptions,
) -> RecordedApi:
    """A sync after the last write that has seen so many pod revisions."""
    history = search.history
    cache = state.cache.copy()
    cache.move_to(history.pods, pods)
    memory = search.memory_at(state, pods, job.view.uid).copy()
    return search.after_the_record(Cut(job, pods, cache, memory, pods), at_ns, assume)


def _awaits_pods_of_another(
    facts: KeyEvidence, syncs: Sequence[Explanation], job: Revision[JobView]
) -> bool:
    """Whether the key may still wait for pods that an earlier Job of its name created.

    What is awaited is kept under the name. A pod that the informer shows when its Job is gone
    fulfils nothing, and only a sync that finds no Job forgets it: the next Job may come before.
    """
    history, uid = facts.history, job.view.uid
    earlier = [sync for sync in syncs if sync.job is not None and sync.job.view.uid != uid]
    own = (write for sync in syncs[len(earlier) :] for write in sync.writes)
    if not earlier or earlier != list(syncs[: len(earlier)]) or any(w.pod for w in own):
        return False
    last, awaited = earlier[-1].job, earlier[-1].state.memory.expectations
    gone = [r for r in history.jobs if last and r.view.uid == last.view.uid and r.type == "DELETED"]
    if not gone or awaited is None or awaited.satisfied(facts.run_context.end_ns):
        return False
    return any(
        write.pod is not None and write.pod.shown_ns + INFORMER_LAG_NS >= gone[0].recv_ns
        for write in earlier[-1].writes
    )


def _last_woken_by(facts: KeyEvidence, replay: KeyReplay) -> Revision[PodView] | None:
    """The last change of a pod that woke the key, of those that its last sync may have missed."""
    pods, uid = facts.history.pods[replay.final.pod_floor :], facts.history.jobs[-1].view.uid
    return next((r for r in reversed(pods) if facts.pod_handlers.wake(r, uid)), None)


def _seen_when_woken(
    facts: KeyEvidence, replay: KeyReplay, timers: Sequence[int], began_ns: int
) -> int:
    """How many pod revisions the key's last sync had seen at least, whatever woke it last."""
    last = _last_woken_by(facts, replay)
    times = [facts.history.jobs[-1].recv_ns, *timers, began_ns]
    times += [write.recv_ns for sync in replay.syncs[-1:] if sync.error for write in sync.writes]
    floor = replay.final.pod_floor
    return max(floor, last.position + 1 if last else 0, facts.pods_shown(max(times)))


def _rest(facts: KeyEvidence, replay: KeyReplay) -> Iterator[PendingAction]:
    """What the last sync had still to write when the record ended."""
    sync = next((sync for sync in reversed(replay.syncs) if sync.job is not None), None)
    if sync is None or sync.rest is None or sync.job is None:
        return
    last = sync.writes[-1]
    interrupted_ns = facts.run_context.first_interrupted_ns
    if interrupted_ns is not None and interrupted_ns <= last.recv_ns + CUT_OFF_NS:
        return
    if facts.refused.creations(last.recv_ns) is not None:
        return
    why = f"expected {sync.rest.what}: the sync that made the writes before has to go on with it"
    judgement = judge_missing(
        facts.history,
        sync.rest.kind,
        sync.job.view.uid,
        sync.rest.what,
        why,
        rv=last.rv,
        time_ns=facts.run_context.end_ns,
    )
    # What came later than a refusal, or the process's death, nobody knows whether it was tried.
    ends = [facts.refused.next_ns(last.recv_ns)]
    ends += [restart.from_ns for restart in facts.run_context.restarts]
    ending_rv = facts.run_context.namespaces_ending.get(facts.history.namespace)
    if ending_rv is not None and sync.rest.kind is WriteKind.POD_CREATE:
        # An ending namespace takes no pods; until the last revision before that it was not ending.
        open_ns = [job.recv_ns for job in facts.history.jobs if job.rv < ending_rv]
        open_ns += [pod.recv_ns for pod in facts.history.pods if pod.rv < ending_rv]
        ends.append(max(open_ns, default=0))
    until_ns = min((at_ns for at_ns in ends if at_ns is not None), default=None)
    idle = reads_before(facts.rules, sync.rest.kind)
    yield PendingAction(last.recv_ns, judgement, until_ns=until_ns, rest=True, idle=idle)


def _last_change_ns(facts: KeyEvidence, last: Revision[JobView], replay: KeyReplay) -> int:
    """When the last thing came that the key may have been waiting for, but for a new process."""
    times = [last.shown_ns, *facts.history.pods_latest_ns[-1:]]
    times += facts.run_context.gap_ends_ns[-1:]
    syncs = [sync for sync in replay.syncs if sync.job is not None]
    times += [sync.writes[-1].recv_ns for sync in syncs[-1:]]
    return max(times)


def _wait_ns(search: CutSearch, replay: KeyReplay, seen: int, *, timed: bool) -> int:
    """The longest that the queue may have held the key back from then on."""
    facts, rules = search.facts, search.rules
    syncs = [sync for sync in replay.syncs if sync.job is not None]
    before = syncs[-1] if syncs else None
    unseen = 0
    if before is not None and before.job is not None and not rules.tracks(before.job.view):
        unseen = retries_unseen(search, [*syncs, None], RETRIES_UNSEEN)
    wait_ns = queue_wait_ns(facts, before, seen, unseen=unseen)
    if before is not None and (before.error or before.problems):
        # What came after its last write has woken the key besides, whatever holds its retry back.
        woke = _last_woken_by(facts, replay)
        if before.problems or woke is None or woke.rv < before.writes[-1].rv:
            return rules.retries.backoff_ns_max
        if not held_back(rules, woke):
            wait_ns = 0
    return max(0 if timed else rules.sync_batch_ns, wait_ns)


def _pending_of_the_orphan_worker(
    facts: KeyEvidence, job: Revision[JobView], pods_seen: int
) -> Iterator[PendingAction]:
    """Finalizers that stay on the pods of a Job that is gone or has finished.

    `pods_seen` pod revisions were in the cache of the last sync. A finished Job hands the pods that
    the cache holds to the orphan worker; one that the cache did not hold may never get there.
    """
    history, rules, run_context = facts.history, facts.rules, facts.run_context
    over = job.type == "DELETED" or job.view.status.finished is not None
    if not over or not rules.batches_job_updates or rules.managed_elsewhere(job.view):
        return
    newest = {revision.view.uid: revision for revision in history.pods}.values()
    held = [r for r in newest if r.view.has_tracking_finalizer and r.type != "DELETED"]
    if not held:
        return
    quiet_ns = [job.shown_ns, *(blind.until_ns for blind in run_context.restarts)]
    known = {revision.view.uid for revision in history.pods[:pods_seen]}
    uids = {revision.view.uid for revision in history.jobs}
    once_owned = {
        revision.view.uid
        for revision in history.pods
        if revision.view.controller and revision.view.controller.uid in uids
    }
    for last in held:
        pod = last.view
        released = pod.controller is None and pod.uid in once_owned
        owned = pod.controller is not None and pod.controller.uid in uids
        if not (owned or released):
            continue
        if job.type != "DELETED" and pod.uid not in known:
            continue
        if owned and not _handed_over(history, job, pod.uid, rules.handlers):
            continue
        why = (
            f"expected the tracking finalizer of pod {pod.name} to go: its Job is over "
            f"(resourceVersion {job.rv}), and the orphan worker takes it off"
        )
        judgement = judge_missing(
            history,
            WriteKind.FINALIZER_REMOVAL,
            job.view.uid,
            pod.name,
            why,
            rv=pod.rv,
            time_ns=run_context.end_ns,
        )
        yield PendingAction(max([last.shown_ns, *quiet_ns]), judgement, serial=True)


def _handed_over(
    history: History, job: Revision[JobView], uid: str, handlers: HandlerRules
) -> bool:
    """Whether the orphan worker was certainly told of a pod that the Job still owned at its end.

    The handler of the Job's end (before 1.29 only that of its deletion) looks for its pods by the
    selector, which one that lost the labels no longer matches; that of a pod tells of one that is
    being deleted, once the Job is over.
    """
    revisions = [pod for pod in history.pods if pod.view.uid == uid]
    before = [pod for pod in revisions if pod.rv < job.rv]
    states = [*before[-1:], *revisions[len(before) :]]
    looked_for = job.type == "DELETED" or handlers.finished_job_releases_its_pods
    matches = all(selector_matches(job.view.spec.selector, pod.view.labels) for pod in states)
    return (looked_for and matches) or any(
        pod.view.deleted_ns is not None and pod.recv_ns > job.shown_ns + INFORMER_LAG_NS
        for pod in states
    )
