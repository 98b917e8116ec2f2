"""The pod informer's cache, with the index by which a Job finds its pods.

Upstream: pkg/controller/controller_utils.go:FilterPodsByOwner, pkg/controller/job/
job_controller.go:getPodsForJob.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.views import JobView, PodView
from tracekit.model.cluster.api_server import ApiServer
from tracekit.model.cluster.draws import Draws
from tracekit.model.process.informer import Informer
from tracekit.model.process.lifetime import Life

#: What the API server puts into the selectors that it generates, newer name first.
_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")


class PodInformer(Informer[PodView]):
    """Pods by namespace, name, and owner; a PodLister (`ports.job.orphans`)."""

    def __init__(self, life: Life, server: ApiServer, draws: Draws) -> None:
        super().__init__(life, server.store, "pods", server.views.pod, draws)
        self._owned: dict[str, dict[tuple[str, str], PodView]] = {}
        self._orphans: dict[str, dict[str, PodView]] = {}
        #: By namespace and the label that generated selectors ask for, then by name.
        self._labelled: dict[tuple[str, str, str], dict[str, PodView]] = {}

    def indexed(self, new: PodView | None, old: PodView | None) -> None:
        """Keep the index by owner up to date."""
        if old is not None:
            for place in _labels(old):
                if new is None or place not in _labels(new):
                    self._labelled[place].pop(old.name, None)
            if old.controller is not None:
                self._owned.get(old.controller.uid, {}).pop((old.namespace, old.name), None)
            else:
                self._orphans.get(old.namespace, {}).pop(old.name, None)
        if new is not None:
            for place in _labels(new):
                self._labelled.setdefault(place, {})[new.name] = new
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
        pods = self.in_namespace(namespace)
        wanted = selector.get("matchLabels", {}) if selector is not None else {}
        for label in _UID_LABELS:
            if label in wanted:
                pods = self._labelled.get((namespace, label, wanted[label]), {}).values()
                break
        return [pod for pod in pods if selector_matches(selector, pod.labels)]


def _labels(pod: PodView) -> list[tuple[str, str, str]]:
    """Where it stands by its labels."""
    labels = pod.labels
    return [(pod.namespace, label, labels[label]) for label in _UID_LABELS if label in labels]
