"""A shared informer: a cache that follows the API server, and the handlers behind it.

The cache lags behind the store, the handlers behind the cache; neither ever goes back. The first
listing arrives as additions.

Upstream: client-go tools/cache/shared_informer.go, reflector.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from tracekit.model.cluster.draws import Draws
from tracekit.model.cluster.store import Change, Key, Raw, Store
from tracekit.model.process.lifetime import Life


class Named(Protocol):
    """What an informer must know of the views in it."""

    @property
    def namespace(self) -> str:
        """The namespace."""
        ...

    @property
    def name(self) -> str:
        """The name."""
        ...


V = TypeVar("V", bound=Named)


class Handlers(Generic[V]):
    """What one controller does with the events of one informer; `wake` follows each of them."""

    __slots__ = ("add", "delete", "last_ns", "update", "wake")

    def __init__(
        self,
        add: Callable[[V], None],
        update: Callable[[V, V], None],
        delete: Callable[[V], None],
        wake: Callable[[], None],
    ) -> None:
        self.add = add
        self.update = update
        self.delete = delete
        self.wake = wake
        self.last_ns = 0


class Informer(Generic[V]):
    """One kind's cache in one process."""

    def __init__(
        self,
        life: Life,
        store: Store,
        kind: str,
        view: Callable[[Mapping[str, Any]], V],
        draws: Draws,
    ) -> None:
        self._life = life
        self._store = store
        self._kind = kind
        self._view = view
        self._draws = draws
        self._handlers: list[Handlers[V]] = []
        self._last_ns = 0
        self._cache: dict[Key, V] = {}
        self._by_namespace: dict[str, dict[str, V]] = {}
        self._stop: Callable[[], None] | None = None
        self.revision = 0
        self.synced = False

    def handle(self, handlers: Handlers[V]) -> None:
        """Add the handlers of a controller; before `start` only."""
        self._handlers.append(handlers)

    def start(self, synced: Callable[[], None]) -> None:
        """List, then watch; `synced` is called once the listing is in the cache."""
        listed = list(self._store.all(self._kind))
        revision = self._store.revision
        self._stop = self._store.watch(self._see, self._kind)
        self._last_ns = self._life.now_ns + self._draws.latency_ns()

        def load() -> None:
            for obj in listed:
                self._set(self._view(obj), None)
            self.revision = revision
            # Upstream's workers may begin a moment before the handlers of the listing are through.
            through_ns = max((handlers.last_ns for handlers in self._handlers), default=0)
            self._life.at(max(through_ns, self._life.now_ns), ready)

        def ready() -> None:
            self.synced = True
            synced()

        self._life.at(self._last_ns, load)

    def stop(self) -> None:
        """End the watch."""
        if self._stop is not None:
            self._stop()
            self._stop = None

    def get(self, namespace: str, name: str) -> V | None:
        """The object of that name, as the cache has it."""
        return self._cache.get((namespace, name))

    def in_namespace(self, namespace: str) -> Iterable[V]:
        """The objects of a namespace, as the cache has them."""
        return self._by_namespace.get(namespace, {}).values()

    def _see(self, change: Change) -> None:
        lag_ns = self._draws.watch_lag_ns(self._kind)
        self._last_ns = max(self._last_ns, change.at_ns + lag_ns)
        self._life.at(self._last_ns, lambda: self._apply(change.type, change.obj, change.rv))

    def _apply(self, kind: str, obj: Raw, rv: int) -> None:
        view = self._view(obj)
        old = self._cache.get((view.namespace, view.name))
        if kind == "DELETED":
            self._drop(view)
        else:
            self._set(view, old)
        self.revision = rv

    def _set(self, view: V, old: V | None) -> None:
        self._cache[view.namespace, view.name] = view
        self._by_namespace.setdefault(view.namespace, {})[view.name] = view
        self.indexed(view, old)
        if old is None:
            self._tell(lambda handlers: handlers.add(view))
        else:
            self._tell(lambda handlers: handlers.update(old, view))

    def _drop(self, view: V) -> None:
        known = self._cache.pop((view.namespace, view.name), None)
        self._by_namespace.get(view.namespace, {}).pop(view.name, None)
        self.indexed(None, known)
        self._tell(lambda handlers: handlers.delete(view))

    def indexed(self, new: V | None, old: V | None) -> None:
        """Keep the indexes of a kind up to date; a kind without one has nothing to do."""

    def _tell(self, event: Callable[[Handlers[V]], None]) -> None:
        for handlers in self._handlers:
            at_ns = max(handlers.last_ns, self._life.now_ns + self._draws.handler_lag_ns())
            handlers.last_ns = at_ns
            self._life.at(at_ns, partial(_handle, handlers, event))


def _handle(handlers: Handlers[V], event: Callable[[Handlers[V]], None]) -> None:
    event(handlers)
    handlers.wake()
