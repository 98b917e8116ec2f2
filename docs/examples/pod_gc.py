"""The pod garbage collector's threshold, judged by tracekit: an example of one's own controller.

Every 20 s the controller counts the pods that have ended. Beyond `--terminated-pod-gc-threshold` it
deletes the oldest, evicted ones first. A record holds the pods of Jobs, and those of others count,
too: so nothing says that it began too early. But an older pod that it left makes the deletion of
the younger one `extra`, and pods beyond the threshold that it leaves for two passes are `missing`.

Upstream: pkg/controller/podgc/gc_controller.go:gcTerminated, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.cross_key_timing import CrossKeyTiming
from tracekit.check.diff.registry import Controller, Scope
from tracekit.check.replay.feed import RowGroup
from tracekit.check.replay.history import History, Revision
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import Judgement, ObjectRef, Verdict

NAME = "pod-gc"
ACTION = "pod-delete"
PERIOD_NS = 20 * NS_PER_S
#: A pass deletes in parallel, and its informer may lag.
PASS_NS = 5 * NS_PER_S


class EndedPod(Struct, frozen=True):
    """A pod that ended, and what became of it."""

    job: ObjectRef
    name: str
    rank: tuple[bool, int, str]  # not evicted, creation, name: the order of deletion
    ended_ns: int
    gone_ns: int | None
    rv: str  # of its end, or of its deletion
    by_collector: bool


class PodGcSummary(Struct, frozen=True):
    """What a part of a trace told."""

    pods: list[EndedPod]


@dataclass(slots=True)
class PodGcJudge:
    """Collects the pods that ended, and compares those that went with those that stayed."""

    context: RunContext
    cross_key: CrossKeyTiming
    threshold: int
    pods: list[EndedPod] = field(default_factory=list)

    def passing(self, groups: Iterable[RowGroup]) -> Iterable[RowGroup]:
        """The histories of the Jobs tell of their pods: no row is needed beside them."""
        return groups

    def job(self, history: History) -> None:
        """Take in the pods of the Jobs of one name that ended."""
        lives: dict[str, list[Revision]] = {}
        for revision in history.pods:
            lives.setdefault(revision.view.uid, []).append(revision)
        for revisions in lives.values():
            ended = next((r for r in revisions if r.view.terminal), None)
            if ended is not None and ended.view.controller is not None:
                self.pods.append(_ended_pod(history, ended, revisions))

    def summary(self) -> PodGcSummary:
        """The pods that ended."""
        return PodGcSummary(self.pods)

    def merge(self, summary: PodGcSummary) -> None:
        """Take in those of another part."""
        self.pods += summary.pods

    def report(self) -> list[Judgement]:
        """One judgement for each deletion that the controller made, or owed at the end."""
        self.pods.sort(key=lambda pod: pod.rank)
        return [*self._deleted(), *self._pending()]

    def _deleted(self) -> Iterator[Judgement]:
        for pod in self.pods:
            if not pod.by_collector or pod.gone_ns is None:
                continue
            began_ns, over_ns = pod.gone_ns - PASS_NS, pod.gone_ns + PASS_NS
            older = [
                other.name
                for other in self.pods
                if other.rank < pod.rank
                and other.ended_ns < began_ns
                and (other.gone_ns is None or other.gone_ns > over_ns)
            ]
            if older and self.context.end_ns > over_ns:
                why = f"it deletes the oldest first, and left {older[0]}, which is older"
                yield _judged(pod, Verdict.EXTRA, pod.gone_ns, why)
            else:
                yield _judged(pod, Verdict.MATCH, pod.gone_ns, "no older pod that had ended stayed")

    def _pending(self) -> Iterator[Judgement]:
        if self.context.interruptions:
            return
        since_ns = self.context.end_ns - 2 * PERIOD_NS - PASS_NS
        left = [pod for pod in self.pods if pod.gone_ns is None and pod.ended_ns < since_ns]
        for pod in left[: max(0, len(left) - self.threshold)]:
            why = f"{len(left)} pods ended over two passes ago, threshold {self.threshold}"
            yield _judged(pod, Verdict.MISSING, self.context.end_ns, why)


def _ended_pod(history: History, ended: Revision, revisions: list[Revision]) -> EndedPod:
    view = ended.view
    going = (r for r in revisions if r.type == "DELETED" or r.view.deleted_ns is not None)
    gone = next(going, None)
    evicted = any(
        condition.type == "DisruptionTarget" and condition.status == "True"
        for condition in view.conditions
    )
    return EndedPod(
        ObjectRef("Job", history.namespace, history.name, view.controller.uid),
        view.name,
        (not evicted, view.created_ns, view.name),
        ended.recv_ns,
        None if gone is None else gone.recv_ns,
        str(ended.rv if gone is None else gone.rv),
        gone is not None
        and gone.actor is not None
        and gone.actor.controller == "pod-garbage-collector",
    )


def _judged(pod: EndedPod, verdict: Verdict, at_ns: int, why: str) -> Judgement:
    return Judgement(NAME, pod.job, ACTION, verdict, at_ns, pod.rv, pod.name, why)


def controller(threshold: int = 12_500) -> Controller:
    """The controller with its flag `--terminated-pod-gc-threshold`, 12,500 by default."""

    def judge(scope: Scope) -> PodGcJudge:
        return PodGcJudge(scope.context.watching("pods"), scope.jobs.beside(NAME), threshold)

    return Controller(NAME, (ACTION,), judge, PodGcSummary)


POD_GC = controller()
