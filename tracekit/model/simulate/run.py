"""One run: the world and the controllers on one clock, and what a recorder sees of it.

Deterministic: the same world, era, flags and draws give the same rows.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tracekit.base.kube.merge_patch import merge_patched
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.sim.clock import VirtualClock
from tracekit.base.sim.loop import Loop
from tracekit.model.cluster.api_server import KINDS, ApiServer, Reply
from tracekit.model.cluster.draws import Draws
from tracekit.model.cluster.garbage_collector import GarbageCollector
from tracekit.model.cluster.kubelet import Kubelet
from tracekit.model.cluster.namespaces import NamespaceController
from tracekit.model.cluster.pod_life import Slot
from tracekit.model.cluster.store import Change, Raw, Store
from tracekit.model.process.manager import ControllerManager, ManagerFlags
from tracekit.model.simulate.world import (
    CreateObject,
    DeleteObject,
    DeletePodOf,
    PatchObject,
    PatchPodOf,
    SetPodQuota,
    UserWrite,
    World,
)
from tracekit.versions.api_server import ApiRules
from tracekit.versions.era import Era
from tracekit.versions.status_validation import StatusValidation

#: What a recorder watches.
STREAMS: Final = ("jobs", "pods", "cronjobs", "events", "leases", "namespaces")
#: The control plane is up so long before the record begins.
_BEFORE_NS: Final = 5 * NS_PER_S
_FIRST_REVISION: Final = 100


class Row(NamedTuple):
    """One thing that the recorder received."""

    recv_ns: int
    stream: str
    type: str
    obj: Mapping[str, Any]


class Failed(NamedTuple):
    """A user's write that the API server did not take."""

    write: UserWrite
    reply: Reply


@dataclass
class Run:
    """What came of a run."""

    rows: list[Row] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    #: Whether it used up what may happen in it, and what it shows stops before its end.
    stopped: bool = False


def simulate(
    world: World,
    era: Era,
    flags: ManagerFlags,
    draws: Draws,
    *,
    streams: Collection[str] = STREAMS,
    calls_max: int | None = None,
) -> Run:
    """Run the world under the controllers of an era; the rows of these streams are kept.

    At most `calls_max` things happen in it, requests, syncs and timers; None: any number.
    """
    return _Simulation(world, era, flags, draws, streams, calls_max).run()


class _Simulation:
    def __init__(
        self,
        world: World,
        era: Era,
        flags: ManagerFlags,
        draws: Draws,
        streams: Collection[str],
        calls_max: int | None,
    ) -> None:
        self._world = world
        self._streams = streams
        self._loop = Loop(VirtualClock(world.start_ns - _BEFORE_NS), calls_max)
        self._store = Store(self._loop, _FIRST_REVISION)
        self._server = ApiServer(self._store, ApiRules.of(era), StatusValidation.of(era), draws)
        self._server.refusals = list(world.refusals)
        self._server.pod_quota = dict(world.pod_quota)
        self._kubelet = Kubelet(self._server, world.lifetimes, draws)
        GarbageCollector(self._server, draws)
        NamespaceController(self._server, draws)
        self._manager = ControllerManager(
            self._server, era, flags, draws, renews_lease=world.renews_lease
        )
        self._draws = draws
        self._run = Run()
        self._reported_ns = dict.fromkeys(STREAMS, 0)
        #: Deletions that wait until their Job has ended.
        self._until_end: dict[tuple[str, str], DeleteObject] = {}
        #: Those whose Job has ended, until it is gone.
        self._leaving: dict[tuple[str, str], DeleteObject] = {}
        #: Creations of a namesake that wait for these deletions, and for how long after them.
        self._until_gone: dict[tuple[str, str], tuple[CreateObject, int]] = {}

    def run(self) -> Run:
        """Everything up to the end of the record."""
        world, loop = self._world, self._loop
        for name in world.used_namespaces():
            self._create_namespace(name)
        for there in world.present:
            self._restore(there)
        self._manager.start()
        loop.run_until(world.start_ns)
        self._store.watch(self._release, "jobs")
        self._begin_record()
        for restart in world.restarts:
            loop.at(restart.died_ns, self._manager.kill)
            loop.at(
                restart.started_ns,
                lambda restart=restart: self._manager.start(at_once=restart.leads),  # type: ignore[misc]
            )
        for write in world.writes:
            loop.at(write.at_ns, lambda write=write: self._do(write))  # type: ignore[misc]
        loop.run_until(world.end_ns)
        self._run.stopped = loop.calls_left == 0
        self._manager.kill()
        self._run.rows.sort(key=lambda row: row.recv_ns)
        return self._run

    def _create_namespace(self, name: str) -> None:
        body = {
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        self._server.create("namespaces", body, manager="kubectl-create")

    def _restore(self, there: CreateObject) -> None:
        """Put an object into the store that was made long ago."""
        made = self._server.create(
            there.kind, dict(there.body), manager=there.manager, uid=there.uid, validate=False
        )
        if made.obj is not None:
            meta = {**made.obj["metadata"], **there.body["metadata"]}
            status = copy.deepcopy(there.body.get("status", {}))
            self._store.put(there.kind, {**made.obj, "metadata": meta, "status": status})

    # The recorder.

    def _begin_record(self) -> None:
        at_ns = self._loop.now_ns
        head = {"resourceVersion": str(self._store.revision)}
        for stream in STREAMS:
            at_ns += self._draws.record_lag_ns(stream)
            kind, version = KINDS[stream]
            self._row(at_ns, stream, "LIST_BEGIN", head)
            for obj in self._store.all(stream):
                self._row(at_ns, stream, "LIST", {**obj, "kind": kind, "apiVersion": version})
            self._row(at_ns, stream, "LIST_END", head)
            self._reported_ns[stream] = at_ns
        self._store.watch(self._see, *STREAMS)

    def _see(self, change: Change) -> None:
        lag_ns = self._draws.record_lag_ns(change.kind)
        at_ns = max(self._reported_ns[change.kind], change.at_ns + lag_ns)
        self._reported_ns[change.kind] = at_ns
        self._row(at_ns, change.kind, change.type, change.obj)

    def _row(self, at_ns: int, stream: str, row_type: str, obj: Mapping[str, Any]) -> None:
        if stream in self._streams and at_ns <= self._world.end_ns:
            self._run.rows.append(Row(at_ns, stream, row_type, obj))

    # Users.

    def _do(self, write: UserWrite) -> None:
        if isinstance(write, SetPodQuota):
            self._server.pod_quota[write.namespace] = write.pods
            return
        if isinstance(write, DeleteObject) and write.after_end_ns is not None:
            job = self._store.get(write.kind, write.namespace, write.name)
            if job is not None and not _has_ended(job):
                self._until_end[write.namespace, write.name] = write
                return
        if isinstance(write, CreateObject) and write.kind == "jobs":
            meta = write.body["metadata"]
            key = (meta.get("namespace", ""), meta["name"])
            deletion = self._until_end.get(key) or self._leaving.get(key)
            if deletion is not None:
                self._until_gone[key] = (write, write.at_ns - deletion.at_ns)
                return
        for reply in self._replies(write):
            if not reply.ok:
                self._run.failed.append(Failed(write, reply))

    def _release(self, change: Change) -> None:
        """Let a deletion go that waited for the end of this Job."""
        if not (self._until_end or self._leaving):
            return
        meta = change.obj["metadata"]
        key = (meta["namespace"], meta["name"])
        if change.type == "DELETED":
            self._until_end.pop(key, None)
            self._leaving.pop(key, None)
            waits = self._until_gone.pop(key, None)
            if waits is not None:
                self._loop.after(waits[1], lambda: self._do(waits[0]))
        elif _has_ended(change.obj):
            write = self._until_end.pop(key, None)
            if write is not None:
                self._leaving[key] = write
                self._loop.after(write.after_end_ns or 0, lambda: self._do(write))

    def _replies(self, write: UserWrite) -> Iterator[Reply]:
        server = self._server
        match write:
            case CreateObject():
                if write.kind == "namespaces":
                    self._create_namespace(write.body["metadata"]["name"])
                else:
                    yield server.create(
                        write.kind,
                        dict(write.body),
                        manager=write.manager,
                        uid=write.uid,
                    )
            case PatchObject():
                yield server.change(
                    write.kind,
                    write.namespace,
                    write.name,
                    lambda obj: _patch(obj, write.patch),
                    manager=write.manager,
                )
            case DeleteObject():
                yield server.delete(
                    write.kind,
                    write.namespace,
                    write.name,
                    propagation=write.propagation,
                    grace_s=write.grace_s,
                )
            case DeletePodOf():
                for name in self._meant(write):
                    self._kubelet.disrupt(write.namespace, name, write.condition)
                    yield server.delete("pods", write.namespace, name, grace_s=write.grace_s)
            case PatchPodOf():
                for slot, name in self._kubelet.pods_of(write.namespace, write.job):
                    if slot.ordinal == write.ordinal:
                        yield server.change(
                            "pods",
                            write.namespace,
                            name,
                            lambda obj: _patch(obj, write.patch),
                            manager=write.manager,
                        )

    def _meant(self, write: DeletePodOf) -> list[str]:
        """The pods that a deletion hits: those in its place, else perhaps the youngest one."""
        pods = self._kubelet.pods_of(write.namespace, write.job)
        found = [name for slot, name in pods if _is_meant(write, slot)]
        if found or not write.any_pod:
            return found
        objs = [self._store.get("pods", write.namespace, name) for _, name in pods]
        living = [
            obj["metadata"]["name"]
            for obj in objs
            if obj is not None
            and obj["metadata"].get("deletionTimestamp") is None
            and obj["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        return living[-1:]


def _has_ended(job: Mapping[str, Any]) -> bool:
    return any(
        condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
        for condition in job.get("status", {}).get("conditions", ())
    )


def _is_meant(write: DeletePodOf, slot: Slot) -> bool:
    indexes = (None, slot.completion_index)
    return write.ordinal in (None, slot.ordinal) and write.completion_index in indexes


def _patch(obj: Raw, patch: Mapping[str, Any]) -> None:
    merged = merge_patched(obj, copy.deepcopy(dict(patch)))
    obj.clear()
    obj.update(merged)
