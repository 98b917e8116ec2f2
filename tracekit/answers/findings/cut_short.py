"""TK447: Jobs that somebody deleted while their pods ran: by whom, as far as anything tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from tracekit.answers.evidence import Evidence
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job, Pod, State
from tracekit.answers.words import clock, counted, named
from tracekit.base.kube.actors import SERVICE_ACCOUNT, controller_of, name_of
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.collected import is_collected
from tracekit.check.verdict import Judgement, Verdict

CUT_SHORT = Rule(
    "TK447", "deleted before it ended", Severity.WARNING,
    "The deletion of an unfinished Job that had pods was seen, and its CronJob's controller did "
    "not replace it (concurrencyPolicy Replace). Only info where none of them ran. Not where two "
    "lists only show that it went in between: it may have ended before.",
    "A Job that was deleted for good.",
    "Ask who deleted it: `tracekit who TRACE --object {object}` shows all writes to it. Without an "
    "audit log nothing names who asks for a deletion.", rank=14,
)  # fmt: skip
_HELM: Final = (
    "Helm deletes hooks: see the Job's annotation helm.sh/hook-delete-policy; before-hook-creation "
    "also deletes one that still runs."
)
#: Who deletes Jobs that run, by a part of the user's or the program's name, and how to keep it from
#: that: from that program's own documentation.
_DELETERS: Final = {
    "keda": "KEDA deletes the running Jobs of a ScaledJob whose spec changes: let "
    "spec.rollout.strategy be gradual.",
    "argocd": "Argo CD replaces, prunes or deletes hooks: see the Job's annotations "
    "argocd.argoproj.io/sync-options and argocd.argoproj.io/hook-delete-policy.",
    "helm": _HELM,
    "tiller": _HELM,
}


_ALL_WRITES: Final = "`tracekit who TRACE --object {object}` shows all writes to it."
_OF_NAMESPACE: Final = "See who deleted the namespace."


class _Deleter(Struct, frozen=True):
    """Who asked for a deletion, and from what that is known; without evidence nobody is."""

    who: str
    evidence: Evidence | None
    todo: str | None = None


def cut_short(facts: Facts, job: Job) -> Iterator[Case]:
    """The case, if the Job is one."""
    going = job.deletion
    if going is None or going is job.first:
        return
    if going.row["synthesized"] and going.row["actor"] is None:
        return  # it was missed in a list: nobody knows how it stood when it went
    if job.end is not None and job.end.rv < going.rv:
        return
    live = [(pod, state) for pod in job.pods if (state := _live_at(pod, going, job.uid))]
    if not job.pods or going.true("FailureTarget") or going.true("SuccessCriteriaMet"):
        return
    by = _deleter(facts, job, going)
    if by is None:
        return
    ran = [pod for pod, state in live if state.row["phase"] == "Running"]
    pods = [pod.name for pod in ran or [pod for pod, _ in live]]
    what = f"{counted(len(pods), 'pod')} of it {'ran' if ran else 'had not begun'} ({named(pods)})"
    known = by.evidence is not None
    yield Case(
        CUT_SHORT,
        job.target,
        "was deleted before it ended, "
        + (f"by {by.who}" if known else "and the record does not tell by whom"),
        going.at_ns,
        job.gone_ns or going.at_ns,
        f"at {clock(going.at_ns)}{f' ({by.evidence.value})' if by.evidence else ''}, while "
        + (what if pods else "none of its pods ran")
        + _owned_by(job),
        job.cronjob,
        severity=None if ran else Severity.INFO,
        evidence={
            "pods": pods,
            "by": by.who if known else None,
            "from": None if by.evidence is None else by.evidence.value,
        },
        todo=by.todo,
    )


def _owned_by(job: Job) -> str:
    """Who made it, where that was no CronJob."""
    kind, name = job.last.row["owner_kind"], job.last.row["owner_name"]
    return "" if kind in (None, "", "CronJob") else f"; its owner is {kind} {name}"


def _live_at(pod: Pod, going: State, owner_uid: str) -> State | None:
    """A pod of the Job as it was when the deletion was asked for, if it had not ended."""
    state = pod.before(going.rv)
    return state if state is not None and state.is_live_pod_of(owner_uid) else None


def _deleter(facts: Facts, job: Job, going: State) -> _Deleter | None:
    """Who deleted it; None for a CronJob's controller, which replaces runs by its policy."""
    user, agent = going.row["actor"], going.row["actor_agent"]
    asked = user is not None and str(going.row["verb"] or "").startswith("delete")
    controller = controller_of(user, agent) if asked else None
    if controller == "cronjob-controller" or _replaced(facts, job):
        return None
    if asked:
        return _by_request(facts, job, str(user), agent, controller)
    ending_ns = facts.terminating.get(job.namespace)
    if ending_ns is not None and ending_ns <= going.at_ns:
        why = "the namespace controller: its namespace is being deleted"
        return _Deleter(why, Evidence.STATUS, _OF_NAMESPACE)
    if any(map(is_collected, _of_cronjob(facts, job))):
        why = f"the garbage collector: its CronJob {job.cronjob} was deleted"
        return _Deleter(why, Evidence.RULES, "See who deleted the CronJob.")
    return _Deleter("", None)


def _by_request(
    facts: Facts, job: Job, user: str, agent: str | None, controller: str | None
) -> _Deleter:
    """Who asked for it, as an audit log has it; behind the namespace controller, who asked that."""
    if controller == "namespace-controller":
        who = facts.namespace_deleters.get(job.namespace)
        why = "the namespace controller, as its namespace was deleted"
        if not who:
            return _Deleter(why, Evidence.AUDIT, _OF_NAMESPACE)
        return _Deleter(f"{why} by {who}", Evidence.AUDIT, f"Ask {who} why: {_ALL_WRITES}")
    names = f"{user} {agent or ''}".lower()
    todo = next((advice for part, advice in _DELETERS.items() if part in names), None)
    if todo is None and user.startswith(SERVICE_ACCOUNT):
        todo = f"See the log of {user} at that time, and why it deletes Jobs: {_ALL_WRITES}"
    return _Deleter(controller or user, Evidence.AUDIT, todo or f"Ask {user} why: {_ALL_WRITES}")


def _replaced(facts: Facts, job: Job) -> bool:
    """Whether the controller of its CronJob deleted it."""
    explained = (Verdict.MATCH, Verdict.MATCH_LAGGED)
    return any(judgement.verdict in explained for judgement in _of_cronjob(facts, job))


def _of_cronjob(facts: Facts, job: Job) -> Sequence[Judgement]:
    """What replay said of the deletion as one of its CronJob's controller."""
    return [*facts.judgements.of_write((job.namespace, job.cronjob or ""), "job-delete", job.name)]


def deleted_before(job: Job, pods: list[Pod]) -> list[Pod]:
    """The pods whose deletion was asked for before the Job failed, which deletes what is left."""
    target = job.last.true("FailureTarget") or job.failure or {}
    failed_ns = int(target.get("last_transition_ns") or 0)
    return [pod for pod in pods if 0 < _asked_ns(pod) < failed_ns]


def _asked_ns(pod: Pod) -> int:
    """When the deletion of a pod was asked for, to the second; 0 where it was not."""
    row = pod.last.row
    return int(row["deleted_ns"] or 0) - int(row["deletion_grace_s"] or 0) * NS_PER_S


def deleted_by(pods: list[Pod]) -> str:
    """Who deleted the first of them, where a request tells; else that nothing does."""
    first = pods[0].first_at(lambda state: state.row["deleted_ns"] is not None)
    if first is None or first.row["actor"] is None:
        return ", by whom is not told"
    return f", by {name_of(first.row['actor'], first.row['actor_agent'])}"
