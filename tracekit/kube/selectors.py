"""Label selectors as `metav1.LabelSelector` defines them.

Upstream: apimachinery/pkg/apis/meta/v1/helpers.go:LabelSelectorAsSelector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.kube.decode import as_items, as_map, as_strings, as_text


def selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether the labels satisfy the selector; no selector matches nothing, an empty one all."""
    if selector is None:
        return False
    for key, value in as_map(selector.get("matchLabels")).items():
        if labels.get(key) != value:
            return False
    return all(
        _requirement_matches(requirement, labels)
        for requirement in as_items(selector.get("matchExpressions"))
    )


def _requirement_matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key = as_text(requirement.get("key"))
    values = as_strings(requirement.get("values"))
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
