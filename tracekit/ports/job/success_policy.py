"""The success policy: when a subset of the indexes is enough.

Upstream: pkg/controller/job/success_policy.go, v1.36 (KEP-3998).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.ports.job.indexes import Intervals, parse_intervals, total


def match_success_policy(
    rules: Sequence[Mapping[str, Any]] | None, *, completions: int, succeeded: Intervals
) -> str | None:
    """The message of the first rule that the succeeded indexes meet, or None."""
    if not rules or not succeeded:
        return None
    for position, rule in enumerate(rules):
        indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if isinstance(indexes, str):
            required = parse_intervals(indexes, completions)
            if not required:
                continue
            overlap = _overlap(required, succeeded)
            met = overlap == total(required) or (isinstance(count, int) and overlap >= count)
        else:
            met = isinstance(count, int) and total(succeeded) >= count
        if met:
            return f"Matched rules at index {position}"
    return None


def _overlap(left: Intervals, right: Intervals) -> int:
    return sum(
        max(0, min(a_last, b_last) - max(a_first, b_first) + 1)
        for a_first, a_last in left
        for b_first, b_last in right
    )
