"""What the batch controllers read of a Job and a Pod, as frozen records.

A view is made once per revision and never changed: caches hand the same object to every reader.
Absent and zero are kept apart wherever the API keeps them apart. Times are nanoseconds since the
epoch. The raw object stays with the trace; `spec` and `template` below are the decoded JSON of
that one part and must be treated as read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from tracekit.base.kube import job_status
from tracekit.base.kube.api_types import as_type
from tracekit.base.kube.decode import (
    as_int,
    as_items,
    as_map,
    as_string_map,
    as_strings,
    as_text,
    as_time,
)
from tracekit.base.kube.job_status import Shape
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.numbers import whole_number

JOB_TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
JOB_TRACKING_ANNOTATION = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURE_COUNT_ANNOTATION = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURE_COUNT_ANNOTATION = "batch.kubernetes.io/job-index-ignored-failure-count"
UNKNOWN_COMPLETION_INDEX = -1
_INT32_MAX = 2**31 - 1
T = TypeVar("T")


class OwnerRef(NamedTuple):
    """One entry of metadata.ownerReferences."""

    kind: str
    name: str
    uid: str
    api_version: str
    controller: bool
    blocks_deletion: bool = True  # blockOwnerDeletion


class Condition(NamedTuple):
    """One condition of a Job or a Pod; `last_*_ns` is None where the field is absent or null."""

    type: str
    status: str
    reason: str
    message: str
    last_probe_ns: int | None
    last_transition_ns: int | None


class ContainerStatus(Struct, frozen=True, gc=False):
    """One container or init container: `exit_code` is None while it has not terminated."""

    name: str
    init: bool
    restart_count: int
    exit_code: int | None
    finished_ns: int | None


class PodView(msgspec.Struct, frozen=True, gc=False):
    """One revision of a pod."""

    namespace: str
    name: str
    uid: str
    rv: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    controller: OwnerRef | None
    owners: tuple[OwnerRef, ...]
    finalizers: tuple[str, ...]
    created_ns: int
    deleted_ns: int | None
    deletion_grace_s: int
    phase: str
    node_name: str
    ready: bool
    ready_since_ns: int | None
    restarts: int  # sum over containers and init containers
    restarts_max: int  # maximum over regular containers
    has_tracking_finalizer: bool
    completion_index: int  # UNKNOWN_COMPLETION_INDEX where it is absent or malformed
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerStatus, ...] = ()
    sidecars: frozenset[str] = frozenset()  # names of restartable init containers
    sidecar_restarts_max: int = 0

    @property
    def terminal(self) -> bool:
        """Whether the phase is Succeeded or Failed."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def active(self) -> bool:
        """Neither finished nor being deleted (upstream: controller.IsPodActive)."""
        return self.deleted_ns is None and self.phase not in ("Succeeded", "Failed")

    @property
    def terminating(self) -> bool:
        """Being deleted and not finished (upstream: controller.IsPodTerminating)."""
        return self.deleted_ns is not None and self.phase not in ("Succeeded", "Failed")


class JobSpec(msgspec.Struct, frozen=True, gc=False):
    """The spec of a Job, defaults as the API server fills them in."""

    parallelism: int
    completions: int | None
    backoff_limit: int
    active_deadline_s: int | None
    indexed: bool
    completion_mode: str
    suspend: bool
    selector: Mapping[str, Any] | None
    template: Mapping[str, Any]
    restart_policy: str
    pod_failure_rules: tuple[Mapping[str, Any], ...] | None
    backoff_limit_per_index: int | None
    max_failed_indexes: int | None
    pod_replacement_policy: str | None
    success_rules: tuple[Mapping[str, Any], ...] | None
    managed_by: str | None
    ttl_s: int | None
    raw: Mapping[str, Any]

    @property
    def ignores_failures(self) -> bool:
        """Whether its podFailurePolicy may leave failures out of the status."""
        return any(rule.get("action") == "Ignore" for rule in self.pod_failure_rules or ())


class JobStatus(msgspec.Struct, frozen=True, gc=False):
    """The status of a Job; None means that the field is absent.

    What each attribute is made of, `job_status.FIELDS` declares, in the same order.
    """

    active: int = 0
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    start_ns: int | None = None
    completion_ns: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_succeeded: tuple[str, ...] = ()
    uncounted_failed: tuple[str, ...] = ()
    tracks_uncounted: bool = False  # whether uncountedTerminatedPods is there at all
    conditions: tuple[Condition, ...] = ()

    def condition(self, condition_type: str) -> Condition | None:
        """The first condition of that type, whatever its status."""
        for condition in self.conditions:
            if condition.type == condition_type:
                return condition
        return None

    @property
    def finished(self) -> Condition | None:
        """The first Complete or Failed condition that is True (upstream: IsJobFinished)."""
        for condition in self.conditions:
            if condition.type in ("Complete", "Failed") and condition.status == "True":
                return condition
        return None


class JobView(msgspec.Struct, frozen=True, gc=False):
    """One revision of a Job."""

    namespace: str
    name: str
    uid: str
    rv: int
    generation: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    controller: OwnerRef | None
    finalizers: tuple[str, ...]
    created_ns: int
    deleted_ns: int | None
    spec: JobSpec
    status: JobStatus

    @property
    def key(self) -> str:
        """The work-queue key, `namespace/name`."""
        return f"{self.namespace}/{self.name}"


# Decoding of raw objects.


def _rv(meta: Mapping[str, Any]) -> int:
    return whole_number(as_text(meta.get("resourceVersion"))) or 0


def owner_refs(meta: Mapping[str, Any]) -> tuple[OwnerRef, ...]:
    """Every owner reference of an object's metadata."""
    return _owner_refs(meta.get("ownerReferences"))


def _owner_refs(value: Any) -> tuple[OwnerRef, ...]:
    return tuple(
        OwnerRef(
            as_text(ref.get("kind")),
            as_text(ref.get("name")),
            as_text(ref.get("uid")),
            as_text(ref.get("apiVersion")),
            ref.get("controller") is True,
            ref.get("blockOwnerDeletion") is True,
        )
        for ref in as_items(value)
    )


def controller_of(owners: tuple[OwnerRef, ...]) -> OwnerRef | None:
    """The one owner with `controller: true`."""
    for owner in owners:
        if owner.controller:
            return owner
    return None


def conditions_from_raw(value: Any) -> tuple[Condition, ...]:
    """The conditions of a status, in their order."""
    return tuple(
        Condition(
            as_text(item.get("type")),
            as_text(item.get("status")),
            as_text(item.get("reason")),
            as_text(item.get("message")),
            as_time(item.get("lastProbeTime")),
            as_time(item.get("lastTransitionTime")),
        )
        for item in as_items(value)
    )


def completion_index(annotations: Mapping[str, str]) -> int:
    """The pod's completion index (upstream: getCompletionIndex)."""
    text = annotations.get(COMPLETION_INDEX_ANNOTATION)
    if text is None:
        return UNKNOWN_COMPLETION_INDEX
    number = go_atoi(text)
    return UNKNOWN_COMPLETION_INDEX if number is None or number < 0 else number


def failure_count(annotations: Mapping[str, str], annotation: str) -> int:
    """A per-index failure count; anything that is not an int32 >= 0 counts as 0."""
    number = go_atoi(annotations.get(annotation, ""))
    return number if number is not None and 0 <= number <= _INT32_MAX else 0


def go_atoi(text: str) -> int | None:
    """What Go's strconv.Atoi makes of the text; None where it reports an error."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    number = whole_number(digits.lstrip("0") or digits[:1])
    return -number if number is not None and text[0] == "-" else number


def _container_statuses(value: Any, *, init: bool) -> tuple[ContainerStatus, ...]:
    result = []
    for item in as_items(value):
        terminated = as_map(item.get("state")).get("terminated")
        exit_code = finished = None
        if isinstance(terminated, dict):
            exit_code = as_int(terminated.get("exitCode")) or 0
            finished = as_time(terminated.get("finishedAt"))
        result.append(
            ContainerStatus(
                as_text(item.get("name")),
                init,
                as_int(item.get("restartCount")) or 0,
                exit_code,
                finished,
            )
        )
    return tuple(result)


def sidecars_of(spec: Mapping[str, Any]) -> frozenset[str]:
    """Names of the init containers that are restarted always."""
    return frozenset(
        as_text(item.get("name"))
        for item in as_items(spec.get("initContainers"))
        if item.get("restartPolicy") == "Always"
    )


def sidecar_restarts_max(containers: Iterable[ContainerStatus], sidecars: frozenset[str]) -> int:
    """The greatest restart count of a sidecar."""
    return max((c.restart_count for c in containers if c.init and c.name in sidecars), default=0)


class ReadPart(Protocol):
    """Reads a part of an object, perhaps by looking it up: `read(value)`."""

    def __call__(self, read: Callable[[Any], T], value: Any, /) -> T:
        """What `read` makes of the value."""


def _read_anew(read: Callable[[Any], T], value: Any) -> T:
    return read(value)


class _PodStatus(NamedTuple):
    phase: str
    conditions: tuple[Condition, ...]
    ready: bool
    ready_since_ns: int | None
    regular: tuple[ContainerStatus, ...]
    containers: tuple[ContainerStatus, ...]


def _pod_status(status: Mapping[str, Any]) -> _PodStatus:
    conditions = conditions_from_raw(status.get("conditions"))
    ready = next((c for c in conditions if c.type == "Ready"), None)
    is_ready = ready is not None and ready.status == "True"
    regular = _container_statuses(status.get("containerStatuses"), init=False)
    return _PodStatus(
        as_text(status.get("phase")),
        conditions,
        is_ready,
        ready.last_transition_ns if ready is not None and is_ready else None,
        regular,
        (*regular, *_container_statuses(status.get("initContainerStatuses"), init=True)),
    )


def pod_from_raw(raw: Mapping[str, Any], part: ReadPart = _read_anew) -> PodView:
    """The view of a raw Pod."""
    meta, spec = as_map(raw.get("metadata")), as_map(raw.get("spec"))
    status = part(_pod_status, as_map(raw.get("status")))
    owners = part(_owner_refs, meta.get("ownerReferences"))
    annotations = as_string_map(meta.get("annotations"))
    finalizers = as_strings(meta.get("finalizers"))
    sidecars = part(sidecars_of, spec)
    return PodView(
        namespace=as_text(meta.get("namespace")),
        name=as_text(meta.get("name")),
        uid=as_text(meta.get("uid")),
        rv=_rv(meta),
        labels=as_string_map(meta.get("labels")),
        annotations=annotations,
        controller=controller_of(owners),
        owners=owners,
        finalizers=finalizers,
        created_ns=as_time(meta.get("creationTimestamp")) or 0,
        deleted_ns=as_time(meta.get("deletionTimestamp")),
        deletion_grace_s=as_int(meta.get("deletionGracePeriodSeconds")) or 0,
        phase=status.phase,
        node_name=as_text(spec.get("nodeName")),
        ready=status.ready,
        ready_since_ns=status.ready_since_ns,
        restarts=sum(c.restart_count for c in status.containers),
        restarts_max=max((c.restart_count for c in status.regular), default=0),
        has_tracking_finalizer=JOB_TRACKING_FINALIZER in finalizers,
        completion_index=completion_index(annotations),
        conditions=status.conditions,
        containers=status.containers,
        sidecars=sidecars,
        sidecar_restarts_max=sidecar_restarts_max(status.containers, sidecars),
    )


def job_spec_from_raw(spec: Mapping[str, Any]) -> JobSpec:
    """The decoded spec of a Job; fields that an old API server did not default get its defaults."""
    spec = as_type("batch.JobSpec", spec)
    template = as_map(spec.get("template"))
    policy = spec.get("podFailurePolicy")
    success = spec.get("successPolicy")
    mode = as_text(spec.get("completionMode")) or "NonIndexed"
    parallelism = as_int(spec.get("parallelism"))
    backoff_limit = as_int(spec.get("backoffLimit"))
    return JobSpec(
        parallelism=1 if parallelism is None else parallelism,
        completions=as_int(spec.get("completions")),
        backoff_limit=6 if backoff_limit is None else backoff_limit,
        active_deadline_s=as_int(spec.get("activeDeadlineSeconds")),
        indexed=mode == "Indexed",
        completion_mode=mode,
        suspend=spec.get("suspend") is True,
        selector=as_map(spec.get("selector")) if "selector" in spec else None,
        template=template,
        restart_policy=as_text(as_map(template.get("spec")).get("restartPolicy")),
        pod_failure_rules=as_items(policy.get("rules")) if isinstance(policy, dict) else None,
        backoff_limit_per_index=as_int(spec.get("backoffLimitPerIndex")),
        max_failed_indexes=as_int(spec.get("maxFailedIndexes")),
        pod_replacement_policy=as_text(spec.get("podReplacementPolicy")) or None,
        success_rules=as_items(success.get("rules")) if isinstance(success, dict) else None,
        managed_by=as_text(spec.get("managedBy")) or None,
        ttl_s=as_int(spec.get("ttlSecondsAfterFinished")),
        raw=spec,
    )


def job_status_from_raw(status: Mapping[str, Any]) -> JobStatus:
    """The decoded status of a Job."""
    found: dict[str, Any] = {}
    for field in job_status.FIELDS:
        outer, _, inner = field.path.partition(".")
        value = status.get(outer)
        found[field.name] = _STATUS_READ[field.shape](as_map(value).get(inner) if inner else value)
    return JobStatus(
        **found,
        tracks_uncounted=isinstance(status.get(job_status.UNCOUNTED), dict),
        conditions=conditions_from_raw(status.get("conditions")),
    )


_STATUS_READ: Final[dict[Shape, Callable[[Any], Any]]] = {
    Shape.COUNT: lambda value: as_int(value) or 0,
    Shape.COUNT_OR_NONE: as_int,
    Shape.TIME: as_time,
    Shape.INDEXES: as_text,
    Shape.INDEXES_OR_NONE: lambda value: value if isinstance(value, str) else None,
    Shape.UIDS: as_strings,
}


def job_from_raw(raw: Mapping[str, Any], part: ReadPart = _read_anew) -> JobView:
    """The view of a raw Job."""
    meta = as_map(raw.get("metadata"))
    owners = owner_refs(meta)
    return JobView(
        namespace=as_text(meta.get("namespace")),
        name=as_text(meta.get("name")),
        uid=as_text(meta.get("uid")),
        rv=_rv(meta),
        generation=as_int(meta.get("generation")) or 0,
        labels=as_string_map(meta.get("labels")),
        annotations=as_string_map(meta.get("annotations")),
        controller=controller_of(owners),
        finalizers=as_strings(meta.get("finalizers")),
        created_ns=as_time(meta.get("creationTimestamp")) or 0,
        deleted_ns=as_time(meta.get("deletionTimestamp")),
        spec=part(job_spec_from_raw, as_map(raw.get("spec"))),
        status=part(job_status_from_raw, as_map(raw.get("status"))),
    )


def seconds(value: int) -> int:
    """A whole number of seconds in nanoseconds."""
    return value * NS_PER_S
