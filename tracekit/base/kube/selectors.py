"""Label selectors as `metav1.LabelSelector` defines them.

Upstream: apimachinery/pkg/apis/meta/v1/helpers.go:LabelSelectorAsSelector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tracekit.base.kube.decode import as_items, as_map, as_strings, as_text


def selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether the labels satisfy the selector; no selector matches nothing, an empty one all."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels")
    if wanted and not as_map(wanted).items() <= labels.items():
        return False
    requirements = selector.get("matchExpressions")
    return not requirements or all(
        _requirement_matches(requirement, labels) for requirement in as_items(requirements)
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


_REQUIREMENT = re.compile(
    r"\s*(?:(?P<key>[\w./-]+)\s+(?P<verb>in|notin)\s*\((?P<values>[^()]*)\)"
    r"|(?P<name>[\w./-]+)\s*(?P<sign>==|=|!=)\s*(?P<value>[\w.-]*)"
    r"|(?P<absent>!)?\s*(?P<there>[\w./-]+))\s*(?:,|$)"
)


def selector_from_text(text: str) -> dict[str, Any]:
    """A selector as kubectl's `-l` takes it, as a LabelSelector: `a=b,c!=d,e in (f,g),!h`.

    Raises:
        ValueError: Where it is none; the message is what cannot be read.
    """
    found: list[dict[str, Any]] = []
    place = 0
    while place < len(text):
        match = _REQUIREMENT.match(text, place)
        if match is None:
            raise ValueError(text[place:])
        place = match.end()
        if match["key"]:
            values = [value.strip() for value in match["values"].split(",")]
            operator = "In" if match["verb"] == "in" else "NotIn"
            found.append({"key": match["key"], "operator": operator, "values": values})
        elif match["name"]:
            operator = "NotIn" if match["sign"] == "!=" else "In"
            found.append({"key": match["name"], "operator": operator, "values": [match["value"]]})
        else:
            operator = "DoesNotExist" if match["absent"] else "Exists"
            found.append({"key": match["there"], "operator": operator})
    return {"matchExpressions": found}
