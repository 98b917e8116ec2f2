"""Absence is evidence only where somebody looked."""

from __future__ import annotations

import pytest

from tracekit.base.coverage import (
    ALL,
    UNKNOWN,
    Coverage,
    CoverageBuilder,
    Scope,
    Span,
    scope_of,
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


def test_a_watch_covers_from_the_end_of_its_list_to_the_gap() -> None:
    made = CoverageBuilder()
    made.listed("pods", ALL, 10)
    made.watched("pods", ALL)
    made.lost("pods", 20)
    made.listed("pods", ALL, 30)
    made.watched("pods", ALL)
    coverage = made.close(40)
    assert list(coverage.holes("pods", "a", 0, 50)) == [(0, 10), (20, 30), (40, 50)]
    assert coverage.covers("pods", "a", 12, 20)
    assert not coverage.covers("pods", "a", 12, 21)
    assert coverage.last_look("pods", "a", 25) == 20
    assert coverage.last_look("pods", "a", 9) is None


def test_looks_cover_their_instants_only() -> None:
    made = CoverageBuilder()
    made.listed("jobs", A, 10)
    made.listed("jobs", A, 20)
    coverage = made.close(100)
    assert [span.from_ns for span in coverage.spans if span.is_look] == [10, 20]
    assert coverage.covers("jobs", "a", 20, 20)
    assert not coverage.covers("jobs", "a", 10, 20)
    assert coverage.last_look("jobs", "a", 100) == 20


def test_lists_of_one_namespace_each_add_up() -> None:
    made = CoverageBuilder()
    made.listed("jobs", A, 10)
    made.listed("jobs", B, 11)
    coverage = made.close(12)
    assert coverage.covers("jobs", "a", 10, 10)
    assert coverage.covers("jobs", "b", 11, 11)
    assert not coverage.covers("jobs", "c", 10, 11)


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
