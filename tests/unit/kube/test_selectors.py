"""Label selectors.

Upstream: apimachinery/pkg/apis/meta/v1/helpers_test.go:TestLabelSelectorAsSelector,
pkg/controller/job/job_controller_test.go:TestJobPodLookup.
"""

from __future__ import annotations

from typing import Any

import pytest

from tracekit.base.kube.selectors import selector_matches


def expression(operator: str, *values: str, key: str = "a") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


CASES: dict[str, tuple[dict[str, Any] | None, dict[str, str], bool]] = {
    "no selector matches nothing": (None, {"a": "1"}, False),
    "an empty selector matches everything": ({}, {"a": "1"}, True),
    "an empty selector matches no labels": ({}, {}, True),
    "a label that is there": ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
    "a label with another value": ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
    "a label that is missing": ({"matchLabels": {"a": "1"}}, {}, False),
    "all labels must be there": ({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1"}, False),
    "an empty value is a value": ({"matchLabels": {"a": ""}}, {}, False),
    "In, listed": (expression("In", "1", "2"), {"a": "2"}, True),
    "In, not listed": (expression("In", "1", "2"), {"a": "3"}, False),
    "In, missing": (expression("In", "1"), {}, False),
    "NotIn, not listed": (expression("NotIn", "1"), {"a": "3"}, True),
    "NotIn, listed": (expression("NotIn", "1"), {"a": "1"}, False),
    "NotIn, missing": (expression("NotIn", "1"), {}, True),
    "Exists": (expression("Exists"), {"a": ""}, True),
    "Exists, missing": (expression("Exists"), {"b": ""}, False),
    "DoesNotExist": (expression("DoesNotExist"), {"b": ""}, True),
    "DoesNotExist, there": (expression("DoesNotExist"), {"a": ""}, False),
    "an unknown operator matches nothing": (expression("Near", "1"), {"a": "1"}, False),
    "labels and expressions together": (
        {"matchLabels": {"a": "1"}, **expression("Exists", key="b")},
        {"a": "1"},
        False,
    ),
    "null parts": ({"matchLabels": None, "matchExpressions": None}, {"a": "1"}, True),
}


@pytest.mark.parametrize(("selector", "labels", "expected"), CASES.values(), ids=CASES.keys())
def test_selector(selector: dict[str, Any] | None, labels: dict[str, str], expected: bool) -> None:
    assert selector_matches(selector, labels) is expected
