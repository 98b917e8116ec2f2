"""Writes that leave no trace of who made them.

A watch shows a writer by the managedFields entry that a write gives a time to, and an entry gets
one only where a field was set. What only takes something off (a finalizer, an owner reference,
fields of a status) is signed by nobody: where no sync explains it, it may be anybody's.
"""

from __future__ import annotations

from msgspec.structs import replace

from tracekit.base.kube import job_status
from tracekit.base.kube.field_managers import CONTROLLER_MANAGERS
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobStatus, JobView, PodView
from tracekit.check.compare.status import PLAIN
from tracekit.check.replay.history import History, Manager, Revision, Write, WriteKind
from tracekit.check.replay.recorded_api import Problem
from tracekit.versions.job import JobRules

_COUNTS = frozenset(job_status.COUNTS)
_COUNTS_PATHS = frozenset(path for name, path in PLAIN if name in _COUNTS)

#: What of a pod ties it to its Job: a patch of these alone changes nothing else.
TIES = {
    WriteKind.FINALIZER_REMOVAL: "a finalizer",
    WriteKind.POD_RELEASE: "an owner reference",
}


def unsigned(
    history: History, write: Write, rules: JobRules, *, other_counts: bool = False
) -> str | None:
    """Why a write that no sync explains may be anybody's; None if it must be the controller's.

    `other_counts`: in its place a sync writes other counts. What its absence leads to is asked of
    the syncs that follow.
    """
    if write.actor is not None:
        return None
    if write.kind is WriteKind.STATUS_UPDATE and write.job is not None:
        said = _status(write.job) or _without_managed_fields(history, write.job, rules)
        return said or (None if other_counts else _lone_count(write.job, rules))
    what = TIES.get(write.kind)
    if what is None or write.pod is None or not _loses_a_tie(write.pod):
        return None
    if write.kind is WriteKind.FINALIZER_REMOVAL and _was_counted(history, write.pod):
        return None
    return (
        f"no cut makes a sync do this, and a watch does not show who takes {what} off: an audit "
        "log would tell whether it was the controller"
    )


def miscounts(problem: Problem) -> bool:
    """Whether a sync writes this status, but for counts.

    One that writes something else besides, as the end of a pod, has not made this write.
    """
    return problem.verdict == "different" and all(d.path in _COUNTS_PATHS for d in problem.fields)


def _loses_a_tie(revision: Revision[PodView]) -> bool:
    """Whether nothing else changed with this revision."""
    before = revision.previous
    if before is None:
        return False
    return _without_ties(before.view) == _without_ties(revision.view)


def _without_ties(pod: PodView) -> PodView:
    return replace(
        pod, rv=0, controller=None, owners=(), finalizers=(), has_tracking_finalizer=False
    )


def _was_counted(history: History, revision: Revision[PodView]) -> bool:
    """Whether the controller counted the pod with or without the finalizer that it lost here.

    Who adopts a pod gives it a new one: what is counted from then on was counted with that. From a
    pod that has not ended nothing makes a sync take it off before its count, though it may count
    the pod as it deletes it.
    """
    uid = revision.view.uid
    if revision.previous is not None and not revision.previous.view.terminal:
        return False
    given = (
        pod.rv
        for pod in history.pods[revision.position + 1 :]
        if pod.view.uid == uid and pod.view.has_tracking_finalizer
    )
    until_rv = next(given, None)
    return any(
        uid in (*job.view.status.uncounted_succeeded, *job.view.status.uncounted_failed)
        for job in history.jobs
        if until_rv is None or job.rv < until_rv
    )


def _status(revision: Revision[JobView]) -> str | None:
    """A status that only lost fields, with no managedFields entry of a new time.

    An entry of which every field went is gone with them. Entries count in whole seconds: of two
    writes of the controller within one the second may bring none, and cannot be told apart.
    """
    before = revision.previous
    if before is None:
        return None
    names = {entry.manager for entry in setters(revision)}
    if names & set(CONTROLLER_MANAGERS) and names - set(CONTROLLER_MANAGERS):
        return (
            "no cut makes a sync write this, and managedFields do not tell who did of those who "
            f"wrote in that second ({', '.join(sorted(names))}): an audit log would"
        )
    if not only_lost(before.view.status, revision.view.status):
        return None
    entries = revision.evidence.managers()
    if not entries or not {*entries} <= {*before.evidence.managers()}:
        return None
    return (
        "no cut makes a sync write this, and managedFields name nobody who took fields out of the "
        "status: an audit log would tell whether it was the controller"
    )


def _without_managed_fields(
    history: History, revision: Revision[JobView], rules: JobRules
) -> str | None:
    """A status in a record that holds no managedFields, which would name others who wrote it.

    Up to 1.22 a sync on an old cache may put one. From then on no sync does, and all API servers
    have managedFields: kubectl and many recorders leave them out.
    """
    before = revision.previous
    if before is None or not _nobody_signs(revision, rules):
        return None
    return _of_one_that_was_over(before) or _taken_back(history, before, revision)


def _nobody_signs(revision: Revision[JobView], rules: JobRules) -> bool:
    """Whether the record leaves out what its API server keeps of who wrote a status."""
    return not rules.overwrites_status and not revision.evidence.managers()


def _lone_count(revision: Revision[JobView], rules: JobRules) -> str | None:
    """A status of which one count alone changes, where no sync writes it.

    What a sync counts anew (active, ready, terminating) is soon something else, and had the
    controller not put it right, a write is missing. How many ended is gone on from, whoever set it:
    a sync changes that together with uncountedTerminatedPods, where finalizers track pods.
    """
    changed = _differing(revision)
    if len(changed) != 1 or not changed <= _COUNTS or not _nobody_signs(revision, rules):
        return None
    return (
        "no cut makes a sync write this count alone, and the record holds no managedFields, which "
        "would tell who did: a user, perhaps"
    )


def _of_one_that_was_over(before: Revision[JobView]) -> str | None:
    """A status that a Job got after its end."""
    if before.view.status.finished is None:
        return None
    return (
        "no sync writes the status of a Job that is over, and the record holds no managedFields, "
        "which would tell who did"
    )


def _taken_back(
    history: History, before: Revision[JobView], revision: Revision[JobView]
) -> str | None:
    """A status of which the next one takes all back.

    So looks what a user sets and the controller's next sync puts right.
    """
    changed = _differing(revision)
    if not changed:
        return None
    later = (job for job in history.jobs[revision.position + 1 :] if job.previous is not None)
    following = next((job for job in later if _differing(job)), None)
    if following is None or following.view.uid != revision.view.uid:
        return None
    old, new = before.view.status, following.view.status
    if any(getattr(old, name) != getattr(new, name) for name in changed):
        return None
    return (
        "no cut makes a sync write this, the next status takes it back, and the record holds no "
        "managedFields, which would tell who did: a user, perhaps, and the controller put it right"
    )


def setters(revision: Revision[JobView]) -> list[Manager]:
    """Who may have set what this revision changes in a status, where no entry shows it.

    Who sets a field that was not there is its owner from then on, and his entry gets the time, in
    whole seconds: one that had it already does not change. What he sets in it afterwards leaves no
    trace at all. Empty where entries changed, or the fields were there before.
    """
    entries = revision.evidence.managers()
    changed = _changed(revision)
    while entries and changed and revision.previous is not None:
        before = revision.previous
        if not {*entries} <= {*before.evidence.managers()}:
            return []
        if any(not getattr(before.view.status, name) for name in changed & _changed(revision)):
            since_ns = revision.recv_ns // NS_PER_S * NS_PER_S - NS_PER_S
            # Up to 1.21 entries name no subresource: one may hold fields of spec and status.
            named = any(entry.subresource for entry in entries)
            return [
                entry
                for entry in entries
                if (entry.time_ns or 0) >= since_ns and (entry.subresource or not named)
            ]
        revision = before
    return []


def _changed(revision: Revision[JobView]) -> set[str]:
    """The fields of a status that a revision sets."""
    return {name for name in _differing(revision) if getattr(revision.view.status, name)}


def _differing(revision: Revision[JobView]) -> set[str]:
    """The fields of a status that a revision changes."""
    before = revision.previous
    if before is None:
        return set()
    old, new = before.view.status, revision.view.status
    return {n for n in JobStatus.__struct_fields__ if getattr(old, n) != getattr(new, n)}


def only_lost(old: JobStatus, new: JobStatus) -> bool:
    """Whether nothing was set that was not so before."""
    return not any(
        getattr(new, name) and getattr(old, name) != getattr(new, name)
        for name in JobStatus.__struct_fields__
    )
