"""Pods that differ from all others of their template in what the API server added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.base.kube.decode import as_map
from tracekit.base.kube.views import PodView
from tracekit.check.compare.fields import FieldDifference
from tracekit.check.compare.pod_body import body_additions
from tracekit.check.replay.history import Revision, WriteKind
from tracekit.check.replay.search_state import Explanation

#: So many pods of one template tell which of them is the odd one.
_FEWEST_ALIKE = 3


#: What of a pod's spec, and of its containers, tells nothing of what is added to all pods alike.
_OF_ONE_POD = frozenset({"nodeName", "hostname", "subdomain", "volumes"})
_OF_ONE_CONTAINER = frozenset({"env", "volumeMounts"})
_CONTAINERS = ("containers", "initContainers")


def odd_bodies(syncs: Iterable[Explanation]) -> dict[int, list[FieldDifference]]:
    """The odd pods, by the index of the write that created them, with what is odd.

    One pod that stands alone among three and more is told; a change that stays is an
    administrator's.
    """
    by_template: dict[int, tuple[Mapping[str, Any], list[tuple[int, Revision[PodView]]]]] = {}
    for sync in syncs:
        if sync.job is None:
            continue
        template = sync.job.view.spec.template
        for write in sync.writes:
            if write.kind is WriteKind.POD_CREATE and write.pod is not None:
                _, made = by_template.setdefault(id(template), (template, []))
                made.append((write.index, write.pod))
    odd: dict[int, list[FieldDifference]] = {}
    for template, made in by_template.values():
        if len(made) < _FEWEST_ALIKE:
            continue
        spec = as_map(template.get("spec"))
        specs = [(index, pod.evidence.pod_spec()) for index, pod in made]
        if all(_alike(specs[0][1], other) for _, other in specs):
            continue
        pods = [(index, body_additions(spec, of_pod)) for index, of_pod in specs]
        usual = pods[0][1] if pods[0][1] in (pods[1][1], pods[2][1]) else pods[1][1]
        different = [(index, added) for index, added in pods if added != usual]
        if len(different) == 1:
            index, added = different[0]
            odd[index] = [
                FieldDifference(path, usual.get(path), added.get(path))
                for path in sorted({*usual, *added})
                if usual.get(path) != added.get(path)
            ]
    return odd


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two pods' specs are the same but for what is a pod's own: then nothing is odd."""
    return one is other or (
        one.keys() == other.keys()
        and all(
            key in _OF_ONE_POD
            or other.get(key) == value
            or (key in _CONTAINERS and _containers_alike(value, other.get(key)))
            for key, value in one.items()
        )
    )


def _containers_alike(some: Any, others: Any) -> bool:
    return (
        isinstance(some, list)
        and isinstance(others, list)
        and len(some) == len(others)
        and all(
            isinstance(one, dict)
            and isinstance(other, dict)
            and one.keys() == other.keys()
            and all(
                key in _OF_ONE_CONTAINER or other.get(key) == value for key, value in one.items()
            )
            for one, other in zip(some, others, strict=True)
        )
    )
