"""A trace in which every text is hostile: no output obeys it, on a pipe or on a terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.mcp.conftest import caller
from tests.support.pages import data_of
from tests.support.traces import ROOT, TRACES, json_lines
from tracekit.cli.completion import _names
from tracekit.cli.main import main
from tracekit.report.html import page as html_page
from tracekit.trace.format.header import read_header, write_header
from tracekit.trace.format.model import TraceHeader

#: Goes behind every text: it retitles the terminal, clears it, turns the reading order, forges
#: lines, is markup of rich, of Markdown, of HTML and of a shell.
EVIL = (
    "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066\u2028\u3164\u034f\r\nforged: line\n[red]x"
    "|`c`@SCRIPT@@DATA@[a](javascript:x)<img src=x onerror=alert(1)><script>$(touch owned)"
)
FORMULA = "=HYPERLINK(1)"
NAME = "v1.36.3-restart"
#: What of an object is text that somebody may choose.
TEXTS = {
    "name", "namespace", "message", "reason", "image", "nodeName", "holderIdentity", "manager",
    "job-name", "component", "schedulerName",
}  # fmt: skip
JOB = f"t-indexed{EVIL}/idx{EVIL}"


def poisoned(value: Any, key: str = "") -> Any:
    """The object with hostile text behind every text in it, names alike wherever they stand."""
    if isinstance(value, dict):
        return {name: poisoned(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item, key) for item in value]
    if isinstance(value, str) and key in TEXTS:
        # A slash would only make another key of a name.
        more = key in ("message", "image")
        return f"{FORMULA}{value}{EVIL}[/red]</script>" if more else value + EVIL
    return value


def is_asked(row: dict[str, Any]) -> bool:
    """Whether it is of a failing CronJob, an indexed Job, or of no namespace of the scenes."""
    meta = row["object"].get("metadata", {})
    namespace = meta.get("namespace", "")
    if namespace == "t-cronjobs":
        return str(meta["name"]).startswith("failing")
    return not namespace.startswith("t-") or namespace == "t-indexed"


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    log = root / "watch.jsonl"
    rows = (row for row in json_lines(TRACES / NAME / "watch.jsonl.zst") if is_asked(row))
    log.write_bytes(
        b"".join(orjson.dumps({**row, "object": poisoned(row["object"])}) + b"\n" for row in rows)
    )
    trace = root / "trace"
    with pytest.raises(SystemExit):
        main(["import", "watch", str(log), "-o", str(trace), "--kubernetes-version", "v1.36.3"])
    header = read_header(trace)
    write_header(
        trace,
        TraceHeader(
            kubernetes_version="v1.36.3",
            feature_gates={f"Gate{EVIL}": True},
            controller_flags=(f"--flag={EVIL}",),
            # One that names namespaces or a selector would leave nothing to judge.
            scope={"cluster": EVIL},
            sessions=({"source": EVIL},),
            streams={"jobs": {"note": EVIL}},
            format_version=header.format_version,
        ),
    )
    return trace


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def invoke(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capfd.readouterr()
        return int(left.value.code or 0), out, err

    return invoke


def assert_plain(text: str, *, colours: bool = False) -> None:
    """Nothing but what shows itself, line feeds, and (on a terminal) rich's own colours.

    On a terminal it also hides the cursor and writes a line anew, to show that work goes on; none of
    these sequences is in the hostile texts.
    """
    if colours:
        text = re.sub(r"\x1b\[([0-9;]*m|\?25[lh]|2K|1A)|\r(?=\x1b)", "", text)
        text = text.replace("\r\n", "\n")
    odd = {c for c in text if c in "\u3164\u034f" or (not c.isprintable() and c not in "\n\u00a0")}
    assert odd == set()
    assert not re.search(r"^forged: line", text, re.MULTILINE)


QUERY = (
    "SELECT namespace, job, message, image FROM jobs UNION ALL "
    "SELECT namespace, object, message, reason FROM k8s_events"
)
PRINTED = [
    ["replay", "--diff"],
    ["replay", "--diff", "-o", "wide"],
    ["replay", "--diff", "-o", "json"],
    ["replay", "-o", "jsonl"],
    ["replay"],
    # One Job of a record that contradicts the rules as a whole is judged where it is asked for.
    ["replay", "--diff", "--search-all", "--job", JOB],
    ["explain", JOB],
    ["explain", JOB, "-o", "json"],
    *([verb, *rest] for verb in ("timeline", "who") for rest in ([], ["-o", "json"])),
    ["who", "--object", JOB],
    *(["compare", JOB, JOB, "-o", kind] for kind in ("table", "json")),
    ["info"],
    ["info", "-o", "json"],
    *(["diagnose", "-o", kind] for kind in ("table", "json", "markdown", "junit", "sarif")),
    ["jobs"],
    ["jobs", "-o", "wide"],
    ["sql", QUERY],
    ["sql", QUERY, "-o", "line"],
    ["sql", QUERY, "-o", "json"],
    ["sql", QUERY, "-o", "jsonl"],
    ["sql", QUERY, "-o", "markdown"],
    ["export", "--format", "jsonl"],
    ["export", "--format", "chrome"],
    ["export", "--format", "otlp"],
]


@pytest.mark.parametrize("words", PRINTED, ids=" ".join)
def test_nothing_printed_is_obeyed(words: list[str], hostile: Path, run: Run) -> None:
    code, out, err = run(words[0], hostile, *words[1:])
    assert code in (0, 1), err
    assert "owned" in out or "forged" in out or "--search-all" in words
    assert_plain(out)
    assert_plain(err)


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "--job", f"no{EVIL}"],
        ["replay", "-n", EVIL],
        ["replay", "--controller", EVIL],
        ["replay", "--kubernetes-version", EVIL],
        ["replay", "--feature-gates", EVIL],
        ["replay", "-o", EVIL],
        ["replay", f"--{EVIL}"],
        ["explain", f"t-indexed/{EVIL}"],
        ["explain", JOB, "--at", EVIL],
        ["jobs", "--cronjob", EVIL],
        ["sql", f"SELECT '{EVIL}' FROM {EVIL}"],  # noqa: S608
        ["sql", f'SELECT "{EVIL}" FROM jobs'],  # noqa: S608
        ["sql", "--example", EVIL],
        ["report", f"no/{EVIL}"],
        ["export", "--format", "csv", "-o", f"/nowhere/{EVIL}"],
    ],
    ids=lambda words: " ".join(words).replace(EVIL, "EVIL"),
)
def test_no_error_is_obeyed(words: list[str], hostile: Path, run: Run) -> None:
    code, out, err = run(words[0], hostile, *words[1:])
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert {c for c in err if not c.isprintable()} <= {"\n"}
    assert "\nforged: line" not in err


@pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["replay", "--diff"],
        ["replay", "-o", "wide"],
        ["diagnose"],
        ["timeline"],
        ["who", "--object", JOB],
        ["compare", JOB, JOB],
        ["explain", JOB],
        ["jobs"],
        ["jobs", "-o", "wide"],
        ["sql", QUERY],
        ["sql", QUERY, "-o", "line"],
    ],
    ids=" ".join,
)
def test_a_terminal_obeys_nothing(words: list[str], hostile: Path) -> None:
    """On a terminal rich draws, with escape sequences of its own: colours only."""
    ours, theirs = pty.openpty()
    code = "from tracekit.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, words[0], str(hostile), *words[1:]],
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait() in (0, 1)
    assert len(written) > 500
    assert_plain(written.decode(), colours=True)


@pytest.mark.parametrize("words", [["sql", QUERY, "-o", "csv"], ["export", "--format", "csv"]])
def test_no_cell_is_a_formula(words: list[str], hostile: Path, run: Run) -> None:
    code, out, _ = run(words[0], hostile, *words[1:])
    assert code == 0
    assert {c for c in out if not c.isprintable()} <= {"\n"}
    cells = [cell for row in csv.reader(io.StringIO(out)) for cell in row]
    assert not [cell for cell in cells if re.match(r"[=+@]|-\D", cell)]
    if words[0] == "sql":
        assert any(cell.startswith(f"'{FORMULA}") for cell in cells)


def test_markdown_has_no_markup_and_one_line_a_row(hostile: Path, run: Run) -> None:
    _, out, _ = run("sql", hostile, QUERY, "-o", "markdown")
    for line in out.splitlines():
        assert len(re.findall(r"(?<!\\)\|", line)) == 5
    assert not re.search(r"(?<!\\)[`\[\]*]|[<>]", out)


def test_json_holds_the_texts_as_they_are(hostile: Path, run: Run) -> None:
    _, out, _ = run("sql", hostile, "SELECT DISTINCT namespace FROM jobs", "-o", "json")
    assert all(row["namespace"].endswith(EVIL) for row in json.loads(out))


@pytest.mark.full
def test_a_page_has_no_element_of_theirs(
    hostile: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page, "_PLAIN_CHARS_MAX", 1 << 30)  # packed it would hold no markup
    target = tmp_path / "report.html"
    code, out, err = run("report", hostile, "-o", target)
    assert (code, out) == (0, "")
    assert_plain(err)
    page = target.read_text()
    assert "onerror" in page
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert "@STYLE@" not in page
    assert {c for c in page if not c.isprintable()} <= {"\n"}
    data = data_of(page)
    texts = list(_texts(data))
    assert any("@SCRIPT@@DATA@" in text for text in texts)
    assert {c for text in texts for c in text if not c.isprintable()} <= {"\n", "\t"}


def _texts(value: Any) -> Iterator[str]:
    """All texts of a document, names of members among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def test_no_completion_is_anything_but_a_word(hostile: Path) -> None:
    query = (
        "SELECT DISTINCT namespace || '/' || name AS word FROM internal._states "
        "WHERE starts_with(namespace, $start)"
    )
    assert _names([hostile], query, "t-indexed") == []


def test_a_failing_gate_prints_nothing_that_is_obeyed(hostile: Path) -> None:
    from tracekit.pytest_plugin import check_no_divergence  # noqa: PLC0415

    with pytest.raises(pytest.fail.Exception) as failed:
        check_no_divergence(hostile)
    assert {c for c in str(failed.value) if not c.isprintable()} <= {"\n"}


ASKED = [
    ("diagnose", {}), ("timeline", {}), ("who", {}), ("coverage", {}),
    ("sql", {"query": "SELECT * FROM jobs"}), ("explain", {"key": JOB}),
    ("explain", {"key": f"no/such{EVIL}"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments"), ASKED)
def test_an_agent_gets_them_as_data(hostile: Path, tool: str, arguments: dict[str, Any]) -> None:
    result = caller({"t": hostile})(tool, trace="t", **arguments)
    ours, theirs = (block.text for block in result.content)
    assert "forged" not in ours
    begin, document, end = theirs.split("\n")
    fence = result.structured_content["fence"]
    assert (begin, end) == (f"BEGIN RECORD {fence}", f"END RECORD {fence}")
    assert json.loads(document) == result.structured_content["record"]
    assert not re.search("[\x1b\x07\x9b\u202e\u2066\u2028]", theirs)
