"""Lies about what the controller was given: the spec of a Job, or a user's edit of it.

The controller's actions stay as they were; with another input they are wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .record import (
    Edit,
    JobLife,
    Lie,
    Record,
    copy_of,
    deleting,
    finalized,
    phase,
    pick,
    told,
)

ACTIONS = ("pod-create", "pod-delete", "status-update", "finalizer-removal", "event")
Spec = dict[str, Any]
ENDINGS = ("FailureTarget", "Failed", "SuccessCriteriaMet", "Complete")


def _in_spec(
    kind: str,
    what: str,
    change: Callable[[Spec, random.Random], bool | None],
    where: Callable[[JobLife], bool],
    doubt: str = "",
) -> Any:
    """A planter that changes the spec in every revision of one Job."""

    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [j for j in record.jobs if j.writes() and where(j)]
        rng.shuffle(choices)
        for job in choices:
            seed = rng.random()
            done = [change(edit.obj(i)["spec"], random.Random(seed)) for i in job.rows]
            if all(d is not False for d in done):
                return told(kind, job, f"{what} in every revision", ACTIONS, doubt=doubt)
            for i in job.rows:
                del edit.replaced[i]
        return None

    return plant


def ended(*reasons: str) -> Callable[[JobLife], bool]:
    def where(job: JobLife) -> bool:
        for kind in ENDINGS:
            for p in job.writes():
                condition = job.condition(p, kind)
                if condition and condition.get("reason", "") in reasons:
                    return True
        return False

    return where


def _add(name: str, delta: int, least: int = 0) -> Callable[[Spec, random.Random], bool]:
    def change(spec: Spec, rng: random.Random) -> bool:
        del rng
        if spec.get(name) is None or spec[name] + delta < least:
            return False
        spec[name] += delta
        return True

    return change


def _complete(job: JobLife) -> bool:
    f = job.finished_at()
    return f is not None and bool(job.condition(f, "Complete"))


def _fixed(job: JobLife) -> bool:
    return _complete(job) and job.spec.get("completions") is not None


def _wide(job: JobLife) -> bool:
    """Room for one more pod at the start, and no other reason for fewer: not a quota, either."""
    spec = job.spec
    if _refused(job):
        return False
    completions = spec.get("completions")
    return (
        not spec.get("suspend")
        and (completions is None or completions > spec.get("parallelism", 1))
        and bool(job.pods())
    )


def _narrow(job: JobLife) -> bool:
    """So many pods that one less would have been told: all are needed, and no quota is short."""
    spec = job.spec
    wanted, completions = spec.get("parallelism", 1), spec.get("completions")
    several = wanted > 1 and len(job.pods()) > 1 and wanted <= (completions or wanted)
    return not spec.get("suspend") and several and not _refused(job)


def _refused(job: JobLife) -> bool:
    """Whether creations of its pods were refused."""
    rows = job.record.rows
    return any(rows[i]["object"].get("reason") == "FailedCreate" for i in job.events())


def _one_limit_less(spec: Spec, rng: random.Random) -> bool:
    del rng
    if not 0 < (spec.get("backoffLimit") or 0) < 1000:
        return False
    spec["backoffLimit"] -= 1
    return True


def _lived_at_its_limit(job: JobLife) -> bool:
    """Whether it had as many failures as it may and was not ended: another was needed for that.

    Where one sync finds the last two, a lower limit would have ended it just then as well.
    """
    return (job.spec.get("backoffLimit") or 0) in _counts_lived_with(job, "failed")


def _succeeded_before(job: JobLife) -> bool:
    """Whether it had lived with one success less than ended it: another was needed for that."""
    rules = (job.spec.get("successPolicy") or {}).get("rules") or []
    counts = [rule["succeededCount"] for rule in rules if rule.get("succeededCount")]
    lived = _counts_lived_with(job, "succeeded")
    return ended("SuccessPolicy")(job) and any(count - 1 in lived for count in counts)


def _counts_lived_with(job: JobLife, which: str) -> set[int]:
    """How many pods had succeeded, or failed, by its status while nothing had ended it."""
    found = set()
    for p in job.writes():
        status = job.status(p)
        uncounted = (status.get("uncountedTerminatedPods") or {}).get(which) or ()
        if not any(job.condition(p, kind) for kind in ENDINGS):
            found.add(status.get(which, 0) + len(uncounted))
    return found


def _failed_some(job: JobLife) -> bool:
    """Whether it counted so many failures that one less had ended it: pods that failed themselves.

    Those that scaling down deletes leave as many as are wanted, which older versions let pass. A
    failure that the record or a user hid from the controller ends nothing.
    """
    limit = job.spec.get("backoffLimit") or 0
    failed = sum(any(_fails(pod.obj(p)) for p in range(len(pod.rows))) for pod in job.pods())
    counted = max(_counts_lived_with(job, "failed"), default=0)
    return min(failed, counted) >= limit > 0 and not ended("BackoffLimitExceeded")(job)


def _fails(pod: dict[str, Any]) -> bool:
    return phase(pod) == "Failed" and not deleting(pod)


def _managed(spec: Spec, rng: random.Random) -> None:
    del rng
    spec["managedBy"] = "example.com/other"


def _template_image(spec: Spec, rng: random.Random) -> None:
    del rng
    spec["template"]["spec"]["containers"][0]["image"] = "registry.example/newer:2"


def _template_label(spec: Spec, rng: random.Random) -> None:
    del rng
    spec["template"]["metadata"].setdefault("labels", {})["release"] = "blue"


def _policy_action(spec: Spec, action: str) -> bool:
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or []
    mine = [rule for rule in rules if rule["action"] == action]
    for rule in mine:
        rule["action"] = "Count"
    return bool(mine)


def _ignored_some(job: JobLife) -> bool:
    """Whether a failed pod lost its finalizer without being counted, for the Job that it had."""
    counted = max((job.status(p).get("failed", 0) for p in job.writes()), default=0)
    over = job.finished_at()
    last = len(job.rows) - 1 if job.deleted else len(job.rows)
    until_rv = min(
        (job.rv(p) for p in (over, last) if p is not None and p < len(job.rows)), default=None
    )
    gone = 0
    for pod in job.pods():
        for p in range(1, len(pod.rows)):
            lost = finalized(pod.obj(p - 1)) and not finalized(pod.obj(p))
            if lost and phase(pod.obj(p)) == "Failed":
                gone += until_rv is None or pod.rv(p) < until_rv
    return gone > counted and not _was_suspended(job)


def _many_allowed(spec: Spec, rng: random.Random) -> bool:
    del rng
    if spec.get("maxFailedIndexes") is None:
        return False
    spec["maxFailedIndexes"] = 100
    return True


def _index_limit_met(job: JobLife) -> bool:
    """Whether an index failed, and for its number of failures."""
    rules = (job.spec.get("podFailurePolicy") or {}).get("rules") or []
    by_rule = any(rule["action"] == "FailIndex" for rule in rules)
    return not by_rule and any(job.status(p).get("failedIndexes") for p in job.writes())


def _knows_managed_by(job: JobLife) -> bool:
    """Whether the version has managedBy: it came with the interim condition of success."""
    return bool(job.pods()) and any(
        other.condition(p, "SuccessCriteriaMet")
        for other in job.record.jobs
        for p in other.writes()
    )


def _none_allowed(spec: Spec, rng: random.Random) -> bool:
    del rng
    if spec.get("backoffLimitPerIndex") is None:
        return False
    spec["maxFailedIndexes"] = 0
    return True


def limit_reached(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The Job fails for its failures, which are as many as the limit allows."""
    choices = []
    for job in record.jobs:
        if job.spec["template"]["spec"].get("restartPolicy") != "Never":
            continue
        for p in job.writes():
            for kind in ("FailureTarget", "Failed"):
                condition = job.condition(p, kind)
                if condition and condition.get("reason") == "BackoffLimitExceeded":
                    choices.append((job, p))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p = choice
    limit = max(
        job.status(q).get("failed", 0)
        + len((job.status(q).get("uncountedTerminatedPods") or {}).get("failed", ()))
        for q in range(len(job.rows))
    )
    limit = max(limit, len(job.pods()))
    for i in job.rows:
        edit.obj(i)["spec"]["backoffLimit"] = limit
    what = f"backoffLimit {limit}: the Job fails before it is exceeded"
    return told("spec-backoff-limit-higher", job, what, ACTIONS, rv=job.rv(p))


def _policy_code(spec: Spec, rng: random.Random) -> bool:
    del rng
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        codes = rule.get("onExitCodes")
        if codes:
            codes["values"] = [value + 1 for value in codes["values"]]
            return True
    return False


def _success_count(delta: int) -> Callable[[Spec, random.Random], bool]:
    def change(spec: Spec, rng: random.Random) -> bool:
        del rng
        for rule in (spec.get("successPolicy") or {}).get("rules") or []:
            if rule.get("succeededCount") and rule["succeededCount"] + delta > 0:
                rule["succeededCount"] += delta
                return True
        return False

    return change


def _just_met(job: JobLife) -> bool:
    """Whether no more pods had succeeded than the success policy asks for when it was met."""
    met = next((p for p in job.writes() if job.condition(p, "SuccessCriteriaMet")), None)
    rules = (job.spec.get("successPolicy") or {}).get("rules") or []
    counts = [rule["succeededCount"] for rule in rules if rule.get("succeededCount")]
    if met is None or not counts:
        return False
    status = job.status(met)
    uncounted = (status.get("uncountedTerminatedPods") or {}).get("succeeded", ())
    return bool(status.get("succeeded", 0) + len(uncounted) <= counts[0])


def _success_index(spec: Spec, rng: random.Random) -> bool:
    del rng
    for rule in (spec.get("successPolicy") or {}).get("rules") or []:
        if rule.get("succeededIndexes") == "0":
            rule["succeededIndexes"] = "1"
            return True
    return False


def _replacement(spec: Spec, rng: random.Random) -> bool:
    del rng
    old = spec.get("podReplacementPolicy")
    if old is None:
        return False
    spec["podReplacementPolicy"] = "Failed" if old != "Failed" else "TerminatingOrFailed"
    return True


def _not_suspended(spec: Spec, rng: random.Random) -> None:
    del rng
    spec["suspend"] = False


def _suspended(spec: Spec, rng: random.Random) -> None:
    del rng
    spec["suspend"] = True


def _was_suspended(job: JobLife) -> bool:
    return any(job.condition(p, "Suspended") for p in job.writes())


def _deadline(seconds: int) -> Callable[[Spec, random.Random], bool]:
    return _add("activeDeadlineSeconds", seconds, 1)


def _deadline_set(spec: Spec, rng: random.Random) -> bool:
    del rng
    if spec.get("activeDeadlineSeconds") is not None:
        return False
    spec["activeDeadlineSeconds"] = 1
    return True


def _long(job: JobLife) -> bool:
    last = job.writes()[-1]
    return _complete(job) and job.recv(last) - job.recv(0) > 5 * 10**9


def edit_dropped(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A user's edit of the spec did not happen; the controller acts as if it had."""
    choices = []
    for job in record.jobs:
        for p in range(1, len(job.rows)):
            old, new = job.obj(p - 1)["spec"], job.obj(p)["spec"]
            changed = [
                key
                for key in ("parallelism", "completions", "suspend", "activeDeadlineSeconds")
                if old.get(key) != new.get(key)
            ]
            after = [w for w in job.writes() if w > p]
            if changed and after:
                choices.append((job, p, changed))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p, changed = choice
    old = job.obj(p - 1)["spec"]
    now = job.obj(p)["spec"]
    for q in range(p, len(job.rows)):
        spec = edit.obj(job.rows[q])["spec"]
        if any(spec.get(key) != now.get(key) for key in changed):
            break  # a later edit counts again
        for key in changed:
            if key in old:
                spec[key] = copy_of(old[key])
            else:
                spec.pop(key, None)
    what = f"the edit of {', '.join(changed)} did not happen"
    doubt = "the edit may have had no effect"
    return told("spec-edit-dropped", job, what, ACTIONS, rv=job.rv(p), doubt=doubt)


def edit_late(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The controller's answer to an edit is older than the edit: the edit comes after it."""
    choices = []
    for job in record.jobs:
        for p in range(1, len(job.rows) - 1):
            if job.obj(p)["spec"].get("suspend") != job.obj(p - 1)["spec"].get("suspend"):
                after = job.write_after(p)
                if after < len(job.rows) and p not in job.writes() and after == p + 1:
                    choices.append((job, p, after))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p, after = choice
    obj = edit.obj(job.rows[after])
    for key in ("spec",):
        obj[key] = copy_of(job.obj(p - 1)[key])
    obj["metadata"]["generation"] = job.obj(p - 1)["metadata"]["generation"]
    edit.drop([job.rows[p]])
    late = edit.insert_beside(record.rows[job.rows[p]], job.rows[after], ns=5_000_000)
    late["status"] = copy_of(job.status(after))
    what = "the controller acts on a suspension (or its end) before the edit"
    return told("spec-edit-late", job, what, ACTIONS, rv=job.rv(p))


KINDS = {
    "spec-backoff-limit-higher": limit_reached,
    "spec-backoff-limit-lower": _in_spec(
        "spec-backoff-limit-lower",
        "backoffLimit -1: the Job fails one failure too late",
        _one_limit_less,
        lambda j: (
            ended("BackoffLimitExceeded")(j)
            and j.spec["template"]["spec"].get("restartPolicy") == "Never"
            and _lived_at_its_limit(j)
        ),
    ),
    "spec-backoff-limit-passed": _in_spec(
        "spec-backoff-limit-passed",
        "backoffLimit -1: the Job should have failed",
        _one_limit_less,
        _failed_some,
    ),
    "spec-deadline-later": _in_spec(
        "spec-deadline-later",
        "activeDeadlineSeconds +3: the Job fails too early",
        _deadline(3),
        ended("DeadlineExceeded"),
    ),
    "spec-deadline-sooner": _in_spec(
        "spec-deadline-sooner",
        "activeDeadlineSeconds -3: the Job fails too late",
        _deadline(-3),
        ended("DeadlineExceeded"),
    ),
    "spec-deadline-set": _in_spec(
        "spec-deadline-set",
        "activeDeadlineSeconds 1: the Job should have failed",
        _deadline_set,
        _long,
    ),
    "spec-completions-more": _in_spec(
        "spec-completions-more", "completions +1", _add("completions", 1), _fixed
    ),
    "spec-completions-less": _in_spec(
        "spec-completions-less", "completions -1", _add("completions", -1, 1), _fixed
    ),
    "spec-parallelism-more": _in_spec(
        "spec-parallelism-more", "parallelism +1", _add("parallelism", 1), _wide
    ),
    "spec-parallelism-less": _in_spec(
        "spec-parallelism-less", "parallelism -1", _add("parallelism", -1, 1), _narrow
    ),
    "spec-managed-by": _in_spec(
        "spec-managed-by", "managedBy names somebody else", _managed, _knows_managed_by
    ),
    "spec-template-image": _in_spec(
        "spec-template-image",
        "another image in the template",
        _template_image,
        lambda j: bool(j.pods()),
    ),
    "spec-template-label": _in_spec(
        "spec-template-label",
        "a further label in the template",
        _template_label,
        lambda j: bool(j.pods()),
    ),
    "spec-policy-fail-job": _in_spec(
        "spec-policy-fail-job",
        "podFailurePolicy counts instead of FailJob",
        lambda spec, _: _policy_action(spec, "FailJob"),
        ended("PodFailurePolicy"),
    ),
    "spec-policy-ignore": _in_spec(
        "spec-policy-ignore",
        "podFailurePolicy counts instead of Ignore",
        lambda spec, _: _policy_action(spec, "Ignore"),
        _ignored_some,
    ),
    "spec-policy-code": _in_spec(
        "spec-policy-code",
        "podFailurePolicy names other exit codes",
        _policy_code,
        ended("PodFailurePolicy"),
    ),
    "spec-success-count-more": _in_spec(
        "spec-success-count-more", "succeededCount +1", _success_count(1), _just_met
    ),
    "spec-success-count-less": _in_spec(
        "spec-success-count-less", "succeededCount -1", _success_count(-1), _succeeded_before
    ),
    "spec-success-index": _in_spec(
        "spec-success-index",
        "succeededIndexes names another",
        _success_index,
        ended("SuccessPolicy"),
    ),
    "spec-replacement-policy": _in_spec(
        "spec-replacement-policy",
        "the other podReplacementPolicy",
        _replacement,
        lambda j: any(
            (j.status(p).get("terminating") or 0) and not j.status(p).get("conditions")
            for p in j.writes()
        ),
        doubt="no sync may have met a terminating pod that it would treat otherwise",
    ),
    "spec-index-limit-more": _in_spec(
        "spec-index-limit-more",
        "backoffLimitPerIndex +1",
        _add("backoffLimitPerIndex", 1),
        _index_limit_met,
    ),
    "spec-index-limit-less": _in_spec(
        "spec-index-limit-less",
        "backoffLimitPerIndex -1",
        _add("backoffLimitPerIndex", -1),
        _index_limit_met,
    ),
    "spec-max-failed-more": _in_spec(
        "spec-max-failed-more",
        "maxFailedIndexes 100: none too many",
        _many_allowed,
        ended("MaxFailedIndexesExceeded"),
    ),
    "spec-max-failed-set": _in_spec(
        "spec-max-failed-set",
        "maxFailedIndexes 0: the first ends the Job",
        _none_allowed,
        lambda j: (
            any(j.status(p).get("failedIndexes") for p in j.writes())
            and not ended("MaxFailedIndexesExceeded")(j)
        ),
        doubt="the first failed index may have come with the last pod",
    ),
    "spec-never-suspended": _in_spec(
        "spec-never-suspended", "suspend is false", _not_suspended, _was_suspended
    ),
    "spec-always-suspended": _in_spec(
        "spec-always-suspended",
        "suspend is true",
        _suspended,
        lambda j: bool(j.pods()) and not _was_suspended(j),
    ),
    "spec-edit-dropped": edit_dropped,
    "spec-edit-late": edit_late,
}
