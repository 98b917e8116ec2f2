"""How the account of a Job ends: what became of it and its pods. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tracekit.base.coverage import Coverage
from tracekit.base.durations import span
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.replay.history import History
from tracekit.check.verdict import Judgement

_NAMES = 4


def named(names: Sequence[str]) -> str:
    """Some names, or how many they are."""
    if len(names) <= _NAMES:
        return ", ".join(names)
    return f"{len(names)} pods ({', '.join(names[:2])}, …)"


def closing(judged: KeyJudgement, divergences: Sequence[Judgement], coverage: Coverage) -> str:
    """What became of a Job, as a sentence; `coverage` says which streams the record has."""
    history = judged.replay.history
    if not history.jobs:
        return _without_job(history)
    last = history.jobs[-1]
    status = last.view.status
    finish = status.finished
    last_of = {r.view.uid: r for r in history.pods}.values()
    phases = Counter("gone" if r.type == "DELETED" else r.view.phase for r in last_of)
    pods = ", ".join(f"{n} {phase}" for phase, n in sorted(phases.items()))
    if not pods:
        nowhere = "none seen" if coverage.has("pods") else "not recorded"
        pods = "none" if coverage.sees("pods", history.namespace) else nowhere
    if finish is not None:
        end = f"ended {finish.type}" + (
            f" ({finish.reason}: {finish.message})" if finish.reason else ""
        )
    elif last.type == "DELETED":
        end = "was deleted before it ended"
    else:
        end = "had not ended when the record did"
    verdict = contradicted(divergences)
    took = ""
    if finish is not None and status.start_ns is not None and finish.last_transition_ns:
        took = f" {after_its_start(finish.last_transition_ns - status.start_ns)}"
    return (
        f"The Job {end}{took}; {status.succeeded} succeeded, {status.failed} failed; pods: {pods}; "
        f"{verdict}." + "".join(f" {sentence}" for sentence in _left_behind(history))
    )


def _without_job(history: History) -> str:
    """What there is of a Job that the record never shows."""
    pods = len({revision.view.uid for revision in history.pods})
    found = [(pods, "pod"), (len({event.uid for event in history.events}), "Event")]
    has = " and ".join(f"{n:,} {of}{'s' * (n > 1)}" for n, of in found if n) or "no row"
    return f"The record has {has} of this Job, never the Job itself, so nothing of it is judged."


def after_its_start(ns: int) -> str:
    """How long a Job took by its status, whose times are whole seconds."""
    return f"after {span(ns)}" if ns else "less than 1 s after its startTime"


def contradicted(divergences: Sequence[Judgement]) -> str:
    """How many of the verdicts say no, as a clause."""
    if not divergences:
        return "nothing contradicts the rules"
    return f"{len(divergences)} divergence{'s' * (len(divergences) > 1)} from the rules"


def _left_behind(history: History) -> Iterator[str]:
    """Sentences on pods that are still there although the Job has no more use for them."""
    last = history.jobs[-1]
    if last.type != "DELETED" and last.view.status.finished is None:
        return
    left = [
        revision.view
        for revision in {r.view.uid: r for r in history.pods}.values()
        if revision.type != "DELETED"
    ]
    if last.type == "DELETED" and left:
        yield f"Pods that outlived the Job: {named([pod.name for pod in left])}."
    held = [pod.name for pod in left if pod.has_tracking_finalizer]
    if held:
        yield f"Pods that still hold the tracking finalizer: {named(held)}."
