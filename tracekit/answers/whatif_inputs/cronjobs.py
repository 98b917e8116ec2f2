"""From the record of one CronJob to its part of the world, in which its controller starts its Jobs.

Users' writes are its creation, its edits, its deletion, the Jobs that were started by hand and the
deletions of its Jobs that no controller made. Which Jobs it starts is left to the run; their pods
get the lives of the recorded Job of the same slot, and others are extrapolated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tracekit.answers.whatif_inputs.extrapolated_pods import ExtrapolatedLifetimes
from tracekit.answers.whatif_inputs.jobs import JobWorld, job_body, merge_difference
from tracekit.answers.whatif_inputs.pod_lifetimes import SeenLife
from tracekit.base.kube.cronjob_views import CronJobSpec, CronJobStatus, CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.diff.cron_keys import CronReplay
from tracekit.check.diff.cron_ticks import SCHEDULED_AT, StartedJob
from tracekit.check.replay.history import Revision, WriteKind
from tracekit.model.cluster.api_server import Refusal
from tracekit.model.cluster.pod_life import PodLife, Slot
from tracekit.model.cluster.references import controller_reference
from tracekit.model.cluster.statuses import cron_job_status, time_text
from tracekit.model.simulate.world import (
    CreateObject,
    DeleteObject,
    DeletePodOf,
    PatchObject,
    SetPodQuota,
    UserWrite,
)
from tracekit.ports.cronjob.children import OWNER_KIND

_MINUTE_NS: Final = 60 * NS_PER_S


@dataclass(slots=True)
class CronWorld:
    """What the world did to one CronJob."""

    cron_job: CronJobView  # as it was first seen
    present: list[CreateObject] = field(default_factory=list)
    writes: list[UserWrite] = field(default_factory=list)
    lifetimes: list[SeenLife] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    pod_quota: int | None = None
    #: The recorded Jobs, by the minute for which they were started.
    jobs: dict[int, str] = field(default_factory=dict)
    #: Why the world of this CronJob is not all there; empty if it is.
    incomplete: str = ""


def cron_worlds(replay: CronReplay, job_worlds: Mapping[str, JobWorld]) -> Iterator[CronWorld]:
    """The worlds of the CronJobs of one name; `job_worlds` are those of their Jobs, by uid."""
    history = replay.history
    by_uid: dict[str, list[Revision[CronJobView]]] = {}
    for revision in history.cron_jobs:
        by_uid.setdefault(revision.view.uid, []).append(revision)
    own: dict[str, list[Revision[JobView]]] = {}
    for job_revision in history.jobs:
        own.setdefault(job_revision.view.uid, []).append(job_revision)
    by_hand = {w.uid for w in replay.of_others() if w.kind is WriteKind.JOB_CREATE}
    deleted = {w.uid for w in replay.of_others() if w.kind is WriteKind.JOB_DELETE}
    for uid, revisions in by_uid.items():
        world = CronWorld(revisions[0].view)
        _cron_job_writes(world, revisions)
        for job_uid, jobs in own.items():
            first = jobs[0].view
            owner = first.controller
            if owner is None or owner.kind != OWNER_KIND or owner.uid != uid:
                continue
            known = job_worlds.get(job_uid)
            if known is None:
                world.incomplete = "its Jobs are more than worlds are drawn of"
                continue
            _job(world, jobs, known, started_by_hand=job_uid in by_hand)
            by_users = PatchObject | DeletePodOf | SetPodQuota
            world.writes += [w for w in known.writes if isinstance(w, by_users)]
            if job_uid in deleted and not _gone_with_it(revisions, jobs[-1]):
                world.writes += [w for w in known.writes if isinstance(w, DeleteObject)]
        if revisions[0] is history.cron_jobs[0]:
            _strangers(world, history.strangers)
        world.writes.sort(key=lambda write: write.at_ns)
        yield world


def _cron_job_writes(world: CronWorld, revisions: Sequence[Revision[CronJobView]]) -> None:
    first = revisions[0]
    view = first.view
    meta: dict[str, Any] = {"namespace": view.namespace, "name": view.name}
    body: dict[str, Any] = {"metadata": meta, "spec": raw_spec(view.spec)}
    if first.type == "ADDED":
        world.writes.append(CreateObject(first.recv_ns, "cronjobs", body, uid=view.uid))
    else:
        meta["creationTimestamp"] = time_text(view.created_ns)
        body["status"] = cron_job_status(CronJobStatus(view.status.active, *_times(view)))
        world.present.append(CreateObject(first.recv_ns, "cronjobs", body, uid=view.uid))
    before = first
    for revision in revisions[1:]:
        if revision.type == "DELETED" or revision.view.deleted_ns is not None:
            world.writes.append(
                DeleteObject(revision.recv_ns, "cronjobs", view.namespace, view.name)
            )
            return
        patch = merge_difference(raw_spec(before.view.spec), raw_spec(revision.view.spec))
        if patch:
            world.writes.append(
                PatchObject(
                    revision.recv_ns, "cronjobs", view.namespace, view.name, {"spec": patch}
                )
            )
        before = revision


def _times(view: CronJobView) -> tuple[int | None, int | None]:
    return view.status.last_schedule_ns, view.status.last_successful_ns


def raw_spec(spec: CronJobSpec) -> dict[str, Any]:
    """A CronJob's spec as the API has it."""
    raw: dict[str, Any] = {
        "schedule": spec.schedule,
        "timeZone": spec.time_zone,
        "startingDeadlineSeconds": spec.starting_deadline_s,
        "concurrencyPolicy": spec.concurrency_policy,
        "suspend": spec.suspend,
        "successfulJobsHistoryLimit": spec.successful_limit,
        "failedJobsHistoryLimit": spec.failed_limit,
        "jobTemplate": {"spec": dict(spec.job_spec)},
    }
    meta = {"labels": dict(spec.job_labels), "annotations": dict(spec.job_annotations)}
    meta = {name: value for name, value in meta.items() if value}
    if meta:
        raw["jobTemplate"]["metadata"] = meta
    return {name: value for name, value in raw.items() if value is not None}


def _job(
    world: CronWorld, jobs: Sequence[Revision[JobView]], known: JobWorld, *, started_by_hand: bool
) -> None:
    """What a recorded Job gives: its pods' lives, and itself where no run can make it."""
    first = jobs[0]
    job = first.view
    world.lifetimes += known.lifetimes
    world.refusals += known.refusals
    world.pod_quota = world.pod_quota if known.pod_quota is None else known.pod_quota
    started = StartedJob.of(job.name, job.annotations.get(SCHEDULED_AT), 0, None, None)
    minute = started.due_minute
    if started.due_ns is not None:
        minute = started.due_ns // _MINUTE_NS
    if minute is not None and not started_by_hand:
        world.jobs.setdefault(minute, job.uid)
    cron_job = world.cron_job
    body = job_body(job)
    owner = job.controller
    api = owner.api_version if owner is not None else "batch/v1"
    body["metadata"]["ownerReferences"] = [
        controller_reference(api, OWNER_KIND, cron_job.name, cron_job.uid)
    ]
    if started_by_hand:
        world.writes.append(CreateObject(first.recv_ns, "jobs", body, uid=job.uid))
    elif first.type == "LIST" and job.status.finished is None:
        body["metadata"]["creationTimestamp"] = time_text(job.created_ns)
        world.present.append(CreateObject(first.recv_ns, "jobs", body, uid=job.uid))


def _strangers(world: CronWorld, jobs: Iterable[Revision[JobView]]) -> None:
    """Jobs of nobody's or of others' that stand under a name which a slot may want."""
    seen = set()
    for revision in jobs:
        job = revision.view
        if revision.type == "DELETED":
            world.writes.append(DeleteObject(revision.recv_ns, "jobs", job.namespace, job.name))
        elif job.uid not in seen:
            made = CreateObject(revision.recv_ns, "jobs", job_body(job), uid=job.uid)
            (world.writes if revision.type == "ADDED" else world.present).append(made)
        seen.add(job.uid)


def _gone_with_it(revisions: Sequence[Revision[CronJobView]], last: Revision[JobView]) -> bool:
    """Whether the Job went with its CronJob, or by its TTL: the run does that by itself."""
    if last.view.spec.ttl_s is not None and last.view.status.finished is not None:
        return True
    return any(
        r.rv <= last.rv and (r.type == "DELETED" or r.view.deleted_ns is not None)
        for r in revisions
    )


@dataclass(slots=True)
class CronPodLifetimes:
    """Lives for the pods of Jobs that a run starts: those of the recorded Job of the same slot."""

    filled: ExtrapolatedLifetimes
    #: The recorded Jobs by namespace, CronJob and minute.
    jobs: Mapping[tuple[str, str, int], str]
    #: The CronJobs of whose pods some were given lives that nobody saw, by namespace and name.
    extrapolated: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, worlds: Iterable[CronWorld]) -> CronPodLifetimes:
        """From the worlds of some CronJobs."""
        every = list(worlds)
        lifetimes = ExtrapolatedLifetimes.of(
            (life for world in every for life in world.lifetimes),
            {},
        )
        jobs = {
            (world.cron_job.namespace, world.cron_job.name, minute): uid
            for world in every
            for minute, uid in world.jobs.items()
        }
        return cls(lifetimes, jobs)

    def life_of(self, slot: Slot, pod: Mapping[str, Any]) -> PodLife:
        """The life of a pod that was just created."""
        started = StartedJob.of(slot.job, None, 0, None, None)
        minute = started.due_minute
        if started.due_ns is not None:
            minute = started.due_ns // _MINUTE_NS
        if slot.cron_job and minute is not None:
            uid = self.jobs.get((slot.namespace, slot.cron_job, minute))
            if uid is not None:
                slot = slot._replace(job_uid=uid)
        life = self.filled.life_of(slot, pod)
        uid = pod["metadata"]["uid"]
        given = self.filled.given[uid]
        if given.rule != "seen":
            self.extrapolated.add((slot.namespace, slot.cron_job))
        return life
