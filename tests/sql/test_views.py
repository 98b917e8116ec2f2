"""Every view and every example on every shipped trace, and on one without a row."""

from __future__ import annotations

import re

import duckdb
import pyarrow.compute as pc
import pytest

from tests.support.traces import ROOT
from tracekit.base.kube.job_status import COUNTS, NAMES
from tracekit.sql.catalog import View, examples, macros, parts_for, views
from tracekit.sql.session import Session

NamedSession = tuple[str, Session]


@pytest.mark.parametrize("view", views(), ids=lambda v: v.name)
def test_every_view_answers_as_documented(named_session: NamedSession, view: View) -> None:
    """One query a view: the values of all its columns are checked as they came."""
    name, session = named_session
    schema = "main" if view.public else "internal"
    rows = session.table(f"SELECT * FROM {schema}.{view.name}")  # noqa: S608
    if not view.public:
        return
    documented = [column.name for column in view.columns]
    assert rows.column_names == documented
    assert all(column.source and column.null for column in view.columns)
    never = [c.name for c in view.columns if c.null.split(";")[0] == "never"]
    assert {c: n for c in never if (n := rows[c].null_count)} == {}, name
    for column, values in view.values.items():
        assert set(pc.unique(rows[column]).to_pylist()) <= {*values, None}, column


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


@pytest.mark.parametrize("code", [1, 255, -1, -(2**63), 2**63 - 1])
def test_what_failed_is_found_by_any_exit_code(code: int) -> None:
    """Of those that ended at one time the higher code is told; a trace may say any number."""
    text = (ROOT / "tracekit/sql/macros/base.sql").read_text(encoding="utf-8")
    start = text.index("CREATE MACRO failing_exit")
    one = "{{state: 'terminated', init: false, finished_ns: 1, exit_code: ({})::BIGINT, signal: 0, reason: ''}}"
    with duckdb.connect() as connection:
        connection.execute(text[start : text.index(";", start)])
        both = f"[{one.format(-2)}, {one.format(code)}]"
        found = connection.execute(f"SELECT failing_exit({both}).exit_code").fetchone()
    assert found == (max(-2, code),)


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


def test_a_stream_in_a_query_of_our_own_is_no_view() -> None:
    """In one of a user it may be: what he asks is not taken apart."""
    query = "SELECT conditions FROM internal._states WHERE stream IN ('jobs', 'cronjobs')"
    assert parts_for(query, is_own=True) == ("_states",)
    assert {"jobs", "cronjobs"} < set(parts_for(query))
    assert "jobs" in parts_for("FROM query_table('jobs')")


@pytest.mark.parametrize("view", views(), ids=lambda v: v.name)
def test_a_view_takes_what_is_made_for_it(view: View) -> None:
    """Where none of the others was asked for before."""
    select = view.sql.partition(" AS\n")[2].rstrip("; \n")
    with duckdb.connect() as connection:  # not that of the module, which other tests ask
        ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [select]).fetchall()
    tables = set(re.findall(r'"table_name":"(\w+)"', tree))
    assert tables & {v.name for v in views()} <= set(parts_for(f"FROM {view.name}")) - {view.name}
    assert tables


def test_each_field_of_the_status_is_in_the_views_that_go_over_them() -> None:
    scripts = {view.name: view for view in views()}
    assert {*COUNTS} <= {column.name for column in scripts["job_history"].columns}
    assert ", ".join(NAMES) in scripts["actions"].sql
    assert not any(re.search(r"\{[a-z ]+\}", view.sql) for view in views())
