"""Objects and an API server for the CronJob tests: answers are set per test, intents are kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from tracekit.base.kube.cronjob_views import ActiveRef, CronJobSpec, CronJobStatus, CronJobView
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.base.kube.views import JobView, job_from_raw
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import (
    Answer,
    CreateJob,
    DeleteJob,
    DeleteJobPods,
    RecordEvent,
    ScaleDownJob,
    UpdateCronJobStatus,
)
from tracekit.versions.cronjob import CronJobEra, cron_job_era
from tracekit.versions.version import KubeVersion

#: Thursday 19 May 2016, and the deadlines of the scenarios.
CREATED = "2016-05-19T09:00:00Z"
TOP = "2016-05-19T10:00:00Z"
HOURLY = "0 * * * ?"
SHORT_S, MEDIUM_S, LONG_S = 10, 2 * 3600, 1_000_000
NOT_FOUND = Answer(Outcome.NOT_FOUND, 'jobs.batch "x" not found')


def at(text: str | None) -> int:
    assert text is not None
    parsed = parse_rfc3339(text if "T" in text else f"2016-05-19T{text}Z")
    assert parsed is not None, text
    return parsed


def era(version: str, **gates: bool) -> CronJobEra:
    return cron_job_era(KubeVersion.parse(version), gates)


def cron_job(
    *,
    schedule: str = HOURLY,
    created: str = CREATED,
    last: str | None = None,
    active: tuple[ActiveRef, ...] = (),
    deleted: str | None = None,
    policy: str = "Allow",
    deadline: int | None = None,
    suspend: bool = False,
    limits: tuple[int | None, int | None] = (None, None),
    zone: str | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    succeeded: str | None = None,
    uid: str = "cj-uid",
) -> CronJobView:
    return CronJobView(
        namespace="ns",
        name="cj",
        uid=uid,
        rv=100,
        generation=1,
        created_ns=at(created),
        deleted_ns=at(deleted) if deleted else None,
        spec=CronJobSpec(
            schedule=schedule,
            time_zone=zone,
            starting_deadline_s=deadline,
            concurrency_policy=policy,
            suspend=suspend,
            successful_limit=limits[0],
            failed_limit=limits[1],
            job_labels=labels or {},
            job_annotations=annotations or {},
            job_spec={"template": {"spec": {"restartPolicy": "Never"}}},
        ),
        status=CronJobStatus(
            active=active,
            last_schedule_ns=at(last) if last else None,
            last_successful_ns=at(succeeded) if succeeded else None,
        ),
    )


def job(
    name: str,
    *,
    state: str | None = None,
    uid: str | None = None,
    owner: str | None = "cj",
    owner_uid: str = "cj-uid",
    owner_kind: str = "CronJob",
    started: str | None = "10:00:01",
    completed: str | None = None,
    labels: dict[str, str] | None = None,
    namespace: str = "ns",
    deleted: str | None = None,
    parallelism: int = 1,
    ttl: int | None = None,
    finished: str | None = "10:30:00",
    rv: int = 7,
) -> JobView:
    owners = [] if owner is None else [
        {"kind": owner_kind, "name": owner, "uid": owner_uid, "apiVersion": "batch/v1",
         "controller": True}
    ]  # fmt: skip
    status: dict = {}
    if started:
        status["startTime"] = f"2016-05-19T{started}Z"
    if completed:
        status["completionTime"] = f"2016-05-19T{completed}Z"
    if state:
        condition = {"type": state, "status": "True"}
        if finished:
            condition["lastTransitionTime"] = f"2016-05-19T{finished}Z"
        status["conditions"] = [condition]
    meta = {
        "namespace": namespace,
        "name": name,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(rv),
        "ownerReferences": owners,
        "labels": labels or {},
        "creationTimestamp": TOP,
    }
    if deleted:
        meta["deletionTimestamp"] = f"2016-05-19T{deleted}Z"
    spec: dict = {"parallelism": parallelism}
    if ttl is not None:
        spec["ttlSecondsAfterFinished"] = ttl
    return job_from_raw({"metadata": meta, "spec": spec, "status": status})


def ref(view: JobView) -> ActiveRef:
    return ActiveRef(view.name, view.uid, view.namespace)


@dataclass
class World:
    """Answers every read and write; `fail` maps a kind of write to the answers it gets in turn."""

    live_jobs: dict[str, JobView | Answer] = field(default_factory=dict)
    live_cron_job: CronJobView | Answer = field(default_factory=lambda: NOT_FOUND)
    fail: dict[type, list[Answer]] = field(default_factory=dict)
    writes: list = field(default_factory=list)
    reads: list[str] = field(default_factory=list)

    def perform(self, intent) -> Answer:
        self.writes.append(intent)
        queued = self.fail.get(type(intent))
        if queued:
            return queued.pop(0)
        if isinstance(intent, CreateJob):
            return Answer(uid=f"uid-{intent.name}", rv="500")
        if isinstance(intent, UpdateCronJobStatus):
            return Answer(rv=str(intent.base_rv + 1))
        return Answer()

    def get_job(self, namespace: str, name: str):
        del namespace
        self.reads.append(f"job {name}")
        return self.live_jobs.get(
            name, replace(NOT_FOUND, message=f'jobs.batch "{name}" not found')
        )

    def get_cron_job(self, namespace: str, name: str):
        del namespace
        self.reads.append(f"cronjob {name}")
        return self.live_cron_job

    def of(self, kind: type) -> list:
        return [intent for intent in self.writes if isinstance(intent, kind)]

    @property
    def created(self) -> list[str]:
        return [intent.name for intent in self.of(CreateJob)]

    @property
    def deleted(self) -> list[str]:
        return [intent.name for intent in self.of(DeleteJob)]

    @property
    def statuses(self) -> list[CronJobStatus]:
        return [intent.status for intent in self.of(UpdateCronJobStatus)]

    @property
    def events(self) -> list[str]:
        return [intent.reason for intent in self.of(RecordEvent)]

    @property
    def messages(self) -> list[str]:
        return [intent.message for intent in self.of(RecordEvent)]

    @property
    def calls(self) -> list[str]:
        """API writes without the events, in program order."""
        names = {
            CreateJob: "POST job",
            DeleteJob: "DELETE job",
            UpdateCronJobStatus: "PUT status",
            ScaleDownJob: "PUT job",
            DeleteJobPods: "DELETE pods",
        }
        return [names[type(i)] for i in self.writes if not isinstance(i, RecordEvent)]
