"""The pod informer's cache, with the index by which a Job finds its pods.

Upstream: pkg/controller/controller_utils.go:FilterPodsByOwner, pkg/controller/job/
job_controller.go:getPodsForJob.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.cluster.draws import Draws
from tracekit.cluster.store import Store
from tracekit.kube.selectors import selector_matches
from tracekit.kube.views import JobView, PodView, pod_from_raw
from tracekit.process.informer import Informer
from tracekit.process.life import Life


class PodInformer(Informer[PodView]):
    """Pods by namespace, name, and owner; a PodLister (`controllers.job.orphans`)."""

    def __init__(self, life: Life, store: Store, draws: Draws) -> None:
        super().__init__(life, store, "pods", pod_from_raw, draws)
        self._owned: dict[str, dict[tuple[str, str], PodView]] = {}
        self._orphans: dict[str, dict[str, PodView]] = {}

    def indexed(self, new: PodView | None, old: PodView | None) -> None:
        """Keep the index by owner up to date."""
        if old is not None:
            if old.controller is not None:
                self._owned.get(old.controller.uid, {}).pop((old.namespace, old.name), None)
            else:
                self._orphans.get(old.namespace, {}).pop(old.name, None)
        if new is not None:
            if new.controller is not None:
                owned = self._owned.setdefault(new.controller.uid, {})
                owned[new.namespace, new.name] = new
            else:
                self._orphans.setdefault(new.namespace, {})[new.name] = new

    def of(self, job: JobView) -> list[PodView]:
        """The pods that a Job owns or could adopt."""
        return [
            *self._owned.get(job.uid, {}).values(),
            *self._orphans.get(job.namespace, {}).values(),
        ]

    def select(self, namespace: str, selector: Mapping[str, Any] | None) -> Iterable[PodView]:
        """The pods of a namespace that a label selector matches."""
        return [
            pod for pod in self.in_namespace(namespace) if selector_matches(selector, pod.labels)
        ]
