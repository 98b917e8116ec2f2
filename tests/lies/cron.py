"""Lies about the CronJob controller."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .pods import twin_event
from .record import (
    NS_PER_S,
    Edit,
    JobLife,
    Lie,
    Life,
    Record,
    copy_of,
    deleting,
    new_uid,
    owner_uid,
    pick,
    shifted,
    told,
)

CREATE = ("job-create", "job-delete", "status-update", "event")
STATUS = ("status-update",)
Spec = dict[str, Any]


def ticks(record: Record) -> list[tuple[Life, JobLife]]:
    """Every Job that a CronJob created in the record."""
    found = []
    for cronjob in record.cronjobs:
        for job in record.jobs:
            if owner_uid(job.obj(0)) == cronjob.uid and job.kind(0) == "ADDED":
                found.append((cronjob, job))
    return found


def _about(record: Record, cronjob: Life, job: JobLife) -> list[int]:
    """The CronJob's Events that name the Job."""
    return [
        i
        for i in record.events_by_uid.get(cronjob.uid, ())
        if job.name in str(record.rows[i]["object"].get("message", ""))
    ]


def _job_rows(record: Record, job: JobLife) -> list[int]:
    rows = [*job.rows, *job.events()]
    for pod in job.pods():
        rows += [*pod.rows, *record.events_by_uid.get(pod.uid, ())]
    return rows


def _said(
    kind: str, cronjob: Life, what: str, *, rv: int, actions: Any = CREATE, **more: Any
) -> Lie:
    return told(kind, cronjob, what, actions, rv=rv, controller="cronjob", **more)


def _forget(record: Record, edit: Edit, cronjob: Life, job: JobLife, before: str | None) -> None:
    """Take a Job out of the CronJob's status; drop rows that then change nothing."""
    scheduled = None
    for i in cronjob.rows:
        status = record.rows[i]["object"].get("status") or {}
        names = [ref["name"] for ref in status.get("active", ())]
        if job.name in names and scheduled is None:
            scheduled = status.get("lastScheduleTime")
        touched = job.name in names or (scheduled and status.get("lastScheduleTime") == scheduled)
        if not touched:
            continue
        mine = edit.obj(i)["status"]
        mine["active"] = [r for r in mine.get("active", ()) if r["name"] != job.name]
        if not mine["active"]:
            del mine["active"]
        if before:
            mine["lastScheduleTime"] = before
        else:
            mine.pop("lastScheduleTime", None)
    last: Any = None
    for p, i in enumerate(cronjob.rows):
        row = edit.replaced.get(i) or record.rows[i]
        now = (row["object"].get("status"), row["object"]["spec"])
        if p and now == last and row["type"] == "MODIFIED":
            edit.drop([i])
        last = now


def tick_skipped(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A tick's Job, its pods, Events and what the CronJob's status says of it."""
    choice = pick(rng, ticks(record))
    if choice is None:
        return None
    cronjob, job = choice
    before = None
    for p in range(len(cronjob.rows)):
        if cronjob.rv(p) < job.rv(0):
            before = (cronjob.obj(p).get("status") or {}).get("lastScheduleTime")
    _forget(record, edit, cronjob, job, before)
    edit.drop(_job_rows(record, job))
    edit.drop(_about(record, cronjob, job))
    what = f"the tick of {job.name} left no trace"
    ends = max(row["recv"] for row in record.rows) - job.recv(0) < 20 * NS_PER_S
    doubt = "it may have come after the end of the record" if ends else ""
    return _said("cron-tick-skipped", cronjob, what, rv=job.rv(0), also=[job.key], doubt=doubt)


def job_removed(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A tick's Job alone: the CronJob's status and Events still name it."""
    choice = pick(rng, ticks(record))
    if choice is None:
        return None
    cronjob, job = choice
    edit.drop(_job_rows(record, job))
    what = f"Job {job.name} removed, which the CronJob's status names"
    return _said("cron-job-removed", cronjob, what, rv=job.rv(0), also=[job.key])


def renamed_text(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: renamed_text(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed_text(item, old, new) for item in value]
    return value.replace(old, new) if isinstance(value, str) else value


def wrong_name(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A tick's Job has the name of another minute, everywhere."""
    choice = pick(rng, ticks(record))
    if choice is None:
        return None
    cronjob, job = choice
    stem, minute = job.name.rsplit("-", 1)
    if not minute.isdigit():
        return None
    new = f"{stem}-{int(minute) + 7}"
    rows = [*_job_rows(record, job), *_about(record, cronjob, job), *cronjob.rows]
    for i in rows:
        row = record.rows[i]
        if job.name in str(row["object"]):
            edit.row(i)["object"] = renamed_text(row["object"], job.name, new)
    what = f"Job {job.name} is called {new}"
    also = [job.key, f"{job.namespace}/{new}"]
    return _said("cron-wrong-name", cronjob, what, rv=job.rv(0), also=also)


def _in_spec(
    kind: str,
    what: str,
    change: Callable[[Spec], bool | None],
    where: Callable[[Record, Life], bool],
    doubt: str = "",
) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [c for c in record.cronjobs if where(record, c)]
        rng.shuffle(choices)
        for cronjob in choices:
            done = [change(edit.obj(i)["spec"]) for i in cronjob.rows]
            if all(d is not False for d in done):
                said = f"{what} in every revision"
                return _said(kind, cronjob, said, rv=cronjob.rv(0), doubt=doubt)
            for i in cronjob.rows:
                del edit.replaced[i]
        return None

    return plant


def _set(name: str, value: Any, old: Any = None) -> Callable[[Spec], bool]:
    def change(spec: Spec) -> bool:
        if spec.get(name) == value or (old is not None and spec.get(name) != old):
            return False
        spec[name] = value
        return True

    return change


def _created(record: Record, cronjob: Life) -> bool:
    return any(c is cronjob for c, _ in ticks(record))


def _in_odd_minutes(record: Record, cronjob: Life) -> bool:
    """Whether a Job was started for an odd minute, by the CronJob's own status."""
    started = {
        cronjob.obj(p).get("status", {}).get("lastScheduleTime", "")[14:16]
        for p in range(len(cronjob.rows))
    }
    return _created(record, cronjob) and any(int(minute) % 2 for minute in started if minute)


def _skips(record: Record, cronjob: Life) -> bool:
    return any(
        record.rows[i]["object"]["reason"] == "JobAlreadyActive"
        for i in record.events_by_uid.get(cronjob.uid, ())
    )


def _deletes(record: Record, cronjob: Life) -> bool:
    return any(
        record.rows[i]["object"]["reason"] == "SuccessfulDelete"
        for i in record.events_by_uid.get(cronjob.uid, ())
    )


def _limit(name: str, delta: int) -> Callable[[Spec], bool]:
    def change(spec: Spec) -> bool:
        if spec.get(name) is None or spec[name] + delta < 0:
            return False
        spec[name] += delta
        return True

    return change


def deleted_by_event(record: Record) -> list[tuple[Life, JobLife, list[int]]]:
    """The Jobs that a CronJob's Events say it has deleted, and these Events."""
    found = []
    for cronjob, job in ticks(record):
        rows = _about(record, cronjob, job)
        named = [i for i in rows if record.rows[i]["object"]["reason"] == "SuccessfulDelete"]
        if job.deleted and named:
            found.append((cronjob, job, named))
    return found


def _deleted_for_history(record: Record) -> list[tuple[Life, JobLife]]:
    found = deleted_by_event(record)
    return [(cronjob, job) for cronjob, job, _ in found if job.finished_at() is not None]


def undeleted(edit: Edit, job: JobLife) -> None:
    """The Job and its pods stay for ever."""
    for life in (job, *job.pods()):
        for p in range(1, len(life.rows)):
            if deleting(life.obj(p)) or life.kind(p) == "DELETED":
                edit.drop(life.rows[p:])
                break


def history_missing(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A Job beyond the history limit is not deleted."""
    choice = pick(rng, _deleted_for_history(record))
    if choice is None:
        return None
    cronjob, job = choice
    undeleted(edit, job)
    edit.drop(
        i
        for i in _about(record, cronjob, job)
        if record.rows[i]["object"]["reason"] == "SuccessfulDelete"
    )
    what = f"Job {job.name} beyond the history limit is not deleted"
    return _said("cron-history-missing", cronjob, what, rv=job.rv(-1), also=[job.key])


def history_wrong(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The history clean-up deletes a younger Job than it should."""
    choices = []
    for cronjob, job in _deleted_for_history(record):
        for other_cron, other in ticks(record):
            done = other.finished_at()
            if (
                other_cron is cronjob
                and other is not job
                and done is not None
                and other.rv(done) < job.rv(-1)
                and other.rv(0) > job.rv(0)
                and not (other.deleted and other.rv(-1) < job.rv(-1))
            ):
                choices.append((cronjob, job, other, done))
    choice = pick(rng, choices)
    if choice is None:
        return None
    cronjob, job, other, done = choice
    end = job.rows[-1]
    undeleted(edit, job)
    undeleted(edit, other)
    obj = edit.insert_beside(record.rows[other.rows[done]], end)
    edit.inserted[-1][3]["type"] = "DELETED"
    del obj
    for i in _about(record, cronjob, job):
        if record.rows[i]["object"]["reason"] == "SuccessfulDelete":
            edit.obj(i)["message"] = f"Deleted job {other.name}"
    for i in _about(record, cronjob, other):
        if record.rows[i]["object"]["reason"] == "SuccessfulDelete":
            edit.drop([i])
    what = f"the history clean-up deletes {other.name} instead of {job.name}"
    also = [job.key, other.key]
    return _said("cron-history-wrong", cronjob, what, rv=job.rv(-1), also=also)


def _moved(kind: str, what: str, seconds: int, verdicts: tuple[str, ...]) -> Any:
    """A tick's Job and all that follows from it, moved in time."""

    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        delta = seconds * NS_PER_S
        choices = []
        for cronjob, job in ticks(record):
            rows = set(_job_rows(record, job)) | set(_about(record, cronjob, job))
            first = job.recv(0)
            for p in range(len(cronjob.rows)):
                names = [r["name"] for r in (cronjob.obj(p).get("status") or {}).get("active", ())]
                if job.name in names:
                    rows.add(cronjob.rows[p])
            last = max(record.rows[i]["recv"] for i in rows)
            others = [record.rows[i]["recv"] for i in cronjob.rows if i not in rows]
            low, high = min(first, first + delta), max(last, last + delta)
            if last - first < 45 * NS_PER_S and not any(low <= at <= high for at in others):
                choices.append((cronjob, job, sorted(rows)))
        choice = pick(rng, choices)
        if choice is None:
            return None
        cronjob, job, rows = choice
        if job.recv(-1) + delta > record.end_ns:
            return None
        edit.move(rows, delta)
        said = f"{what}: {job.name} by {seconds:+d} s"
        return _said(kind, cronjob, said, rv=job.rv(0), verdicts=verdicts, also=[job.key])

    return plant


def _job_body(kind: str, what: str, change: Callable[[dict[str, Any]], bool | None]) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = ticks(record)
        rng.shuffle(choices)
        for cronjob, job in choices:
            done = [change(edit.obj(i)) for i in job.rows]
            if all(d is not False for d in done):
                said = f"Job {job.name}: {what}"
                return _said(kind, cronjob, said, rv=job.rv(0), also=[job.key])
            for i in job.rows:
                del edit.replaced[i]
        return None

    return plant


def _label(obj: dict[str, Any]) -> None:
    obj["metadata"].setdefault("labels", {})["tier"] = "none"


def _scheduled(obj: dict[str, Any]) -> bool:
    key = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    notes = obj["metadata"].get("annotations", {})
    if key not in notes:
        return False
    notes[key] = shifted(notes[key], 60)
    return True


def _annotation(obj: dict[str, Any]) -> None:
    obj["metadata"].setdefault("annotations", {})["example.com/note"] = "1"


def _backoff(obj: dict[str, Any]) -> bool:
    limit = obj["spec"].get("backoffLimit")
    if not limit:
        return False
    obj["spec"]["backoffLimit"] = limit + 1
    return True


def _owner_block(obj: dict[str, Any]) -> None:
    for ref in obj["metadata"].get("ownerReferences", ()):
        ref["blockOwnerDeletion"] = False


def _status_change(
    kind: str,
    what: str,
    change: Callable[[dict[str, Any], random.Random], bool | None],
    *,
    field: str,
) -> Any:
    """A planter that changes the CronJob's status from one write to the next."""

    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = []
        for cronjob in record.cronjobs:
            for p in range(1, len(cronjob.rows)):
                was = (cronjob.obj(p - 1).get("status") or {}).get(field)
                now = (cronjob.obj(p).get("status") or {}).get(field)
                if cronjob.kind(p) == "MODIFIED" and was != now:
                    choices.append((cronjob, p, now))
        rng.shuffle(choices)
        for cronjob, p, value in choices:
            until = p + 1
            while (
                until < len(cronjob.rows)
                and (cronjob.obj(until).get("status") or {}).get(field) == value
            ):
                until += 1
            seed = rng.random()
            done = [
                change(edit.obj(i).setdefault("status", {}), random.Random(seed))
                for i in cronjob.rows[p:until]
            ]
            before = cronjob.obj(p - 1).get("status") or {}
            if all(d is not False for d in done) and edit.obj(cronjob.rows[p])["status"] != before:
                return _said(kind, cronjob, what, rv=cronjob.rv(p), actions=STATUS)
            for i in cronjob.rows[p:until]:
                del edit.replaced[i]
        return None

    return plant


def _time_shift(field: str, seconds: int) -> Any:
    def change(status: dict[str, Any], rng: random.Random) -> bool:
        del rng
        if field not in status:
            return False
        status[field] = shifted(status[field], seconds)
        return True

    return change


def _active_gone(status: dict[str, Any], rng: random.Random) -> bool:
    del rng
    if len(status.get("active", ())) < 1 or "lastScheduleTime" not in status:
        return False
    status["active"] = status["active"][:-1]
    if not status["active"]:
        del status["active"]
    return True


def _active_more(status: dict[str, Any], rng: random.Random) -> bool:
    if not status.get("active"):
        return False
    twin = copy_of(status["active"][-1])
    twin["name"], twin["uid"] = twin["name"] + "x", new_uid(rng)
    status["active"].append(twin)
    return True


def _active_uid(status: dict[str, Any], rng: random.Random) -> bool:
    if not status.get("active"):
        return False
    status["active"][-1]["uid"] = new_uid(rng)
    return True


def event_twice(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A second Event about the creation of a Job that was created once."""
    choices = []
    for cronjob, job in ticks(record):
        for i in _about(record, cronjob, job):
            if record.rows[i]["object"]["reason"] == "SuccessfulCreate":
                choices.append((cronjob, job, i))
    choice = pick(rng, choices)
    if choice is None:
        return None
    cronjob, job, i = choice
    twin_event(record, edit, rng, i, message=f"Created job {job.name}9")
    what = f"an Event about a Job {job.name}9 that never was"
    return _said("cron-event-extra", cronjob, what, rv=record.rv_of(i), actions=("event",))


def silent(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """Nothing of the controller is recorded for a CronJob after some tick."""
    first: dict[str, list[JobLife]] = {}
    for cronjob, job in ticks(record):
        first.setdefault(cronjob.uid, []).append(job)
    choices = [c for c in record.cronjobs if len(first.get(c.uid, ())) > 2 and not c.deleted]
    cronjob = pick(rng, choices)
    if cronjob is None:
        return None
    jobs = sorted(first[cronjob.uid], key=lambda job: job.rv(0))
    rv = jobs[1].rv(0) - 1
    for job in jobs[1:]:
        edit.drop(_job_rows(record, job))
    for job in jobs[:1]:
        if job.deleted and job.rv(-1) > rv:
            undeleted(edit, job)
    for i in record.events_by_uid.get(cronjob.uid, ()):
        if record.rv_of(i) > rv:
            edit.drop([i])
    for p in range(1, len(cronjob.rows)):
        if cronjob.rv(p) > rv and cronjob.obj(p)["spec"] == cronjob.obj(p - 1)["spec"]:
            edit.drop([cronjob.rows[p]])
    what = "no tick is answered after the first"
    also = [job.key for job in jobs]
    return _said("cron-silent", cronjob, what, rv=rv, also=also, verdicts=("missing",))


KINDS = {
    "cron-tick-skipped": tick_skipped,
    "cron-job-removed": job_removed,
    "cron-wrong-name": wrong_name,
    "cron-suspended": _in_spec(
        "cron-suspended", "suspend is true", _set("suspend", value=True), _created
    ),
    "cron-policy-forbid": _in_spec(
        "cron-policy-forbid",
        "concurrencyPolicy Forbid",
        _set("concurrencyPolicy", "Forbid", "Replace"),
        _deletes,
    ),
    "cron-policy-allow": _in_spec(
        "cron-policy-allow",
        "concurrencyPolicy Allow",
        _set("concurrencyPolicy", "Allow", "Replace"),
        _deletes,
    ),
    "cron-policy-not-forbid": _in_spec(
        "cron-policy-not-forbid",
        "concurrencyPolicy Allow",
        _set("concurrencyPolicy", "Allow", "Forbid"),
        _skips,
    ),
    "cron-schedule": _in_spec(
        "cron-schedule",
        "every second minute only",
        _set("schedule", "*/2 * * * *", "* * * * *"),
        _in_odd_minutes,
    ),
    "cron-schedule-more": _in_spec(
        "cron-schedule-more",
        "an hourly schedule",
        _set("schedule", "59 * * * *", "* * * * *"),
        _created,
    ),
    "cron-history-more": _in_spec(
        "cron-history-more",
        "failedJobsHistoryLimit +1",
        _limit("failedJobsHistoryLimit", 1),
        lambda r, c: any(x is c and j.condition(-1, "Failed") for x, j in _deleted_for_history(r)),
    ),
    "cron-history-done-more": _in_spec(
        "cron-history-done-more",
        "successfulJobsHistoryLimit +1",
        _limit("successfulJobsHistoryLimit", 1),
        lambda r, c: any(
            x is c and j.condition(-1, "Complete") for x, j in _deleted_for_history(r)
        ),
    ),
    "cron-history-none": _in_spec(
        "cron-history-none",
        "successfulJobsHistoryLimit 0",
        _set("successfulJobsHistoryLimit", 0),
        lambda r, c: any(
            x is c and j.finished_at() is not None and not j.deleted and j.condition(-1, "Complete")
            for x, j in ticks(r)
        ),
    ),
    "cron-history-missing": history_missing,
    "cron-history-wrong": history_wrong,
    "cron-early": _moved("cron-early", "a Job before its tick", -10, ("early", "extra")),
    "cron-late": _moved("cron-late", "a Job long after its tick", 30, ("late", "missing")),
    "cron-body-label": _job_body("cron-body-label", "a further label", _label),
    "cron-body-annotation": _job_body("cron-body-annotation", "a further annotation", _annotation),
    "cron-body-scheduled": _job_body(
        "cron-body-scheduled", "another scheduled timestamp", _scheduled
    ),
    "cron-body-spec": _job_body("cron-body-spec", "backoffLimit +1", _backoff),
    "cron-body-owner": _job_body("cron-body-owner", "blockOwnerDeletion false", _owner_block),
    "cron-last-schedule": _status_change(
        "cron-last-schedule",
        "lastScheduleTime +60 s",
        _time_shift("lastScheduleTime", 60),
        field="lastScheduleTime",
    ),
    "cron-last-successful": _status_change(
        "cron-last-successful",
        "lastSuccessfulTime -30 s",
        _time_shift("lastSuccessfulTime", -30),
        field="lastSuccessfulTime",
    ),
    "cron-active-gone": _status_change(
        "cron-active-gone",
        "an active Job is missing from the status",
        _active_gone,
        field="active",
    ),
    "cron-active-more": _status_change(
        "cron-active-more",
        "the status names an active Job that never was",
        _active_more,
        field="active",
    ),
    "cron-active-uid": _status_change(
        "cron-active-uid", "the status names another uid", _active_uid, field="active"
    ),
    "cron-event-extra": event_twice,
    "cron-silent": silent,
}
