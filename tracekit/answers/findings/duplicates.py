"""TK202: more pods of a Job live at a time than it wants."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.findings.living import Living, can_crowd
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.answers.words import clock, named
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.verdict import Verdict
from tracekit.versions.release_bugs import Bug

#: Pods that live for so long at a look are not about to be deleted as too many. A choice: a
#: controller that is slower is told of falsely.
CROWDED_NS = 60 * NS_PER_S

DUPLICATE = Rule(
    "TK202", "a second pod beside one that still lived", Severity.WARNING,
    "The controller created a pod while as many as the Job's parallelism (the greatest that it had "
    "so far; of an Indexed Job: one of the same index) lived: not ended, not being deleted. By the "
    "order of the store, so the recorder's lag does not matter. Pods that the verdicts call "
    "somebody else's, and divergences (TK1xx), do not count. Or, where nobody saw them come, more "
    "pods of 60 s and older live at the last look than the Job wants.",
    "A pod whose end the kubelet has not reported counts as living, rightly; at a look a "
    "parallelism that was lowered a moment ago.",
    "Make the work safe to run twice. Up to 1.35 an upgrade helps: from 1.36 on a sync waits until "
    "the caches show the controller's own writes.",
    130683, rank=11,
)  # fmt: skip


def duplicates(facts: Facts, job: Job) -> Iterator[Case]:
    """Pods that the controller created beside others, or that live beside others at a look."""
    if not can_crowd(job):
        return
    found: list[tuple[Pod, int]] = []
    living = Living(job)
    for pod in job.pods:
        if pod.born_to != job.uid:
            continue
        wanted = 1 if pod.index is not None else living.most_wanted(pod.first.rv)
        if living.count(pod) < wanted:
            continue
        verdict = facts.verdict(job, "pod-create", pod.name)
        if verdict is None or verdict.verdict in (Verdict.MATCH, Verdict.MATCH_LAGGED):
            found.append((pod, 0 if verdict is None else verdict.lag_ns))
    if not found:
        yield from _crowded(facts, job)
        return
    pod, lag_ns = found[0]
    others = [
        other
        for other in job.pods
        if other is not pod
        and other.first.rv < pod.first.rv
        and (pod.index is None or other.index == pod.index)
        and other.live_at(pod.first.rv, job.uid)
    ]
    what = "of the same index" if pod.index is not None else "although no more were wanted"
    old = f", by caches that were {span(lag_ns)} old" if lag_ns >= NS_PER_S else ""
    yield Case(
        DUPLICATE,
        job.target,
        f"a second pod was created {what} while the first one lived",
        found[0][0].first.at_ns,
        found[-1][0].first.at_ns,
        f"{pod.name} at {clock(pod.first.at_ns)} beside {named([o.name for o in others])}{old}",
        job.cronjob,
        evidence={
            "pods": [p.name for p, _ in found],
            "beside": [o.name for o in others],
            "lag_s": round(lag_ns / NS_PER_S, 3),
        },
        todo=_of_duplicates(facts),
    )


def _of_duplicates(facts: Facts) -> str:
    """What to do about a second pod, by what is known of the release."""
    bug = facts.bugs.get(Bug.OWN_WRITES_NOT_AWAITED)
    return _RUN_TWICE if bug is None else f"{_RUN_TWICE} {bug.remedy}"


def _crowded(facts: Facts, job: Job) -> Iterator[Case]:
    """More pods that live at a look than the Job wants, of which nobody saw how they came."""
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    wanted, last = job.spec.get("parallelism", 1), job.last
    live = [
        pod for pod in job.pods
        if pod.end is None and pod.deletion_ns is None and as_of_ns - pod.created_ns >= CROWDED_NS
    ]  # fmt: skip
    if not isinstance(wanted, int) or job.ended_ns is not None or job.gone_ns is not None:
        return
    if not job.managed or all(pod.seen_from_birth for pod in live):
        return
    completions = job.spec.get("completions")
    if isinstance(completions, int):
        wanted = min(wanted, max(0, completions - last.number("succeeded")))
    if last.spec.get("suspend") is True or len(live) <= wanted:
        return
    names = [f"{pod.name} since {clock(pod.created_ns)}" for pod in live]
    yield Case(
        DUPLICATE, job.target, f"has {len(live)} pods that live, and wants {wanted}",
        max(pod.created_ns for pod in live), as_of_ns,
        f"as of {clock(as_of_ns)}: {named(names)}; parallelism {job.spec.get('parallelism', 1)}, "
        f"status.active {last.number('active')}",
        job.cronjob, evidence={"pods": [pod.name for pod in live], "wanted": wanted},
        todo=f"{_RUN_TWICE} See who created the later one (audit log), and what the controller "
        "manager's log says of the Job then.",
    )  # fmt: skip


_RUN_TWICE = "Make the work safe to run twice."
