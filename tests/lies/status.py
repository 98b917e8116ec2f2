"""Lies about the numbers and lists in a Job's status, and about whole status writes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from .record import (
    Edit,
    JobLife,
    Lie,
    Record,
    active,
    deleting,
    new_uid,
    pick,
    ready,
    shifted,
    stamp,
    terminal,
    told,
)

STATUS = ("status-update",)
Status = dict[str, Any]
#: Where the counts of a status came from may lie so many status writes back.
_WRITES_BACK = 4


def writes(record: Record) -> Iterator[tuple[JobLife, int]]:
    """Every status write."""
    for job in record.jobs:
        for p in job.writes():
            yield job, p


def still_writes(edit: Edit, job: JobLife) -> bool:
    """Whether each row that changed the status still does, and no other."""
    was = set(job.writes())
    before: Any = None
    for p, i in enumerate(job.rows):
        if i in edit.dropped:
            continue
        row = edit.replaced.get(i) or job.record.rows[i]
        status = row["object"].get("status") or {}
        if p and job.kind(p) == "MODIFIED" and (status != before) != (p in was):
            return False
        before = status
    return True


def try_write(
    edit: Edit,
    job: JobLife,
    p: int,
    change: Callable[[Status], bool | None],
    *,
    carry: bool,
) -> bool:
    """Change the status from write `p` on: to the end, or until the next write."""
    until = len(job.rows) if carry else job.write_after(p)
    done = [change(edit.obj(i).setdefault("status", {})) for i in job.rows[p:until]]
    if all(d is not False for d in done) and still_writes(edit, job):
        return True
    for i in job.rows[p:until]:
        del edit.replaced[i]
    return False


def in_some_write(
    kind: str,
    what: str,
    change: Callable[[Status, random.Random], bool | None],
    *,
    carry: bool,
    where: Callable[[JobLife, int], bool] = lambda job, p: True,  # noqa: ARG005
    doubt: str = "",
    actions: tuple[str, ...] = ("status-update", "finalizer-removal", "pod-create", "event"),
) -> Callable[[Record, Edit, random.Random], Lie | None]:
    """A planter that changes the status of some write."""

    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [(job, p) for job, p in writes(record) if where(job, p)]
        rng.shuffle(choices)
        for job, p in choices[:200]:
            seed = rng.random()

            def once(status: Status, seed: float = seed) -> bool | None:
                return change(status, random.Random(seed))

            if try_write(edit, job, p, once, carry=carry):
                scope = "from there on" if carry else "in this revision"
                return told(kind, job, f"{what} {scope}", actions, rv=job.rv(p), doubt=doubt)
        return None

    return plant


# Counts that each sync takes anew from the pods.

_COUNTED: dict[str, Callable[[dict[str, Any]], bool]] = {
    "active": active,
    "ready": lambda obj: active(obj) and ready(obj),
    "terminating": lambda obj: deleting(obj) and not terminal(obj),
}


def values_seen(job: JobLife, name: str, p: int) -> set[int]:
    """Every value of a count over the cuts from which write `p` can have come."""
    before = [w for w in job.writes() if w < p]
    low = job.rv(before[-_WRITES_BACK]) if len(before) >= _WRITES_BACK else 0
    counts = _COUNTED[name]
    steps: list[tuple[int, int]] = []
    for pod in job.pods():
        state = False
        for q in range(len(pod.rows)):
            now = counts(pod.obj(q)) and pod.kind(q) != "DELETED"
            if now != state:
                steps.append((pod.rv(q), 1 if now else -1))
                state = now
    value = sum(d for rv, d in steps if rv <= low)
    seen = {value}
    for rv, d in sorted(steps):
        if low < rv <= job.rv(p):
            value += d
            seen.add(value)
    return seen


def _count(name: str, delta: int) -> Callable[[Record, Edit, random.Random], Lie | None]:
    kind = f"status-{name}-{'high' if delta > 0 else 'low'}"

    def where(job: JobLife, p: int) -> bool:
        value = job.status(p).get(name) or 0
        new = value + delta
        return new >= 0 and name in job.status(p) and new not in values_seen(job, name, p)

    def change(status: Status, rng: random.Random) -> None:
        del rng
        status[name] += delta
        if name == "active" and not status[name]:
            del status[name]

    return in_some_write(kind, f"status.{name} is {delta:+d}", change, carry=False, where=where)


def _lagging_ready(status: Status, rng: random.Random) -> bool:
    del rng
    if not status.get("ready"):
        return False
    status["ready"] -= 1
    return True


# Counters that are carried on.


def grew(name: str) -> Callable[[JobLife, int], bool]:
    def where(job: JobLife, p: int) -> bool:
        return (job.status(p).get(name) or 0) > (job.status(p - 1).get(name) or 0)

    return where


def _counter(name: str, delta: int) -> Callable[[Status, random.Random], bool]:
    def change(status: Status, rng: random.Random) -> bool:
        del rng
        value = (status.get(name) or 0) + delta
        if value < 0:
            return False
        if value:
            status[name] = value
        else:
            status.pop(name, None)
        return True

    return change


def _with_index(status: Status, name: str, *, add: bool) -> bool:
    text = status.get(name, "")
    if add:
        last = int(text.replace("-", ",").split(",")[-1]) if text else -1
        status[name] = f"{text},{last + 2}" if text else "1"
        return True
    parts = text.split(",") if text else []
    if not parts or "-" in parts[-1]:
        return False
    parts.pop()
    status[name] = ",".join(parts)
    if not status[name] and name == "completedIndexes":
        del status[name]
    return True


def _unfolded(status: Status, rng: random.Random) -> bool:
    del rng
    parts = []
    folded = False
    for part in status.get("completedIndexes", "").split(","):
        first, dash, last = part.partition("-")
        folded |= bool(dash)
        parts += map(str, range(int(first), int(last) + 1)) if dash else [part]
    status["completedIndexes"] = ",".join(parts)
    return folded


# Uncounted pods.


def _uncounted(status: Status) -> Status:
    found: Status = status.setdefault("uncountedTerminatedPods", {})
    return found


def uncounted_active(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod that has not finished stands in uncountedTerminatedPods."""
    choices = []
    for job, p in writes(record):
        if job.condition(p, "FailureTarget"):
            continue
        for pod in job.pods():
            at = pod.position_at(job.rv(p))
            if at >= 0 and active(pod.obj(at)) and "uncountedTerminatedPods" in job.status(p):
                choices.append((job, p, pod))
    rng.shuffle(choices)
    for job, p, pod in choices[:50]:
        side = rng.choice(("succeeded", "failed"))

        def change(status: Status, side: str = side, uid: str = pod.uid) -> None:
            _uncounted(status).setdefault(side, []).append(uid)

        if try_write(edit, job, p, change, carry=False):
            what = f"active pod {pod.name} stands in uncountedTerminatedPods.{side}"
            return told("uncounted-active", job, what, STATUS, rv=job.rv(p))
    return None


def _uncounted_unknown(status: Status, rng: random.Random) -> bool:
    if "uncountedTerminatedPods" not in status:
        return False
    _uncounted(status).setdefault("succeeded", []).append(new_uid(rng))
    return True


def _uncounted_missing(status: Status, rng: random.Random) -> bool:
    lists = status.get("uncountedTerminatedPods") or {}
    if not lists:
        return False
    side = rng.choice(sorted(lists))
    lists[side].pop(rng.randrange(len(lists[side])))
    if not lists[side]:
        del lists[side]
    return True


def _uncounted_swapped(status: Status, rng: random.Random) -> bool:
    lists = status.get("uncountedTerminatedPods") or {}
    if not lists:
        return False
    side = rng.choice(sorted(lists))
    other = "failed" if side == "succeeded" else "succeeded"
    lists.setdefault(other, []).append(lists[side].pop())
    if not lists[side]:
        del lists[side]
    return True


def uncounted_kept(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod that was counted stays in uncountedTerminatedPods as well."""
    choices = []
    for job, p in writes(record):
        before = job.status(p - 1).get("uncountedTerminatedPods") or {}
        now = job.status(p).get("uncountedTerminatedPods") or {}
        for side, uids in before.items():
            choices += [(job, p, side, u) for u in uids if u not in now.get(side, ())]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p, side, uid = choice

    def change(status: Status) -> None:
        _uncounted(status).setdefault(side, []).append(uid)

    if not try_write(edit, job, p, change, carry=False):
        return None
    what = f"counted pod {uid} still stands in uncountedTerminatedPods.{side}"
    return told("uncounted-kept", job, what, STATUS, rv=job.rv(p))


def _without(name: str) -> Callable[[Status, random.Random], bool]:
    def change(status: Status, rng: random.Random) -> bool:
        del rng
        return status.pop(name, None) is not None

    return change


# Times.


def _start(seconds: int) -> Callable[[Status, random.Random], bool]:
    def change(status: Status, rng: random.Random) -> bool:
        del rng
        if "startTime" not in status:
            return False
        status["startTime"] = shifted(status["startTime"], seconds)
        return True

    return change


def _first_write(job: JobLife, p: int) -> bool:
    return job.writes()[0] == p


def _later_write(job: JobLife, p: int) -> bool:
    return job.writes()[0] < p and job.status(p).get("startTime") == job.status(p - 1).get(
        "startTime"
    )


def _restarted(job: JobLife, p: int) -> bool:
    """Whether a suspension moved startTime: up to 1.17 a cache without one sets it anew."""
    before, now = job.status(p - 1).get("startTime"), job.status(p).get("startTime")
    suspended = "suspend" in job.obj(p)["spec"]
    return bool(before) and now != before and suspended


def start_kept(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A startTime that should have changed with a suspension stays."""
    choices = [(job, p) for job, p in writes(record) if _restarted(job, p)]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p = choice
    old = job.status(p - 1)["startTime"]

    def change(status: Status) -> None:
        status["startTime"] = old

    if not try_write(edit, job, p, change, carry=False):
        return None
    return told("start-time-kept", job, "startTime stays what it was", STATUS, rv=job.rv(p))


def _completion(seconds: int) -> Callable[[Status, random.Random], bool]:
    def change(status: Status, rng: random.Random) -> bool:
        del rng
        if "completionTime" not in status:
            return False
        status["completionTime"] = shifted(status["completionTime"], seconds)
        return True

    return change


def _completes(job: JobLife, p: int) -> bool:
    return "completionTime" in job.status(p) and "completionTime" not in job.status(p - 1)


def completion_on_failed(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A failed Job gets a completionTime."""
    choices = [
        (job, f)
        for job in record.jobs
        if (f := job.finished_at()) is not None and job.condition(f, "Failed")
    ]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p = choice
    at = stamp(job.recv(p))

    def change(status: Status) -> None:
        status["completionTime"] = at

    if not try_write(edit, job, p, change, carry=True):
        return None
    return told("completion-time-on-failed", job, f"completionTime {at}", STATUS, rv=job.rv(p))


KINDS = {
    **{f"status-{n}-high": _count(n, 1) for n in _COUNTED},
    **{f"status-{n}-low": _count(n, -1) for n in _COUNTED},
    "status-active-hidden": in_some_write(
        "status-active-hidden",
        "status.active is absent",
        _without("active"),
        carry=False,
        where=lambda job, p: 0 not in values_seen(job, "active", p),
        doubt="up to 1.35 a sync that waits for the back-off writes active 0",
    ),
    "status-ready-lags": in_some_write(
        "status-ready-lags",
        "status.ready is one too low",
        _lagging_ready,
        carry=False,
        doubt="a sync whose cut is earlier may write it",
    ),
    **{
        f"status-{name}-{word}-{scope}": in_some_write(
            f"status-{name}-{word}-{scope}",
            f"status.{name} is {delta:+d}",
            _counter(name, delta),
            carry=scope == "carried",
            where=grew(name),
        )
        for name in ("succeeded", "failed")
        for word, delta in (("high", 1), ("low", -1))
        for scope in ("carried", "once")
    },
    "completed-indexes-extra": in_some_write(
        "completed-indexes-extra",
        "completedIndexes has an index too many",
        lambda s, _: "completedIndexes" in s and _with_index(s, "completedIndexes", add=True),
        carry=False,
    ),
    "completed-indexes-missing": in_some_write(
        "completed-indexes-missing",
        "completedIndexes lacks the last index",
        lambda s, _: _with_index(s, "completedIndexes", add=False),
        carry=False,
    ),
    "completed-indexes-unfolded": in_some_write(
        "completed-indexes-unfolded",
        "completedIndexes names the members of a range",
        _unfolded,
        carry=False,
    ),
    "failed-indexes-extra": in_some_write(
        "failed-indexes-extra",
        "failedIndexes has an index too many",
        lambda s, _: "failedIndexes" in s and _with_index(s, "failedIndexes", add=True),
        carry=False,
    ),
    "failed-indexes-missing": in_some_write(
        "failed-indexes-missing",
        "failedIndexes lacks the last index",
        lambda s, _: _with_index(s, "failedIndexes", add=False),
        carry=False,
    ),
    "failed-indexes-absent": in_some_write(
        "failed-indexes-absent", "failedIndexes is absent", _without("failedIndexes"), carry=False
    ),
    "uncounted-active": uncounted_active,
    "uncounted-unknown": in_some_write(
        "uncounted-unknown",
        "a uid of no pod stands in uncountedTerminatedPods",
        _uncounted_unknown,
        carry=False,
    ),
    "uncounted-missing": in_some_write(
        "uncounted-missing",
        "a uid is missing from uncountedTerminatedPods",
        _uncounted_missing,
        carry=False,
    ),
    "uncounted-wrong-list": in_some_write(
        "uncounted-wrong-list",
        "a uid stands in the other list of uncountedTerminatedPods",
        _uncounted_swapped,
        carry=False,
    ),
    "uncounted-kept": uncounted_kept,
    "uncounted-absent": in_some_write(
        "uncounted-absent",
        "uncountedTerminatedPods is absent",
        _without("uncountedTerminatedPods"),
        carry=False,
    ),
    "ready-absent": in_some_write(
        "ready-absent", "status.ready is absent", _without("ready"), carry=False
    ),
    "terminating-absent": in_some_write(
        "terminating-absent", "status.terminating is absent", _without("terminating"), carry=False
    ),
    **{
        f"start-time-{word}": in_some_write(
            f"start-time-{word}",
            f"startTime is {seconds:+d} s",
            _start(seconds),
            carry=True,
            where=_first_write,
        )
        for word, seconds in (("early", -30), ("late", 30), ("late-4s", 4))
    },
    "start-time-changes": in_some_write(
        "start-time-changes",
        "startTime moves by 7 s",
        _start(7),
        carry=True,
        where=_later_write,
    ),
    "start-time-absent": in_some_write(
        "start-time-absent",
        "startTime is absent",
        _without("startTime"),
        carry=False,
        where=lambda job, p: _first_write(job, p) and not job.spec.get("suspend"),
    ),
    "start-time-lost": in_some_write(
        "start-time-lost",
        "startTime is absent",
        _without("startTime"),
        carry=True,
        where=_later_write,
    ),
    "start-time-kept": start_kept,
    **{
        f"completion-time-{word}": in_some_write(
            f"completion-time-{word}",
            f"completionTime is {seconds:+d} s",
            _completion(seconds),
            carry=True,
            where=_completes,
        )
        for word, seconds in (("early", -30), ("late", 30), ("early-4s", -4))
    },
    "completion-time-absent": in_some_write(
        "completion-time-absent",
        "completionTime is absent",
        _without("completionTime"),
        carry=True,
        where=_completes,
    ),
    "completion-time-on-failed": completion_on_failed,
}
