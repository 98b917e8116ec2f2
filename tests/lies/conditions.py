"""Lies about a Job's conditions: too early, absent, with another reason, message or time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .record import Edit, JobLife, Lie, Record, copy_of, pick, shifted, stamp, told
from .status import Status, still_writes, try_write, writes

STATUS = ("status-update", "event", "pod-delete", "finalizer-removal")
INTERIM = ("FailureTarget", "SuccessCriteriaMet")
TERMINAL = ("Complete", "Failed")


def _new_conditions(job: JobLife, p: int) -> list[dict[str, Any]]:
    """Conditions that write `p` added or turned."""
    before = job.status(p - 1).get("conditions", ())
    return [c for c in job.status(p).get("conditions", ()) if c not in before]


def _turns(job: JobLife, p: int, kinds: tuple[str, ...]) -> str | None:
    for condition in _new_conditions(job, p):
        if condition["type"] in kinds:
            return str(condition["type"])
    return None


def finishing(record: Record) -> list[tuple[JobLife, int]]:
    return [(j, f) for j in record.jobs if (f := j.finished_at()) is not None]


def terminal_early(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The terminal condition stands in the status write before its own already."""
    choices = [(j, f) for j, f in finishing(record) if f - 1 in j.writes()]
    rng.shuffle(choices)
    for job, f in choices:
        new = [c for c in _new_conditions(job, f) if c["type"] in TERMINAL]
        end = job.status(f).get("completionTime")

        def change(status: Status, new: Any = new, end: Any = end) -> None:
            status["conditions"] = [*status.get("conditions", []), *copy_of(new)]
            if end:
                status["completionTime"] = end

        if try_write(edit, job, f - 1, change, carry=False):
            what = f"{new[0]['type']} stands one status write too early"
            return told("terminal-early", job, what, STATUS, rv=job.rv(f - 1))
    return None


def interim_early(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The interim condition stands one status write too early."""
    choices = [
        (j, p)
        for j, p in writes(record)
        if _turns(j, p, INTERIM) and p - 1 in j.writes() and p - 1 != j.writes()[0]
    ]
    rng.shuffle(choices)
    for job, p in choices:
        new = [c for c in _new_conditions(job, p) if c["type"] in INTERIM]
        for condition in (new := copy_of(new)):
            condition["lastTransitionTime"] = condition["lastProbeTime"] = stamp(job.recv(p - 1))

        def change(status: Status, new: Any = new) -> None:
            status["conditions"] = [*status.get("conditions", []), *copy_of(new)]

        for i in job.rows[p:]:
            for condition in edit.obj(i)["status"].get("conditions", ()):
                if condition["type"] == new[0]["type"]:
                    condition.update(copy_of(new[0]))
        if try_write(edit, job, p - 1, change, carry=False):
            what = f"{new[0]['type']} stands one status write too early"
            return told("interim-early", job, what, STATUS, rv=job.rv(p - 1))
        edit.replaced.clear()
    return None


def _stripped(kind: str, types: tuple[str, ...]) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [(j, p) for j, p in writes(record) if _turns(j, p, types)]
        rng.shuffle(choices)
        for job, p in choices:
            gone = _turns(job, p, types)

            def change(status: Status, gone: Any = gone) -> None:
                rest = [c for c in status.get("conditions", ()) if c["type"] != gone]
                status["conditions"] = rest
                if not rest:
                    del status["conditions"]

            if try_write(edit, job, p, change, carry=True):
                what = f"the condition {gone} is in no revision"
                return told(kind, job, what, STATUS, rv=job.rv(p))
        return None

    return plant


def interim_write_removed(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The write of the interim condition is gone; the terminal one has both."""
    choices = [
        (j, p) for j, p in writes(record) if _turns(j, p, INTERIM) and j.write_after(p) == p + 1
    ]
    choice = pick(rng, [(j, p) for j, p in choices if p + 1 < len(j.rows)])
    if choice is None:
        return None
    job, p = choice
    edit.drop([job.rows[p]])
    what = f"the write of {_turns(job, p, INTERIM)} removed from the record"
    return told("interim-write-removed", job, what, STATUS, rv=job.rv(p))


def terminal_write_removed(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The last write of a Job, the one that finishes it, is gone."""
    choice = pick(rng, [(j, f) for j, f in finishing(record) if f == len(j.rows) - 1])
    if choice is None:
        return None
    job, f = choice
    edit.drop([job.rows[f]])
    what = "the write of the terminal condition removed from the record"
    return told("terminal-write-removed", job, what, STATUS, rv=job.rv(f))


def _edited(
    kind: str,
    what: str,
    change: Callable[[dict[str, Any], JobLife, int], bool | None],
    types: tuple[str, ...] = (*INTERIM, *TERMINAL, "Suspended"),
) -> Any:
    """A planter that changes one new condition, in its write and in all that carry it."""

    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [(j, p) for j, p in writes(record) if _turns(j, p, types)]
        rng.shuffle(choices)
        for job, p in choices:
            name = _turns(job, p, types)
            old = next(c for c in _new_conditions(job, p) if c["type"] == name)

            def alter(status: Status, job: Any = job, p: int = p, old: Any = old) -> bool:
                for condition in status.get("conditions", ()):
                    if condition == old:
                        return change(condition, job, p) is not False
                return True

            if try_write(edit, job, p, alter, carry=True):
                return told(kind, job, f"condition {name}: {what}", STATUS, rv=job.rv(p))
        return None

    return plant


def _reason(condition: dict[str, Any], job: JobLife, p: int) -> bool:
    del job, p
    if not condition.get("reason"):
        return False
    other = {"BackoffLimitExceeded": "DeadlineExceeded", "DeadlineExceeded": "PodFailurePolicy"}
    condition["reason"] = other.get(condition["reason"], "BackoffLimitExceeded")
    return True


def _message(condition: dict[str, Any], job: JobLife, p: int) -> bool:
    del job, p
    if not condition.get("message"):
        return False
    condition["message"] += " (again)"
    return True


def _policy_message(condition: dict[str, Any], job: JobLife, p: int) -> bool:
    del job, p
    message = condition.get("message", "")
    if "exit code" not in message:
        return False
    condition["message"] = message.replace("exit code 4", "exit code 5")
    return condition["message"] != message


def _transition(seconds: int) -> Any:
    def change(condition: dict[str, Any], job: JobLife, p: int) -> None:
        del job, p
        condition["lastTransitionTime"] = shifted(condition["lastTransitionTime"], seconds)

    return change


def _probe(condition: dict[str, Any], job: JobLife, p: int) -> None:
    del job, p
    condition["lastProbeTime"] = shifted(condition["lastProbeTime"], -30)


def _unknown(condition: dict[str, Any], job: JobLife, p: int) -> None:
    del job, p
    condition["status"] = "Unknown"


def _other_end(condition: dict[str, Any], job: JobLife, p: int) -> None:
    del job, p
    condition["type"] = "Failed" if condition["type"] == "Complete" else "Complete"


def _order(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    choices = [
        (j, p)
        for j, p in writes(record)
        if len(_new_conditions(j, p)) and len(j.status(p).get("conditions", ())) > 1
    ]
    rng.shuffle(choices)
    for job, p in choices:

        def change(status: Status) -> None:
            status["conditions"].reverse()

        if try_write(edit, job, p, change, carry=True):
            what = "the conditions stand in another order"
            return told("conditions-reordered", job, what, STATUS, rv=job.rv(p))
    return None


def suspended_early(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """Suspended is True one status write before its own."""
    choices = [
        (j, p)
        for j, p in writes(record)
        if _turns(j, p, ("Suspended",)) and j.condition(p, "Suspended")
    ]
    rng.shuffle(choices)
    for job, p in choices:
        before = [w for w in job.writes() if w < p]
        if not before or job.obj(before[-1])["spec"].get("suspend"):
            continue
        new = [c for c in _new_conditions(job, p) if c["type"] == "Suspended"]

        def change(status: Status, new: Any = new) -> None:
            rest = [c for c in status.get("conditions", ()) if c["type"] != "Suspended"]
            status["conditions"] = [*rest, *copy_of(new)]

        if try_write(edit, job, before[-1], change, carry=False):
            what = "Suspended is True before the Job was suspended"
            return told("suspended-early", job, what, STATUS, rv=job.rv(before[-1]))
    return None


def resumed_missing(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """Suspended stays True after the Job was resumed."""
    choices = []
    for job, p in writes(record):
        before = job.condition(p - 1, "Suspended")
        if before and not job.condition(p, "Suspended"):
            choices.append((job, p, before))
    rng.shuffle(choices)
    for job, p, before in choices:

        def change(status: Status, before: Any = before) -> None:
            for condition in status.get("conditions", ()):
                if condition["type"] == "Suspended":
                    condition.update(copy_of(before))

        if try_write(edit, job, p, change, carry=False):
            what = "Suspended stays True after the Job was resumed"
            return told("resumed-missing", job, what, STATUS, rv=job.rv(p))
    return None


def _added(kind: str, condition_type: str, reason: str, message: str, *, carry: bool) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [
            (j, p)
            for j, p in writes(record)
            if not j.status(p).get("conditions") and p > j.writes()[0]
        ]
        rng.shuffle(choices)
        for job, p in choices:
            at = stamp(job.recv(p))
            new = {
                "type": condition_type,
                "status": "True",
                "lastProbeTime": at,
                "lastTransitionTime": at,
                "reason": reason,
                "message": message,
            }

            def change(status: Status, new: Any = new) -> None:
                status["conditions"] = [copy_of(new), *status.get("conditions", ())]

            if try_write(edit, job, p, change, carry=carry):
                what = f"a condition {condition_type} ({reason}) that nothing gives rise to"
                return told(kind, job, what, STATUS, rv=job.rv(p))
        return None

    return plant


def lost(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A condition that stood there is gone in a later write."""
    choices = [
        (j, p)
        for j, p in writes(record)
        if j.status(p - 1).get("conditions") and not _new_conditions(j, p) and not j.by_others(p)
    ]
    rng.shuffle(choices)
    for job, p in choices:

        def change(status: Status) -> bool:
            if not status.get("conditions"):
                return False  # a later write took them out
            status["conditions"].pop(0)
            if not status["conditions"]:
                del status["conditions"]
            return True

        if try_write(edit, job, p, change, carry=False) and still_writes(edit, job):
            what = "a condition is gone from a later write"
            return told("condition-lost", job, what, STATUS, rv=job.rv(p))
    return None


KINDS = {
    "terminal-early": terminal_early,
    "interim-early": interim_early,
    "interim-missing": _stripped("interim-missing", INTERIM),
    "interim-write-removed": interim_write_removed,
    "terminal-write-removed": terminal_write_removed,
    "suspended-missing": _stripped("suspended-missing", ("Suspended",)),
    "suspended-early": suspended_early,
    "resumed-missing": resumed_missing,
    "condition-reason": _edited("condition-reason", "another reason", _reason),
    "condition-message": _edited("condition-message", "another message", _message),
    "condition-policy-message": _edited(
        "condition-policy-message", "another exit code in the message", _policy_message
    ),
    "condition-transition-late": _edited(
        "condition-transition-late", "lastTransitionTime +30 s", _transition(30)
    ),
    "condition-transition-early": _edited(
        "condition-transition-early", "lastTransitionTime -30 s", _transition(-30)
    ),
    "condition-transition-4s": _edited(
        "condition-transition-4s", "lastTransitionTime -4 s", _transition(-4)
    ),
    "condition-probe": _edited("condition-probe", "lastProbeTime -30 s", _probe),
    "condition-unknown": _edited("condition-unknown", "status Unknown", _unknown),
    "condition-other-end": _edited(
        "condition-other-end", "Complete and Failed change places", _other_end, TERMINAL
    ),
    "conditions-reordered": _order,
    "condition-failure-target-added": _added(
        "condition-failure-target-added",
        "FailureTarget",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
        carry=False,
    ),
    "condition-suspended-added": _added(
        "condition-suspended-added", "Suspended", "JobSuspended", "Job suspended", carry=False
    ),
    "condition-lost": lost,
}
