"""Lies about the Events that the Job controller posted."""

from __future__ import annotations

import random
from typing import Any

from .pods import twin_event
from .record import Edit, JobLife, Lie, Record, new_suffix, pick, stamp, told

ACTIONS = ("event", "pod-create", "pod-delete")


def _rows(record: Record, *reasons: str) -> list[tuple[JobLife, int]]:
    return [
        (job, i)
        for job in record.jobs
        for i in job.events()
        if record.rows[i]["type"] == "ADDED"
        and (not reasons or record.rows[i]["object"]["reason"] in reasons)
    ]


def _twin(kind: str, reasons: tuple[str, ...], what: str) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choice = pick(rng, _rows(record, *reasons))
        if choice is None:
            return None
        job, i = choice
        obj = twin_event(record, edit, rng, i)
        said = f"{what}: {obj['reason']} {obj['message']}"
        doubt = ""
        if reasons == ("FailedCreate",):
            doubt = "a sync whose creation was refused leaves nothing but the Event"
        return told(kind, job, said, ACTIONS, rv=record.rv_of(i), doubt=doubt)

    return plant


def _changed(kind: str, reasons: tuple[str, ...], what: str, change: Any) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choice = pick(rng, _rows(record, *reasons))
        if choice is None:
            return None
        job, i = choice
        uid = record.rows[i]["object"]["metadata"]["uid"]
        seed = rng.random()
        for k in job.events():
            if record.rows[k]["object"]["metadata"]["uid"] == uid:
                change(edit.obj(k), random.Random(seed))
        said = f"{what}: {record.rows[i]['object']['reason']}"
        return told(kind, job, said, ACTIONS, rv=record.rv_of(i))

    return plant


def _other_pod(obj: dict[str, Any], rng: random.Random) -> None:
    stem = obj["message"].rsplit("-", 1)[0]
    obj["message"] = f"{stem}-{new_suffix(rng)}"


def _other_reason(obj: dict[str, Any], rng: random.Random) -> None:
    del rng
    swaps = {
        "SuccessfulCreate": "SuccessfulDelete",
        "SuccessfulDelete": "SuccessfulCreate",
        "Completed": "Suspended",
        "BackoffLimitExceeded": "DeadlineExceeded",
        "DeadlineExceeded": "BackoffLimitExceeded",
    }
    obj["reason"] = swaps.get(obj["reason"], "BackoffLimitExceeded")


def _other_message(obj: dict[str, Any], rng: random.Random) -> None:
    del rng
    obj["message"] += "!"


def _other_type(obj: dict[str, Any], rng: random.Random) -> None:
    del rng
    obj["type"] = "Warning" if obj["type"] == "Normal" else "Normal"


def _more_often(obj: dict[str, Any], rng: random.Random) -> None:
    del rng
    obj["count"] = (obj.get("count") or 1) + 1


def sibling_pod(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """An Event names another pod of the same Job."""
    choices = []
    for job, i in _rows(record, "SuccessfulCreate", "SuccessfulDelete"):
        others = [
            p.name for p in job.pods() if not record.rows[i]["object"]["message"].endswith(p.name)
        ]
        if others:
            choices.append((job, i, others))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, i, others = choice
    obj = edit.obj(i)
    stem = obj["message"].split(": ", 1)[0]
    obj["message"] = f"{stem}: {rng.choice(others)}"
    what = f"an Event {obj['reason']} names a sibling: {obj['message']}"
    return told("event-sibling-pod", job, what, ACTIONS, rv=record.rv_of(i))


def _premature(kind: str, reason: str, message: str, event_type: str) -> Any:
    """An Event about an ending of a Job that did not end like that."""

    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [
            (job, i)
            for job, i in _rows(record, "SuccessfulCreate")
            if not record.job_events(job, reason)
        ]
        choice = pick(rng, choices)
        if choice is None:
            return None
        job, i = choice
        twin_event(record, edit, rng, i, reason=reason, message=message, type=event_type, count=1)
        what = f"an Event {reason} of a Job that had none"
        return told(kind, job, what, ACTIONS, rv=record.rv_of(i))

    return plant


def early(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The Event of a Job's end arrives before anything of the end shows."""
    choices = []
    for job, i in _rows(record, "Completed", "BackoffLimitExceeded", "DeadlineExceeded"):
        first = job.writes()[0]
        if job.recv(first) + 2 * 10**9 < record.rows[i]["recv"]:
            choices.append((job, i, first))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, i, first = choice
    edit.drop([i])
    obj = edit.insert_beside(record.rows[i], job.rows[first], ns=10_000_000)
    at = stamp(job.recv(first))
    obj["firstTimestamp"] = obj["lastTimestamp"] = obj["metadata"]["creationTimestamp"] = at
    obj["involvedObject"]["resourceVersion"] = str(job.rv(first))
    what = f"the Event {obj['reason']} comes before the Job's end"
    return told("event-early", job, what, ACTIONS, rv=record.rv_of(i))


def missing(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """An Event is not in the record."""
    choice = pick(rng, _rows(record))
    if choice is None:
        return None
    job, i = choice
    uid = record.rows[i]["object"]["metadata"]["uid"]
    edit.drop(k for k in job.events() if record.rows[k]["object"]["metadata"]["uid"] == uid)
    what = f"Event {record.rows[i]['object']['reason']} removed"
    doubt = "Events may be dropped: a missing one says nothing"
    return told("event-missing", job, what, ACTIONS, rv=record.rv_of(i), doubt=doubt)


KINDS = {
    "event-completed-twice": _twin("event-completed-twice", ("Completed",), "a second Event"),
    "event-failed-twice": _twin(
        "event-failed-twice",
        ("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "PodFailurePolicy"),
        "a second Event",
    ),
    "event-create-twice": _twin("event-create-twice", ("SuccessfulCreate",), "a second Event"),
    "event-delete-twice": _twin("event-delete-twice", ("SuccessfulDelete",), "a second Event"),
    "event-suspended-twice": _twin(
        "event-suspended-twice", ("Suspended", "Resumed"), "a second Event"
    ),
    "event-failed-create-twice": _twin(
        "event-failed-create-twice", ("FailedCreate",), "a second Event"
    ),
    "event-wrong-pod": _changed(
        "event-wrong-pod",
        ("SuccessfulCreate", "SuccessfulDelete"),
        "an Event names a pod that never was",
        _other_pod,
    ),
    "event-sibling-pod": sibling_pod,
    "event-wrong-reason": _changed(
        "event-wrong-reason", (), "an Event has another reason", _other_reason
    ),
    "event-wrong-message": _changed(
        "event-wrong-message",
        (
            "Completed",
            "BackoffLimitExceeded",
            "DeadlineExceeded",
            "Suspended",
            "Resumed",
            "PodFailurePolicy",
            "FailedIndexes",
            "MaxFailedIndexesExceeded",
        ),
        "an Event has another message",
        _other_message,
    ),
    "event-wrong-type": _changed("event-wrong-type", (), "an Event has another type", _other_type),
    "event-count": _changed(
        "event-count",
        ("SuccessfulCreate", "SuccessfulDelete", "Completed", "BackoffLimitExceeded"),
        "an Event counts one more",
        _more_often,
    ),
    "event-unfinished-completed": _premature(
        "event-unfinished-completed", "Completed", "Job completed", "Normal"
    ),
    "event-unfinished-failed": _premature(
        "event-unfinished-failed",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
        "Warning",
    ),
    "event-unsuspended": _premature("event-unsuspended", "Suspended", "Job suspended", "Normal"),
    "event-early": early,
    "event-missing": missing,
}
