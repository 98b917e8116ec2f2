"""Every view and every example on every shipped trace, and on one without a row."""

from __future__ import annotations

import pytest

from tracekit.sql.catalog import examples, macros, parts_for, views
from tracekit.sql.session import Session
from tracekit.trace.format.schema import NAMES

NamedSession = tuple[str, Session]


@pytest.mark.parametrize("view", [v.name for v in views()])
def test_every_view_answers(named_session: NamedSession, view: str) -> None:
    _, session = named_session
    schema = "main" if not view.startswith("_") else "internal"
    session.table(f"SELECT * FROM {schema}.{view}")  # noqa: S608


@pytest.mark.parametrize("example", [e.name for e in examples()])
def test_every_example_answers(named_session: NamedSession, example: str) -> None:
    name, session = named_session
    query = next(e.sql for e in examples() if e.name == example)
    rows = session.table(query)
    if name == "empty":
        assert rows.num_rows == 0


def test_the_macros_answer(named_session: NamedSession) -> None:
    _, session = named_session
    session.table("FROM active_at('2026-11-21 05:43:00')")
    session.table("FROM concurrency('t-indexed')")
    session.table("FROM timeline('t-indexed/plain')")


@pytest.mark.parametrize("view", [v for v in views() if v.public], ids=lambda v: v.name)
def test_the_documentation_names_every_column_in_order(session_of, view) -> None:
    columns = session_of("empty").table(f"FROM {view.name}").column_names
    documented = [column.name for column in view.columns]
    if view.name == "observations":
        documented = [*documented, *NAMES]  # the file's columns are documented by the format
    assert columns == documented
    assert all(column.source and column.null for column in view.columns)


@pytest.mark.parametrize("view", [v for v in views() if v.public], ids=lambda v: v.name)
def test_columns_documented_as_never_null_never_are(named_session, view) -> None:
    name, session = named_session
    never = [c.name for c in view.columns if c.null.split(";")[0] == "never"]
    counts = ", ".join(f'count(*) FILTER ("{c}" IS NULL) AS "{c}"' for c in never)
    nulls = session.table(f"FROM {view.name} SELECT {counts}").to_pylist()[0]
    assert {c: n for c, n in nulls.items() if n} == {}, name


def test_there_are_at_least_twenty_examples_and_three_macros() -> None:
    assert len(examples()) >= 20
    assert {"active_at", "concurrency", "timeline"} <= {m.name for m in macros()}
    assert len({e.name for e in examples()}) == len(examples())


@pytest.mark.parametrize(
    ("query", "all_of_them"),
    [
        ("SELECT * FROM gaps ORDER BY from_at DESC", False),
        ("SELECT max(x) FILTER (x > 1) FROM gaps ORDER BY ALL\nDESC NULLS LAST", True),
        ("desc jobs", True),
        ("FROM (DESC jobs)", True),
        ("SHOW TABLES", True),
    ],
)
def test_a_query_makes_the_views_that_it_names(query: str, all_of_them: bool) -> None:
    assert (len(parts_for(query)) > 20) == all_of_them
