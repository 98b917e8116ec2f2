"""The pod informer's cache, with the index by which a Job finds its pods.

Upstream: pkg/controller/controller_utils.go:FilterPodsByOwner, pkg/controller/job/
job_controller.go:getPodsForJob.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.kube.selectors import selector_matches
from tracekit.kube.views import JobView, PodView
from tracekit.process.informer import Informer


class PodInformer(Informer[PodView]):
    """Pods by namespace, name, and owner; a PodLister (`controllers.job.orphans`)."""

    _owned: dict[str, dict[tuple[str, str], PodView]]
    _orphans: dict[str, dict[str, PodView]]

    def indexed(self, new: PodView | None, old: PodView | None) -> None:
        """Keep the index by owner up to date."""
        if not hasattr(self, "_owned"):
            self._owned, self._orphans = {}, {}
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
        if not hasattr(self, "_owned"):
            return []
        return [
            *self._owned.get(job.uid, {}).values(),
            *self._orphans.get(job.namespace, {}).values(),
        ]

    def select(self, namespace: str, selector: Mapping[str, Any] | None) -> Iterable[PodView]:
        """The pods of a namespace that a label selector matches."""
        return [
            pod for pod in self.in_namespace(namespace) if selector_matches(selector, pod.labels)
        ]
