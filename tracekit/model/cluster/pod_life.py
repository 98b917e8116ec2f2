"""What becomes of a pod: when it is bound, starts, is ready, ends, and how.

A life is the world's doing, not the controller's: it is what a simulated pod is told to do, by a
workload file or by a record. Times are nanoseconds from the step before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field

from tracekit.base.kube.timestamps import NS_PER_S

_NS_PER_MS = NS_PER_S // 1000


class Slot(NamedTuple):
    """Which pod of a Job one is: the n-th that was created, and the n-th of its index."""

    namespace: str
    job: str
    job_uid: str
    cron_job: str  # the CronJob that started the Job, or ""
    ordinal: int  # among the Job's pods, from 0
    completion_index: int | None
    attempt: int  # among the pods of that index, from 0; the ordinal where there is none


class PodLife(Struct, frozen=True):
    """The course of one pod."""

    bind_ns: int | None = 50 * _NS_PER_MS  # None: it is never scheduled
    start_ns: int | None = 50 * _NS_PER_MS  # None: its containers never start
    ready_ns: int | None = 0  # from the start; None: never ready
    run_ns: int | None = NS_PER_S  # from the start to the end; None: until it is deleted
    exit_code: int = 0
    exit_codes: Mapping[str, int] = field(default_factory=dict)  # by container
    exit_reason: str = "Error"
    #: When its containers end with a failure and are started again, from the start; these stand
    #: beside `run_ns`, and in the place of `restarts`, which spaces them evenly.
    restarts_at_ns: tuple[int, ...] = ()
    #: How many restarts one status shows at each of those times; empty: one each.
    restart_counts: tuple[int, ...] = ()
    restarts: int = 0  # times that its containers end with a failure and are started again
    waiting: str = ""  # why the containers wait before they start, such as ImagePullBackOff
    condition: str = ""  # a condition that it gets when it ends, such as DisruptionTarget
    reason: str = ""  # status.reason when it ends, such as Evicted
    grace_ns: int = 300 * _NS_PER_MS  # from its deletion to its end
    gone_ns: int = 0  # from that end until the kubelet has the pod removed
    term_exit_code: int = 137  # when it is told to stop
    silent: bool = False  # it goes without a last status, as with its node
    #: Somebody deletes it so long after its creation, with this grace period (None: its own).
    deleted_ns: int | None = None
    deleted_grace_s: int | None = None

    @property
    def exits(self) -> tuple[tuple[int, int], ...]:
        """Each of `restarts_at_ns` with the number of restarts that are seen then."""
        counts = self.restart_counts or (1,) * len(self.restarts_at_ns)
        return tuple(zip(self.restarts_at_ns, counts, strict=True))


class PodLifetimes(Protocol):
    """Says what becomes of each pod."""

    def life_of(self, slot: Slot, pod: Mapping[str, Any]) -> PodLife:
        """The life of a pod that was just created."""
        ...
