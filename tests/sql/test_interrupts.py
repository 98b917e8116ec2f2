"""Ctrl-C in the midst of a query is Ctrl-C, in the API and at the prompt, and no error of the query."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from tracekit.cli.sql_prompt import Prompt, _answer_all
from tracekit.sql.session import Session
from tracekit.trace.writing.writer import TraceWriter

pytestmark = pytest.mark.usefixtures("usual_signals")

LONG = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = -1"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with TraceWriter(tmp_path / "t") as writer:
        writer.append("jobs", "ADDED", 1, b'{"kind":"Job","metadata":{"name":"a","uid":"u"}}')
    found = Session([str(tmp_path / "t")])
    yield found
    found.close()


@contextmanager
def ctrl_c_soon() -> Iterator[None]:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_a_query_of_the_api(session: Session) -> None:
    with ctrl_c_soon(), pytest.raises(KeyboardInterrupt):
        session.table(LONG)
    assert session.table("SELECT 1 AS a")["a"].to_pylist() == [1]


def test_a_query_at_the_prompt_ends_and_the_prompt_goes_on(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was an error of DuckDB's to the prompt, which ended with it."""
    prompt = Prompt(session, "csv")
    with ctrl_c_soon():
        prompt.answer(LONG)
    assert "interrupted" in capsys.readouterr().err
    prompt.answer("SELECT 7 AS a")
    assert "7" in capsys.readouterr().out


def test_what_is_piped_in_is_not_answered_after_it(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{LONG};\nSELECT 7 AS a;\n.help\n"))
    with ctrl_c_soon(), pytest.raises(KeyboardInterrupt):
        _answer_all(Prompt(session, "csv"))
    assert capsys.readouterr().out == ""


class _Interrupted:
    """A connection that Ctrl-C meets amid a table's making: what DuckDB makes of it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def execute(self, query: str, *values: object) -> object:
        if query.startswith("CREATE TABLE") and "_arriving" not in query:
            raise duckdb.InvalidInputException(
                "Traceback (most recent call last)\nKeyboardInterrupt:"
            )
        return self._connection.execute(query, *values)

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)


def test_a_part_that_is_made_once_is_no_place_to_lose_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be made once is made a view, whose reader is told; of Ctrl-C nobody was."""
    session.hold("jobs")
    monkeypatch.setattr(session, "connection", _Interrupted(session.connection))
    with pytest.raises(KeyboardInterrupt):
        session.table("SELECT count(*) FROM jobs")
