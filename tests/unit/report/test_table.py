"""The one table: rows on one line in a pipe, folded on a terminal, never cut."""

from __future__ import annotations

import io
from collections import Counter
from datetime import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tracekit.report.rows import write_rows
from tracekit.report.table import counted, write_facts, write_table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    return lambda width: monkeypatch.setenv("COLUMNS", str(width))


LONG = "a-long-indexed-job-name-that-nearly-fills-the-sixty-three-ch"


def test_a_pipe_gets_each_row_on_one_line() -> None:
    out = io.StringIO()
    write_table(["JOB", "PODS"], [[LONG, "3"], ["short", "12"]], out, right={1})
    assert out.getvalue().splitlines() == [
        f"JOB{' ' * 57}  PODS",
        f"{LONG}     3",
        f"short{' ' * 55}    12",
    ]


def test_a_terminal_gets_cells_that_go_on_below_themselves(columns) -> None:
    columns(40)
    out = Terminal()
    write_table(["JOB", "OUTCOME", "PODS"], [[LONG, "Complete", "3"]], out, right={2})
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert "".join(line[:24].rstrip() for line in lines[1:]) == LONG
    assert lines[1].split()[1:] == ["Complete", "3"]


def test_too_many_columns_become_records(columns) -> None:
    columns(40)
    out = Terminal()
    write_table([f"C{n}" for n in range(9)], [[f"value-of-{n}" for n in range(9)]], out)
    assert out.getvalue().splitlines() == [f"C{n}  value-of-{n}" for n in range(9)]


@given(
    rows=st.lists(
        st.lists(st.text(st.characters(categories=["L", "N", "P"]), max_size=120), min_size=3, max_size=3),
        max_size=4,
    ),
    width=st.integers(40, 120),
)  # fmt: skip
def test_nothing_is_cut_and_nothing_is_wider_than_the_terminal(rows, width) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "dumb")
        out = Terminal()
        write_table(["A", "B", "C"], rows, out)
        facts = Terminal()
        write_facts((("name", cell) for row in rows for cell in row), facts)
    said = Counter(c for row in rows for cell in row for c in cell if not c.isspace())
    for text in (out.getvalue(), facts.getvalue()):
        assert said <= Counter(text)
        assert all(cell_len(line) <= width for line in text.splitlines())


def test_a_number_has_its_noun() -> None:
    assert counted(1, "Job") == "1 Job"
    assert counted(2445, "row") == "2,445 rows"
    assert counted(2, "query", "queries") == "2 queries"


def test_sentences_stand_below_their_rows_where_there_is_no_room(columns) -> None:
    columns(80)
    rows = [["x" * 30, "a sentence about it, which is as long as such sentences are"]]
    out = Terminal()
    write_table(["NAME", "ABOUT"], [["short", "a sentence"], *rows], out, below=1)
    beside = out.getvalue().splitlines()
    assert beside[1].split(maxsplit=1) == ["short", "a sentence"]
    columns(60)
    out = Terminal()
    write_table(["NAME", "ABOUT"], rows, out, below=1)
    assert out.getvalue().splitlines() == [
        "NAME",
        "x" * 30,
        "    a sentence about it, which is as long as such sentences",
        "    are",
    ]


def test_what_a_view_means_breaks_between_words(columns) -> None:
    columns(80)
    meaning = "How long after its last pod's end the controller said so, on the recorder's clock."
    names = ["column_name", "column_type", "comment"]
    out = Terminal()
    write_rows(
        pa.table([["accounting_s"], ["TIMESTAMP WITH TIME ZONE"], [meaning]], names), "table", out
    )
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert {*meaning.split()} <= {*out.getvalue().split()}


def test_times_of_one_day_leave_room_for_what_is_looked_for(columns) -> None:
    columns(80)
    day = datetime(2026, 11, 21, 23, 19, 1)  # noqa: DTZ001 - a view's times have no zone
    wide = {f"column_{n}": ["a value that takes its room"] * 2 for n in range(4)}
    first = {
        "job": ["c0002-deadline"] * 2,
        "outcome": ["Failed"] * 2,
        "reason": ["DeadlineExceeded"] * 2,
    }
    rows = pa.table(
        {
            **first,
            "started_at": pa.array([day, day], pa.timestamp("us")),
            "duration_s": [4.0, 8.0],
            **wide,
        }
    )
    out = Terminal()
    write_rows(rows, "table", out)
    assert "│ 23:19:01   │        4.0 │" in out.getvalue()
    assert "5 of 9 columns, times are of 2026-11-21: " in out.getvalue()
    later = pa.array([day, day.replace(day=22)], pa.timestamp("us"))
    out = Terminal()
    write_rows(rows.set_column(3, "started_at", later), "table", out)
    assert "2026-11-22 23:19:01" in out.getvalue()
    assert "times are of" not in out.getvalue()
