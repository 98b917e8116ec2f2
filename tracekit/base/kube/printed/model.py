"""What a line of a table, or a description, says of one object: absent where it is silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

Kind = Literal["Job", "CronJob", "Pod", "Node"]


class ShownContainer(Struct, frozen=True, omit_defaults=True):
    """A container as `kubectl describe pod` shows it."""

    name: str
    init: bool = False
    image: str | None = None
    #: Running, Waiting or Terminated, with what stands below it.
    state: str | None = None
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None
    started: str | None = None
    finished: str | None = None
    #: How it ended before.
    before_reason: str | None = None
    before_exit_code: int | None = None
    restarts: int | None = None


class ShownCondition(Struct, frozen=True, omit_defaults=True):
    """A condition of a node as `kubectl describe node` shows it."""

    type: str
    status: str
    #: Its LastTransitionTime, RFC 3339.
    since: str | None = None
    reason: str | None = None
    message: str | None = None


class Shown(Struct, kw_only=True, omit_defaults=True):
    """One object as it was shown once."""

    kind: Kind
    name: str
    #: None: neither the text nor the command before it says it.
    namespace: str | None = None
    how: Literal["get", "describe"]
    #: What `--output-watch-events` says: ADDED, MODIFIED, DELETED.
    event: str | None = None
    #: All of a table's row by column, and all of a description's plain fields.
    printed: Mapping[str, str] = field(default_factory=dict)
    #: When it was created, RFC 3339: ages are rounded, so between two times.
    created_after: str | None = None
    created_before: str | None = None
    #: Real uids only: that of a Job stands in its selector.
    uid: str | None = None
    owner_kind: str | None = None
    owner_name: str | None = None
    owner_uid: str | None = None
    labels: Mapping[str, str] | None = None
    #: Of a table the column STATUS, of a description the field Status.
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    #: Of a Job.
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    active: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    started: str | None = None
    completed: str | None = None
    #: Of a Job or CronJob.
    suspended: bool | None = None
    #: Of a CronJob.
    schedule: str | None = None
    time_zone: str | None = None
    last_schedule: str | None = None
    #: Of a pod.
    ready: int | None = None
    total: int | None = None
    restarts: int | None = None
    node: str | None = None
    containers: tuple[ShownContainer, ...] | None = None
    conditions: Mapping[str, str] | None = None
    #: Of a node.
    node_conditions: tuple[ShownCondition, ...] = ()
    #: KEY=VALUE:EFFECT, or KEY:EFFECT.
    node_taints: tuple[str, ...] = ()


class ShownEvent(Struct, kw_only=True, omit_defaults=True):
    """An Event as a table or a description shows it."""

    #: Of the object that it is about; any kind.
    kind: str
    name: str
    namespace: str | None = None
    #: `log`: by what a controller manager wrote, whose clock tells when.
    how: Literal["get", "describe", "log"]
    type: str
    reason: str
    message: str
    source: str | None = None
    #: How long before the look it was seen last, as printed, and how often since when.
    age: str | None = None
    count: int = 1
    since: str | None = None


class LeftOut(Struct, frozen=True):
    """A line or an object that is not kept, and why."""

    why: str
