"""Lies about the tracking finalizer and about who owns a pod."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from .record import (
    FINALIZER,
    Edit,
    JobLife,
    Lie,
    Life,
    Record,
    active,
    copy_of,
    deleting,
    finalized,
    owner_uid,
    pick,
    terminal,
    told,
)

FINALIZER_ACTIONS = ("finalizer-removal", "status-update", "pod-delete")


def removals(record: Record) -> Iterator[tuple[JobLife, Life, int]]:
    """Every row in which an owned pod lost its finalizer (and still exists)."""
    for job in record.jobs:
        for pod in job.pods():
            for p in range(1, len(pod.rows)):
                if (
                    owner_uid(pod.obj(p)) == job.uid
                    and finalized(pod.obj(p - 1))
                    and not finalized(pod.obj(p))
                ):
                    yield job, pod, p


def with_finalizer(obj: dict[str, Any]) -> None:
    obj["metadata"]["finalizers"] = [*obj["metadata"].get("finalizers", ()), FINALIZER]


def without_finalizer(obj: dict[str, Any]) -> None:
    rest = [f for f in obj["metadata"].get("finalizers", ()) if f != FINALIZER]
    if rest:
        obj["metadata"]["finalizers"] = rest
    else:
        obj["metadata"].pop("finalizers", None)


def early(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The finalizer of a finished pod is gone before the status names the pod."""
    choices = []
    for job, pod, p in removals(record):
        at = job.position_at(pod.rv(p))
        if at not in job.writes() or not terminal(pod.obj(p - 1)):
            continue
        lists = job.status(at).get("uncountedTerminatedPods") or {}
        named = any(pod.uid in uids for uids in lists.values())
        if named and pod.rv(p - 1) < job.rv(at):
            choices.append((job, pod, p, at))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, p, at = choice
    edit.drop([pod.rows[p]])
    edit.insert_beside(record.rows[pod.rows[p]], job.rows[at], ns=-1_000_000)
    what = f"the finalizer of pod {pod.name} is gone before the status names the pod"
    return told("finalizer-early", job, what, FINALIZER_ACTIONS, rv=pod.rv(p))


def kept(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The finalizer of a counted pod is never taken off."""
    choices = [
        (j, pod, p)
        for j, pod, p in removals(record)
        if not pod.deleted and not deleting(pod.obj(-1)) and terminal(pod.obj(p))
    ]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, p = choice
    edit.drop([pod.rows[p]])
    edit.change(pod, p + 1, None, with_finalizer)
    what = f"the finalizer of pod {pod.name} is never taken off"
    return told("finalizer-kept", job, what, FINALIZER_ACTIONS, rv=pod.rv(p))


def running(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A running pod loses its finalizer, and nobody takes it off later."""
    choices = []
    for job, pod, p in removals(record):
        run = [q for q in range(1, p) if active(pod.obj(q)) and active(pod.obj(q - 1))]
        if run and not deleting(pod.obj(p)) and terminal(pod.obj(p)):
            choices.append((job, pod, p, run[-1]))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, p, q = choice
    without_finalizer(edit.insert_beside(record.rows[pod.rows[q]], pod.rows[q], ns=20_000_000))
    edit.drop([pod.rows[p]])
    edit.change(pod, q + 1, p, without_finalizer)
    what = f"running pod {pod.name} loses its finalizer"
    doubt = "a user could take it off; managedFields of the row show nobody else"
    return told("finalizer-running", job, what, FINALIZER_ACTIONS, rv=pod.rv(q), doubt=doubt)


def orphan_kept(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod without its Job, or of a finished one, keeps its finalizer to the end."""
    choices = []
    for pod in record.pods.values():
        for p in range(1, len(pod.rows)):
            if not finalized(pod.obj(p - 1)) or finalized(pod.obj(p)):
                continue
            uid = owner_uid(pod.obj(p - 1))
            job = record.uids.get(uid or "")
            orphan = owner_uid(pod.obj(p)) is None and owner_uid(pod.obj(p - 1)) is None
            if not orphan and not (isinstance(job, JobLife) and job.deleted):
                continue
            owners = [
                j for u in {owner_uid(o) for o in pod.objects()} if (j := record.uids.get(u or ""))
            ]
            if owners and not pod.deleted:
                choices.append((owners[0], pod, p))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, p = choice
    edit.drop([pod.rows[p]])
    edit.change(pod, p + 1, None, with_finalizer)
    what = f"orphan pod {pod.name} keeps its finalizer"
    return told("finalizer-orphan-kept", job, what, ("finalizer-removal",), rv=pod.rv(p))


# Ownership.


def ownership(record: Record, *, adopted: bool) -> list[tuple[JobLife, Life, int]]:
    found = []
    for job in record.jobs:
        for pod in job.pods():
            for p in range(1, len(pod.rows)):
                was, now = owner_uid(pod.obj(p - 1)) == job.uid, owner_uid(pod.obj(p)) == job.uid
                if was != now and now == adopted and not (not adopted and _collected(job, pod, p)):
                    found.append((job, pod, p))
    return found


def _collected(job: JobLife, pod: Life, p: int) -> bool:
    """Whether the garbage collector dropped the owner: the Job is being deleted."""
    at = job.position_at(pod.rv(p))
    return at >= 0 and (job.kind(at) == "DELETED" or deleting(job.obj(at)))


def _selected(job: JobLife, pod: dict[str, Any]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    wanted = job.spec.get("selector", {}).get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items())


def adopted_stranger(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """An adopted pod has labels that the Job's selector does not match."""
    choice = pick(rng, ownership(record, adopted=True))
    if choice is None:
        return None
    job, pod, p = choice
    keys = list(job.spec.get("selector", {}).get("matchLabels", {}))
    if not keys:
        return None

    def change(obj: dict[str, Any]) -> None:
        obj["metadata"]["labels"][keys[0]] = "another"

    edit.change(pod, 0, None, change)
    what = f"adopted pod {pod.name} does not match the selector"
    actions = ("pod-adopt", "pod-release", "status-update", "pod-create")
    return told("adopted-stranger", job, what, actions, rv=pod.rv(p))


def adoption_missing(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod that matches is never adopted; it lives on as an orphan."""
    choice = pick(rng, ownership(record, adopted=True))
    if choice is None:
        return None
    job, pod, p = choice
    edit.drop([pod.rows[p]])
    for q in range(p + 1, len(pod.rows)):
        if finalized(pod.obj(q - 1)) and not finalized(pod.obj(q)):
            edit.drop([pod.rows[q]])
        obj = edit.obj(pod.rows[q])
        obj["metadata"].pop("ownerReferences", None)
        without_finalizer(obj)
    what = f"pod {pod.name} is not adopted"
    return told(
        "adoption-missing", job, what, ("pod-adopt", "status-update", "pod-create"), rv=pod.rv(p)
    )


def released(record: Record) -> list[tuple[JobLife, Life, int]]:
    """Releases for the pod's labels: a user may take a reference off a pod that matches, as well."""
    return [c for c in ownership(record, adopted=False) if not _selected(c[0], c[1].obj(c[2]))]


def release_missing(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod whose labels no longer match stays with its Job."""
    choice = pick(rng, released(record))
    if choice is None:
        return None
    job, pod, p = choice
    refs = copy_of(pod.obj(p - 1)["metadata"]["ownerReferences"])
    held = finalized(pod.obj(p - 1))
    edit.drop([pod.rows[p]])

    def change(obj: dict[str, Any]) -> None:
        obj["metadata"]["ownerReferences"] = copy_of(refs)
        if held and not finalized(obj):
            with_finalizer(obj)

    edit.change(pod, p + 1, None, change)
    what = f"pod {pod.name} is not released"
    actions = ("pod-release", "pod-create", "status-update")
    return told("release-missing", job, what, actions, rv=pod.rv(p))


def release_unprovoked(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A released pod had the labels that the selector asks for all the time."""
    choice = pick(rng, released(record))
    if choice is None:
        return None
    job, pod, p = choice
    labels = copy_of(pod.obj(0)["metadata"]["labels"])

    def change(obj: dict[str, Any]) -> None:
        obj["metadata"]["labels"] = copy_of(labels)

    edit.change(pod, 0, None, change)
    what = f"pod {pod.name} is released although it matches the selector"
    actions = ("pod-release", "pod-create", "status-update", "pod-adopt")
    return told("release-unprovoked", job, what, actions, rv=pod.rv(p))


KINDS = {
    "finalizer-early": early,
    "finalizer-kept": kept,
    "finalizer-running": running,
    "finalizer-orphan-kept": orphan_kept,
    "adopted-stranger": adopted_stranger,
    "adoption-missing": adoption_missing,
    "release-missing": release_missing,
    "release-unprovoked": release_unprovoked,
}
