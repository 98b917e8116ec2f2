"""ResourceQuotas: whether a namespace has room for another pod of a Job. Pure.

Upstream: a creation is refused where used and asked together are more than hard
(staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go); what a pod asks for
is counted by pkg/quota/v1/evaluator/core/pods.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tracekit.base.kube.quantities import quantity

#: What each pod counts as one of.
_OF_EACH: Final = ("pods", "count/pods")
#: By the name in a quota: where a container asks for it. Requests left out are the limits.
_ASKED: Final = {
    "cpu": ("requests", "cpu"), "requests.cpu": ("requests", "cpu"),
    "limits.cpu": ("limits", "cpu"),
    "memory": ("requests", "memory"), "requests.memory": ("requests", "memory"),
    "limits.memory": ("limits", "memory"),
}  # fmt: skip


class Quota(NamedTuple):
    """The last state of a ResourceQuota that holds for all pods of its namespace."""

    name: str
    hard: Mapping[str, str]
    used: Mapping[str, str]


class Full(NamedTuple):
    """A resource of which a quota has not enough left, as Kubernetes writes amounts."""

    quota: str
    resource: str
    used: str
    hard: str
    #: Whether one pod asks for more than the quota has in all.
    never_fits: bool


def quota_of(name: str, spec: Mapping[str, Any], status: Mapping[str, Any]) -> Quota | None:
    """A ResourceQuota by its spec and status; None where it holds for some pods only (scopes)."""
    hard, used = status.get("hard"), status.get("used")
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None
    if not isinstance(hard, dict) or not isinstance(used, dict):
        return None
    return Quota(name, hard, used)


def no_room(quota: Quota, pod_spec: Mapping[str, Any]) -> Iterator[Full]:
    """Resources of which there is not enough for a pod, as far as its containers ask for them.

    Admission may give it more (a LimitRange): what is refused by this is refused.
    """
    for resource, limit in quota.hard.items():
        hard, used = quantity(str(limit)), quantity(str(quota.used.get(resource, "")))
        asked = _asked(resource, pod_spec)
        if hard is not None and used is not None and asked > 0 and used + asked > hard:
            amounts = str(quota.used[resource]), str(limit)
            yield Full(quota.name, resource, *amounts, never_fits=asked > hard)


def _asked(resource: str, pod_spec: Mapping[str, Any]) -> Fraction:
    """How much of it a pod asks for."""
    if resource in _OF_EACH:
        return Fraction(1)
    where = _ASKED.get(resource)
    if where is None:
        return Fraction(0)
    amounts = (_of_container(found, *where) for found in pod_spec.get("containers") or ())
    return sum(amounts, Fraction(0))


def _of_container(container: Mapping[str, Any], part: str, name: str) -> Fraction:
    resources = container.get("resources") or {}
    for found in (resources.get(part), resources.get("limits")):
        if isinstance(found, Mapping) and name in found:
            return quantity(str(found[name])) or Fraction(0)
    return Fraction(0)
