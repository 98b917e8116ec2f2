"""Completion indexes as intervals: reading, writing, merging, picking.

Upstream: pkg/controller/job/indexed_job_utils_test.go: TestCalculateSucceededIndexes,
TestIntervalsHaveIndex, TestFirstPendingIndexes.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.ports.job.indexes import (
    Intervals,
    contains,
    first_pending,
    format_intervals,
    merge,
    parse_intervals,
    total,
    with_indexes,
)

PARSED: dict[str, tuple[str, int, Intervals]] = {
    "empty": ("", 10, ()),
    "one index": ("3", 10, ((3, 3),)),
    "two neighbours, written with a comma": ("3,4", 10, ((3, 4),)),
    "a range": ("3-5", 10, ((3, 5),)),
    "a range and its neighbour": ("3-5,6", 10, ((3, 6),)),
    "two ranges": ("0-2,4-6", 10, ((0, 2), (4, 6))),
    "a range that ends beyond completions": ("0-5,8-10", 10, ((0, 5), (8, 9))),
    "a range that starts beyond completions": ("0-5,8-10", 8, ((0, 5),)),
    "everything beyond completions": ("8-10", 3, ()),
    "a corrupt end": ("0,1-x,y", 4, ((0, 0),)),
    "a corrupt part in between": ("0,x,2", 4, ((0, 0), (2, 2))),
    "a dash without a start": ("-3", 4, ()),
    "a dash without an end": ("1-,3", 4, ((3, 3),)),
    "a part too much": ("0-1-3", 4, ((0, 1),)),
    "spaces are no numbers": ("0, 1", 4, ((0, 0),)),
    "a sign is part of a number": ("+1", 4, ((1, 1),)),
    "other digits are no numbers": ("\N{ARABIC-INDIC DIGIT THREE}", 4, ()),
}


@pytest.mark.parametrize(("text", "completions", "expected"), PARSED.values(), ids=PARSED.keys())
def test_parse(text: str, completions: int, expected: Intervals) -> None:
    assert parse_intervals(text, completions) == expected


ADDED: dict[str, tuple[str, list[int], int, str]] = {
    "nothing before": ("", [1], 2, "1"),
    "two apart": ("", [5, 10], 11, "5,10"),
    "two ranges": ("", [2, 3, 5, 6, 7], 8, "2,3,5-7"),
    "apart from those before": ("0,4,5,10-12", [2, 7, 8], 13, "0,2,4,5,7,8,10-12"),
    "around those before": ("3,4,6", [2, 7, 8], 9, "2-4,6-8"),
    "between those before": ("2,7,8", [3, 4, 6], 9, "2-4,6-8"),
    "within those before": ("2-7", [0, 3, 5, 9], 10, "0,2-7,9"),
    "twice the same": ("1", [1, 1], 3, "1"),
    "filling a gap": ("0,2", [1], 3, "0-2"),
    "not in order": ("", [3, 1, 2], 5, "1-3"),
    "beside a corrupt part": ("0,1-x,y", [3], 4, "0,3"),
}


@pytest.mark.parametrize(
    ("before", "indexes", "completions", "expected"), ADDED.values(), ids=ADDED.keys()
)
def test_add(before: str, indexes: list[int], completions: int, expected: str) -> None:
    added = with_indexes(parse_intervals(before, completions), indexes)
    assert format_intervals(added) == expected


def test_a_list_that_is_not_in_order_is_read_as_upstream_reads_it() -> None:
    """Its merge walks both lists from the front: what comes behind the last end is swallowed."""
    corrupt = parse_intervals("5,1,7", 10)
    assert format_intervals(with_indexes(corrupt, [])) == "5,7"
    assert format_intervals(with_indexes(corrupt, [3])) == "3,5,7"
    assert total(with_indexes(parse_intervals("0-5,2", 10), [])) == 6


CONTAINED: dict[str, tuple[Intervals, int, bool]] = {
    "nothing": ((), 4, False),
    "before all": (((2, 4), (6, 8)), 1, False),
    "after all": (((2, 4), (6, 8)), 9, False),
    "in between": (((2, 4), (6, 8)), 5, False),
    "the first of the first": (((2, 4), (6, 8)), 2, True),
    "the last of the last": (((2, 4), (6, 8)), 8, True),
    "no index": (((0, 4),), -1, False),
}


@pytest.mark.parametrize(
    ("intervals", "index", "expected"), CONTAINED.values(), ids=CONTAINED.keys()
)
def test_contains(intervals: Intervals, index: int, expected: bool) -> None:
    assert contains(intervals, index) is expected


PENDING: dict[str, tuple[Intervals, int, int, list[int]]] = {
    "more wanted than there are": ((), 5, 3, [0, 1, 2]),
    "fewer wanted than there are": ((), 2, 5, [0, 1]),
    "none wanted": ((), 0, 5, []),
    "the first ones are taken": (((0, 1),), 3, 10, [2, 3, 4]),
    "the last ones are taken": (((4, 6),), 6, 6, [0, 1, 2, 3]),
    "some here and there": (((2, 5), (8, 9)), 5, 20, [0, 1, 6, 7, 10]),
    "all taken": (((0, 9),), 3, 10, []),
    "no completions": ((), 3, 0, []),
}


@pytest.mark.parametrize(
    ("taken", "count", "completions", "expected"), PENDING.values(), ids=PENDING.keys()
)
def test_first_pending(taken: Intervals, count: int, completions: int, expected: list[int]) -> None:
    assert first_pending(taken, count=count, completions=completions) == expected


def test_formatting_writes_two_neighbours_with_a_comma_and_three_with_a_dash() -> None:
    assert format_intervals(((0, 0), (2, 3), (5, 7))) == "0,2,3,5-7"


INDEXES = st.sets(st.integers(0, 60))


def members(intervals: Intervals) -> set[int]:
    return {index for first, last in intervals for index in range(first, last + 1)}


def normal(intervals: Intervals) -> bool:
    return all(first <= last for first, last in intervals) and all(
        left[1] + 1 < right[0] for left, right in pairwise(intervals)
    )


@given(INDEXES)
def test_a_set_survives_being_written_and_read(indexes: set[int]) -> None:
    intervals = with_indexes((), indexes)
    assert members(intervals) == indexes
    assert normal(intervals)
    text = format_intervals(intervals)
    assert parse_intervals(text, 61) == intervals
    assert format_intervals(parse_intervals(text, 61)) == text
    assert total(intervals) == len(indexes)


@given(INDEXES, INDEXES)
def test_merging_is_the_union(left: set[int], right: set[int]) -> None:
    merged = merge(with_indexes((), left), with_indexes((), right))
    assert members(merged) == left | right
    assert normal(merged)
    assert with_indexes(with_indexes((), left), right) == merged


@given(INDEXES, st.integers(0, 70))
def test_reading_cuts_at_completions(indexes: set[int], completions: int) -> None:
    text = format_intervals(with_indexes((), indexes))
    kept = {index for index in indexes if index < completions}
    assert members(parse_intervals(text, completions)) == kept


@given(INDEXES, st.integers(-1, 61))
def test_containing_is_membership(indexes: set[int], index: int) -> None:
    assert contains(with_indexes((), indexes), index) is (index in indexes)


@given(INDEXES, st.integers(0, 20), st.integers(0, 70))
def test_first_pending_are_the_lowest_free_ones(
    taken: set[int], count: int, completions: int
) -> None:
    free = [index for index in range(completions) if index not in taken][:count]
    assert first_pending(with_indexes((), taken), count=count, completions=completions) == free


@given(st.text("0123456789,-+x ", max_size=30), st.integers(0, 50))
def test_any_text_is_read_without_an_error(text: str, completions: int) -> None:
    for first, _ in parse_intervals(text, completions):
        assert first < completions
