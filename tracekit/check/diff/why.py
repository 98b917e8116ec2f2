"""The reasoning of a sync in words: the rules that it applied, with their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tracekit.base.kube.job_status import COUNTS
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.check.replay.history import WriteKind
from tracekit.check.replay.search_state import Explanation
from tracekit.ports.job.context import Note

#: Which rules say something about which kind of action, most telling first.
_TELLING: dict[WriteKind, tuple[str, ...]] = {
    WriteKind.POD_CREATE: ("expired", "wanted", "backoff"),
    WriteKind.POD_DELETE: (
        "restart-limit", "backoff-limit", "ended", "suspended", "deadline", "expired", "wanted",
    ),
    WriteKind.FINALIZER_REMOVAL: ("counted", "ended", "suspended"),
    WriteKind.STATUS_UPDATE: (
        "counted", "ended", "restart-limit", "backoff-limit", "deadline", "backoff", "expired",
        "wanted", "unmanaged",
    ),
    WriteKind.POD_ADOPT: (),
    WriteKind.POD_RELEASE: (),
}  # fmt: skip


def whys_explained(sync: Explanation) -> dict[WriteKind, str]:
    """Why a sync made writes of each kind: its rules, and the cut under which it applied them."""
    cut = describe_cut(sync)
    kinds = dict.fromkeys([write.kind for write in sync.writes])
    wanted = frozenset(rule for kind in kinds for rule in _TELLING[kind])
    parts = [
        (note.rule, _PHRASES[note.rule](note.numbers)) for note in sync.notes if note.rule in wanted
    ]
    return {
        kind: "; ".join([*(text for rule, text in parts if rule in _TELLING[kind]), cut])
        for kind in kinds
    }


def describe(notes: Iterable[Note], kind: WriteKind | None = None) -> list[str]:
    """The notes in words; only those that tell something about `kind`, if one is given."""
    wanted = None if kind is None else _TELLING[kind]
    return [
        _PHRASES[note.rule](note.numbers)
        for note in notes
        if note.rule in _PHRASES and (wanted is None or note.rule in wanted)
    ]


def describe_cut(sync: Explanation) -> str:
    """How much the controller had seen."""
    job = f"Job at resourceVersion {sync.job.rv}" if sync.job is not None else "no Job seen"
    behind = ""
    if sync.handlers_behind:
        revisions = (
            "one revision" if sync.handlers_behind == 1 else f"{sync.handlers_behind} revisions"
        )
        behind = f", the informer's handlers {revisions} behind its cache"
    if not sync.pods_unseen:
        return f"{job}, every pod revision seen{behind}"
    return (
        f"{job}, the last {sync.pods_unseen} pod revisions not seen yet "
        f"({sync.lag_ns / NS_PER_S:.3f} s){behind}"
    )


def _wanted(numbers: dict[str, Any]) -> str:
    completions = numbers["completions"]
    rule = f"parallelism {numbers['parallelism']}"
    if completions is not None:
        rule += f", completions {completions} less {numbers['succeeded']} succeeded"
    elif numbers["succeeded"]:
        rule += f", {numbers['succeeded']} succeeded: no new pods"
    terminating = numbers["terminating"]
    held = f", {terminating} terminating keep their places" if terminating else ""
    return f"{numbers['wanted']} wanted ({rule}), {numbers['active']} active{held}"


def _counted(numbers: dict[str, Any]) -> str:
    text = ", ".join(f"{numbers[name]} {name}" for name in numbers if name in COUNTS)
    for name in ("new_succeeded", "new_failed"):
        if numbers[name]:
            text += f"; {name.replace('_', ' ')}: {', '.join(numbers[name])}"
    if numbers.get("forgotten"):
        text += "; only pods that are still there count"
    return text


def _deadline(numbers: dict[str, Any]) -> str:
    at = format_rfc3339(numbers["deadline_ns"])
    text = f"activeDeadlineSeconds {numbers['seconds']}: until {at}"
    return text if numbers["armed"] else f"{text}, but this sync sets no timer for it"


def _unmanaged(numbers: dict[str, Any]) -> str:
    if numbers["deleting"]:
        return "the Job is being deleted: its pods are left alone"
    return f"waiting for {_outstanding(numbers)} to be seen"


def _outstanding(numbers: dict[str, Any]) -> str:
    counts = ((numbers["creations"], "creation"), (numbers["deletions"], "deletion"))
    parts = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count > 0]
    return " and ".join(parts) or "nothing"


def _ended(numbers: dict[str, Any]) -> str:
    text = f"ended by {numbers['reason'] or 'completion'}"
    if numbers["active"]:
        text += f": what is active is deleted (pods: {numbers['active']})"
    if not numbers["satisfied"]:
        text += ", postponed: creations or deletions not seen yet"
    return text


_PHRASES: dict[str, Callable[[dict[str, Any]], str]] = {
    "wanted": _wanted,
    "counted": _counted,
    "unmanaged": _unmanaged,
    "suspended": lambda n: f"suspended: {n['active']} active pods go",
    "backoff": lambda n: (
        f"back-off after {n['failures']} failures until {format_rfc3339(n['until_ns'])}"
    ),
    "backoff-limit": lambda n: f"failed pods: {n['failed']}, more than backoffLimit {n['limit']}",
    "restart-limit": lambda n: (
        f"restartPolicy OnFailure: {n['restarts']} container restarts reach backoffLimit "
        f"{n['limit']}"
    ),
    "deadline": _deadline,
    "retry": lambda _: (
        "a pod failed: the sync ends in an error, and the key's back-off takes the place of a "
        "later timer"
    ),
    "ended": _ended,
    "expired": lambda n: f"{_outstanding(n)} not seen for over 5 minutes: no longer waited for",
}
