"""Queries that would write, at every door: refused before anything runs, and nothing is changed.

docs/trust.md: "takes only statements that read".
"""

from __future__ import annotations

import io
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    closing,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import tracekit
from tests.attack.answers import run
from tests.support.traces import TRACES, import_log
from tracekit.base.errors import TracekitError
from tracekit.cli.sql_prompt import Prompt
from tracekit.sql.guard import reads
from tracekit.sql.session import Session
from tracekit.trace.format.segments import live_segments

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
    # Texts that a function runs, and tables that one makes beside its rows.
    "FROM json_execute_serialized_sql(json_serialize_sql('WITH x AS (TRUNCATE jobs) FROM x'))",
    "FROM query('WITH x AS (DELETE FROM internal._verdicts RETURNING *) FROM x')",
    "FROM read_csv('verified://0', store_rejects = true, rejects_table = 'jobs')",
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
    # They name folders of whoever runs DuckDB.
    "FROM duckdb_settings()", "SELECT current_setting('temp_directory')",
    "FROM pg_catalog.pg_settings", "SELECT (SELECT max(setting) FROM PG_SETTINGS)",
    "SUMMARIZE pg_settings", "PIVOT (FROM pg_settings) ON name USING first(setting)",
    "FROM duckdb_profiling_settings()", "FROM duckdb_logs_parsed('QueryLog')",
    "SELECT get_block_size('memory')", "FROM main.duckdb_databases", "FROM duckdb_logs",
    "SHOW temp_directory", "FROM (SHOW threads)", "FROM histogram_values('pg_settings', name)",
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


NAMES = ("v1.36.3-restart", "v1.36.3-twins")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    paths = [tmp_path_factory.mktemp("attacked") / name for name in NAMES]
    for path in paths:
        import_log(TRACES / path.name / "watch.jsonl.zst", path, path.name)
    return paths


@pytest.fixture(scope="module")
def trace(traces: list[Path]) -> Path:
    return traces[0]


def spelled(query: str, trace: Path, fd: str = "/proc/self/fd/500") -> str:
    file = live_segments(trace)[0].path
    for mark, place in {
        "{fd}": fd,
        "{file}": str(file),
        "{out}": str(trace.parent / "out"),
    }.items():
        query = query.replace(mark, place)
    return query


def contents(traces: list[Path]) -> dict[Path, bytes]:
    """Every file in the folders that the traces lie in."""
    files = [file for trace in traces for file in trace.parent.rglob("*") if file.is_file()]
    return {file: file.read_bytes() for file in files}


COUNT = "SELECT trace, verdict, count(*) AS n FROM verdicts GROUP BY ALL ORDER BY ALL"
#: What somebody is told who wanted to read; all that a door says on stderr.
Ask = Callable[[str], str]


@contextmanager
def api(traces: list[Path]) -> Iterator[Ask]:
    """`tracekit.open(trace).sql`, for all of the attacks one trace after the other."""
    opened = [tracekit.open(trace) for trace in traces]

    def ask(query: str) -> str:
        said = ""
        for trace in opened:
            with pytest.raises(TracekitError) as refused:
                trace.sql(query).fetchall()
            said = str(refused.value)
        return said

    yield ask


@contextmanager
def prompt(traces: list[Path]) -> Iterator[Ask]:
    """What is typed at the prompt of `tracekit sql`."""
    with closing(Session(traces)) as session:
        typed = Prompt(session, "table")

        def ask(query: str) -> str:
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                typed.answer(query)
            # Of several queries it answers those that read.
            assert out.getvalue() in ("", "1\n1\n(1 row)\n"), query
            return err.getvalue()

        yield ask
        assert session.table(COUNT).num_rows > 2


@contextmanager
def command_line(traces: list[Path]) -> Iterator[Ask]:
    """`tracekit sql TRACE… QUERY`, all with one session, since each would begin its own."""
    with closing(Session(traces)) as session, pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracekit.cli.sql.Session", lambda *_, **__: session)

        def ask(query: str) -> str:
            # A query is told from the name of a trace by its spaces.
            code, out, said = run("sql", *map(str, traces), f"{query} -- .")
            assert (code, out) == (2, ""), (query, out, said)
            return said

        yield ask
        assert session.table(COUNT).num_rows > 2


@pytest.mark.parametrize("door", [api, prompt, command_line], ids=lambda door: door.__name__)
def test_no_attack_changes_anything(
    traces: list[Path], door: Callable[[list[Path]], AbstractContextManager[Ask]]
) -> None:
    """Some four hundred of them at each door: refused in a sentence, and nothing is changed."""
    assert len(ATTACKS) > 400
    before = contents(traces)
    with door(traces) as ask:
        for query in ATTACKS:
            said = ask(spelled(query, traces[0]))
            assert said, query
            assert "Traceback" not in said, query
            assert "fault of tracekit" not in said, query
    assert contents(traces) == before


@pytest.mark.parametrize(
    "attacks", [ATTACKS[::16], pytest.param(ATTACKS, marks=pytest.mark.full)], ids=["some", "all"]
)
def test_a_session_answers_as_before(traces: list[Path], attacks: list[str]) -> None:
    with closing(Session(traces)) as session:
        verdicts = session.table(COUNT)
        for query in attacks:
            with pytest.raises(TracekitError):
                session.table(spelled(query, traces[0]))
        assert session.table(COUNT) == verdicts


@pytest.mark.parametrize("query", ATTACKS[: len(CHANGES)])
def test_the_program_itself_refuses(trace: Path, query: str) -> None:
    """Each kind of change with nothing shared, as a user asks it."""
    before = contents([trace])
    code, out, said = run("sql", str(trace), spelled(query, trace))
    assert (code, out, said.count("Traceback")) == (2, "", 0)
    assert contents([trace]) == before


def test_behind_the_guard_there_is_a_wall(traces: list[Path]) -> None:
    """Whoever finds a way around the parser still finds no name of a file to write to."""
    before = contents(traces)
    with closing(Session(traces)) as session:
        assert session.table(COUNT).num_rows > 2
        connection = session.connection
        descriptors = [entry.name for entry in Path("/dev/fd").iterdir()]
        places = [
            *(f"{folder}/{number}" for number in descriptors for folder in ("/proc/self/fd", "/dev/fd")),
            *(f"/proc/{os.getpid()}/fd/{number}" for number in descriptors),
            *map(str, before), *(f"{path} (deleted)" for path in before),
            *(session._handles.allowed()), "verified://99",
        ]  # fmt: skip
        for place in places:
            for options in (
                "USE_TMP_FILE false",
                "FORMAT csv, USE_TMP_FILE false",
                "FORMAT parquet",
            ):
                with pytest.raises((duckdb.Error, OSError)):
                    connection.execute(f"COPY (SELECT 1) TO '{place}' ({options})")
            with pytest.raises((duckdb.Error, OSError)):
                connection.execute(f"ATTACH '{place}' AS taken")
        for query in ATTACKS:
            with suppress(duckdb.Error, OSError):
                connection.execute(spelled(query, traces[0], session._handles.allowed()[0]))
        for setting in ("enable_external_access = true", "allowed_paths = ['/']", "threads = 1"):
            with pytest.raises(duckdb.Error):
                connection.execute(f"SET {setting}")
    assert contents(traces) == before


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


def test_the_second_statement_is_named_where_it_is_wrong(trace: Path) -> None:
    session = Session([trace])
    with pytest.raises(TracekitError, match=r'near "SELEC"\nLINE 1: SELECT 1; SELEC'):
        session.table("SELECT 1; SELEC 2")
    with pytest.raises(TracekitError, match=r"LINE 2: +nope"):
        session.table("SELECT 1,\n nope FROM jobs")
    session.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT error('x')",
        "SELECT repeat('x', 10000000000)",
        "SELECT CAST(job AS INTEGER) FROM jobs",
        "SELECT '\ud800'",
    ],
)
@pytest.mark.parametrize("fetch", ["fetchall", "to_arrow_table", "df", "__repr__", "limit"])
def test_what_goes_wrong_as_it_is_fetched_is_ours(trace: Path, query: str, fetch: str) -> None:
    def asked(opened: tracekit.Trace) -> None:
        relation = opened.sql(query)
        if fetch == "limit":
            relation.limit(1).fetchall()
        else:
            getattr(relation, fetch)()

    with tracekit.open(trace) as opened, pytest.raises(TracekitError) as refused:
        asked(opened)
    assert "Error:" not in str(refused.value)


def test_a_relation_is_asked_as_ever(trace: Path) -> None:
    with tracekit.open(trace) as opened:
        relation = opened.sql("SELECT job, outcome FROM jobs")
        assert relation.columns == ["job", "outcome"]
        assert len(relation["job"].fetchall()) == len(relation) == len(relation.fetchall())
        assert relation.filter("outcome = 'Complete'").union(relation).fetchall()
        assert "job" in str(relation)
        assert pa.table(relation).num_rows == len(relation)


@pytest.mark.parametrize("output", ["table", "line", "csv", "json", "jsonl", "markdown"])
def test_values_that_python_has_not_are_said(trace: Path, output: str) -> None:
    query = "SELECT 'infinity'::TIMESTAMP, DATE '99999-01-01', 'nan'::DOUBLE, '-inf'::DOUBLE"
    code, out, said = run("sql", str(trace), "-o", output, query)
    assert (code, said.replace("(1 row)\n", "")) == (0, "")
    for value in ("infinity", "99999-01-01", "nan", "-inf"):
        assert value in out


@pytest.mark.parametrize(
    ("query", "within", "said"),
    [
        # A list of 16 GB, which DuckDB's own bound does not count, and an answer of 800 GB.
        ("SELECT len(range(2000000000))", "1h", "more memory than it may"),
        pytest.param(
            "SELECT * FROM range(100000000000)", "1h", "more memory than it may",
            marks=pytest.mark.full,
        ),
        ("SELECT sum(range) FROM range(1000000000000)", "1s", "the query was ended after 1 s"),
    ],
    ids=["list", "answer", "time"],
)  # fmt: skip
def test_what_a_query_takes_has_a_bound(trace: Path, query: str, within: str, said: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    code, out, error = run("sql", str(trace), query, "--timeout", within)
    assert (code, out) == (2, "")
    assert said in error
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize("memory", ["-1", "80%", "20000TB"])
def test_a_bound_may_be_as_large_as_one_likes(
    trace: Path, monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    monkeypatch.setenv("TRACEKIT_SQL_MEMORY", memory)
    assert run("sql", str(trace), "SELECT 7 AS n", "-o", "csv") == (0, "n\n7\n", "")


def test_a_bound_may_be_too_small_to_begin(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a fault of tracekit's own."""
    monkeypatch.setenv("TRACEKIT_SQL_MEMORY", "1KB")
    code, out, said = run("sql", str(trace), "SELECT 7 AS n", "-o", "csv")
    assert (code, out) == (2, "")
    assert "set TRACEKIT_SQL_MEMORY=4GiB" in said
