"""What the CronJob controllers read of a CronJob, as frozen records (see `views` for Jobs)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.base.kube.api_types import as_type
from tracekit.base.kube.decode import EMPTY
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.base.numbers import whole_number

ALLOW, FORBID, REPLACE = "Allow", "Forbid", "Replace"


class ActiveRef(NamedTuple):
    """One entry of status.active; `rv` is the Job's revision at its creation."""

    name: str
    uid: str
    namespace: str = ""
    kind: str = "Job"
    api_version: str = "batch/v1"
    rv: str = ""


class CronJobSpec(Struct, frozen=True):
    """The spec of a CronJob; None where a field is absent."""

    schedule: str
    time_zone: str | None = None
    starting_deadline_s: int | None = None
    concurrency_policy: str = ALLOW
    suspend: bool = False
    successful_limit: int | None = None
    failed_limit: int | None = None
    job_labels: Mapping[str, str] = field(default_factory=dict)
    job_annotations: Mapping[str, str] = field(default_factory=dict)
    job_spec: Mapping[str, Any] = field(default_factory=dict)


class CronJobStatus(Struct, frozen=True):
    """The status of a CronJob; times are whole seconds in nanoseconds."""

    active: tuple[ActiveRef, ...] = ()
    last_schedule_ns: int | None = None
    last_successful_ns: int | None = None

    def is_active(self, uid: str) -> bool:
        """Whether the list of running Jobs has that uid."""
        return any(ref.uid == uid for ref in self.active)

    def without(self, uid: str) -> CronJobStatus:
        """The status with that Job dropped from the running ones."""
        return replace(self, active=tuple(ref for ref in self.active if ref.uid != uid))


class CronJobView(Struct, frozen=True):
    """One revision of a CronJob."""

    namespace: str
    name: str
    uid: str
    rv: int
    generation: int
    created_ns: int
    deleted_ns: int | None
    spec: CronJobSpec
    status: CronJobStatus

    @property
    def key(self) -> str:
        """The work-queue key, `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def base_ns(self) -> int:
        """Where the search for missed runs starts: the last run, or the creation."""
        last = self.status.last_schedule_ns
        return self.created_ns if last is None else last

    @classmethod
    def from_raw(cls, raw: Mapping[str, Any]) -> CronJobView:
        """Decode a raw CronJob; parts of a wrong type count as absent."""
        meta = _map(raw.get("metadata"))
        version = _text(meta.get("resourceVersion"))
        return cls(
            namespace=_text(meta.get("namespace")),
            name=_text(meta.get("name")),
            uid=_text(meta.get("uid")),
            rv=whole_number(version) or 0,
            generation=_int(meta.get("generation")) or 0,
            created_ns=_time(meta.get("creationTimestamp")) or 0,
            deleted_ns=_time(meta.get("deletionTimestamp")),
            spec=cron_spec_from_raw(_map(raw.get("spec"))),
            status=status_from_raw(_map(raw.get("status"))),
        )


def status_from_raw(status: Mapping[str, Any]) -> CronJobStatus:
    """Decode a CronJob's status."""
    active = status.get("active")
    return CronJobStatus(
        active=tuple(
            ActiveRef(
                name=_text(ref.get("name")),
                uid=_text(ref.get("uid")),
                namespace=_text(ref.get("namespace")),
                kind=_text(ref.get("kind")),
                api_version=_text(ref.get("apiVersion")),
                rv=_text(ref.get("resourceVersion")),
            )
            for ref in (active if isinstance(active, list) else ())
            if isinstance(ref, dict)
        ),
        last_schedule_ns=_time(status.get("lastScheduleTime")),
        last_successful_ns=_time(status.get("lastSuccessfulTime")),
    )


def cron_spec_from_raw(spec: Mapping[str, Any]) -> CronJobSpec:
    """Decode a CronJob's spec."""
    spec = as_type("batch.CronJobSpec", spec)
    template = _map(spec.get("jobTemplate"))
    meta = _map(template.get("metadata"))
    zone = spec.get("timeZone")
    return CronJobSpec(
        schedule=_text(spec.get("schedule")),
        time_zone=zone if isinstance(zone, str) else None,
        starting_deadline_s=_int(spec.get("startingDeadlineSeconds")),
        concurrency_policy=_text(spec.get("concurrencyPolicy")) or ALLOW,
        suspend=spec.get("suspend") is True,
        successful_limit=_int(spec.get("successfulJobsHistoryLimit")),
        failed_limit=_int(spec.get("failedJobsHistoryLimit")),
        job_labels=_map(meta.get("labels")),
        job_annotations=_map(meta.get("annotations")),
        job_spec=_map(template.get("spec")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else EMPTY


def _time(value: Any) -> int | None:
    return parse_rfc3339(value) if isinstance(value, str) else None
