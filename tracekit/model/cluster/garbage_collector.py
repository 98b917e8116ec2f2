"""The garbage collector: what belongs to an object that is gone goes too, or loses its owner.

Background: the owner goes at once, its dependents after it. Foreground: the owner waits (with a
finalizer) until its dependents that block it are gone. Orphan: the dependents lose their reference
to the owner, then the owner goes.

Upstream: pkg/controller/garbagecollector/garbagecollector.go:attemptToDeleteItem,
processDeletingDependentsItem, orphanDependents. Its work queue has many workers and a client of its
own; here each item is worked on a short while after it is seen, without a throttle.
"""

from __future__ import annotations

from tracekit.model.cluster.api_server import (
    BACKGROUND,
    FOREGROUND,
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
    ApiServer,
)
from tracekit.model.cluster.draws import Draws
from tracekit.model.cluster.references import drop_finalizer, drop_owner
from tracekit.model.cluster.store import Change, Raw

_KINDS = ("cronjobs", "jobs", "pods")
_PLURAL = {"CronJob": "cronjobs", "Job": "jobs"}
_Where = tuple[str, str, str]


class GarbageCollector:
    """Watches jobs, CronJobs and pods, and follows their owner references."""

    def __init__(self, server: ApiServer, draws: Draws) -> None:
        self._server = server
        self._loop = server.store.loop
        self._draws = draws
        #: uid of an owner -> its dependents.
        self._dependents: dict[str, dict[_Where, None]] = {}
        self._uids: dict[str, _Where] = {}
        server.store.watch(self._see, *_KINDS)

    def _see(self, change: Change) -> None:
        meta = change.obj["metadata"]
        where = (change.kind, meta.get("namespace", ""), meta["name"])
        if change.type == "DELETED":
            self._gone(where, change.obj)
            return
        self._uids[meta["uid"]] = where
        old = _owners(change.before) if change.before is not None else {}
        new = _owners(change.obj)
        for uid in old:
            if uid not in new:
                self._dependents.get(uid, {}).pop(where, None)
        for uid, kind in new.items():
            self._dependents.setdefault(uid, {})[where] = None
            if uid not in self._uids and kind in _PLURAL:
                self._soon(lambda: self._attempt_to_delete(where, meta["uid"]))
        if meta.get("deletionTimestamp") is not None:
            self._soon(lambda: self._process_deleting(where, meta["uid"]))

    def _gone(self, where: _Where, obj: Raw) -> None:
        uid = obj["metadata"]["uid"]
        self._uids.pop(uid, None)
        for owner in _owners(obj):
            self._dependents.get(owner, {}).pop(where, None)
            waiting = self._uids.get(owner)
            if waiting is not None:
                self._soon(lambda at=waiting, of=owner: self._process_deleting(at, of))
        for dependent in self._dependents.get(uid, {}):
            found = self._server.store.get(*dependent)
            if found is not None:
                self._soon(
                    lambda at=dependent, of=found["metadata"]["uid"]: self._attempt_to_delete(
                        at, of
                    )
                )

    def _soon(self, call: object) -> None:
        self._loop.after(self._draws.collection_ns(), call)  # type: ignore[arg-type]

    def _held(self, where: _Where, uid: str) -> Raw | None:
        obj = self._server.store.get(*where)
        return obj if obj is not None and obj["metadata"]["uid"] == uid else None

    def _attempt_to_delete(self, where: _Where, uid: str) -> None:
        """Delete a dependent none of whose owners is there, or all of whose wait for it."""
        obj = self._held(where, uid)
        if obj is None or obj["metadata"].get("deletionTimestamp") is not None:
            return
        owners = _owners(obj)
        if not owners:
            return
        solid = [owner for owner in owners if self._is_solid(owner)]
        if solid:
            return
        propagation = BACKGROUND
        if any(self._waits(owner) for owner in owners) and self._dependents.get(uid):
            propagation = FOREGROUND
        kind, namespace, name = where
        self._server.delete(kind, namespace, name, uid=uid, propagation=propagation)

    def _is_solid(self, uid: str) -> bool:
        """Whether an owner is there and not waiting for its dependents to go."""
        return uid in self._uids and not self._waits(uid)

    def _waits(self, uid: str) -> bool:
        where = self._uids.get(uid)
        obj = self._server.store.get(*where) if where is not None else None
        if obj is None:
            return False
        meta = obj["metadata"]
        return meta.get("deletionTimestamp") is not None and FOREGROUND_FINALIZER in meta.get(
            "finalizers", ()
        )

    def _process_deleting(self, where: _Where, uid: str) -> None:
        """Go on with an owner that waits for its dependents, or is to leave them behind."""
        obj = self._held(where, uid)
        if obj is None or obj["metadata"].get("deletionTimestamp") is None:
            return
        finalizers = obj["metadata"].get("finalizers", ())
        if FOREGROUND_FINALIZER in finalizers:
            blocking = [d for d in self._dependents.get(uid, {}) if self._blocks(d, uid)]
            for dependent in blocking:
                found = self._server.store.get(*dependent)
                if found is not None:
                    self._attempt_to_delete(dependent, found["metadata"]["uid"])
            if not blocking:
                self._drop(where, uid, FOREGROUND_FINALIZER)
        elif ORPHAN_FINALIZER in finalizers:
            for kind, namespace, name in tuple(self._dependents.get(uid, {})):
                self._server.change(
                    kind,
                    namespace,
                    name,
                    lambda o: drop_owner(o, uid),
                )
            self._drop(where, uid, ORPHAN_FINALIZER)

    def _blocks(self, dependent: _Where, uid: str) -> bool:
        found = self._server.store.get(*dependent)
        return found is not None and any(
            ref["uid"] == uid and ref.get("blockOwnerDeletion") is True
            for ref in found["metadata"].get("ownerReferences", ())
        )

    def _drop(self, where: _Where, uid: str, finalizer: str) -> None:
        kind, namespace, name = where
        self._server.change(
            kind,
            namespace,
            name,
            lambda obj: drop_finalizer(obj, finalizer),
            uid=uid,
        )


def _owners(obj: Raw) -> dict[str, str]:
    """Uid -> kind of the owners of an object."""
    return {ref["uid"]: ref["kind"] for ref in obj["metadata"].get("ownerReferences", ())}
