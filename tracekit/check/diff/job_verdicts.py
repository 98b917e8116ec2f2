"""How a judgement about a Job is worded: which object and action, when and at which revision."""

from __future__ import annotations

from functools import lru_cache

from tracekit.check.compare.fields import FieldDifference
from tracekit.check.replay.history import History, Write, WriteKind
from tracekit.check.verdict import Assumption, Judgement, ObjectRef, Reason, Verdict

CONTROLLER = "job"


def object_of(history: History, uid: str = "") -> ObjectRef:
    """The Job of a key; the last one of that name if no uid tells which."""
    if not uid and history.jobs:
        uid = history.jobs[-1].view.uid
    return _job_ref(history.namespace, history.name, uid)


@lru_cache(16)
def _job_ref(namespace: str, name: str, uid: str) -> ObjectRef:
    return ObjectRef("Job", namespace, name, uid)


#: What ties a write to its judgement: revision, action, subject.
Place = tuple[str, str, str]


def place_of(write: Write) -> Place:
    """What ties a write to its judgement."""
    return str(write.rv), write.kind.action, write.subject


def judge_write(
    history: History,
    write: Write,
    verdict: Verdict,
    why: str,
    *,
    fields: tuple[FieldDifference, ...] = (),
    lag_observations: int = 0,
    lag_ns: int = 0,
    reason: Reason | None = None,
    ambiguous: bool = False,
    silent_syncs: int = 0,
    assumptions: tuple[Assumption, ...] = (),
) -> Judgement:
    """A verdict on a write that was observed."""
    if write.kind is WriteKind.STATUS_UPDATE:
        uid, subject = write.uid, "status"
    else:
        assert write.pod is not None  # noqa: S101 - pod writes have one
        pod = write.pod.view
        before = write.pod.previous.view if write.pod.previous is not None else pod
        owner = pod.controller or before.controller
        uid, subject = owner.uid if owner is not None else "", pod.name
    return Judgement(
        CONTROLLER,
        object_of(history, uid),
        write.kind.action,
        verdict,
        write.shown_ns,
        str(write.rv),
        subject,
        why,
        fields,
        lag_observations,
        lag_ns,
        reason=reason,
        ambiguous=ambiguous,
        silent_syncs=silent_syncs,
        assumptions=assumptions,
    )


def judge_missing(
    history: History, kind: WriteKind, uid: str, subject: str, why: str, *, rv: int, time_ns: int
) -> Judgement:
    """A verdict on a write that should have been there by `time_ns`."""
    return Judgement(
        CONTROLLER,
        object_of(history, uid),
        kind.value,
        Verdict.MISSING,
        time_ns,
        str(rv),
        subject,
        why,
    )
