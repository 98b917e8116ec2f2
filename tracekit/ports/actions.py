"""What a controller intends: frozen records of API writes, and the port they go through.

A controller calls its `Api` port in program order and learns the outcome at once, as upstream does
through PodControl and the client. A driver decides what the port does: a free run applies the
intent to a model of the API server; trace validation compares it with what was observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from tracekit.base.kube.views import JobStatus, JobView, PodView


class Outcome(Enum):
    """How the API server answered a write."""

    OK = "ok"
    CONFLICT = "conflict"  # 409
    ALREADY_EXISTS = "already exists"  # 409 on a POST
    NOT_FOUND = "not found"  # 404
    NAMESPACE_TERMINATING = "namespace terminating"  # 403 with that cause
    TIMEOUT = "timeout"  # 504 from the request-timeout filter
    REFUSED = "refused"  # any other error: quota, webhook, …


class CreatePod(msgspec.Struct, frozen=True):
    """POST of a pod: everything that the controller decides about its body."""

    generate_name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    spec: Mapping[str, Any]
    completion_index: int | None


class DeletePod(Struct, frozen=True):
    """DELETE of a pod."""

    pod: PodView


class RemoveFinalizer(Struct, frozen=True):
    """PATCH that takes the tracking finalizer off a pod."""

    pod: PodView


class AdoptPod(Struct, frozen=True):
    """PATCH that makes the Job a pod's controller (and adds the finalizer, where tracked)."""

    pod: PodView
    add_finalizer: bool


class ReleasePod(Struct, frozen=True):
    """PATCH that takes the Job's owner reference (and the finalizer) off a pod."""

    pod: PodView


class UpdateStatus(Struct, frozen=True):
    """PUT of the whole status, based on the revision `base_rv`."""

    base_rv: int
    status: JobStatus


class RecordEvent(Struct, frozen=True):
    """A Kubernetes Event on the controller's object; `base_rv` is the revision it refers to."""

    base_rv: int
    type: str
    reason: str
    message: str


Action = (
    CreatePod | DeletePod | RemoveFinalizer | AdoptPod | ReleasePod | UpdateStatus | RecordEvent
)


class Created(msgspec.Struct, frozen=True):
    """Answer to a pod creation: the name that the server chose, and the outcome."""

    outcome: Outcome
    name: str = ""


class JobApi(Protocol):
    """What the Job controller may ask of the API server."""

    def create_pods(self, job: JobView, intents: list[CreatePod]) -> list[Created]:
        """POST one slow-start batch; the answers stand in the order of the intents."""
        ...

    def delete_pods(self, job: JobView, pods: Sequence[PodView]) -> list[Outcome]:
        """DELETE each pod, side by side; the answers stand in the order of the pods."""
        ...

    def remove_finalizers(self, pods: Sequence[PodView]) -> list[Outcome]:
        """PATCH the tracking finalizer of each pod away, side by side."""
        ...

    def adopt_pod(self, job: JobView, pod: PodView, *, add_finalizer: bool) -> Outcome:
        """PATCH the controller reference (and finalizer) in."""
        ...

    def release_pod(self, job: JobView, pod: PodView) -> Outcome:
        """PATCH the controller reference (and finalizer) out."""
        ...

    def can_adopt(self, job: JobView) -> bool:
        """Uncached GET of the Job: same uid and not being deleted."""
        ...

    def update_status(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        """PUT the status; on success the Job as the server returned it."""
        ...

    def record_event(self, job: JobView, event_type: str, reason: str, message: str) -> None:
        """Hand an Event to the broadcaster."""
        ...
