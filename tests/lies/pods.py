"""Lies about which pods there are: one removed, one too many, one with a wrong index."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from .record import (
    INDEX,
    Edit,
    JobLife,
    Lie,
    Life,
    Record,
    active,
    copy_of,
    finalized,
    new_suffix,
    new_uid,
    owner_uid,
    phase,
    pick,
    stamp,
    terminal,
    told,
)

CREATE = ("pod-create", "status-update", "finalizer-removal", "pod-delete")


def created_pods(record: Record) -> Iterator[tuple[JobLife, Life]]:
    """Every pod whose creation by its Job's controller the record shows."""
    for job in record.jobs:
        for pod in job.pods():
            if pod.kind(0) == "ADDED" and owner_uid(pod.obj(0)) == job.uid and job.writes():
                yield job, pod


def index_of(pod: Life) -> int | None:
    """The pod's completion index."""
    text = pod.obj(0)["metadata"].get("annotations", {}).get(INDEX)
    return None if text is None else int(text)


def _gone(edit: Edit, record: Record, job: JobLife, pod: Life) -> None:
    edit.drop(pod.rows)
    edit.drop(record.events_naming(pod, job.uid))


def removed(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod with all of its rows and Events."""
    choice = pick(rng, created_pods(record))
    if choice is None:
        return None
    job, pod = choice
    _gone(edit, record, job, pod)
    what = f"pod {pod.name} removed with all of its rows and Events"
    return told("pod-removed", job, what, CREATE, rv=pod.rv(0))


def removed_last(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The pod that was created last."""
    last = {job.uid: (job, pod) for job, pod in created_pods(record) if len(job.pods()) > 1}
    choice = pick(rng, last.values())
    if choice is None:
        return None
    job, pod = choice
    _gone(edit, record, job, pod)
    what = f"the last pod {pod.name} removed with all of its rows and Events"
    return told("pod-removed-last", job, what, CREATE, rv=pod.rv(0))


def tail_removed(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """What a pod did from its finish on."""
    choices = []
    for job, pod in created_pods(record):
        first = next((p for p in range(len(pod.rows)) if terminal(pod.obj(p))), None)
        if first and finalized(pod.obj(first)) and not finalized(pod.obj(-1)):
            choices.append((job, pod, first))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, first = choice
    edit.drop(pod.rows[first:])
    what = f"pod {pod.name} never finishes: its rows from phase {phase(pod.obj(first))} on removed"
    return told(
        "pod-tail-removed", job, what, ("status-update", "finalizer-removal"), rv=pod.rv(first)
    )


def _renamed(obj: dict[str, Any], pod: Life, name: str, uid: str) -> None:
    obj["metadata"]["name"] = name
    obj["metadata"]["uid"] = uid
    if "hostname" in obj.get("spec", {}) and obj["spec"]["hostname"] == pod.name:
        obj["spec"]["hostname"] = name


def clone(
    record: Record,
    edit: Edit,
    rng: random.Random,
    job: JobLife,
    pod: Life,
    *,
    rows: int | None = None,
    event: bool = True,
) -> str:
    """A twin of a pod that lives beside it; returns its name."""
    base = pod.obj(0)["metadata"].get("generateName", pod.name + "-")
    name, uid = base + new_suffix(rng), new_uid(rng)
    for i in pod.rows[:rows]:
        _renamed(edit.insert_beside(record.rows[i], i), pod, name, uid)
    if event:
        for i in record.pod_event(job, "SuccessfulCreate", pod.name)[:1]:
            twin_event(record, edit, rng, i, message=f"Created pod: {name}")
    return name


def twin_event(
    record: Record, edit: Edit, rng: random.Random, i: int, **fields: Any
) -> dict[str, Any]:
    """A further Event like the one in row `i`, with other fields."""
    obj = edit.insert_beside(record.rows[i], i)
    obj["metadata"]["uid"] = new_uid(rng)
    stem = obj["metadata"]["name"].rsplit(".", 1)[0]
    obj["metadata"]["name"] = f"{stem}.{rng.getrandbits(60):016x}"
    obj.update(copy_of(fields))
    edit.inserted[-1][3]["type"] = "ADDED"
    return obj


def _extra(
    kind: str, record: Record, edit: Edit, rng: random.Random, *, event: bool, rows: int | None
) -> Lie | None:
    choice = pick(rng, created_pods(record))
    if choice is None:
        return None
    job, pod = choice
    name = clone(record, edit, rng, job, pod, rows=rows, event=event)
    what = f"an extra pod {name}, a twin of {pod.name}" + ("" if event else ", without an Event")
    return told(kind, job, what, CREATE, rv=pod.rv(0))


def extra(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A twin that lives as long as its model, with its Event."""
    return _extra("pod-extra", record, edit, rng, event=True, rows=None)


def extra_silent(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A twin without an Event."""
    return _extra("pod-extra-silent", record, edit, rng, event=False, rows=None)


def extra_pending(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A twin that stays Pending for ever."""
    return _extra("pod-extra-pending", record, edit, rng, event=True, rows=1)


def _at(record: Record, edit: Edit, rng: random.Random, job: JobLife, position: int) -> str | None:
    """A new Pending pod just after the Job's row at `position`."""
    pods = [pod for j, pod in created_pods(record) if j is job]
    if not pods:
        return None
    model = rng.choice(pods)
    name, uid = job.name + "-" + new_suffix(rng), new_uid(rng)
    if index_of(model) is not None:
        name = f"{model.obj(0)['metadata']['generateName']}{new_suffix(rng)}"
    anchor = job.rows[position]
    ns = record.rows[anchor]["recv"]
    obj = edit.insert_beside(record.rows[model.rows[0]], anchor, ns=5_000_000)
    _renamed(obj, model, name, uid)
    obj["metadata"]["creationTimestamp"] = stamp(ns)
    for i in record.pod_event(job, "SuccessfulCreate", model.name)[:1]:
        again = edit.insert_beside(record.rows[i], anchor, ns=9_000_000)
        again["metadata"]["uid"] = new_uid(rng)
        again["metadata"]["name"] = f"{job.name}.{rng.getrandbits(60):016x}"
        again["message"] = f"Created pod: {name}"
        again["count"] = 1
        again["involvedObject"]["resourceVersion"] = str(job.rv(position))
        again["firstTimestamp"] = again["lastTimestamp"] = stamp(ns)
    return name


def extra_after_finish(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod for a Job that has finished."""
    choice = pick(rng, [(j, f) for j in record.jobs if (f := j.finished_at()) is not None])
    if choice is None:
        return None
    job, position = choice
    name = _at(record, edit, rng, job, position)
    if name is None:
        return None
    what = f"pod {name} created after the Job had finished"
    return told("pod-extra-after-finish", job, what, CREATE, rv=job.rv(position))


def extra_while_suspended(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod for a suspended Job, once the controller has said that it is suspended."""
    choices = []
    for job in record.jobs:
        for p in job.writes():
            if job.condition(p, "Suspended") and job.obj(p)["spec"].get("suspend"):
                choices.append((job, p))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, position = choice
    name = _at(record, edit, rng, job, position)
    if name is None:
        return None
    what = f"pod {name} created while the Job was suspended"
    return told("pod-extra-suspended", job, what, CREATE, rv=job.rv(position))


def _reindexed(edit: Edit, job: JobLife, pod: Life, old: int, new: int) -> None:
    def change(obj: dict[str, Any]) -> None:
        meta, spec = obj["metadata"], obj["spec"]
        meta["annotations"][INDEX] = str(new)
        if INDEX in meta.get("labels", {}):
            meta["labels"][INDEX] = str(new)
        meta["generateName"] = meta["generateName"].replace(f"-{old}-", f"-{new}-")
        if "hostname" in spec:
            spec["hostname"] = f"{job.name}-{new}"

    edit.change(pod, 0, None, change)


def _indexed(record: Record) -> list[tuple[JobLife, Life, int]]:
    found = []
    for job, pod in created_pods(record):
        index = index_of(pod)
        if index is not None and f"-{index}-" in pod.obj(0)["metadata"].get("generateName", ""):
            found.append((job, pod, index))
    return found


def duplicate_index(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod for an index that an active sibling has."""
    choices = []
    for job, pod, index in _indexed(record):
        for other in job.pods():
            at = other.position_at(pod.rv(0))
            taken = index_of(other)
            if other is pod or at < 0 or taken is None or taken == index:
                continue
            if active(other.obj(at)) and other.kind(at) != "DELETED":
                choices.append((job, pod, index, taken))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, old, new = choice
    _reindexed(edit, job, pod, old, new)
    what = f"pod {pod.name} has index {new}, which is active, instead of {old}"
    return told("pod-duplicate-index", job, what, CREATE, rv=pod.rv(0))


def index_out_of_range(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod for an index beyond completions."""
    choice = pick(rng, _indexed(record))
    if choice is None:
        return None
    job, pod, old = choice
    new = max(obj["spec"].get("completions") or 0 for obj in job.objects()) + rng.randrange(3)
    _reindexed(edit, job, pod, old, new)
    what = f"pod {pod.name} has index {new}, out of range, instead of {old}"
    return told("pod-index-out-of-range", job, what, CREATE, rv=pod.rv(0))


def completed_index(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod for an index that is completed already."""
    choices = []
    for job, pod, index in _indexed(record):
        at = job.position_at(pod.rv(0))
        text = job.status(at).get("completedIndexes", "") if at >= 0 else ""
        if text:
            choices.append((job, pod, index, int(text.replace("-", ",").split(",")[0])))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, old, new = choice
    if old == new:
        return None
    _reindexed(edit, job, pod, old, new)
    what = f"pod {pod.name} has index {new}, which is completed, instead of {old}"
    return told("pod-completed-index", job, what, CREATE, rv=pod.rv(0))


KINDS = {
    "pod-removed": removed,
    "pod-removed-last": removed_last,
    "pod-tail-removed": tail_removed,
    "pod-extra": extra,
    "pod-extra-silent": extra_silent,
    "pod-extra-pending": extra_pending,
    "pod-extra-after-finish": extra_after_finish,
    "pod-extra-suspended": extra_while_suspended,
    "pod-duplicate-index": duplicate_index,
    "pod-index-out-of-range": index_out_of_range,
    "pod-completed-index": completed_index,
}
