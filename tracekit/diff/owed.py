"""Actions that the rules demand of the last state seen, and that never came."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.cache.pods import PodCache
from tracekit.diff.job_verdicts import judge_missing
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView
from tracekit.replay.cuts import Cut, CutSearch
from tracekit.replay.history import Revision, WriteKind
from tracekit.replay.key_facts import KeyFacts
from tracekit.replay.recorded_api import Assumptions
from tracekit.replay.search_state import State
from tracekit.verdict import Judgement


def owed(facts: KeyFacts, search: CutSearch, state: State) -> Iterator[Judgement]:
    """What was still to be done in the `state` after the last write, long before the record ends.

    A sync that sees everything is run a moment before the end; restarts and inputs shortly before
    it, and refused creations, excuse the controller.
    """
    history, run_context = facts.history, facts.run_context
    if not history.jobs:
        return
    last = history.jobs[-1]
    yield from _owed_by_the_orphan_worker(facts, last, state.pod_floor)
    if last.type == "DELETED":
        return
    seen = len(history.pods)
    cache = state.cache.copy()
    cache.move_to(history.pods, seen)
    end_ns = run_context.end_ns - run_context.end_slack_ns
    inputs = [last.recv_ns, *(revision.recv_ns for revision in history.pods)]
    inputs += [restart.until_ns for restart in run_context.restarts]
    if max(inputs) > end_ns or facts.failed_creates:
        return
    cut = Cut(last, seen, cache, search.memory_at(state, seen, last.view.uid))
    waited_s = (run_context.end_ns - max(inputs)) / NS_PER_S
    for problem in search.after_the_record(cut, end_ns, Assumptions(lenient=True)).problems:
        why = (
            f"expected {problem.what}: the rules demand it of the last state seen (Job at "
            f"resourceVersion {last.rv}), and the record goes on for {waited_s:.0f} s without it"
        )
        yield judge_missing(
            history,
            problem.kind,
            last.view.uid,
            problem.what,
            why,
            rv=last.rv,
            time_ns=run_context.end_ns,
        )


def _owed_by_the_orphan_worker(
    facts: KeyFacts, job: Revision[JobView], pods_seen: int
) -> Iterator[Judgement]:
    """Finalizers that stay on the pods of a Job that is gone or has finished.

    `pods_seen` pod revisions were in the cache of the last sync. A finished Job hands the pods that
    the cache holds to the orphan worker; one that the cache did not hold may never get there.
    """
    history, rules, run_context = facts.history, facts.rules, facts.run_context
    over = job.type == "DELETED" or job.view.status.finished is not None
    if not over or not rules.batches_job_updates or rules.managed_elsewhere(job.view):
        return
    end_ns = run_context.end_ns - run_context.end_slack_ns
    quiet_ns = [job.recv_ns, *(blind.until_ns for blind in run_context.restarts)]
    cache = PodCache()
    cache.move_to(history.pods, len(history.pods))
    changed_ns = {revision.view.uid: revision.recv_ns for revision in history.pods}
    known = {revision.view.uid for revision in history.pods[:pods_seen]}
    uids = {revision.view.uid for revision in history.jobs}
    once_owned = {
        revision.view.uid
        for revision in history.pods
        if revision.view.controller and revision.view.controller.uid in uids
    }
    for pod in cache.pods():
        released = pod.controller is None and pod.uid in once_owned
        owned = pod.controller is not None and pod.controller.uid in uids
        if not (owned or released) or not pod.has_tracking_finalizer:
            continue
        if max([changed_ns[pod.uid], *quiet_ns]) > end_ns:
            continue
        if job.type != "DELETED" and pod.uid not in known:
            continue
        why = (
            f"expected the tracking finalizer of pod {pod.name} to go: its Job is over "
            f"(resourceVersion {job.rv}), and the orphan worker takes it off"
        )
        yield judge_missing(
            history,
            WriteKind.FINALIZER_REMOVAL,
            job.view.uid,
            pod.name,
            why,
            rv=pod.rv,
            time_ns=run_context.end_ns,
        )
