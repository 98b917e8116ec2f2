"""Absence is evidence only where somebody looked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tracekit.base.coverage import (
    ALL,
    UNKNOWN,
    Coverage,
    Listed,
    Scope,
    Span,
    scope_of,
    spans_of,
)

A, B = Scope(frozenset("a")), Scope(frozenset("b"))


def test_a_scope_covers_what_was_asked_for() -> None:
    assert ALL.covers("a")
    assert ALL.covers(None)
    assert A.covers("a")
    assert not A.covers("b")
    assert not A.covers(None)
    assert not UNKNOWN.covers("a")
    assert not Scope(None, "app=web").covers("a")  # nobody knows what has no such label


@pytest.mark.parametrize(
    ("value", "scope"),
    [("all", ALL), ("a", A), (["a"], A), ([], UNKNOWN), (None, None), ("", None), ([1], None),
     ({}, None), (7, None)],
)  # fmt: skip
def test_what_a_document_says_of_its_scope(value: object, scope: Scope | None) -> None:
    assert scope_of(value) == scope


def _covered(lists, gaps=(), end_ns=40, *, watched):
    spans = spans_of("pods", [Listed(*found) for found in lists], gaps, end_ns, watched=watched)
    return Coverage(tuple(spans), end_ns)


@pytest.mark.parametrize("gap", [(20, 30), (20, None)])  # the recorder was back, or just listed
def test_a_watch_covers_from_the_end_of_its_list_to_the_gap(gap) -> None:
    coverage = _covered([(ALL, 10), (ALL, 30)], [gap], watched=True)
    assert list(coverage.holes("pods", "a", 0, 50)) == [(0, 10), (20, 30), (40, 50)]
    assert coverage.covers("pods", "a", 12, 20)
    assert not coverage.covers("pods", "a", 12, 21)
    assert coverage.last_look("pods", "a", 25) == 20
    assert coverage.last_look("pods", "a", 9) is None
    assert coverage.first_look("pods", "a") == 10
    assert coverage.watches("pods", "a")


@pytest.mark.parametrize(
    ("gap", "spans"),
    [((0, 10), [(10, 40)]),  # until the end of the first list
     ((20, None), [(10, 20)]),
     ((5, None), [(10, 40)]),
     ((50, None), [(10, 50)])],
)  # fmt: skip
def test_a_gap_before_after_and_to_the_end(gap, spans) -> None:
    coverage = _covered([(ALL, 10)], [gap], watched=True)
    assert [(span.from_ns, span.until_ns) for span in coverage.spans] == spans


def test_looks_cover_their_instants_only() -> None:
    coverage = _covered([(A, 20), (A, 10)], watched=False)
    assert [span.from_ns for span in coverage.spans if span.is_look] == [10, 20]
    assert coverage.covers("pods", "a", 20, 20)
    assert not coverage.covers("pods", "a", 10, 20)
    assert coverage.last_look("pods", "a", 100) == 20
    assert not coverage.watches("pods", "a")


def test_lists_of_one_namespace_each_add_up() -> None:
    coverage = _covered([(A, 10), (B, 11)], watched=False)
    assert coverage.covers("pods", "a", 10, 10)
    assert coverage.covers("pods", "b", 11, 11)
    assert not coverage.covers("pods", "c", 10, 11)
    assert not coverage.sees("pods", "c")


def test_why_nothing_follows_names_scope_and_time() -> None:
    coverage = _covered([(A, 10_000_000_000)], end_ns=60_000_000_000, watched=False)
    coverage = replace(coverage, unseen={"jobs": "list is forbidden"})
    assert coverage.blind(("pods",), "a", 10_000_000_000, 10_000_000_000) == ""
    assert coverage.blind(("pods",), "a", 10_000_000_000, 20_000_000_000) == (
        "the last look at pods in namespace a was at 1970-01-01T00:00:10Z"
    )
    assert coverage.blind(("pods",), "a", 0, 1) == (
        "pods in namespace a were first seen at 1970-01-01T00:00:10Z"
    )
    assert coverage.blind(("pods",), "b", 0, 1) == "nobody looked at pods in namespace b"
    assert coverage.blind(("jobs",), "a", 0, 1) == "jobs were not seen: list is forbidden"


def test_after_the_end_of_the_record_is_no_hole() -> None:
    coverage = _covered([(ALL, 10)], watched=True)
    assert coverage.blind(("pods",), "a", 30, 500) == ""


def test_a_selector_is_taken_to_pick_what_belongs_together() -> None:
    coverage = _covered([(Scope(None, "app=web"), 10)], watched=True)
    assert coverage.covers("pods", "a", 10, 40)
    assert not coverage.spans[0].scope.covers("a")


def test_what_was_never_listed_is_one_hole() -> None:
    assert list(Coverage().holes("pods", "a", 3, 9)) == [(3, 9)]
    assert list(Coverage().holes("pods", "a", 3, 3)) == [(3, 3)]
    seen = Coverage((Span("pods", A, 0, 10),))
    assert list(seen.holes("pods", "b", 3, 9)) == [(3, 9)]
    assert list(seen.holes("pods", "a", 3, 9)) == []


def test_a_scope_in_words() -> None:
    assert [str(scope) for scope in (ALL, A, Scope(frozenset("ab")), UNKNOWN)] == [
        "all namespaces", "namespace a", "namespaces a, b", "an unknown scope",
    ]  # fmt: skip
    assert str(Scope(None, "app=web")) == "all namespaces, app=web only"


_NAMED = st.sampled_from([ALL, UNKNOWN, A, B, Scope(frozenset("ab")), Scope(None, "app=web")])
_NS = st.integers(0, 12)


@st.composite
def _spans(draw) -> Span:
    from_ns = draw(_NS)
    stream = draw(st.sampled_from(["jobs", "pods"]))
    return Span(stream, draw(_NAMED), from_ns, from_ns + draw(st.integers(0, 4)))


@given(st.lists(_spans(), max_size=8), st.sampled_from([None, "a", "b", "c"]), _NS, _NS)
def test_what_is_looked_up_is_what_each_span_says(spans, namespace, one, other) -> None:
    """Of every instant, span for span; halves are the instants between."""
    from_ns, until_ns = sorted((2 * one, 2 * other))
    doubled = [s._replace(from_ns=2 * s.from_ns, until_ns=2 * s.until_ns) for s in spans]
    coverage = Coverage(tuple(doubled), 40)
    here = [s for s in doubled if s.stream == "pods" and s.scope.lists(namespace)]
    ends = [min(s.until_ns, until_ns) for s in here if s.from_ns <= until_ns]
    assert coverage.last_look("pods", namespace, until_ns) == max(ends, default=None)
    assert coverage.first_look("pods", namespace) == min((s.from_ns for s in here), default=None)
    assert coverage.watches("pods", namespace) == any(not s.is_look for s in here)
    holes = list(coverage.holes("pods", namespace, from_ns, until_ns))
    assert holes == sorted(holes)
    for at_ns in range(from_ns + 1, until_ns, 2):
        seen = any(s.from_ns < at_ns < s.until_ns for s in here)
        assert seen != any(begin < at_ns < end for begin, end in holes)
    if from_ns == until_ns:
        touched = any(s.from_ns <= from_ns <= s.until_ns for s in here)
        assert coverage.covers("pods", namespace, from_ns, until_ns) == touched
