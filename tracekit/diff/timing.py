"""Right action, wrong time: syncs that ran before their batch was over, or long after it was due.

Early: a Job's sync waits for the batch period (1 s from 1.24 on) after the first delta that it has
not handled yet. Deltas that could have woken it are all inputs that the sync before did not see,
and those of the last batch period before that sync: an older timer may have been pending.

Late: everything that the sync needed had come, its timers had passed, and yet it ran much later
than the syncs of other Jobs around it. A throttled client makes all syncs late alike, so the bound
follows from the neighbours; without neighbours it is wide.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracekit.eras.job import JobRules
from tracekit.kube.timestamps import NS_PER_S
from tracekit.replay.history import History
from tracekit.replay.run_context import RunContext
from tracekit.replay.search_state import Explanation

#: A sync may seem so much closer to its trigger than the batch period, for jitter in delivery.
_EARLY_SHARE = 0.8
_PENDING_NS = 13 * NS_PER_S // 10
_NEIGHBOURHOOD_NS = 20 * NS_PER_S
_FEWEST_NEIGHBOURS = 3
_LATE_FLOOR_NS = 5 * NS_PER_S
_LATE_ALONE_NS = 15 * NS_PER_S
#: A timer fires to the millisecond; what delays its sync delays others, too.
_LATE_TIMER_NS = 3 * NS_PER_S // 2


@dataclass(frozen=True, slots=True)
class Delay:
    """How long one sync took to its first write after all that it needed was there."""

    key: str
    at_ns: int  # of its first write
    delay_ns: int
    waited_ns: int  # how much of the delay the batch period and the queue's back-off explain
    timed: bool  # whether a timer made it due
    action: str  # what its first write did
    rv: int  # of its first write
    judged: bool  # False where a retry or an interruption may have held it up


def early_syncs(
    history: History, syncs: Sequence[Explanation], rules: JobRules, run_context: RunContext
) -> Iterable[tuple[Explanation, int]]:
    """Syncs that began before the batch period was over, with the time they had waited (ns)."""
    if rules.sync_batch_ns <= 0 or not rules.batches_job_updates:
        return
    before: Explanation | None = None
    for sync in syncs:
        if sync.job is None:
            continue
        if before is not None and not _woken_otherwise(history, before, sync, run_context):
            waited_ns = sync.writes[0].recv_ns - _first_trigger_ns(history, before, sync)
            if waited_ns < rules.sync_batch_ns * _EARLY_SHARE:
                yield sync, waited_ns
        before = sync


def _first_trigger_ns(history: History, before: Explanation, sync: Explanation) -> int:
    """The earliest delta that may have set the timer of a sync."""
    at_ns = sync.writes[0].recv_ns
    pending_ns = before.writes[0].recv_ns - _PENDING_NS
    position = before.job.position if before.job is not None else 0
    inputs = [r.recv_ns for r in history.jobs if r.position > position or r.recv_ns > pending_ns]
    inputs += [
        r.recv_ns for r in history.pods if r.position >= before.pod_cut or r.recv_ns > pending_ns
    ]
    return min((recv_ns for recv_ns in inputs if recv_ns <= at_ns), default=at_ns)


def _woken_otherwise(
    history: History, before: Explanation, sync: Explanation, run_context: RunContext
) -> bool:
    """Whether something else than a batched delta may have woken the sync."""
    since_ns, at_ns = before.writes[0].recv_ns - _PENDING_NS, sync.writes[0].recv_ns
    if before.problems or before.refused or before.cut_off or before.woke_itself:
        return True
    if sync.job is not None and sync.job.view.spec.active_deadline_s is not None:
        return True
    if any(b.until_ns > since_ns and b.from_ns < at_ns for b in run_context.restarts):
        return True
    return any(
        since_ns < r.recv_ns <= at_ns
        and (
            r.previous is None
            or r.type == "DELETED"
            or r.previous.view.generation != r.view.generation
        )
        for r in history.jobs
    )


def delays_of(
    history: History, syncs: Sequence[Explanation], rules: JobRules, run_context: RunContext
) -> list[Delay]:
    """The delay of every sync of a key that is explained."""
    found: list[Delay] = []
    held_up = any(event.reason in ("FailedCreate", "FailedDelete") for event in history.events) or (
        any(call.verb in ("create", "delete") and call.stream == "pods" for call in history.refused)
    )
    before: Explanation | None = None
    for sync in syncs:
        if sync.job is None:
            continue
        at_ns = sync.writes[0].recv_ns
        interrupted = any(
            blind.until_ns > sync.due_ns and blind.from_ns < at_ns
            for blind in (*run_context.restarts, *run_context.gaps)
        )
        judged = not (held_up or interrupted or sync.problems)
        first = sync.writes[0]
        found.append(
            Delay(
                key=history.key,
                at_ns=at_ns,
                delay_ns=at_ns - sync.due_ns,
                waited_ns=(0 if sync.timed else rules.sync_batch_ns)
                + _queue_ns(history, before, sync, rules),
                timed=sync.timed,
                action=first.kind.value,
                rv=first.rv,
                judged=judged,
            )
        )
        before = sync
    return found


def _queue_ns(
    history: History, before: Explanation | None, sync: Explanation, rules: JobRules
) -> int:
    """How long the work queue may have held the key back (up to 1.27).

    Failed pods wake their Job after the key's back-off; when its retries are forgotten leaves no
    trace, so each failure seen before may still count, and one retry by a sync that left no write.
    Where a status conflict is an error of the sync, any may have been retried.
    """
    if not rules.queue_delays_failures:
        return 0
    retries = before.state.memory.requeues if before is not None else 0
    first = before.pod_cut if before is not None else 0
    failed = any(pod.view.phase == "Failed" for pod in history.pods[first : sync.pod_cut])
    held_by = 0 if rules.overwrites_status else retries + 1
    if failed:
        uids = {pod.view.uid for pod in history.pods[:first] if pod.view.phase == "Failed"}
        held_by = max(retries, len(uids)) + 1
    return rules.retries.backoff_ns(held_by)


def late_syncs(delays: Iterable[Delay]) -> Iterable[tuple[Delay, int]]:
    """Syncs that ran too late, each with the bound (ns) that it passed."""
    ordered = sorted(delays, key=lambda delay: (delay.at_ns, delay.key))
    times = [delay.at_ns for delay in ordered]
    for delay in ordered:
        floor_ns = _LATE_TIMER_NS if delay.timed else _LATE_FLOOR_NS
        if not delay.judged or delay.delay_ns <= floor_ns:
            continue
        first = bisect_left(times, delay.at_ns - _NEIGHBOURHOOD_NS)
        last = bisect_right(times, delay.at_ns + _NEIGHBOURHOOD_NS)
        others = [
            max(0, d.delay_ns - d.waited_ns)
            for d in ordered[first:last]
            if d.judged and d.key != delay.key
        ]
        bound_ns = _LATE_ALONE_NS + delay.waited_ns
        if len(others) >= _FEWEST_NEIGHBOURS:
            bound_ns = floor_ns + delay.waited_ns + 2 * max(others)
        if delay.delay_ns > bound_ns:
            yield delay, bound_ns
