"""Writes that somebody else made, each with its evidence.

Evidence is what the record shows of an actor: the managedFields entries that changed with the
write, an owner that is being deleted, a DisruptionTarget condition, a Job that says who manages it.
The absence of an explanation is no evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.events import COMBINED, SPAM_BURST
from tracekit.base.kube.field_managers import CONTROLLER_MANAGERS
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.kube.views import JobView, PodView
from tracekit.check.diff.collected import JOB_GOES, JOB_GONE
from tracekit.check.replay.history import (
    DELETED_POD,
    History,
    Manager,
    Revision,
    Write,
    WriteKind,
)
from tracekit.check.replay.reported_events import COMPONENT
from tracekit.check.replay.unsigned_writes import only_lost, setters
from tracekit.versions.job import JobRules


def named_writes(writes: Iterable[Write], own: str = COMPONENT) -> dict[int, str]:
    """Indexes of the writes that the record says somebody else than `own` made, with who."""
    found: dict[int, str] = {}
    for write in writes:
        actor = write.actor
        if write.hidden or actor is None or actor.controller in (own, None):
            continue
        found[write.index] = f"the audit log names {actor} as the writer"
    return found


def signed_statuses(writes: Iterable[Write]) -> dict[int, str]:
    """Indexes of the statuses that managedFields name another writer of, with who.

    A revision is one manager's: a status that the rules might have led to is his all the same.
    """
    found: dict[int, str] = {}
    for write in writes:
        status = write.job if write.kind is WriteKind.STATUS_UPDATE else None
        if write.hidden or write.actor is not None or status is None:
            continue
        if not status.evidence.has_others_status():
            continue
        named = other_manager(status, CONTROLLER_MANAGERS, subresource="status")
        if named is not None:
            found[write.index] = named
    return found


def met_gone(history: History) -> dict[int, str]:
    """Indexes of pods' deletions that the Job controller came too late for, as its Event says.

    A DELETE of its own before that would have an Event, but for the spam filter.
    """
    messages = {
        event.message.removeprefix(COMBINED)
        for event in history.events
        if event.component == COMPONENT and event.reason in ("FailedDelete", "SuccessfulDelete")
    }
    if not any(message.endswith(" not found") for message in messages):
        return {}
    own = (event.count for event in history.events if event.component == COMPONENT)
    if sum(own) >= SPAM_BURST:
        return {}
    return {
        write.index: "the Job controller's Event FailedDelete says that the pod was gone by then"
        for write in history.writes
        if write.kind is WriteKind.POD_DELETE and write.pod is not None
        if f'Error deleting: pods "{write.pod.view.name}" not found' in messages
        if f"{DELETED_POD}{write.pod.view.name}" not in messages
    }


def other_writers(
    history: History, rules: JobRules, managers: Collection[str] = CONTROLLER_MANAGERS
) -> dict[int, str]:
    """Indexes of the writes that are certainly not the Job controller's, with the evidence."""
    found: dict[int, str] = {}
    for write in history.writes:
        actor = write.actor
        if write.hidden or (actor is not None and actor.controller == COMPONENT):
            continue
        evidence = _managed_elsewhere(history, write, rules) or _evidence(history, write, managers)
        if evidence is not None:
            found[write.index] = evidence
    return found


def _managed_elsewhere(history: History, write: Write, rules: JobRules) -> str | None:
    job = history.job_before(write.rv)
    if job is None or not rules.managed_elsewhere(job.view):
        return None
    return f"the Job's spec.managedBy is {job.view.spec.managed_by}"


def _evidence(history: History, write: Write, managers: Collection[str]) -> str | None:
    match write.kind:
        case WriteKind.STATUS_UPDATE:
            assert write.job is not None  # noqa: S101 - status writes have one
            return other_manager(write.job, managers, subresource="status") or _signed_before(
                write.job, managers
            )
        case WriteKind.POD_CREATE:
            assert write.pod is not None  # noqa: S101 - pod writes have one
            return other_manager(write.pod, managers, subresource="")
        case WriteKind.POD_RELEASE | WriteKind.POD_ADOPT | WriteKind.FINALIZER_REMOVAL:
            return _ownership_evidence(history, write, managers)
    return None


def _ownership_evidence(history: History, write: Write, managers: Collection[str]) -> str | None:
    assert write.pod is not None  # noqa: S101 - pod writes have one
    if write.kind is WriteKind.POD_RELEASE:
        job = history.job_before(write.rv)
        if job is None or job.type == "DELETED":
            return "the Job is gone: the garbage collector drops its owner references"
        if job.view.deleted_ns is not None:
            return (
                "the Job is being deleted "
                f"(finalizers {', '.join(job.view.finalizers) or 'none'}): the garbage collector "
                "drops its owner references, the Job controller releases nothing from then on"
            )
        before = write.pod.previous
        if write.pod.view.has_tracking_finalizer and before is not None:
            return (
                "the tracking finalizer stayed: the Job controller's release takes it off as well"
            )
    if write.pod.type == "DELETED":
        return None  # the last state is older than the write
    return other_manager(write.pod, managers, subresource="")


def other_manager(
    revision: Revision[JobView] | Revision[PodView] | Revision[CronJobView],
    managers: Collection[str],
    *,
    subresource: str,
) -> str | None:
    """Who changed the object if it was not the controller manager; None where it may have been."""
    entries = revision.evidence.managers()
    before = revision.previous.evidence.managers() if revision.previous is not None else ()
    changed = [entry for entry in entries if entry not in before]
    relevant = [entry for entry in changed if entry.subresource in ("", subresource)]
    if not relevant or any(entry.manager in managers for entry in relevant):
        return None
    new = any(_not_among(entry, before) for entry in relevant)  # nobody's entry appears by itself
    if not new and any(_not_among(entry, entries) for entry in before if entry.manager in managers):
        return None
    names = ", ".join(sorted({entry.manager for entry in relevant}))
    return f"managedFields name {names} as the writer of this revision"


def _signed_before(revision: Revision[JobView], managers: Collection[str]) -> str | None:
    """Who set something in a status if no entry shows it: one that had written in that very second.

    Who sets a field gives its entry the time, in whole seconds. Where no entry changed, the
    writer's had that time already: it is the latest of all, and no manager's with an earlier one.
    """
    before = revision.previous
    if before is None or only_lost(before.view.status, revision.view.status):
        return None
    entries = revision.evidence.managers()
    if not {*entries} <= {*before.evidence.managers()}:
        return None
    found = sorted({entry.manager for entry in setters(revision)})
    if found and not any(name in managers for name in found):
        return f"managedFields show nobody but {', '.join(found)} to have written in that second"
    signed = [entry for entry in entries if entry.subresource == "status"]
    latest_ns = max((entry.time_ns or 0 for entry in signed), default=0)
    latest = [entry for entry in signed if entry.time_ns == latest_ns]
    if not latest or any(entry.manager in managers for entry in latest):
        return None
    names = ", ".join(sorted({entry.manager for entry in latest}))
    return f"managedFields show nobody but {names} to have written at {format_rfc3339(latest_ns)}"


def _not_among(entry: Manager, entries: Collection[Manager]) -> bool:
    """Whether an entry is not among others: its manager has given up, or not had, any field."""
    return not any(
        (other.manager, other.subresource) == (entry.manager, entry.subresource)
        for other in entries
    )


def deletion_evidence(
    history: History, write: Write, *, events_recorded: bool, reported_again: bool
) -> str | None:
    """Who may have deleted a pod that no sync of the Job controller deletes; None if unknown.

    Where Events are recorded, the lack of one that owns up is evidence; and so is one that tells
    of a second deletion, which a sync makes that is explained.
    """
    assert write.pod is not None  # noqa: S101 - pod writes have one
    pod: PodView = write.pod.view
    for condition in pod.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return f"the pod has the condition DisruptionTarget ({condition.reason})"
    job = history.job_before(write.rv)
    if job is None or job.type == "DELETED":
        return JOB_GONE
    if job.view.deleted_ns is not None:
        return JOB_GOES
    if job.view.status.finished is not None:
        return "its Job has finished: the Job controller deletes nothing any more"
    if reported_again:
        return (
            "the Event SuccessfulDelete that names the pod is of a sync that deleted it once more; "
            "no rule of the Job controller asks for the first deletion: a user's or another's"
        )
    unnamed = (
        "no Event SuccessfulDelete of the Job controller names the pod, and none of its rules asks "
        "for the deletion: a user's or another controller's"
    )
    return unnamed if events_recorded else None
