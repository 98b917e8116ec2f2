"""Completion indexes as ordered intervals.

`status.completedIndexes` and `status.failedIndexes` are strings such as `0-2,5,6`: ranges of three
and more are written with a dash, two neighbours with a comma.

Upstream: pkg/controller/job/indexed_job_utils.go, v1.36.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from heapq import merge as in_turn

from tracekit.base.kube.views import go_atoi

#: Sorted, disjoint, non-adjacent (first, last) pairs, both ends included.
Intervals = tuple[tuple[int, int], ...]


def parse_intervals(text: str, completions: int) -> Intervals:
    """Decode an index string; parts that are not numbers are skipped, indexes beyond are cut."""
    result: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first_text, dash, last_text = part.partition("-")
        first = go_atoi(first_text)
        if first is None:
            continue
        if first >= completions:
            break
        last = first
        if dash:
            parsed = go_atoi(last_text.split("-")[0])
            if parsed is None:
                continue
            last = min(parsed, completions - 1)
        if result and result[-1][1] == first - 1:
            result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return tuple(result)


def merge(left: Intervals, right: Iterable[tuple[int, int]]) -> Intervals:
    """The union of two ordered interval lists.

    A list from a status that somebody wrote out of order is taken as it stands, as upstream takes
    it: what comes behind the last end is swallowed.
    """
    result: list[tuple[int, int]] = []
    for first, last in in_turn(left, right):
        if not result or first > result[-1][1] + 1:
            result.append((first, last))
        elif result[-1][1] < last:
            result[-1] = (result[-1][0], last)
    return tuple(result)


def with_indexes(intervals: Intervals, indexes: Iterable[int]) -> Intervals:
    """The intervals with single indexes added."""
    return merge(intervals, [(index, index) for index in sorted(set(indexes))])


def total(intervals: Intervals) -> int:
    """How many indexes the intervals hold."""
    return sum(last - first + 1 for first, last in intervals)


def contains(intervals: Intervals, index: int) -> bool:
    """Whether the index lies in one of the intervals."""
    position = bisect_left(intervals, index, key=lambda interval: interval[1])
    return position < len(intervals) and intervals[position][0] <= index


def format_intervals(intervals: Intervals) -> str:
    """Encode intervals the way the status holds them."""
    parts = []
    for first, last in intervals:
        if last == first:
            parts.append(str(first))
        elif last == first + 1:
            parts.append(f"{first},{last}")
        else:
            parts.append(f"{first}-{last}")
    return ",".join(parts)


def first_pending(taken: Intervals, *, count: int, completions: int) -> list[int]:
    """The lowest `count` indexes below `completions` that are not taken."""
    result: list[int] = []
    candidate = 0
    for first, last in taken:
        while candidate < completions and len(result) < count and candidate < first:
            result.append(candidate)
            candidate += 1
        candidate = max(candidate, last + 1)
    while candidate < completions and len(result) < count:
        result.append(candidate)
        candidate += 1
    return result
