"""What hangs on when a Job was served: syncs that decide otherwise a moment earlier or later.

A record shows one of the times at which its Jobs could be served. Where a container ends a few
milliseconds after the Job's key is ready in the queue, a sync that begins at once does not see it,
and one that begins a little later does. If they decide otherwise, which of them another control
plane makes, with the very same rules, is chance: how far the two moments lie apart is the *margin*.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tracekit.answers.whatif.queue_delays import held_back, job_delay
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView, PodView
from tracekit.check.replay.history import Revision
from tracekit.check.replay.rerun import Course, Rerunner
from tracekit.check.replay.search_state import Explanation, KeyReplay
from tracekit.ports.job.memory import JobMemory
from tracekit.versions.job import JobRules

#: A batch period: what comes later than that after a key was ready meets the next sync.
_HORIZON_NS: Final = NS_PER_S
#: So many pod events after a moment at which the key was ready are looked at.
_EVENTS: Final = 16
#: What ends a Job, or says that it will.
_ENDINGS: Final = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")

_Decision = tuple[object, ...]
#: Of a sync that neither makes nor deletes pods, nor ends the Job.
_NOTHING: Final[_Decision] = ((), 0, 0)


def on_edge(rerunner: Rerunner, replay: KeyReplay, other: JobRules, turn_ns: int) -> frozenset[str]:
    """The uids of a key's Jobs that hang on when they are served, by the record's rules or others.

    Those are the Jobs with a margin below `turn_ns`, how long a key may well wait.
    """
    found: set[str] = set()
    if turn_ns <= 0:
        return frozenset()
    before: Explanation | None = None
    for sync in replay.syncs:
        if sync.job is None or sync.began is None or sync.problems:
            before = None
            continue
        uid = sync.job.view.uid
        if before is not None and before.job is not None and before.job.view.uid != uid:
            before = None
        if before is not None and uid not in found:
            ours = rerunner.explained(sync)
            if ours is not None and _hangs(rerunner, other, before, sync, ours, turn_ns):
                found.add(uid)
        before = sync
    return frozenset(found)


def _hangs(
    rerunner: Rerunner,
    other: JobRules,
    before: Explanation,
    sync: Explanation,
    ours: Course,
    turn_ns: int,
) -> bool:
    """Whether what is decisive came so soon after a moment at which the key was ready."""
    assert sync.began is not None  # noqa: S101 - callers saw to it
    assert sync.job is not None  # noqa: S101
    pods = rerunner.facts.history.pods
    memory, start = sync.began.memory, sync.began.state.index
    view = sync.job.view
    sides = list(dict.fromkeys((rerunner.facts.rules, other)))
    tried: dict[tuple[int, int, int], _Decision] = {}

    def decision(side: int, cut: int, spec_of: Revision[JobView] = sync.job) -> _Decision:
        key = side, cut, spec_of.view.generation
        if key not in tried:
            job = msgspec.structs.replace(view, spec=spec_of.view.spec)
            tried[key] = _decided(rerunner, sides[side], job, cut, memory, start, ours)
        return tried[key]

    edits = list(_edits(rerunner.facts.history.jobs, before))
    within_ns = min(turn_ns, _HORIZON_NS)
    for ready_ns, by_itself in _ready(rerunner, before, sync):
        for place in _events(pods, before, sync, ready_ns, within_ns):
            if any(
                decision(side, place) != decision(side, place + 1) for side in range(len(sides))
            ):
                return True
        for unedited, edited in edits:
            apart_ns = edited.recv_ns - ready_ns
            if not (by_itself or apart_ns > 0) or abs(apart_ns) >= within_ns:
                continue
            cut = bisect_right(pods, min(ready_ns, edited.recv_ns), key=lambda pod: pod.recv_ns)
            if any(
                _NOTHING != decision(side, cut, unedited) != decision(side, cut, edited)
                for side in range(len(sides))
            ):
                return True
    return False


def _decided(
    rerunner: Rerunner,
    rules: JobRules,
    view: JobView,
    cut: int,
    memory: JobMemory,
    start: int,
    ours: Course,
) -> _Decision:
    """What a sync does to pods, and whether it ends the Job."""
    course = rerunner.by_other_rules(view, cut, memory.copy(), rules, ours, start=start)
    job = course.job
    ends = () if job is None else tuple(c for c in _ENDINGS if _holds(job, c))
    return ends, len(course.of("create")), len(course.of("delete"))


def _holds(job: JobView, condition: str) -> bool:
    found = job.status.condition(condition)
    return found is not None and found.status == "True"


def _events(
    pods: Sequence[Revision[PodView]],
    before: Explanation,
    sync: Explanation,
    ready_ns: int,
    within_ns: int,
) -> Iterator[int]:
    """The places of what kubelets told after a moment, up to what the sync itself has made."""
    looked = 0
    for place in range(before.pod_cut, len(pods)):
        pod = pods[place]
        if pod.rv >= sync.writes[0].rv and not _of_kubelet(pod):
            return
        since_ns = pod.recv_ns - ready_ns
        if since_ns >= within_ns or looked >= _EVENTS:
            return
        if since_ns >= 0 and _of_kubelet(pod):
            looked += 1
            yield place


def _edits(
    jobs: Sequence[Revision[JobView]], before: Explanation
) -> Iterator[tuple[Revision[JobView], Revision[JobView]]]:
    """What users changed in the spec about then or later: the Job without it, and with it."""
    assert before.job is not None  # noqa: S101 - callers saw to it
    since_ns = before.writes[0].recv_ns - _HORIZON_NS
    for job in jobs[bisect_left(jobs, since_ns, key=lambda job: job.recv_ns) :]:
        last = job.previous
        if last is None or job.type != "MODIFIED" or last.view.uid != before.job.view.uid:
            continue
        if last.view.generation != job.view.generation:
            yield last, job


def _of_kubelet(pod: Revision[PodView]) -> bool:
    last = pod.previous
    if last is None or pod.type != "MODIFIED":
        return False
    return (last.view.phase, last.view.restarts) != (pod.view.phase, pod.view.restarts)


def _ready(rerunner: Rerunner, before: Explanation, sync: Explanation) -> list[tuple[int, bool]]:
    """When the queue had the key ready between two syncs: a delay runs from the first of events.

    With each, whether that was for nothing that somebody did to the Job.
    """
    facts = rerunner.facts
    history, rules = facts.history, facts.rules
    assert sync.job is not None and before.job is not None  # noqa: S101, PT018 - callers saw to it
    since_ns, until_ns = before.writes[0].recv_ns, sync.writes[0].recv_ns
    wakes = [
        (pod.recv_ns, 0 if held_back(pod, rules) else rules.handlers.batch_ns, True)
        for pod in history.pods
        if since_ns - _HORIZON_NS <= pod.recv_ns <= until_ns
    ]
    wakes += [
        (job.recv_ns, job_delay(job, rules), False)
        for job in history.jobs[before.job.position + 1 : sync.job.position + 1]
    ]
    found = {sync.due_ns: True} if sync.timed else {}
    waiting_ns: int | None = None
    for at_ns, delay_ns, by_itself in sorted(wakes):
        if waiting_ns is not None and waiting_ns <= at_ns:
            waiting_ns = None
        if waiting_ns is None or at_ns + delay_ns < waiting_ns:
            waiting_ns = at_ns + delay_ns
            found[waiting_ns] = by_itself
    return sorted((at_ns, how) for at_ns, how in found.items() if since_ns <= at_ns <= until_ns)
