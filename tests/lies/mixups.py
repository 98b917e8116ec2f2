"""Lies that take one thing for another, or for two at once: the wrong Job, pod, name or place."""

from __future__ import annotations

import random
from typing import Any

from .conditions import TERMINAL, finishing
from .cron import deleted_by_event, renamed_text, ticks, undeleted
from .finalizers import FINALIZER_ACTIONS, ownership, with_finalizer, without_finalizer
from .pods import created_pods, index_of
from .record import (
    FINALIZER,
    INDEX,
    Edit,
    Lie,
    Record,
    copy_of,
    deleting,
    finalized,
    owner_uid,
    phase,
    pick,
    stamp,
    told,
)
from .status import STATUS, try_write, writes
from .ttl import collected


def ttl_wrong_job(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """When a Job's TTL is over, another finished Job goes in its place."""
    choices = []
    for job, p in collected(record):
        for other in record.jobs:
            f = other.finished_at()
            if f is None or other is job or owner_uid(other.obj(0)) is not None:
                continue
            if other.namespace != job.namespace:
                continue
            if other.spec.get("ttlSecondsAfterFinished") is None and other.rv(-1) < job.rv(p):
                choices.append((job, p, other))
    choice = pick(rng, [c for c in choices if not (c[2].deleted or deleting(c[2].obj(-1)))])
    if choice is None:
        return None
    job, p, other = choice
    at = job.rows[p]
    undeleted(edit, job)
    doomed = edit.insert_beside(record.rows[other.rows[-1]], at)
    doomed["metadata"]["deletionTimestamp"] = stamp(job.recv(p))
    doomed["metadata"]["deletionGracePeriodSeconds"] = 0
    doomed["metadata"]["finalizers"] = ["foregroundDeletion"]
    for number, pod in enumerate(other.pods()):
        if not pod.deleted and owner_uid(pod.obj(-1)) == other.uid:
            edit.insert_beside(record.rows[pod.rows[-1]], at, ns=(20 + number) * 1_000_000)
            edit.inserted[-1][3]["type"] = "DELETED"
    edit.insert_beside(record.rows[other.rows[-1]], at, ns=200_000_000)["metadata"].update(
        copy_of({**doomed["metadata"], "finalizers": []})
    )
    edit.inserted[-1][3]["type"] = "DELETED"
    what = f"{other.key} is deleted in place of {job.key}, whose TTL is over"
    verdicts = ("missing", "extra")
    return told(
        "ttl-wrong-job", job, what, ("job-delete",), verdicts,
        rv=job.rv(p), controller="ttl", also=[other.key],
    )  # fmt: skip


def event_of_another_job(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The Event of a pod's creation is about another Job that runs at the time."""
    choices = []
    for job in record.jobs:
        for i in record.job_events(job, "SuccessfulCreate"):
            choices += [
                (other, i)
                for other in record.jobs
                if other is not job
                and other.namespace == job.namespace
                and other.rv(0) < record.rv_of(i) < other.rv(-1)
            ]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, i = choice
    uid = record.rows[i]["object"]["metadata"]["uid"]
    for n, row in enumerate(record.rows):
        if row["resource"] == "events" and (row["object"].get("metadata") or {}).get("uid") == uid:
            about = edit.obj(n)["involvedObject"]
            about["name"], about["uid"] = job.name, job.uid
    what = f"an Event of another Job's pod: {record.rows[i]['object']['message']}"
    return told("event-of-another-job", job, what, ("event",), rv=record.rv_of(i))


def uncounted_in_both(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod stands in both lists of uncountedTerminatedPods."""
    return _uncounted("uncounted-in-both", record, edit, rng, same=False)


def uncounted_twice(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod stands twice in a list of uncountedTerminatedPods."""
    return _uncounted("uncounted-twice", record, edit, rng, same=True)


def _uncounted(
    kind: str, record: Record, edit: Edit, rng: random.Random, *, same: bool
) -> Lie | None:
    choices = [
        (job, p, side, uid)
        for job, p in writes(record)
        for side, uids in (job.status(p).get("uncountedTerminatedPods") or {}).items()
        for uid in uids
    ]
    rng.shuffle(choices)
    for job, p, side, uid in choices:
        other = side if same else {"succeeded": "failed", "failed": "succeeded"}[side]

        def change(status: dict[str, Any], other: str = other, uid: str = uid) -> None:
            status["uncountedTerminatedPods"].setdefault(other, []).append(uid)

        if try_write(edit, job, p, change, carry=False):
            what = f"pod {uid} stands in uncountedTerminatedPods.{side} and again in {other}"
            return told(kind, job, what, STATUS, rv=job.rv(p))
    return None


def both_ends(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A Job is Complete and Failed at once."""
    choice = pick(rng, finishing(record))
    if choice is None:
        return None
    job, f = choice
    end = next(c for c in job.status(f)["conditions"] if c["type"] in TERMINAL)
    other = {"Complete": "Failed", "Failed": "Complete"}[end["type"]]
    twin = {**end, "type": other}

    def change(status: dict[str, Any]) -> None:
        status["conditions"] = [*status["conditions"], copy_of(twin)]

    if not try_write(edit, job, f, change, carry=True):
        return None
    return told("condition-both-ends", job, f"{other} beside {end['type']}", STATUS, rv=job.rv(f))


def index_skipped(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod that never ends well has a later index than the first that is free."""
    choices = []
    for job, pod in created_pods(record):
        index, used = index_of(pod), {index_of(other) for other in job.pods()}
        if index is None or "backoffLimitPerIndex" in job.spec:
            continue
        if any(phase(obj) == "Succeeded" for obj in pod.objects()):
            continue
        free = set(range(index + 1, job.spec.get("completions", 0))) - used
        choices += [(job, pod, index, other) for other in sorted(free)]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, index, other = choice
    old, new = f"{job.name}-{index}", f"{job.name}-{other}"
    for i in (*pod.rows, *record.events_naming(pod, job.uid)):
        edit.row(i)["object"] = renamed_text(record.rows[i]["object"], old, new)
    for i in pod.rows:
        meta = edit.obj(i)["metadata"]
        meta["annotations"][INDEX] = str(other)
        if INDEX in meta["labels"]:
            meta["labels"][INDEX] = str(other)
    what = f"pod {pod.name} has index {other} where {index} was the first free one"
    return told("pod-index-skipped", job, what, ("pod-create", "pod-delete"), rv=pod.rv(0))


def name_of_another(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod's name does not begin with the Job's name and its own index."""
    choice = pick(rng, created_pods(record))
    if choice is None:
        return None
    job, pod = choice
    index, suffix = index_of(pod), pod.name[-5:]
    new = f"{job.name}x-{suffix}" if index is None else f"{job.name}-{index + 7}-{suffix}"
    for i in (*pod.rows, *record.events_naming(pod, job.uid)):
        edit.row(i)["object"] = renamed_text(record.rows[i]["object"], pod.name, new)
    what = f"pod {pod.name} is called {new}"
    return told("body-name", job, what, ("pod-create",), rv=pod.rv(0))


def adopted_without_finalizer(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod is adopted without the tracking finalizer; so nobody takes it off."""
    choices = [c for c in ownership(record, adopted=True) if finalized(c[1].obj(c[2]))]
    choice = pick(rng, [c for c in choices if not finalized(c[1].obj(c[2] - 1))])
    if choice is None:
        return None
    job, pod, p = choice
    for q in range(p, len(pod.rows)):
        if q > p and finalized(pod.obj(q - 1)) and not finalized(pod.obj(q)):
            edit.drop([pod.rows[q]])
    edit.change(pod, p, None, without_finalizer)
    what = f"pod {pod.name} is adopted without the finalizer"
    actions = ("pod-adopt", "finalizer-removal", "status-update")
    return told("adopted-without-finalizer", job, what, actions, rv=pod.rv(p))


def adopted_owner_block(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """An adopted pod's reference to its Job does not block the owner's deletion."""
    choice = pick(rng, ownership(record, adopted=True))
    if choice is None:
        return None
    job, pod, p = choice

    def change(obj: dict[str, Any]) -> None:
        for ref in obj["metadata"].get("ownerReferences", ()):
            ref["blockOwnerDeletion"] = False

    edit.change(pod, p, None, change)
    what = f"adopted pod {pod.name} does not block its owner's deletion"
    return told("adopted-owner-block", job, what, ("pod-adopt",), rv=pod.rv(p))


def release_keeps_finalizer(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod is released and keeps the tracking finalizer for good."""
    choices = [c for c in ownership(record, adopted=False) if finalized(c[1].obj(c[2] - 1))]
    choice = pick(rng, [c for c in choices if FINALIZER not in _finalizers(c[1].obj(c[2]))])
    if choice is None:
        return None
    job, pod, p = choice
    edit.change(pod, p, None, with_finalizer)
    what = f"pod {pod.name} is released with its finalizer"
    actions = (*FINALIZER_ACTIONS, "pod-release")
    doubt = "a user may have released it; in old releases nobody takes the finalizer off then"
    return told("release-keeps-finalizer", job, what, actions, rv=pod.rv(p), doubt=doubt)


def _finalizers(obj: dict[str, Any]) -> list[str]:
    found: list[str] = obj["metadata"].get("finalizers", [])
    return found


def cron_image(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The template in a CronJob's Job, and so its pods, has another image."""
    choice = pick(rng, ticks(record))
    if choice is None:
        return None
    cronjob, job = choice
    for i in job.rows:
        _other_image(edit.obj(i)["spec"]["template"]["spec"])
    for pod in job.pods():
        for i in pod.rows:
            _other_image(edit.obj(i)["spec"])
    what = f"Job {job.name} has another image in its template"
    return told(
        "cron-body-image", cronjob, what, ("job-create",),
        rv=job.rv(0), controller="cronjob", also=[job.key],
    )  # fmt: skip


def _other_image(spec: dict[str, Any]) -> None:
    spec["containers"][0]["image"] = "registry.example/other:1"


def cron_event_name(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The Event of a Job's creation names the Job of another tick."""
    choices = []
    for cronjob, job in ticks(record):
        others = [other.name for c, other in ticks(record) if c is cronjob and other is not job]
        for i in record.events_by_uid.get(cronjob.uid, ()):
            event = record.rows[i]["object"]
            if event["reason"] == "SuccessfulCreate" and event["message"].endswith(job.name):
                choices += [(cronjob, i, job.name, other) for other in others]
    choice = pick(rng, choices)
    if choice is None:
        return None
    cronjob, i, old, new = choice
    edit.obj(i)["message"] = edit.obj(i)["message"].replace(old, new)
    what = f"the Event of the creation of {old} names {new}"
    return told("cron-event-name", cronjob, what, ("event",), controller="cronjob")


def cron_replaced_kept(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A Job that Replace must have deleted runs on beside the next one."""
    choices = [
        (cronjob, job, named)
        for cronjob, job, named in deleted_by_event(record)
        if job.finished_at() is None
        and cronjob.obj(0)["spec"].get("concurrencyPolicy") == "Replace"
    ]
    choice = pick(rng, choices)
    if choice is None:
        return None
    cronjob, job, named = choice
    undeleted(edit, job)
    edit.drop(named)
    what = f"Job {job.name} is not deleted, and another one starts"
    actions = ("job-delete", "job-create", "status-update")
    return told(
        "cron-replaced-kept", cronjob, what, actions,
        rv=job.rv(-1), controller="cronjob", also=[job.key],
    )  # fmt: skip


KINDS = {
    "ttl-wrong-job": ttl_wrong_job,
    "event-of-another-job": event_of_another_job,
    "uncounted-in-both": uncounted_in_both,
    "uncounted-twice": uncounted_twice,
    "condition-both-ends": both_ends,
    "pod-index-skipped": index_skipped,
    "body-name": name_of_another,
    "adopted-without-finalizer": adopted_without_finalizer,
    "adopted-owner-block": adopted_owner_block,
    "release-keeps-finalizer": release_keeps_finalizer,
    "cron-body-image": cron_image,
    "cron-event-name": cron_event_name,
    "cron-replaced-kept": cron_replaced_kept,
}
