"""The fields of a Job's status, each declared once.

Columns of a trace, decoders, comparison, what the model of the API server writes and what a story
tells of a change follow from these rows. A new field is a row here, an attribute of
`views.JobStatus` (the ports read it by name), and whatever the port does with it.

Upstream: staging/src/k8s.io/api/batch/v1/types.go:JobStatus.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct


class Shape(Enum):
    """What a field holds."""

    COUNT = "a number of pods; 0 where it is absent"
    COUNT_OR_NONE = "a number of pods; unknown where it is absent"
    TIME = "a time"
    INDEXES = "completion indexes; none where it is absent"
    INDEXES_OR_NONE = "completion indexes; unknown where it is absent"
    UIDS = "uids of pods"

    @property
    def absent(self) -> int | str | tuple[str, ...] | None:
        """What stands in `views.JobStatus` for a field that is not there."""
        return _ABSENT[self]


_ABSENT: Final[dict[Shape, int | str | tuple[str, ...] | None]] = {
    Shape.COUNT: 0,
    Shape.COUNT_OR_NONE: None,
    Shape.TIME: None,
    Shape.INDEXES: "",
    Shape.INDEXES_OR_NONE: None,
    Shape.UIDS: (),
}


class StatusField(Struct, frozen=True):
    """One field: its name in a trace and in `views.JobStatus`, its path below `.status`."""

    name: str
    path: str
    shape: Shape

    @property
    def top(self) -> str:
        """The field of `.status` that it is, or lies in."""
        return self.path.partition(".")[0]


#: In the order of the attributes of `views.JobStatus`. Its other two, whether there is an
#: `uncountedTerminatedPods` at all and the conditions, are no fields of one value.
FIELDS: Final = (
    StatusField("active", "active", Shape.COUNT),
    StatusField("ready", "ready", Shape.COUNT_OR_NONE),
    StatusField("succeeded", "succeeded", Shape.COUNT),
    StatusField("failed", "failed", Shape.COUNT),
    StatusField("terminating", "terminating", Shape.COUNT_OR_NONE),
    StatusField("start_ns", "startTime", Shape.TIME),
    StatusField("completion_ns", "completionTime", Shape.TIME),
    StatusField("completed_indexes", "completedIndexes", Shape.INDEXES),
    StatusField("failed_indexes", "failedIndexes", Shape.INDEXES_OR_NONE),
    StatusField("uncounted_succeeded", "uncountedTerminatedPods.succeeded", Shape.UIDS),
    StatusField("uncounted_failed", "uncountedTerminatedPods.failed", Shape.UIDS),
)
NAMES: Final = tuple(field.name for field in FIELDS)
COUNTS: Final = tuple(
    field.name for field in FIELDS if field.shape in (Shape.COUNT, Shape.COUNT_OR_NONE)
)
#: The fields of `.status` that have a column; others are one column together.
KNOWN: Final = frozenset(field.top for field in FIELDS) | {"conditions"}
UNCOUNTED: Final = "uncountedTerminatedPods"
