"""The world of a run: what users do, what becomes of pods, what refuses, when processes die.

Everything but the controllers. A workload file describes one, a record can be turned into one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from tracekit.model.cluster.api_server import Refusal
from tracekit.model.cluster.pod_life import PodLife, PodLifetimes, Slot


class CreateObject(NamedTuple):
    """A user creates an object; `uid` where the world knows it beforehand."""

    at_ns: int
    kind: str
    body: Mapping[str, Any]
    uid: str | None = None
    manager: str = "kubectl-create"


class PatchObject(NamedTuple):
    """A user changes an object by a JSON merge patch."""

    at_ns: int
    kind: str
    namespace: str
    name: str
    patch: Mapping[str, Any]
    manager: str = "kubectl-edit"


class DeleteObject(NamedTuple):
    """A user deletes an object."""

    at_ns: int
    kind: str
    namespace: str
    name: str
    propagation: str | None = "Background"
    grace_s: int | None = None
    #: Of a Job: not before it has ended, and then so long after that; None: at its time.
    after_end_ns: int | None = None


class DeletePodOf(NamedTuple):
    """Somebody deletes (or evicts) the pod that has a place in a Job; no such pod, no deletion."""

    at_ns: int
    namespace: str
    job: str
    ordinal: int | None = None
    completion_index: int | None = None
    grace_s: int | None = None
    #: Where no pod has the place, another one of the Job is hit: its node would have been drained.
    any_pod: bool = False
    #: A condition that the pod gets first, as by an eviction; empty for a plain deletion.
    condition: str = ""


class PatchPodOf(NamedTuple):
    """A user changes the pod that has a place in a Job by a JSON merge patch."""

    at_ns: int
    namespace: str
    job: str
    ordinal: int
    patch: Mapping[str, Any]
    manager: str = "kubectl-edit"


class Restart(NamedTuple):
    """The controller manager dies, and another one is started."""

    died_ns: int
    started_ns: int
    #: Whether it leads as soon as it starts, as where a record tells when it led.
    leads: bool = False


class SetPodQuota(NamedTuple):
    """So many pods may live in a namespace from then on."""

    at_ns: int
    namespace: str
    pods: int


UserWrite = CreateObject | PatchObject | DeleteObject | DeletePodOf | PatchPodOf | SetPodQuota


class SameLife:
    """Lives of a world in which all pods fare alike."""

    def __init__(self, life: PodLife | None = None) -> None:
        self._life = life or PodLife()

    def life_of(self, slot: Slot, pod: Mapping[str, Any]) -> PodLife:
        """The life of any pod."""
        del slot, pod
        return self._life


class World(Struct, frozen=True):
    """The inputs of a run beside the controllers' version and flags; times since the epoch."""

    start_ns: int
    end_ns: int
    writes: Sequence[UserWrite] = ()
    lifetimes: PodLifetimes = field(default_factory=SameLife)
    refusals: Sequence[Refusal] = ()
    #: namespace -> pods that may live in it at a time.
    pod_quota: Mapping[str, int] = field(default_factory=dict)
    restarts: Sequence[Restart] = ()
    #: Objects that are there when the record begins, each with its status, uid and creation time.
    present: Sequence[CreateObject] = ()
    #: Namespaces that are there from the beginning, beside those that `writes` need.
    namespaces: Sequence[str] = ()
    #: Whether the controller manager renews its lease all the time; nobody else looks at it.
    renews_lease: bool = True

    def used_namespaces(self) -> list[str]:
        """Every namespace that is there from the beginning."""
        made = {
            write.body["metadata"]["name"]
            for write in self.writes
            if isinstance(write, CreateObject) and write.kind == "namespaces"
        }
        used = {
            write.body["metadata"].get("namespace", "")
            for write in (*self.present, *self.writes)
            if isinstance(write, CreateObject) and write.kind != "namespaces"
        }
        return sorted(({*used, *self.namespaces} - made) - {""})
