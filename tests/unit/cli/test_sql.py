"""`tracekit sql`, `jobs` and `explain` as commands."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from click.shell_completion import ShellComplete

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture
from tests.sql.test_session import HOSTILE, write_jobs
from tracekit.cli.main import cli, main
from tracekit.sql.session import Session

NAME = "v1.36.3-restart"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]):
    def invoke(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capfd.readouterr()
        return int(left.value.code or 0), out, err

    return invoke


@pytest.fixture
def trace(trace_path) -> Path:  # noqa: F811
    return trace_path(NAME)


QUERY = "SELECT namespace, job, outcome, created_at, revisions FROM jobs ORDER BY ALL LIMIT 3"


def test_a_table_has_its_count(run, trace: Path) -> None:
    code, out, _ = run("sql", trace, QUERY)
    assert code == 0
    assert out.splitlines()[0].split() == ["namespace", "job", "outcome", "created_at", "revisions"]
    assert out.endswith("(3 rows)\n")


def test_json_jsonl_and_csv_say_the_same(run, trace: Path) -> None:
    documents = json.loads(run("sql", trace, QUERY, "-o", "json")[1])
    lines = [json.loads(line) for line in run("sql", trace, QUERY, "-o", "jsonl")[1].splitlines()]
    rows = list(csv.DictReader(io.StringIO(run("sql", trace, QUERY, "-o", "csv")[1])))
    assert documents == lines
    assert [{k: str(v) for k, v in d.items()} for d in documents] == rows
    assert documents[0]["created_at"].endswith("Z")


def test_markdown_escapes_what_would_be_markup(run, trace: Path) -> None:
    _, out, _ = run("sql", trace, "SELECT 'a|b' AS x, '<b>' AS y, 'c\nd' AS z", "-o", "markdown")
    assert out.splitlines()[2] == "| a\\|b | &lt;b&gt; | c\\nd |"


def test_parquet_goes_to_a_pipe(trace: Path, tmp_path: Path, capfdbinary) -> None:
    with pytest.raises(SystemExit):
        main(["sql", str(trace), QUERY, "-o", "parquet"])
    content = capfdbinary.readouterr().out
    (tmp_path / "x.parquet").write_bytes(content)
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 3


def test_parquet_has_every_type_of_sql(trace: Path, tmp_path: Path, capfdbinary) -> None:
    """Intervals, lists, structs and maps come back as they were."""
    query = "SELECT *, [duration] AS all_of_it, MAP {'a': 1} AS m FROM jobs ORDER BY ALL"
    with pytest.raises(SystemExit) as ended:
        main(["sql", str(trace), query, "-o", "parquet"])
    assert not ended.value.code
    path = tmp_path / "x.parquet"
    path.write_bytes(capfdbinary.readouterr().out)
    session = Session([str(trace)])
    assert duckdb.read_parquet(str(path)).to_arrow_table() == session.table(query)


def test_a_query_comes_from_a_file_or_an_example(run, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 7 AS seven;\n")
    assert "seven" in run("sql", trace, "-f", tmp_path / "q.sql")[1]
    assert run("sql", trace, "--example", "failed-jobs")[0] == 0
    code, _, err = run("sql", trace, "--example", "failed-job")
    assert (code, "did you mean failed-jobs" in err) == (2, True)


def test_examples_are_printed_with_their_question(run) -> None:
    code, out, _ = run("sql", "--examples")
    assert code == 0
    assert out.count("-- ") >= 20


def test_a_wrong_query_exits_2_with_the_caret(run, trace: Path) -> None:
    code, out, err = run("sql", trace, "SELECT * FROM jbos")
    assert (code, out) == (2, "")
    assert "did you mean jobs?" in err
    assert "^" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [[], ["SELECT * FROM jobs"], ["/nowhere", "SELECT 1 AS x"]])
def test_a_missing_trace_is_one_sentence(run, words: list[str]) -> None:
    code, out, err = run("sql", *words)
    assert (code, out) == (2, "")
    assert err.startswith("tracekit: ")


def test_hostile_names_do_not_reach_the_terminal(run, tmp_path: Path) -> None:
    path = write_jobs(tmp_path / "t", HOSTILE)
    for words in (
        ["sql", path, "SELECT * FROM jobs"],
        ["sql", path, "SELECT job FROM jobs", "-o", "markdown"],
        ["jobs", path],
        ["explain", path, f"ns/{HOSTILE}"],
    ):
        code, out, _ = run(*words)
        assert code == 0, words
        assert "\x1b" not in out
        assert "\\x1b" in out


def test_the_prompt_reads_statements_from_a_pipe(run, trace: Path, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one; SELECT 2 AS two"))
    code, out, _ = run("sql", trace)
    assert code == 0
    assert [line for line in out.splitlines() if line in ("one", "two")] == ["one", "two"]


def test_a_pipe_has_commands_on_lines_of_their_own(run, trace: Path, monkeypatch) -> None:
    text = ".output jsonl\nSELECT 1 AS one,\n'.output csv' AS two;\n.output csv\nSELECT 2\n;\nexit\nSELEC"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code, out, _ = run("sql", trace)
    assert (code, out) == (0, '{"one":1,"two":".output csv"}\n2\n2\n')


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELEC;", "syntax error"),
        ("SELECT nope; SELECT 3;", "nope"),
        ("COPY (SELECT 1) TO 'x';", "COPY is not allowed"),
        (".read /etc/passwd\nSELECT 1;", "there is no command .read"),
        (".output /nowhere/x\nSELECT 1;", "there is no format"),
        (".example no", "there is no example"),
        ("SELECT '\udcff';", "is no text"),
    ],
)
def test_what_is_piped_in_and_fails_is_exit_2(
    run, trace: Path, monkeypatch, text: str, why: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code, _, err = run("sql", trace)
    assert (code, why in err, "fault of" in err) == (2, True, False)


def test_jobs_filters_and_suggests(run, trace: Path) -> None:
    code, out, _ = run("jobs", trace, "--outcome", "failed", "-o", "json")
    assert code == 0
    assert {job["outcome"] for job in json.loads(out)} == {"Failed"}
    space = json.loads(out)[0]["namespace"]
    assert run("jobs", trace, "-n", space)[0] == 0
    code, _, err = run("jobs", trace, "-n", space + "x")
    assert (code, f"did you mean {space}" in err) == (2, True)


def test_explain_is_text_or_json(run, trace: Path) -> None:
    key = json.loads(run("jobs", trace, "-o", "json")[1])[0]
    name = f"{key['namespace']}/{key['job']}"
    code, out, _ = run("explain", trace, name)
    assert (code, out.startswith(f"Job {name}\n")) == (0, True)
    document = json.loads(run("explain", trace, name, "-o", "json")[1])
    assert document["steps"][0]["what"] == "was created"
    assert run("explain", trace, name + "x")[0] == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run, shell: str) -> None:
    code, out, _ = run("completion", shell)
    assert code == 0
    assert "_TRACEKIT_COMPLETE" in out


def test_names_are_completed_from_the_trace(trace: Path) -> None:
    complete = ShellComplete(cli, {}, "tracekit", "_TRACEKIT_COMPLETE")
    words = [item.value for item in complete.get_completions(["explain", str(trace)], "t-")]
    assert words
    assert all(word.startswith("t-") and "/" in word for word in words)
    spaces = [i.value for i in complete.get_completions(["jobs", str(trace), "-n"], "t-")]
    assert spaces == sorted({word.split("/")[0] for word in words if word.split("/")[0] in spaces})


@pytest.mark.parametrize("query", ["", "  ;"])
def test_an_empty_query_is_not_taken_for_a_trace(run, trace: Path, query: str) -> None:
    code, out, err = run("sql", trace, query)
    assert (code, out) == (2, "")
    assert err == "tracekit: there is no query in it: write one, like SELECT * FROM jobs\n"


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "TRACE", "ns/b"),
        ("report", "TRACE", "-o", "OUT"),
        ("report", "TRACE", "ns/b", "-o", "OUT"),
        ("export", "TRACE", "--format", "jsonl", "-o", "OUT"),
    ],
)
def test_what_an_answer_leaves_out_is_said_once(run, tmp_path: Path, words) -> None:
    trace = write_jobs(tmp_path / "trace", "a", "b", rows=1)
    broken = min((trace / "log").iterdir())
    broken.write_bytes(broken.read_bytes()[:100])
    places = {"TRACE": trace, "OUT": tmp_path / "out"}
    code, _, err = run(*(places.get(word, word) for word in words))
    assert code == 2
    assert err.count(f"{broken} is damaged") == 1


def test_an_error_does_not_command_the_terminal(run, tmp_path: Path) -> None:
    trace = write_jobs(tmp_path / "trace", "job\x1b[31m")
    code, _, err = run("explain", trace, "ns/job\x1b]0;owned\x07")
    assert code == 2
    assert r"ns/job\x1b]0;owned\x07" in err
    assert "\x1b" not in err
