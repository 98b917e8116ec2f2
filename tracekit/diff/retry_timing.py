"""Failed pods of a counted Job that were acted upon before their back-off was over.

Where back-off lives in the work queue, a new failure is acted upon when the first of these wakes
the key: the pod's move to Failed, delayed by the key's back-off; the timer of an earlier sync that
ended in the error of a new failure; the timer of the Job's deadline; or any other event about the
Job or its pods, at once. A sync that none of them can have woken yet is early. Retries of syncs
that left no write only make the back-off longer, so the retries that show give the bound.

Upstream: pkg/controller/job/job_controller.go:updatePod, getBackoff, processNextWorkItem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.eras.job import JobRules
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import PodView
from tracekit.replay.history import History, Revision
from tracekit.replay.search_state import Explanation

#: Jitter of timers, deliveries and clocks.
_SLACK_NS = NS_PER_S
#: An event so shortly before the failure may have queued the key already.
_QUEUED_NS = NS_PER_S // 2
#: A sync whose writes lie so far apart was held up by the throttle of the controller's client.
_THROTTLED_NS = NS_PER_S // 5
#: How many syncs of other keys, as slow as this key's own, may be ahead of it in the queue.
_WAITS_PER_SYNC = 10


def early_retries(
    history: History, syncs: Sequence[Explanation], rules: JobRules
) -> Iterator[tuple[Explanation, int]]:
    """Syncs that acted upon a failed pod too early, with the time that they should have waited."""
    if not rules.queue_delays_failures or rules.tracking_by_annotation:
        return  # from 1.22 on tracked Jobs clear their retries in ways that leave no trace
    timers: list[int] = []
    before: Explanation | None = None
    for sync in syncs:
        if before is not None and before.job is not None and sync.job is not None:
            retries = before.state.memory.requeues
            failed_ns = _new_failure_ns(history, before, sync)
            if retries and failed_ns is not None:
                wait_ns = rules.retries.backoff_ns(retries)
                at_ns = sync.writes[0].recv_ns
                early = at_ns < failed_ns + wait_ns - _SLACK_NS
                timed = any(failed_ns - _SLACK_NS <= t <= at_ns + _SLACK_NS for t in timers)
                timed = timed or _deadline_passed(history, sync, failed_ns)
                if early and not timed and not _woken(history, before, sync, failed_ns, rules):
                    yield sync, wait_ns
        retries = sync.state.memory.requeues
        if retries:
            timers.append(sync.writes[-1].recv_ns + rules.retries.backoff_ns(retries))
        before = sync


def _span_ns(sync: Explanation) -> int:
    return sync.writes[-1].recv_ns - sync.writes[0].recv_ns


def _new_failure_ns(history: History, before: Explanation, sync: Explanation) -> int | None:
    """When the first failure arrived that only this sync saw."""
    times = [r.recv_ns for r in history.pods[before.pod_cut : sync.pod_cut] if _turns_failed(r)]
    return min((at for at in times if at > before.writes[-1].recv_ns), default=None)


def _turns_failed(revision: Revision[PodView]) -> bool:
    previous = revision.previous
    return revision.view.phase == "Failed" and (previous is None or previous.view.phase != "Failed")


def _deadline_passed(history: History, sync: Explanation, failed_ns: int) -> bool:
    """Whether a timer of activeDeadlineSeconds went off between the failure and the sync.

    It was armed when the Job started or its deadline was changed, so any revision may have set it;
    startTime is told in whole seconds.
    """
    first = sync.writes[0]
    for revision in history.jobs:
        start_ns, deadline_s = revision.view.status.start_ns, revision.view.spec.active_deadline_s
        if revision.rv >= first.rv or start_ns is None or deadline_s is None:
            continue
        ends_ns = start_ns + deadline_s * NS_PER_S
        if failed_ns - NS_PER_S - _SLACK_NS <= ends_ns <= first.recv_ns + _SLACK_NS:
            return True
    return False


def _woken(
    history: History, before: Explanation, sync: Explanation, failed_ns: int, rules: JobRules
) -> bool:
    """Whether anything but failures may have woken the key in the meantime.

    Where pod events wait for a batch period, one from before the failure wakes the key after it;
    and where the client's throttle stretches the syncs, the key waits for a worker.
    """
    slowest_ns = max(_span_ns(before), _span_ns(sync))
    waits_ns = _WAITS_PER_SYNC * slowest_ns if slowest_ns > _THROTTLED_NS else 0
    since_ns = failed_ns - _QUEUED_NS - rules.sync_batch_ns - waits_ns
    if before.problems or before.refused or before.cut_off:
        return True
    first = sync.writes[0]
    return any(r.rv < first.rv and r.recv_ns > since_ns for r in history.jobs) or any(
        r.recv_ns > since_ns and not _turns_failed(r)
        for r in history.pods[: history.pods_below(first.rv)]
    )
