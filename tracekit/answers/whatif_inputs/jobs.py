"""From the record of one key to its part of the world: users' writes, lives, refusals.

Nothing that the recorded controller wrote is an input. A Job's creation is the user's (or its
CronJob's), and so are changes of its spec and labels and its deletion, unless its TTL had run out;
the deletion of a pod is an input where no controller made it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from tracekit.answers.whatif_inputs.pod_lifetimes import (
    SeenLife,
    deleted_by_others,
    disruption,
    seen_life,
)
from tracekit.base.kube.job_defaults import GENERATED_LABELS, default_backoff_limit
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import (
    JOB_TRACKING_ANNOTATION,
    JobView,
    OwnerRef,
    PodView,
)
from tracekit.check.replay.history import History, Revision, Write
from tracekit.check.replay.search_state import KeyReplay, WithoutSync
from tracekit.model.cluster.api_server import Refusal
from tracekit.model.cluster.pod_life import Slot
from tracekit.model.simulate.world import (
    CreateObject,
    DeleteObject,
    DeletePodOf,
    PatchObject,
    PatchPodOf,
    SetPodQuota,
    UserWrite,
)
from tracekit.ports.actions import Outcome

#: A refusal is taken to have begun so long before the sync that met it.
_REFUSED_BEFORE_NS: Final = NS_PER_S // 2
#: The TTL controller comes so long after the time at the latest where a deletion is taken for its.
_TTL_SLACK_NS: Final = 2 * NS_PER_S
_FOR_EVER_NS: Final = 1 << 63


@dataclass(slots=True)
class JobWorld:
    """What the world did to one Job."""

    job: JobView  # as it was first seen
    writes: list[UserWrite] = field(default_factory=list)
    lifetimes: list[SeenLife] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    #: Pods that a quota of the namespace allows at first, as refused creations tell; or None.
    pod_quota: int | None = None
    #: Why the world of this Job is not all there; empty if it is.
    incomplete: str = ""
    #: A controller that writes the Job's spec while it runs, by managedFields; empty for none.
    driven_by: str = ""

    @property
    def evicted(self) -> bool:
        """Whether somebody deleted pods of it: that may be bound to the time or to the pod."""
        return any(isinstance(write, DeletePodOf) for write in self.writes)

    def deleted_within(self, span_ns: int) -> bool:
        """Whether a user deleted it so soon after its creation, and did not wait for its end."""
        made = [write.at_ns for write in self.writes if isinstance(write, CreateObject)]
        return any(
            write.at_ns - made[0] <= span_ns
            for write in self.writes
            if made and isinstance(write, DeleteObject) and write.after_end_ns is None
        )


def job_worlds(replay: KeyReplay) -> Iterator[JobWorld]:
    """The worlds of the Jobs of one key."""
    history = replay.history
    by_uid: dict[str, list[Revision[JobView]]] = {}
    for revision in history.jobs:
        by_uid.setdefault(revision.view.uid, []).append(revision)
    foreign = {unsynced.write.uid: unsynced.write for unsynced in replay.of(WithoutSync.FOREIGN)}
    for uid, revisions in by_uid.items():
        world = JobWorld(revisions[0].view)
        if revisions[0].type != "ADDED":
            world.incomplete = "the Job was there before the record began"
        world.writes += _job_writes(revisions)
        world.driven_by = _driver(revisions)
        for slot, pods in _pods(history, uid, revisions[0].view):
            life = seen_life(slot, pods)
            write = foreign.get(pods[0].view.uid)
            if write is not None and not _gone_with_job(revisions, write.rv):
                deletion = _deletion(slot, write)
                world.writes.append(deletion)
                age_ns = write.recv_ns - pods[0].recv_ns
                life = deleted_by_others(life, age_ns, deletion.grace_s)
            world.lifetimes.append(life)
            world.writes += _label_edits(slot, pods)
        for slot, pods in _strangers(history, uid):
            world.lifetimes.append(seen_life(slot, pods))
            world.writes.append(_pod_creation(pods[0]))
        quotas = _pod_quotas(history, uid)
        if quotas:
            world.pod_quota = quotas[0].pods
            world.writes += quotas[1:]
        else:
            world.refusals += _refusals(replay, uid)
        world.writes.sort(key=lambda write: write.at_ns)
        yield world


def _deletion(slot: Slot, write: Write) -> DeletePodOf:
    return DeletePodOf(
        write.recv_ns,
        slot.namespace,
        slot.job,
        ordinal=slot.ordinal,
        grace_s=_grace_s(write.pod),
        any_pod=True,
        condition=disruption(write.pod.view) if write.pod is not None else "",
    )


def _label_edits(slot: Slot, pods: Sequence[Revision[PodView]]) -> Iterator[PatchPodOf]:
    """What users did to the labels of a pod: no controller changes them."""
    for before, revision in pairwise(pods):
        old, new = before.view.labels, revision.view.labels
        if revision.type == "MODIFIED" and old != new:
            patch = {"metadata": {"labels": merge_difference(old, new)}}
            yield PatchPodOf(revision.recv_ns, slot.namespace, slot.job, slot.ordinal, patch)


def _grace_s(pod: Revision[PodView] | None) -> int | None:
    if pod is None or pod.view.deleted_ns is None:
        return 0
    return pod.view.deletion_grace_s


def _gone_with_job(revisions: Sequence[Revision[JobView]], rv: int) -> bool:
    """Whether the Job was being deleted by then: its pods go with it, by the garbage collector."""
    return any(
        r.rv < rv and (r.type == "DELETED" or r.view.deleted_ns is not None) for r in revisions
    )


def _pods(
    history: History, uid: str, job: JobView
) -> Iterator[tuple[Slot, list[Revision[PodView]]]]:
    """The Job's pods by slot, in the order of their creation."""
    revisions: dict[str, list[Revision[PodView]]] = {}
    for revision in history.pods:
        revisions.setdefault(revision.view.uid, []).append(revision)
    cron_job = _cron_job(job.controller)
    attempts: dict[int | None, int] = {}
    ordinal = 0
    for pods in revisions.values():
        owner = pods[0].view.controller
        if owner is None or owner.uid != uid or pods[0].type != "ADDED":
            continue
        found = pods[0].view.completion_index
        index = found if found >= 0 else None
        attempt = attempts.get(index, 0)
        attempts[index] = attempt + 1
        yield Slot(job.namespace, job.name, uid, cron_job, ordinal, index, attempt), pods
        ordinal += 1


def _cron_job(owner: OwnerRef | None) -> str:
    return owner.name if owner is not None and owner.kind == "CronJob" else ""


# The Job itself.


def _job_writes(revisions: Sequence[Revision[JobView]]) -> Iterator[UserWrite]:
    first = revisions[0]
    yield CreateObject(first.recv_ns, "jobs", job_body(first.view), uid=first.view.uid)
    before = first
    for revision in revisions[1:]:
        job, old = revision.view, before.view
        if revision.type == "DELETED" or (job.deleted_ns is not None and old.deleted_ns is None):
            if not _by_ttl(revision, before):
                yield _job_deletion(revision, revisions)
            return
        patch = _patch(old, job)
        if patch:
            yield PatchObject(revision.recv_ns, "jobs", job.namespace, job.name, patch)
        before = revision


def _job_deletion(
    revision: Revision[JobView], revisions: Sequence[Revision[JobView]]
) -> DeleteObject:
    """A user's deletion; one that came after the Job's end is taken to have waited for it."""
    job = revision.view
    ended = next(
        (r for r in revisions if r.rv < revision.rv and r.view.status.finished is not None), None
    )
    return DeleteObject(
        revision.recv_ns,
        "jobs",
        job.namespace,
        job.name,
        _propagation(job),
        after_end_ns=None if ended is None else max(0, revision.recv_ns - ended.recv_ns),
    )


def _propagation(job: JobView) -> str:
    if "foregroundDeletion" in job.finalizers:
        return "Foreground"
    return "Orphan" if "orphan" in job.finalizers else "Background"


def _by_ttl(revision: Revision[JobView], before: Revision[JobView]) -> bool:
    """Whether the Job's time to live had just run out."""
    finished, ttl_s = before.view.status.finished, before.view.spec.ttl_s
    if finished is None or ttl_s is None or finished.last_transition_ns is None:
        return False
    due_ns = finished.last_transition_ns + ttl_s * NS_PER_S
    return due_ns - NS_PER_S <= revision.recv_ns <= due_ns + _TTL_SLACK_NS


def _patch(old: JobView, new: JobView) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    meta = {
        name: merge_difference(getattr(old, name), getattr(new, name))
        for name in ("labels", "annotations")
        if getattr(old, name) != getattr(new, name)
    }
    meta = {name: value for name, value in meta.items() if value}
    if meta:
        patch["metadata"] = meta
    spec = merge_difference(old.spec.raw, new.spec.raw)
    if spec:
        patch["spec"] = spec
    return patch


def merge_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch that makes `new` of `old`."""
    patch: dict[str, Any] = dict.fromkeys(key for key in old if key not in new)
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = merge_difference(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = copy.deepcopy(value)
    return patch


def job_body(job: JobView) -> dict[str, Any]:
    """The Job as a user would have sent it: without what the API server generated."""
    spec: dict[str, Any] = copy.deepcopy(dict(job.spec.raw))
    meta: dict[str, Any] = {"name": job.name, "namespace": job.namespace}
    if not spec.get("manualSelector"):
        spec.pop("selector", None)
        template = spec.get("template", {}).get("metadata", {})
        labels = template.get("labels")
        if labels is not None:
            template["labels"] = {k: v for k, v in labels.items() if k not in GENERATED_LABELS}
    per_index = spec.get("backoffLimitPerIndex") is not None
    if per_index and spec.get("backoffLimit") == default_backoff_limit(per_index=True):
        del spec["backoffLimit"]
    labels = {k: v for k, v in job.labels.items() if k not in GENERATED_LABELS}
    if labels:
        meta["labels"] = labels
    annotations = {k: v for k, v in job.annotations.items() if k != JOB_TRACKING_ANNOTATION}
    if annotations:
        meta["annotations"] = annotations
    return {"metadata": meta, "spec": spec}


def _driver(revisions: Sequence[Revision[JobView]]) -> str:
    """Who changed the Job's spec while it ran, where it is a controller that reads its status."""
    for before, revision in pairwise(revisions):
        if before.view.spec.raw == revision.view.spec.raw:
            continue
        for manager in revision.evidence.managers():
            name = manager.manager.lower()
            if any(known in name for known in _DRIVERS):
                return manager.manager
    return ""


#: Managers that react to a Job's status.
_DRIVERS: Final = ("kueue", "jobset", "argo", "volcano", "flux", "airflow")


# Others' pods, and refusals.


def _strangers(history: History, uid: str) -> Iterator[tuple[Slot, list[Revision[PodView]]]]:
    """Pods that somebody else made and that the Job could adopt; told with the first Job."""
    if uid != history.jobs[0].view.uid:
        return
    revisions: dict[str, list[Revision[PodView]]] = {}
    for revision in history.pods:
        revisions.setdefault(revision.view.uid, []).append(revision)
    for pods in revisions.values():
        pod = pods[0].view
        if pod.controller is None and pods[0].type == "ADDED":
            yield Slot(pod.namespace, "", pod.uid, "", 0, None, 0), pods


def _pod_creation(revision: Revision[PodView]) -> CreateObject:
    pod = revision.view
    body: dict[str, Any] = {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "labels": dict(pod.labels),
            "annotations": dict(pod.annotations),
        },
        "spec": copy.deepcopy(dict(revision.evidence.pod_spec())),
    }
    return CreateObject(revision.recv_ns, "pods", body, uid=pod.uid)


def _pod_quotas(history: History, uid: str) -> list[SetPodQuota]:
    """How many pods a quota let live, from when on: what refusals name, or as many as then lived.

    More live where somebody has raised the quota, and where the quota controller's count, made from
    a cache, took back what the API server had counted meanwhile.
    """
    named = [
        (event.recv_ns, int(found[1]))
        for event in history.events
        if event.reason == "FailedCreate" and (found := _QUOTA.search(event.message)) is not None
    ]
    if not named:
        return []
    living = _living(history, uid)
    quotas: list[SetPodQuota] = []
    times = [(0, named[0][1]), *named]
    for (from_ns, limit), (until_ns, _) in zip(times, [*named, (_FOR_EVER_NS, 0)], strict=True):
        lived = max((n for at_ns, n in living if from_ns < at_ns <= until_ns), default=0)
        allowed = max(limit, lived)
        if not quotas or quotas[-1].pods != allowed:
            quotas.append(SetPodQuota(from_ns, history.namespace, allowed))
    return quotas


def _living(history: History, uid: str) -> list[tuple[int, int]]:
    """How many pods of a Job a quota counted, each time that one was created."""
    living: set[str] = set()
    found: list[tuple[int, int]] = []
    for revision in history.pods:
        pod = revision.view
        if pod.controller is None or pod.controller.uid != uid:
            continue
        if revision.type == "DELETED" or pod.terminal:
            living.discard(pod.uid)
        elif pod.uid not in living:
            living.add(pod.uid)
            found.append((revision.recv_ns, len(living)))
    return found


#: How a quota's refusal names its limit.
_QUOTA: Final = re.compile(r"exceeded quota: .*limited: (?:[^,]*,)*?(?:count/)?pods=(\d{1,9})\b")


def _refusals(replay: KeyReplay, uid: str) -> Iterator[Refusal]:
    """Times in which creations of the Job's pods were refused, as the syncs tell that met them."""
    span: tuple[int, int] | None = None
    for sync in replay.syncs:
        if sync.job is None or sync.job.view.uid != uid:
            continue
        if sync.refused:
            from_ns = sync.now_ns - _REFUSED_BEFORE_NS if span is None else span[0]
            span = (from_ns, sync.writes[-1].recv_ns)
        elif span is not None:
            yield _refusal(sync.job.view.namespace, *span)
            span = None
    if span is not None:
        yield _refusal(replay.history.namespace, *span)


def _refusal(namespace: str, from_ns: int, until_ns: int) -> Refusal:
    return Refusal(
        "pods", "create", namespace, from_ns, until_ns, "refused in the record", Outcome.REFUSED
    )
