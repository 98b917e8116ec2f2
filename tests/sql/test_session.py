"""What a session lets through, what it says when something is wrong, and what it survives."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import tracekit
from tracekit.base.errors import TraceFormatError, TracekitError, UsageError
from tracekit.judge import verdict_table
from tracekit.judge.judged import Judge
from tracekit.report.html.data import report_data
from tracekit.sql import computed
from tracekit.sql import session as session_module
from tracekit.sql.catalog import parts_for
from tracekit.sql.computed import takes_only_verdicts
from tracekit.sql.messages import QueryError
from tracekit.sql.scope import Chosen
from tracekit.sql.session import Session
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.format.segments import live_segments, write_segment
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.overrides import AskedRules

NAME = "v1.36.3-restart"


def job(name: str, rv: int, *, namespace: str = "ns", **status: object) -> dict[str, object]:
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": str(rv),
            "generation": 7,
            "creationTimestamp": "2026-11-21T05:00:00Z",
        },
        "spec": {"parallelism": 1},
        "status": status,
    }


def write_jobs(path: Path, *names: str, append: bool = False, rows: int = 2) -> Path:
    with TraceWriter(
        path, TraceHeader(kubernetes_version="v1.36.3"), append=append, segment_rows=rows
    ) as writer:
        start = writer.next_seq
        for number, name in enumerate(names):
            writer.append("jobs", "ADDED", 10**18 + start + number, job(name, start + number + 1))
    return path


@pytest.fixture
def trace(trace_path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trace_path(NAME), tmp_path / "trace"))


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO '{path}'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}' (USE_TMP_FILE false)",
        "WITH a AS (COPY (SELECT 1) TO '{file}' (USE_TMP_FILE false)) SELECT * FROM a",
        "ATTACH '{path}'",
        "INSTALL httpfs",
        "SET threads = 1",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW jobs",
        "EXPORT DATABASE '{path}'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('{header}')",
        "SELECT 1; COPY (SELECT 1) TO '{path}'",
    ],
)
def test_nothing_but_reading_the_trace_is_possible(trace: Path, query: str) -> None:
    file = live_segments(trace)[0].path
    before = file.read_bytes()
    target = trace.parent / "stolen"
    session = Session([trace])
    with pytest.raises(TracekitError):
        session.table(query.format(path=target, file=file, header=trace / "trace.json"))
    assert not target.exists()
    assert file.read_bytes() == before
    assert session.table("SELECT * FROM jobs").num_rows > 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'copy' AS \"copy\"",
        "EXPLAIN SELECT * FROM jobs",
        "PIVOT jobs ON outcome USING count(*)",
        "DESCRIBE jobs",
        "SUMMARIZE leaders",
        "SHOW TABLES",
        "FROM jobs SELECT job -- copy",
    ],
)
def test_all_that_only_reads_is_possible(session_of, query: str) -> None:
    session_of(NAME).table(query)


def test_writing_is_possible_when_asked_for(trace: Path, tmp_path: Path) -> None:
    session = Session([trace], write=True)
    session.table(f"COPY (SELECT 1 AS x) TO '{tmp_path}/out.parquet'")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1


def test_python_variables_are_out_of_reach(session_of) -> None:
    secret = pq  # noqa: F841
    with pytest.raises(QueryError):
        session_of(NAME).table("SELECT * FROM secret")


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("SELECT * FROM jbos", ["jbos", "did you mean jobs?", "LINE 1", "^^^^"]),
        ("SELECT namspace FROM jobs", ["namspace", "did you mean namespace", "^^^^^^^^"]),
        ("SELECT *\nFORM jobs", ["syntax error", "LINE 2: FORM jobs", "^"]),
        ("FROM timelin('a')", ["timelin", "did you mean timeline?", "^"]),
        ("SELECT 1 +", ["syntax error"]),
    ],
)
def test_a_wrong_query_shows_where_and_what_was_meant(session_of, query, parts) -> None:
    with pytest.raises(QueryError) as error:
        session_of(NAME).table(query)
    for part in parts:
        assert part in str(error.value)


def test_what_was_meant_is_a_column_of_what_is_asked(session_of) -> None:
    """Other views have a status; jobs have none."""
    with pytest.raises(QueryError) as error:
        session_of(NAME).table("SELECT status, count(*) FROM jobs GROUP BY 1")
    assert "did you mean status" not in str(error.value)
    with pytest.raises(QueryError) as error:
        session_of(NAME).table("SELECT name, conditions FROM job_history")  # conditions has a name
    assert "did you mean name" not in str(error.value)
    assert "Candidate bindings" in str(error.value)


def test_the_caret_stands_under_the_error(session_of) -> None:
    with pytest.raises(QueryError) as error:
        session_of(NAME).table("SELECT job FROM jobs WHERE outcom = 'Failed'")
    line, caret = str(error.value).splitlines()[1:3]
    assert line[caret.index("^") :].startswith("outcom")


def test_several_traces_are_told_apart_by_name(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_jobs(tmp_path / folder / "same", f"job-{folder}")
    write_jobs(tmp_path / "other", "job-c")
    session = Session([str(tmp_path / "[ab]" / "*"), tmp_path / "other", tmp_path / "a" / "same"])
    rows = session.table("SELECT trace, job FROM jobs ORDER BY ALL").to_pylist()
    assert rows == [
        {"trace": "a/same", "job": "job-a"},
        {"trace": "b/same", "job": "job-b"},
        {"trace": "other", "job": "job-c"},
    ]


def test_a_glob_without_a_trace_and_a_missing_directory_are_one_sentence(tmp_path: Path) -> None:
    for word in (tmp_path / "*", tmp_path / "nothing"):
        with pytest.raises(TraceFormatError, match="trace"):
            Session([word])


def test_a_damaged_file_is_named_and_the_rest_answers(tmp_path: Path) -> None:
    path = write_jobs(tmp_path / "t", *[f"job-{n}" for n in range(6)])
    broken = live_segments(path)[1].path
    broken.write_bytes(b"PAR1 nothing of the kind")
    session = Session([path])
    assert session.table("SELECT count(*) AS n FROM jobs").to_pylist() == [{"n": 4}]
    assert [broken.name in problem for problem in session.problems] == [True]


def test_a_file_that_breaks_in_the_middle_is_named_and_the_rest_answers(trace: Path) -> None:
    first = live_segments(trace)[0]
    content = bytearray(first.path.read_bytes())
    metadata = pq.read_metadata(first.path)
    columns = [metadata.row_group(0).column(i) for i in range(metadata.num_columns)]
    spec = next(column for column in columns if column.path_in_schema == "spec")
    start = min(spec.data_page_offset, spec.dictionary_page_offset or spec.data_page_offset)
    content[start : start + spec.total_compressed_size] = b"\xff" * spec.total_compressed_size
    first.path.write_bytes(bytes(content))
    other = write_jobs(trace.parent / "other", "job-a")
    session = Session([trace, other])
    rows = session.table("SELECT DISTINCT trace, annotations, labels, spec FROM observations")
    assert rows.num_rows == 1
    assert session.table("SELECT trace FROM jobs").to_pylist() == [{"trace": "other"}]
    assert any(first.path.name in problem for problem in session.problems)


def test_a_session_survives_compaction(tmp_path: Path) -> None:
    path = write_jobs(tmp_path / "t", "job-0", "job-1")
    write_jobs(path, "job-2", "job-3", append=True)
    session = Session([path])
    merged = write_jobs(tmp_path / "merged", "job-0", "job-1", "job-2", "job-3", rows=9)
    new = live_segments(merged)[0].path
    old = [segment.path for segment in live_segments(path)]
    shutil.copy(new, path / "log" / new.name)
    for file in old:
        file.unlink()
    assert session.table("SELECT count(*) AS n FROM jobs").to_pylist() == [{"n": 4}]
    assert session.problems == []


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_column_that_some_files_lack_is_empty_there(tmp_path: Path, number: int) -> None:
    """As files of an older tracekit beside those of this one: whichever stands first."""
    path = write_jobs(tmp_path / "t", "job-0", "job-1", "job-2", rows=1)
    there = live_segments(path)[number]
    rows = pq.read_table(there.path, partitioning=None).drop_columns(["generation"])
    trace = json.loads((path / "manifest.json").read_bytes())["trace"]
    there.path.unlink()
    write_segment(path, rows, first=there.first, last=there.last, level=1, identity=trace)
    session = Session([path])
    told = session.table("SELECT name, generation FROM observations ORDER BY name").to_pylist()
    assert session.problems == []
    assert [row["name"] for row in told] == ["job-0", "job-1", "job-2"]
    assert [row["generation"] for row in told] == [None if n == number else 7 for n in range(3)]


def test_verdicts_are_kept_outside_the_trace_and_made_again_when_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    kept = tmp_path / "cache" / "verdicts"
    path = write_jobs(tmp_path / "t", "job-0")
    before = sorted(path.rglob("*"))
    Session([path]).table("SELECT * FROM verdicts")
    (first,) = kept.iterdir()
    assert first.stat().st_mode & 0o077 == 0
    assert sorted(path.rglob("*")) == before
    with monkeypatch.context() as patch:
        patch.setattr("tracekit.judge.judged.Judge", None)  # whoever judges again fails
        assert Session([path]).table("SELECT * FROM divergences").num_rows == 0
        copy = shutil.copytree(path, tmp_path / "copy")
        assert Session([copy]).table("SELECT * FROM divergences").num_rows == 0
    write_jobs(path, "job-1", append=True)
    Session([path]).table("SELECT * FROM verdicts")
    assert len(list(kept.iterdir())) == 2
    first.write_bytes(first.read_bytes()[:-1] + b"!")
    calls = []
    monkeypatch.setattr(
        "tracekit.judge.judged.Judge", lambda *a, **k: calls.append(1) or Judge(*a, **k)
    )
    Session([copy]).table("SELECT * FROM verdicts")
    assert calls == [1]  # a file that rotted is no verdict


@pytest.mark.full
def test_other_rules_are_not_served_from_the_cache(trace: Path) -> None:
    count = "SELECT count(*) AS n FROM divergences"
    as_recorded = Session([trace]).table(count).to_pylist()[0]["n"]
    as_old = Session([trace], rules=AskedRules("v1.28.15")).table(count).to_pylist()[0]["n"]
    assert as_recorded == 0
    assert as_old > 0
    assert Session([trace]).table(count).to_pylist()[0]["n"] == 0


def test_a_trace_that_is_being_written_can_be_asked(tmp_path: Path) -> None:
    path = tmp_path / "live"
    with TraceWriter(path, TraceHeader()) as writer:
        writer.append("jobs", "ADDED", 1, job("first", 1))
        writer.flush()
        writer.append("jobs", "ADDED", 2, job("second", 2))
        assert Session([path]).table("SELECT job FROM jobs").to_pylist() == [{"job": "first"}]


HOSTILE = "a'; DROP VIEW jobs; --\"$(touch x)\x1b[31m<script>alert(1)</script>"


def test_hostile_names_are_data(tmp_path: Path) -> None:
    path = tmp_path / 'it\'s "hostile"'
    with TraceWriter(path, TraceHeader()) as writer:
        writer.append("jobs", "ADDED", 1, job(HOSTILE, 1))
        writer.append("jobs", "ADDED", 2, {"metadata": {"uid": 3, "name": []}, "spec": "x"})
    session = Session([path])
    assert HOSTILE in [row["job"] for row in session.table("SELECT job FROM jobs").to_pylist()]
    query = f"FROM timeline('ns/{HOSTILE.replace(chr(39), chr(39) * 2)}')"
    assert session.table(query).num_rows > 0


def test_spec_fields_of_the_wrong_type_are_null(tmp_path: Path) -> None:
    broken = job("j", 1)
    broken["spec"] = {"parallelism": "many", "suspend": "perhaps", "template": []}
    with TraceWriter(tmp_path / "t", TraceHeader()) as writer:
        writer.append("jobs", "ADDED", 1, broken)
    row = Session([tmp_path / "t"]).table("SELECT * FROM jobs").to_pylist()[0]
    assert row["parallelism"] is None
    assert row["suspended"] is None


def test_sql_gives_a_relation(session_of) -> None:
    relation = session_of(NAME).sql("SELECT job FROM jobs")
    assert isinstance(relation, duckdb.DuckDBPyRelation)
    assert relation.to_arrow_table().column_names == ["job"]


def test_raw_objects_are_json(session_of) -> None:
    row = (
        session_of(NAME)
        .table("SELECT object, name FROM objects WHERE stream = 'jobs' LIMIT 1")
        .to_pylist()[0]
    )
    assert json.loads(row["object"])["metadata"]["name"] == row["name"]


@pytest.mark.parametrize("query", ["", "  ;", "-- only a comment\n"])
def test_a_query_with_nothing_in_it_is_told(session_of, query: str) -> None:
    with pytest.raises(QueryError, match="there is no query in it"):
        session_of(NAME).table(query)


def test_no_rows_of_several_queries_go_missing(session_of, trace: Path) -> None:
    with pytest.raises(QueryError, match="these are 2 queries"):
        session_of(NAME).table("SELECT 1; SELECT 2")
    several = "CREATE TEMP TABLE t AS SELECT 7 AS n; SELECT n FROM t"
    assert Session([trace], write=True).table(several).to_pylist() == [{"n": 7}]


def test_a_trace_with_a_damaged_header_is_named_and_the_others_answer(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_jobs(tmp_path / name, name)
    (tmp_path / "b" / "trace.json").write_text('{"format_ver')
    session = Session([tmp_path / "*"])
    rows = session.table("SELECT trace, job FROM jobs ORDER BY ALL").to_pylist()
    assert rows == [{"trace": "a", "job": "a"}, {"trace": "c", "job": "c"}]
    assert session.table("SELECT count(*) AS n FROM verdicts").num_rows == 1
    assert session.table("SELECT count(*) AS n FROM cron_ticks").num_rows == 1
    problem, no_verdicts = session.problems
    assert str(tmp_path / "b" / "trace.json") in problem
    assert problem.endswith("; this trace is left out")
    assert "gets no verdicts" in no_verdicts
    with pytest.raises(TraceFormatError, match="cannot be read"):
        Session([tmp_path / "b"])


@pytest.mark.full
def test_a_trace_that_has_lost_a_part_gets_no_verdicts(tmp_path: Path) -> None:
    write_jobs(tmp_path / "whole", "a", rows=1)
    lossy = write_jobs(tmp_path / "lossy", "a", "b", "c", rows=1)
    live_segments(lossy)[1].path.write_bytes(b"PAR1")
    session = Session([tmp_path / "*"])
    rows = session.table("SELECT DISTINCT trace FROM verdicts").to_pylist()
    assert {row["trace"] for row in rows} <= {"whole"}
    assert session.problems[-1].startswith(f"{lossy} gets no verdicts")
    assert not (lossy / "cache").exists()
    api = tracekit.open(lossy)
    with pytest.raises(TraceFormatError, match="it gets no verdicts"):
        api.replay()
    for at in (None, 10**18):
        assert "A part of the trace is lost" in api.explain("ns/a", at=at).closing
    assert report_data(Session([lossy]))["judged"] is None


def test_a_session_makes_only_the_views_that_a_query_takes(trace_path) -> None:
    session = Session([trace_path("empty")])

    def made() -> set[str]:
        query = "SELECT table_name FROM information_schema.tables"
        found = {row[0] for row in session.connection.execute(query).fetchall()}
        return found - nothing_asked

    nothing_asked: set[str] = set()
    nothing_asked = made()

    session.table("SELECT 1")
    assert made() == set() < nothing_asked
    session.table("FROM gaps")
    assert made() == {"gaps"}
    session.table("FROM Missed_Runs")
    assert {"missed_runs", "cron_ticks", "leaders", "_states"} <= made()
    assert "jobs" not in made()
    session.table("SHOW TABLES")
    assert {"jobs", "costs", "last_success"} <= made()


def test_what_a_comment_names_is_not_taken() -> None:
    """The comment on one macro stood with the one before it: verdicts alone took the rows."""
    assert parts_for("SELECT count(*) FROM verdicts") == ("utc", "verdicts")
    assert takes_only_verdicts("SELECT count(*) FROM verdicts")


def test_a_query_without_verdicts_imports_neither_the_engine_nor_pandas(trace_path) -> None:
    code = (
        "import sys; from tracekit.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print([n for n in ('pandas', 'rich.console', 'tracekit.check.diff.judge') if n in sys.modules])"
    )
    words = [sys.executable, "-c", code, "sql", str(trace_path("empty")), "SELECT 1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_cannot_be_computed_is_asked_for_again(
    trace_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view that was not filled is not taken for filled: it would be empty, and nobody told."""
    session = Session([trace_path("v1.36.3-restart")])
    verdicts = computed.verdicts

    def broken(*_: object) -> object:
        raise UsageError("no rules for it")

    monkeypatch.setattr(computed, "verdicts", broken)
    for _ in range(2):
        with pytest.raises(UsageError, match="no rules for it"):
            session.table("SELECT count(*) FROM verdicts")
    monkeypatch.setattr(computed, "verdicts", verdicts)
    assert session.table("SELECT count(*) AS n FROM verdicts")["n"][0].as_py() > 100


def test_ticks_follow_the_version_that_is_asked_for(trace_path) -> None:
    """The polling controller ends a Job's name in seconds: no Job of minutes stands in its way."""
    query = "SELECT count(*) AS n FROM cron_ticks WHERE policy = 'name-taken'"
    counts = [
        Session([trace_path("v1.34.4-all")], rules=AskedRules(version))
        .table(query)
        .to_pylist()[0]["n"]
        for version in (None, "v1.34.4", "v1.20.15")
    ]
    assert counts[0] == counts[1] > 0
    assert counts[2] == 0


def test_a_process_zone_that_is_none_is_one_sentence(trace_path) -> None:
    with pytest.raises(UsageError, match="--process-zone"):
        Session([trace_path("v1.34.4-all")], rules=AskedRules(process_zone="Mars/Olympus")).table(
            "SELECT * FROM cron_ticks"
        )


def test_files_that_have_all_columns_are_read_as_they_are(session_of) -> None:
    connection = session_of("v1.36.3-restart").connection
    (made,) = connection.execute(
        "SELECT sql FROM duckdb_views() WHERE view_name = '_rows'"
    ).fetchall()
    assert "_no_rows" not in made[0]
    named = "SELECT column_name, column_type FROM (DESCRIBE internal.{})"
    rows = connection.execute(named.format("_rows")).fetchall()
    assert rows[1:] == connection.execute(named.format("_no_rows")).fetchall()


@pytest.mark.full
def test_many_verdicts_answer_where_they_are_kept_as_few_do_in_memory(
    trace_path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    paths = [trace_path("v1.36.3-churn7"), trace_path("v1.36.3-restart")]
    queries = ("SELECT * FROM verdicts ORDER BY ALL", "SELECT * FROM controller_lag ORDER BY ALL")
    held = Session(paths)
    expected = [held.table(query) for query in queries]
    lasting = held.rows("SELECT count(*) AS n FROM internal._verdicts")
    monkeypatch.setattr(verdict_table, "_HELD_ROWS", 1_000)  # one is over it, one is not
    session = Session(paths)
    assert [session.table(query) for query in queries] == expected
    assert session.rows("SELECT count(*) AS n FROM internal._verdicts") == lasting
    assert session.connection.execute(
        "SELECT count(*) FROM internal._verdicts_held"
    ).fetchall() not in ([(0,)], [(lasting[0]["n"],)])
    chosen = Chosen(namespace=expected[0]["namespace"][0].as_py())
    of_it = Session(paths, chosen=chosen).table("SELECT count(*) AS n FROM verdicts").to_pylist()
    assert of_it == session.rows(
        "SELECT count(*) AS n FROM verdicts WHERE namespace = $namespace",
        namespace=chosen.namespace,
    )


def test_verdicts_that_are_kept_answer_uncopied_as_they_do_once_judged(
    trace_path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    query = "SELECT * EXCLUDE assumptions FROM verdicts ORDER BY ALL"
    judged = Session([trace_path("v1.36.3-restart")]).table(query)
    monkeypatch.setattr(session_module, "_FEW_ROWS", 1_000)
    session = Session([trace_path("v1.36.3-restart")])
    assert session.table(query) == judged
    assert session.connection.execute(
        "SELECT count(*) FROM internal._verdicts_held"
    ).fetchall() == [(0,)]


def test_a_query_that_needs_more_memory_than_it_may_says_what_to_do(
    trace_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_SQL_MEMORY", "30MiB")
    session = Session([trace_path("v1.36.3-churn7")])
    with pytest.raises(QueryError, match="set TRACEKIT_SQL_MEMORY=4GiB, or ask about less"):
        session.table("SELECT list(a.raw || b.raw) FROM observations a, observations b")
    monkeypatch.setenv("TRACEKIT_SQL_MEMORY", "plenty")
    with pytest.raises(UsageError, match="TRACEKIT_SQL_MEMORY=plenty is no amount of memory"):
        Session([trace_path("v1.36.3-churn7")])


def test_a_view_that_is_held_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.sql.session._FEW_ROWS", 0)
    session = Session([write_jobs(tmp_path / "trace", "one", "two")])
    session.hold("attempts", "jobs")
    wanted = {"one", "two"}
    for _ in range(2):
        assert {row["job"] for row in session.rows("SELECT job FROM jobs")} == wanted
    tables = session.rows("SELECT table_name AS name FROM duckdb_tables()")
    assert "jobs" in {row["name"] for row in tables}
    session.close()
