"""The state behind the fault-injecting server: objects, their history, and compaction.

One revision counter for all kinds, as etcd has. The history is the truth that a recording is
compared with.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import Any

import orjson

GROUP_VERSIONS = {
    "jobs": ("batch/v1", "Job"),
    "cronjobs": ("batch/v1", "CronJob"),
    "pods": ("v1", "Pod"),
    "events": ("v1", "Event"),
    "namespaces": ("v1", "Namespace"),
    "resourcequotas": ("v1", "ResourceQuota"),
    "leases": ("coordination.k8s.io/v1", "Lease"),
}


#: More live objects of a kind than this, and deletes become more likely.
_LIVE_MAX = 50


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history."""

    rv: int
    type: str
    uid: str
    namespace: str
    body: bytes

    def frame(self) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (self.type.encode(), self.body)


class FakeCluster:
    """Objects and history; every method may be called from any thread."""

    def __init__(self, first_rv: int = 1000) -> None:
        self.changed = threading.Condition()
        self.rv = first_rv
        self.compacted_rv = 0
        self.objects: dict[str, dict[str, dict[str, Any]]] = {r: {} for r in GROUP_VERSIONS}
        self.history: dict[str, list[Change]] = {r: [] for r in GROUP_VERSIONS}
        self._serial = 0

    def create(
        self, resource: str, *, name: str | None = None, namespace: str = "ns", **fields: Any
    ) -> str:
        with self.changed:
            self._serial += 1
            group_version, kind = GROUP_VERSIONS[resource]
            uid = f"{resource}-{self._serial}"
            metadata = {
                "name": name or f"{resource}-{self._serial:05d}",
                "namespace": namespace,
                "uid": uid,
            }
            if resource == "namespaces":
                del metadata["namespace"]
            obj = {"kind": kind, "apiVersion": group_version, "metadata": metadata, **fields}
            self.objects[resource][uid] = obj
            self._commit(resource, "ADDED", obj)
            return uid

    def modify(self, resource: str, uid: str, **fields: Any) -> None:
        with self.changed:
            obj = {**self.objects[resource][uid], **fields}
            self.objects[resource][uid] = obj
            self._commit(resource, "MODIFIED", obj)

    def delete(self, resource: str, uid: str) -> None:
        with self.changed:
            self._commit(resource, "DELETED", self.objects[resource].pop(uid))

    def _commit(self, resource: str, kind: str, obj: dict[str, Any]) -> None:
        self.rv += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.rv)}
        namespace = obj["metadata"].get("namespace", "")
        change = Change(self.rv, kind, obj["metadata"]["uid"], namespace, orjson.dumps(obj))
        self.history[resource].append(change)
        self.changed.notify_all()

    def mutate(self, rng: random.Random, resources: tuple[str, ...]) -> None:
        """Do one random change."""
        resource = rng.choice(resources)
        with self.changed:
            live = list(self.objects[resource])
            choice = rng.random() + (0.3 if len(live) > _LIVE_MAX else 0)
            if not live or choice < 0.35:
                self.create(
                    resource, status={"n": rng.randrange(1000), "text": "ü<>\n" * rng.randrange(4)}
                )
            elif choice < 0.75:
                self.modify(resource, rng.choice(live), status={"n": rng.randrange(1000)})
            else:
                self.delete(resource, rng.choice(live))

    def compact(self) -> None:
        """Forget all history up to now for watches that start later."""
        with self.changed:
            self.compacted_rv = self.rv

    def listed(
        self, resource: str, namespace: str | None = None
    ) -> tuple[int, list[dict[str, Any]]]:
        with self.changed:
            items = [
                {key: value for key, value in obj.items() if key not in {"kind", "apiVersion"}}
                for obj in self.objects[resource].values()
                if namespace is None or obj["metadata"].get("namespace") == namespace
            ]
            return self.rv, items

    def after(self, resource: str, rv: int, namespace: str | None = None) -> list[Change]:
        """All changes of a kind later than a revision."""
        with self.changed:
            found = []
            for change in reversed(self.history[resource]):
                if change.rv <= rv:
                    break
                if namespace is None or change.namespace == namespace:
                    found.append(change)
            return found[::-1]
