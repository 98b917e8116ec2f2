"""The namespace controller: what is in a namespace that ends is deleted, then the namespace goes.

Upstream: pkg/controller/namespace/deletion/namespaced_resources_deleter.go. Its content is looked
at again until nothing is left; pods go with their grace period.
"""

from __future__ import annotations

from typing import Final

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.model.cluster.api_server import BACKGROUND, ApiServer
from tracekit.model.cluster.draws import Draws
from tracekit.model.cluster.store import Change

_CONTENT: Final = ("pods", "cronjobs", "jobs", "events")
_AGAIN_NS: Final = NS_PER_S


class NamespaceController:
    """Empties namespaces that are being deleted."""

    def __init__(self, server: ApiServer, draws: Draws) -> None:
        self._server = server
        self._loop = server.store.loop
        self._draws = draws
        server.store.watch(self._see, "namespaces")

    def _see(self, change: Change) -> None:
        meta = change.obj["metadata"]
        if change.type == "MODIFIED" and meta.get("deletionTimestamp") is not None:
            self._loop.after(self._draws.collection_ns(), lambda: self._empty(meta["name"]))

    def _empty(self, namespace: str) -> None:
        left = False
        for kind in _CONTENT:
            for obj in list(self._server.store.all(kind)):
                if obj["metadata"].get("namespace") != namespace:
                    continue
                self._server.delete(
                    kind,
                    namespace,
                    obj["metadata"]["name"],
                    propagation=BACKGROUND if kind != "pods" else None,
                )
                left |= self._server.store.get(kind, namespace, obj["metadata"]["name"]) is not None
        if left:
            self._loop.after(_AGAIN_NS, lambda: self._empty(namespace))
        else:
            self._server.finish_namespace(namespace)
