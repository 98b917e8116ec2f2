"""The store behind the API server: one revision counter for all kinds, and what watches it.

Objects are JSON documents that nobody changes once they are stored; a write replaces the whole.

Upstream: etcd, apiserver/pkg/storage/etcd3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, Final, NamedTuple

from tracekit.base.sim.loop import Loop

Raw = dict[str, Any]
Key = tuple[str, str]


_SCALARS: Final = frozenset({str, int, bool, float, NoneType})


def plain_copy(value: Any) -> Any:
    """A copy of a JSON document that shares nothing that can be changed."""
    kind = type(value)
    if kind is dict:
        return {
            key: inner if type(inner) in _SCALARS else plain_copy(inner)
            for key, inner in value.items()
        }
    if kind in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {key: plain_copy(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_copy(inner) for inner in value]
    return value


class Change(NamedTuple):
    """One commit: an object was added, modified or deleted."""

    kind: str  # the plural, as in a URL
    type: str  # ADDED, MODIFIED, DELETED
    obj: Raw  # with the revision of this commit
    rv: int
    at_ns: int
    before: Raw | None


class _Watcher(NamedTuple):
    handler: Callable[[Change], None]
    kinds: tuple[str, ...]


class Store:
    """Every object of the cluster, by kind, namespace and name."""

    __slots__ = ("_objects", "_of_kind", "_watchers", "loop", "revision")

    def __init__(self, loop: Loop, revision: int = 1) -> None:
        self.loop = loop
        self.revision = revision
        self._objects: dict[str, dict[Key, Raw]] = {}
        self._watchers: list[_Watcher] = []
        self._of_kind: dict[str, tuple[Callable[[Change], None], ...]] = {}

    def watch(self, handler: Callable[[Change], None], *kinds: str) -> Callable[[], None]:
        """Be told of each commit of these kinds (of all, without any); the answer ends it."""
        watcher = _Watcher(handler, kinds)
        self._watchers.append(watcher)
        self._of_kind.clear()

        def stop() -> None:
            self._watchers.remove(watcher)
            self._of_kind.clear()

        return stop

    def get(self, kind: str, namespace: str, name: str) -> Raw | None:
        """An object, None where there is none."""
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: str) -> Iterator[Raw]:
        """Every object of a kind, by namespace and name."""
        objects = self._objects.get(kind, {})
        return (objects[key] for key in sorted(objects))

    def put(self, kind: str, obj: Raw) -> Raw:
        """Commit an object, new or in place of the one of that name; returns it as stored."""
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        objects = self._objects.setdefault(kind, {})
        before = objects.get(key)
        stored = self._committed(obj)
        objects[key] = stored
        self._tell(kind, "ADDED" if before is None else "MODIFIED", stored, before)
        return stored

    def remove(self, kind: str, obj: Mapping[str, Any]) -> Raw:
        """Commit the end of an object; returns its last state, with the revision of its end."""
        meta = obj["metadata"]
        before = self._objects[kind].pop((meta.get("namespace", ""), meta["name"]))
        last = self._committed(dict(obj))
        self._tell(kind, "DELETED", last, before)
        return last

    def _committed(self, obj: Raw) -> Raw:
        self.revision += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}

    def _tell(self, kind: str, change: str, obj: Raw, before: Raw | None) -> None:
        watchers = self._of_kind.get(kind)
        if watchers is None:
            watchers = tuple(w.handler for w in self._watchers if not w.kinds or kind in w.kinds)
            self._of_kind[kind] = watchers
        news = Change(kind, change, obj, self.revision, self.loop.now_ns, before)
        for watcher in watchers:
            watcher(news)
