"""What the API promises of the objects that a trace has columns for: their fields, and the types.

Only fields that have columns are here; msgspec goes past all others. An object that breaks a
promise is refused as a whole, and `extract.py` reads what can be read of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tracekit.base.kube.job_status import FIELDS, UNCOUNTED, Shape
from tracekit.trace.format.extract import INT64_MAX, INT64_MIN

Text = str | None
Whole = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)] | None
if TYPE_CHECKING:
    Shared = Any
else:
    #: A text that many objects share, as it came; who decodes puts in its place what is made of it.
    Shared = msgspec.Raw


class Part(msgspec.Struct, gc=False, rename="camel"):
    """Some part of an object: fields that have no columns are not looked at."""


class Owner(Part):
    """An entry of `.metadata.ownerReferences`."""

    kind: Text = None
    name: Text = None
    uid: Text = None
    api_version: Text = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Manager(Part):
    """An entry of `.metadata.managedFields`."""

    manager: Text = None
    operation: Text = None
    subresource: Text = None
    time: Text = None


class Metadata(Part):
    """`.metadata`."""

    namespace: Text = None
    name: Text = None
    uid: Text = None
    resource_version: Text = None
    creation_timestamp: Text = None
    generation: Whole = None
    generate_name: Text = None
    deletion_timestamp: Text = None
    deletion_grace_period_seconds: Whole = None
    finalizers: list[str] | None = None
    labels: Shared = msgspec.Raw()
    annotations: Shared = msgspec.Raw()
    owner_references: list[Owner] | None = None
    managed_fields: list[Manager] | None = None


class Typed(Part):
    """An object whose fields have the types that the API promises."""

    metadata: Metadata
    kind: Text = None
    api_version: Text = None


class Condition(Part):
    """An entry of `.status.conditions`."""

    type: Text = None
    status: Text = None
    reason: Text = None
    message: Text = None
    last_probe_time: Text = None
    last_transition_time: Text = None


_JOB_STATUS_TYPES: dict[Shape, Any] = {
    Shape.COUNT: Whole,
    Shape.COUNT_OR_NONE: Whole,
    Shape.TIME: Text,
    Shape.INDEXES: Text,
    Shape.INDEXES_OR_NONE: Text,
}
#: `.status.uncountedTerminatedPods`: uids, by the part of the path after the dot.
Uncounted = msgspec.defstruct(
    "Uncounted",
    [
        (field.path.partition(".")[2], list[str] | None, None)
        for field in FIELDS
        if field.shape is Shape.UIDS
    ],
    bases=(Part,),
    gc=False,
)
#: `.status` of a Job; another field is one for `observed_status`. Its attributes are in the order
#: of `base.kube.job_status.FIELDS`, then the outer field of the uids and the conditions.
_JobStatus = msgspec.defstruct(
    "JobStatus",
    [
        *(
            (
                field.name,
                _JOB_STATUS_TYPES[field.shape],
                msgspec.field(default=None, name=field.path),
            )
            for field in FIELDS
            if field.shape is not Shape.UIDS
        ),
        ("uncounted", Uncounted | None, msgspec.field(default=None, name=UNCOUNTED)),
        ("conditions", list[Condition] | None, None),
    ],
    bases=(Part,),
    gc=False,
    forbid_unknown_fields=True,
)
if TYPE_CHECKING:
    JobStatus = msgspec.Struct
else:
    JobStatus = _JobStatus


class Job(Typed):
    """A Job."""

    spec: Shared = msgspec.Raw()
    status: JobStatus | None = None


class Active(Part):
    """An entry of a CronJob's `.status.active`."""

    kind: Text = None
    namespace: Text = None
    name: Text = None
    uid: Text = None
    api_version: Text = None
    resource_version: Text = None


class CronJobStatus(Part, forbid_unknown_fields=True):
    """`.status` of a CronJob; another field is one for `observed_status`."""

    active: list[Active] | None = None
    last_schedule_time: Text = None
    last_successful_time: Text = None


class CronJob(Typed):
    """A CronJob."""

    spec: Shared = msgspec.Raw()
    status: CronJobStatus | None = None


class Detail(Part):
    """What a container's state says."""

    exit_code: Whole = None
    signal: Whole = None
    reason: Text = None
    started_at: Text = None
    finished_at: Text = None


class State(Part):
    """The state of a container: one of these."""

    terminated: Detail | None = None
    running: Detail | None = None
    waiting: Detail | None = None


class Container(Part):
    """The status of a container."""

    name: Text = None
    restart_count: Whole = None
    state: State | None = None


class PodStatus(Part):
    """`.status` of a Pod."""

    phase: Text = None
    reason: Text = None
    message: Text = None
    start_time: Text = None
    conditions: list[Condition] | None = None
    container_statuses: list[Container] | None = None
    init_container_statuses: list[Container] | None = None


class Pod(Typed):
    """A Pod."""

    spec: Shared = msgspec.Raw()
    status: PodStatus | None = None


class Involved(Part):
    """What an Event is about."""

    kind: Text = None
    namespace: Text = None
    name: Text = None
    uid: Text = None
    resource_version: Text = None


class Series(Part):
    """How often an Event came."""

    count: Whole = None
    last_observed_time: Text = None


class Source(Part):
    """Who made an Event."""

    component: Text = None


class Event(Typed):
    """An Event, of either API."""

    involved_object: Involved | None = None
    regarding: Involved | None = None
    reason: Text = None
    message: Text = None
    note: Text = None
    type: Text = None
    series: Series | None = None
    count: Whole = None
    deprecated_count: Whole = None
    first_timestamp: Text = None
    deprecated_first_timestamp: Text = None
    last_timestamp: Text = None
    deprecated_last_timestamp: Text = None
    event_time: Text = None
    source: Source | None = None
    deprecated_source: Source | None = None
    reporting_component: Text = None
    reporting_controller: Text = None


class LeaseSpec(Part):
    """`.spec` of a Lease."""

    holder_identity: Text = None
    lease_duration_seconds: Whole = None
    acquire_time: Text = None
    renew_time: Text = None
    lease_transitions: Whole = None


class Lease(Typed):
    """A Lease."""

    spec: LeaseSpec | None = None


class NamespaceStatus(Part):
    """`.status` of a Namespace."""

    phase: Text = None


class Namespace(Typed):
    """A Namespace."""

    status: NamespaceStatus | None = None


class Quota(Typed):
    """A ResourceQuota."""

    spec: Shared = msgspec.Raw()
    status: Shared = msgspec.Raw()
