"""Queries that would write, at every door: refused before anything runs, and nothing is changed.

docs/trust.md: "takes only statements that read".
"""

from __future__ import annotations

from contextlib import closing
from itertools import product
from pathlib import Path

import duckdb
import pytest

import tracekit
from tests.attack.answers import run
from tests.support.traces import TRACES, import_log
from tracekit.cli.sql_prompt import Prompt
from tracekit.errors import TracekitError
from tracekit.sql.guard import reads
from tracekit.sql.session import Session
from tracekit.trace.format.segments import live_segments

NAME = "v1.36.3-restart"
#: Statements that change a table of the session, a file, or the session itself.
CHANGES = (
    "DELETE FROM internal._verdicts",
    "DELETE FROM internal._verdicts RETURNING *",
    "INSERT INTO internal._verdicts SELECT * FROM internal._verdicts",
    "UPDATE internal._verdicts SET verdict = 'match'",
    "MERGE INTO internal._verdicts USING internal._verdicts b ON false WHEN MATCHED THEN DELETE",
    "TRUNCATE internal._verdicts",
    "COPY (SELECT 1) TO '{fd}' (USE_TMP_FILE false)",
    "COPY (SELECT 1) TO '{file}' (FORMAT csv)",
    "COPY internal._verdicts FROM '{file}'",
    "CREATE TABLE t AS SELECT 1",
    "CREATE OR REPLACE VIEW jobs AS SELECT 1",
    "CREATE TEMP MACRO f() AS 1",
)
#: What else there is; it cannot stand inside another statement.
OTHERS = (
    "DROP VIEW jobs", "DROP SCHEMA internal CASCADE", "ALTER TABLE internal._verdicts RENAME TO x",
    "CREATE OR REPLACE TABLE internal._verdicts AS SELECT 1", "CREATE SCHEMA s",
    "CREATE SEQUENCE q", "CREATE TYPE m AS ENUM ('a')", "CREATE SECRET s (TYPE s3)",
    "CREATE FUNCTION f() AS 1", "COMMENT ON VIEW jobs IS 'x'", "ATTACH '{file}'",
    "ATTACH ':memory:' AS m", "DETACH memory", "USE internal", "INSTALL httpfs", "LOAD httpfs",
    "FORCE INSTALL httpfs", "UPDATE EXTENSIONS", "SET threads = 1", "SET GLOBAL memory_limit='1GB'",
    "RESET threads", "PRAGMA database_list", "PRAGMA enable_profiling", "CALL pragma_version()",
    "CALL enable_logging()", "EXPORT DATABASE '{out}'", "IMPORT DATABASE '{out}'", "VACUUM",
    "CHECKPOINT", "BEGIN", "COMMIT", "ROLLBACK", "PREPARE p AS DELETE FROM internal._verdicts",
    "EXECUTE p", "DEALLOCATE p", "SET VARIABLE v = 1", "ANALYZE",
)  # fmt: skip
#: Ways to put a change where a statement that reads stands.
AROUND = (
    "{0}",
    " ; {0}",
    "/* SELECT */ {0}",
    "-- SELECT 1\n{0}",
    "EXPLAIN ANALYZE {0}",
    "EXPLAIN {0}",
    "explain (ANALYZE, FORMAT json) {0}",
    "EXPLAIN ANALYZE (FORMAT json) {0}",
    "WITH a AS ({0}) SELECT 1",
    "WITH a AS MATERIALIZED ({0}) FROM a",
    "WITH a AS (SELECT 1), b AS ({0}) SELECT * FROM a",
    "EXPLAIN ANALYZE WITH a AS ({0}) SELECT 1",
    "SELECT (WITH a AS ({0}) SELECT 1)",
    "SELECT * FROM (WITH a AS ({0}) SELECT 1)",
    "SELECT 1 WHERE EXISTS (WITH a AS ({0}) SELECT 1)",
    "SELECT 1 UNION ALL (WITH a AS ({0}) SELECT 1)",
    "PIVOT (WITH a AS ({0}) SELECT 1 AS x) ON x USING count(*)",
    "DESCRIBE WITH a AS ({0}) SELECT 1",
    "SUMMARIZE WITH a AS ({0}) SELECT 1",
    "SELECT 1; {0}",
    "{0}; SELECT 1",
    "{0}; SELEC",
    "SELECT 1; {0}; SELEC",
)
ATTACKS = [around.format(change) for around, change in product(AROUND, CHANGES)] + [
    around.format(other) for around, other in product(AROUND[:1] + AROUND[-4:], OTHERS)
]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("attacked") / "trace"
    import_log(TRACES / NAME / "watch.jsonl.zst", path, NAME)
    return path


def spelled(query: str, trace: Path) -> str:
    file = live_segments(trace)[0].path
    places = {"{fd}": "/proc/self/fd/500", "{file}": str(file), "{out}": str(trace.parent / "out")}
    for mark, place in places.items():
        query = query.replace(mark, place)
    return query


def test_no_attack_changes_anything(trace: Path) -> None:
    """Some four hundred of them, in one session: refused, and it answers as before."""
    file = live_segments(trace)[0].path
    before = file.read_bytes()
    assert len(ATTACKS) > 400
    session = Session([trace])
    verdicts = session.table("SELECT verdict, count(*) FROM verdicts GROUP BY ALL ORDER BY ALL")
    for query in ATTACKS:
        for door in (session.table, session.sql):
            with pytest.raises(TracekitError):
                door(spelled(query, trace))
    again = session.table("SELECT verdict, count(*) FROM verdicts GROUP BY ALL ORDER BY ALL")
    assert again == verdicts
    assert file.read_bytes() == before
    assert sorted(path.name for path in trace.parent.iterdir()) == ["trace"]
    session.close()


def test_what_is_refused_would_change_something() -> None:
    """So that the list above is not one of mere slips: DuckDB takes most of these texts."""
    with duckdb.connect() as connection:
        taken = 0
        for query in ATTACKS:
            try:
                connection.extract_statements(query)
                taken += 1
            except duckdb.Error:
                continue
        assert taken > 200
        assert reads(connection, "WITH a AS (SELECT 1) SELECT 'DELETE FROM x' FROM a")


WORST = (
    "COPY (SELECT 1) TO '{fd}' (USE_TMP_FILE false); SELEC",
    "EXPLAIN ANALYZE DELETE FROM internal._verdicts",
    "WITH a AS (DELETE FROM internal._verdicts RETURNING *) FROM a",
)


@pytest.mark.parametrize("query", WORST)
def test_every_door_is_the_same(
    trace: Path, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = live_segments(trace)[0].path
    before = file.read_bytes()
    query = spelled(query, trace)
    code, _, said = run("sql", str(trace), query)
    assert (code, "Traceback" in said) == (2, False)
    with pytest.raises(TracekitError):
        tracekit.open(trace).sql(query)
    with closing(Session([trace])) as session:
        Prompt(session, "table").answer(query)
        assert session.table("SELECT count(*) FROM jobs").num_rows == 1
    assert capsys.readouterr().out == ""
    assert file.read_bytes() == before


def test_the_second_statement_is_named_where_it_is_wrong(trace: Path) -> None:
    session = Session([trace])
    with pytest.raises(TracekitError, match=r'near "SELEC"\nLINE 1: SELECT 1; SELEC'):
        session.table("SELECT 1; SELEC 2")
    with pytest.raises(TracekitError, match=r"LINE 2: +nope"):
        session.table("SELECT 1,\n nope FROM jobs")
    session.close()


@pytest.mark.parametrize("output", ["table", "line", "csv", "json", "jsonl", "markdown"])
def test_values_that_python_has_not_are_said(trace: Path, output: str) -> None:
    query = "SELECT 'infinity'::TIMESTAMP, DATE '99999-01-01', 'nan'::DOUBLE, '-inf'::DOUBLE"
    code, out, said = run("sql", str(trace), "-o", output, query)
    assert (code, said.replace("(1 row)\n", "")) == (0, "")
    for value in ("infinity", "99999-01-01", "nan", "-inf"):
        assert value in out
