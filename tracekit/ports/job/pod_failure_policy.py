"""The pod failure policy: what a failed pod means for its Job.

Rules are tried in order; the first that matches decides. Exit codes are looked up in the regular
containers first, then in the init containers; an exit code of 0 never matches.

Upstream: pkg/controller/job/pod_failure_policy.go, v1.36 (FailIndex from 1.29, KEP-3850).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tracekit.base.kube.decode import as_items, as_list
from tracekit.base.kube.views import Condition, ContainerStatus

Rules = Sequence[Mapping[str, Any]]


class FailedPod(Protocol):
    """What the policy looks at in a pod."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def conditions(self) -> Sequence[Condition]:
        """Its conditions."""

    @property
    def containers(self) -> Sequence[ContainerStatus]:
        """Its containers, then its init containers."""


class PolicyMatch(NamedTuple):
    """What the policy says of one failed pod."""

    fail_message: str | None  # set by FailJob only
    counts: bool  # towards backoffLimit; False for Ignore
    action: str | None  # the action of the rule that matched


COUNTS = PolicyMatch(None, counts=True, action=None)


def match_pod_failure_policy(
    rules: Rules | None, pod: FailedPod, *, fail_index: bool
) -> PolicyMatch:
    """Apply the policy to a failed pod; `fail_index` is whether that action is understood."""
    for position, rule in enumerate(rules or ()):
        matched = _describe_match(rule, pod, position)
        if matched is None:
            continue
        match rule.get("action"):
            case "Ignore":
                return PolicyMatch(None, counts=False, action="Ignore")
            case "FailIndex" if fail_index:
                return PolicyMatch(None, counts=True, action="FailIndex")
            case "Count":
                return PolicyMatch(None, counts=True, action="Count")
            case "FailJob":
                return PolicyMatch(matched, counts=True, action="FailJob")
    return COUNTS


def _describe_match(rule: Mapping[str, Any], pod: FailedPod, position: int) -> str | None:
    """The message of a FailJob rule if the rule's pattern fits the pod, else None."""
    action = rule.get("action")
    exit_codes = rule.get("onExitCodes")
    if isinstance(exit_codes, dict):
        container = _matching_container(pod.containers, exit_codes)
        if container is None:
            return None
        return (
            f"Container {container.name} for pod {pod.namespace}/{pod.name} failed with exit code "
            f"{container.exit_code} matching {action} rule at index {position}"
        )
    patterns = rule.get("onPodConditions")
    if patterns is not None:
        condition = _matching_condition(pod.conditions, as_items(patterns))
        if condition is None:
            return None
        return (
            f"Pod {pod.namespace}/{pod.name} has condition {condition.type} matching {action} "
            f"rule at index {position}"
        )
    return None


def _matching_container(
    containers: Sequence[ContainerStatus], requirement: Mapping[str, Any]
) -> ContainerStatus | None:
    name = requirement.get("containerName")
    values = as_list(requirement.get("values"))
    operator = requirement.get("operator")
    for container in containers:  # regular containers stand before the init containers
        if not container.exit_code or (name is not None and name != container.name):
            continue
        if (operator == "In" and container.exit_code in values) or (
            operator == "NotIn" and container.exit_code not in values
        ):
            return container
    return None


def _matching_condition(
    conditions: Sequence[Condition], patterns: Sequence[Mapping[str, Any]]
) -> Condition | None:
    for condition in conditions:
        for pattern in patterns:
            if condition.type == pattern.get("type") and condition.status == pattern.get(
                "status", "True"
            ):
                return condition
    return None
