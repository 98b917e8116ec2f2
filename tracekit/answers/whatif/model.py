"""Runs of the model in a world drawn from a record, and how its Jobs went."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.answers.whatif.changes import Setting, with_settings
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.lanes import PodLane, PodState, lanes_of
from tracekit.answers.whatif_inputs.extrapolated_pods import (
    BY_ROW,
    ExtrapolatedLifetimes,
    Given,
    template_text,
)
from tracekit.answers.whatif_inputs.jobs import JobWorld
from tracekit.answers.whatif_inputs.pod_lifetimes import ran_anew, scheduled_anew
from tracekit.base.kube.merge_patch import merge_patched
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import job_from_raw, pod_from_raw
from tracekit.model.cluster.draws import Draws
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.run import Row, simulate
from tracekit.model.simulate.world import (
    CreateObject,
    DeletePodOf,
    PatchObject,
    Restart,
    UserWrite,
    World,
)
from tracekit.versions.era import Era

#: A run goes on so long after the record, so that what comes later in it can end.
AFTER_THE_RECORD_NS: Final = 1800 * NS_PER_S
#: A life that was cut off may be used so much longer than it was seen, or by such a part of it: a
#: run is not the record to the millisecond.
_CUT_OFF_SLACK_NS: Final = 3 * NS_PER_S // 10
_CUT_OFF_PART: Final = 20
#: The other rules may see what made the record's kill the pod so much later, for they gather events
#: for a second. The pod is taken to go on as it was until then, but not by more than half of the
#: time that it was seen.
_NOTICED_NS: Final = 13 * NS_PER_S // 10


#: So many things may happen in a run, requests, syncs and timers, and so many more for each write
#: and life that the record shows. What goes on for ever, as a Job's retries without end do,
#: costs by what was recorded so, and not by how long the record lasts.
_CALLS_AT_LEAST: Final = 200_000
_CALLS_PER_INPUT: Final = 2_000
#: Why a run that was stopped at that bound says nothing.
STOPPED: Final = (
    "it goes on and on: what the model lets happen in one run was used up before its end came"
)

#: What is looked at in a run.
_STREAMS: Final = ("jobs", "pods")


class ModelledJob(Struct, frozen=True):
    """How one Job went in a run."""

    course: JobCourse
    extrapolated: bool  # lives were made up out of others
    censored: str  # why the run says nothing; empty if it does
    lanes: tuple[PodLane, ...] = ()  # where they are asked for
    #: How it stood when the record ended, if the run then went on with it.
    then: JobCourse | None = None
    #: Whether the run was stopped before it ended.
    stopped: bool = False


@dataclass(slots=True)
class _Seen:
    """What the recorder of a run saw of one Job."""

    job: Mapping[str, Any] | None = None
    deleted: bool = False
    pods: dict[str, list[Row]] = field(default_factory=dict)
    #: The Job when the record ended, and how many pods it had had by then.
    then: tuple[Mapping[str, Any] | None, int] = (None, 0)


def run_jobs(
    worlds: Sequence[JobWorld],
    era: Era,
    flags: ManagerFlags,
    draws: Draws,
    *,
    end_ns: int,
    restarts: Sequence[Restart] = (),
    settings: tuple[Setting, ...] = (),
    by_pod: bool = False,
    anew: bool = False,
    lanes: bool = False,
) -> dict[str, ModelledJob]:
    """Run Jobs together in one process; how each went, by uid, with its pods' lanes if asked.

    Pods that somebody deleted are deleted at that time, or with `by_pod` at that age. With `anew`
    the scheduler, and containers that run again, take other times than in the record.
    """
    seen = [
        life.with_deletion() if by_pod else life for world in worlds for life in world.lifetimes
    ]
    lifetimes = ExtrapolatedLifetimes.of(
        ran_anew(scheduled_anew(seen, draws), draws) if anew else seen,
        {world.job.uid: template_text(world.job.spec.template) for world in worlds},
    )
    change = with_user_settings(settings)
    writes = [
        change(write)
        for world in worlds
        for write in world.writes
        if not (by_pod and isinstance(write, DeletePodOf))
    ]
    writes.sort(key=lambda write: write.at_ns)
    world = World(
        start_ns=min((write.at_ns for write in writes), default=end_ns) - NS_PER_S,
        end_ns=end_ns + AFTER_THE_RECORD_NS,
        writes=writes,
        lifetimes=lifetimes,
        refusals=[refusal for world in worlds for refusal in world.refusals],
        restarts=restarts,
        renews_lease=bool(restarts),
        pod_quota={w.job.namespace: w.pod_quota for w in worlds if w.pod_quota is not None},
    )
    run = simulate(
        world, era, flags, draws, streams=_STREAMS, calls_max=calls_max(len(writes) + len(seen))
    )
    shown = _by_job(run.rows, {world.job.uid for world in worlds}, end_ns)
    found = {world.job.uid: _modelled(shown[world.job.uid], lifetimes) for world in worlds}
    if run.stopped:
        found = {
            uid: one if one.course.ended else replace(one, censored=STOPPED, stopped=True)
            for uid, one in found.items()
        }
    if lanes:
        return {uid: replace(one, lanes=_lanes(shown[uid], end_ns)) for uid, one in found.items()}
    return found


def calls_max(inputs: int) -> int:
    """How much may happen in a run of so many writes and lives of a record."""
    return _CALLS_AT_LEAST + _CALLS_PER_INPUT * inputs


def with_user_settings(
    settings: tuple[Setting, ...], cron_settings: Mapping[str, Any] | None = None
) -> Callable[[UserWrite], UserWrite]:
    """What becomes of a user's write under `--set` and `--set-cron`, a patch of a CronJob's spec.

    A setting holds for the whole life of an object: whatever users write to that field is dropped.
    """
    cron = dict(cron_settings or {})

    def of_job(spec: Mapping[str, Any]) -> dict[str, Any]:
        return with_settings(spec, settings)

    def of_cron_job(spec: Mapping[str, Any]) -> dict[str, Any]:
        template = dict(spec.get("jobTemplate") or {})
        template["spec"] = of_job(template.get("spec") or {})
        patched: dict[str, Any] = merge_patched({**spec, "jobTemplate": template}, cron)
        return patched

    makers = {"jobs": of_job, "cronjobs": of_cron_job}

    def change(write: UserWrite) -> UserWrite:
        if isinstance(write, CreateObject) and write.kind in makers:
            body = dict(write.body)
            body["spec"] = makers[write.kind](body["spec"])
            return write._replace(body=body)
        if isinstance(write, PatchObject) and write.kind in makers and "spec" in write.patch:
            patch = copy.deepcopy(dict(write.patch))
            if write.kind == "cronjobs":
                patch["spec"] = {k: v for k, v in patch["spec"].items() if k not in cron}
                inner = patch["spec"].get("jobTemplate", {}).get("spec")
            else:
                inner = patch["spec"]
            for setting in settings:
                _drop(inner, setting.path.split("."))
            return write._replace(patch=patch)
        return write

    return change if settings or cron else lambda write: write


def _drop(patch: Any, path: Sequence[str]) -> None:
    """Take a field out of a patch."""
    for name in path[:-1]:
        patch = patch.get(name) if isinstance(patch, dict) else None
    if isinstance(patch, dict):
        patch.pop(path[-1], None)


def _lanes(seen: _Seen, end_ns: int) -> tuple[PodLane, ...]:
    return lanes_of(
        (
            PodState(row.recv_ns, row.type, pod_from_raw(row.obj))
            for rows in seen.pods.values()
            for row in rows
        ),
        end_ns,
    )


def _by_job(rows: Sequence[Row], uids: set[str], end_ns: int) -> dict[str, _Seen]:
    """What was seen of each Job; `end_ns` is the end of the record, after which the run goes on."""
    found = {uid: _Seen() for uid in uids}
    ended = bisect_right(rows, end_ns, key=lambda row: row.recv_ns)
    for row in rows[:ended]:
        _take(row, found)
    for seen in found.values():
        seen.then = seen.job, len(seen.pods)
    for row in rows[ended:]:
        _take(row, found)
    return found


def _take(row: Row, found: Mapping[str, _Seen]) -> None:
    if row.type in ("LIST_BEGIN", "LIST_END"):
        return
    meta = row.obj.get("metadata", {})
    if row.stream == "jobs" and meta.get("uid") in found:
        seen = found[meta["uid"]]
        seen.job, seen.deleted = row.obj, row.type == "DELETED"
    elif row.stream == "pods":
        for ref in meta.get("ownerReferences", ()):
            if ref.get("controller") and ref["uid"] in found:
                found[ref["uid"]].pods.setdefault(meta["uid"], []).append(row)


def _modelled(seen: _Seen, lifetimes: ExtrapolatedLifetimes) -> ModelledJob:
    if seen.job is None:
        course = JobCourse(None, "", 0, 0, 0, None)
        why = "the API server of that version refuses the Job"
        return ModelledJob(course, extrapolated=False, censored=why)
    job = job_from_raw(seen.job)
    extrapolated = False
    censored = ""
    for uid, rows in seen.pods.items():
        given = lifetimes.given.get(uid)
        if given is None:
            continue
        if given.rule == BY_ROW:
            censored = censored or (
                "that version knows no completion indexes, and nobody saw what its pods do without"
            )
        if given.disputed:
            censored = censored or (
                "it makes a pod, and of pods like it some were seen to succeed and the last to fail"
            )
        if given.rule != "seen" or (given.stops != "seen" and _was_stopped(rows)):
            extrapolated = True
        if given.cut_off_ns is None:
            continue
        beyond_ns = ran_ns(rows) - given.cut_off_ns
        extrapolated |= beyond_ns > usable_ns(given.cut_off_ns)
        if not given.beyond and beyond_ns > noticed_ns(given):
            censored = censored or (
                "a pod lives on where its life was cut off in the record, and nobody saw how it "
                "would have gone on"
                if given.rule == "seen"
                else "it makes a pod of which nothing like it was seen to its end"
            )
    course = JobCourse.of(job.status, job.created_ns, len(seen.pods))
    return ModelledJob(course, extrapolated, censored, then=_then(seen))


def _then(seen: _Seen) -> JobCourse | None:
    """How the Job stood when the record ended; None if it was as it is now, or not there yet."""
    obj, pods = seen.then
    if obj is None or (obj is seen.job and pods == len(seen.pods)):
        return None
    job = job_from_raw(obj)
    return JobCourse.of(job.status, job.created_ns, pods)


def usable_ns(cut_off_ns: int) -> int:
    """So much longer than it was seen a life counts as seen."""
    return max(_CUT_OFF_SLACK_NS, cut_off_ns // _CUT_OFF_PART)


def noticed_ns(given: Given) -> int:
    """So much longer than it was seen a life may be taken to go on as it was."""
    cut_off_ns = given.cut_off_ns or 0
    noticed_ns = max(usable_ns(cut_off_ns), min(_NOTICED_NS, cut_off_ns // 2))
    return noticed_ns if given.goes_on_ns is None else min(noticed_ns, given.goes_on_ns)


def _was_stopped(rows: Sequence[Row]) -> bool:
    """Whether the pod was deleted while it ran."""
    return any(_deleted(row.obj) and _phase(row.obj) == "Running" for row in rows)


def ran_ns(rows: Sequence[Row], until_ns: int | None = None) -> int:
    """How long a pod ran, or waited, until it was deleted or the run ended.

    `until_ns` is the end of the run; without it, one that goes on well after the pod's start.
    """
    started = next((row for row in rows if _phase(row.obj) not in ("", "Pending")), None)
    bound = next((row for row in rows if row.obj["spec"].get("nodeName")), None)
    since = (started or bound or rows[0]).recv_ns
    end = next((row for row in rows if _deleted(row.obj) or _phase(row.obj) in _ENDED), None)
    if end is not None:
        return end.recv_ns - since
    return AFTER_THE_RECORD_NS if until_ns is None else max(until_ns - since, 0)


_ENDED: Final = ("Succeeded", "Failed")


def _phase(pod: Mapping[str, Any]) -> str:
    phase: str = pod["status"].get("phase", "")
    return phase


def _deleted(pod: Mapping[str, Any]) -> bool:
    return pod["metadata"].get("deletionTimestamp") is not None
