"""Receive times that no clock shows, or none at all: said, and never reckoned with."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from tests.attack.answers import is_refusal, run
from tests.attack.forge import forged
from tests.support.traces import TRACES, json_lines
from tracekit.trace.format.model import RECEIVED_BEFORE_NS, TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

NAME = "v1.36.3-twins"
ROWS = [
    row
    for row in islice(json_lines(TRACES / NAME / "watch.jsonl.zst"), 400)
    if row["type"] in ("LIST_BEGIN", "LIST", "LIST_END", "ADDED", "MODIFIED", "DELETED")
]
NO_CLOCK = (2**63 - 1, RECEIVED_BEFORE_NS, -1, -(2**63))
VERBS = (
    ("replay", "--diff"), ("diagnose",), ("jobs",), ("info",), ("watch", "--once"),
    ("timeline",), ("sql", "FROM cron_ticks"), ("export", "--format", "otlp"), ("whatif", "--kubernetes-version", "v1.37.1"),
)  # fmt: skip


@pytest.mark.parametrize("recv", [None, "now", 1e300, True, 2**63, 10**30, *NO_CLOCK])
def test_a_log_that_says_no_time_is_refused(tmp_path: Path, recv: object) -> None:
    log = tmp_path / "watch.jsonl"
    log.write_text("".join(json.dumps({**row, "recv": recv}) + "\n" for row in ROWS[:50]))
    answer = run("import", "watch", str(log), "-o", str(tmp_path / "trace"))
    assert is_refusal(answer)
    assert "does not say when anything was received" in answer[2]
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("recv", NO_CLOCK)
def test_a_line_without_a_time_has_that_of_the_line_before(tmp_path: Path, recv: int) -> None:
    log = tmp_path / "watch.jsonl"
    lines = [{**row, "recv": recv} if at == 40 else row for at, row in enumerate(ROWS[:50])]
    log.write_text("".join(map("{}\n".format, map(json.dumps, lines))))
    code, _, said = run("import", "watch", str(log), "-o", str(tmp_path / "trace"))
    assert (code, "without a receive time, given that of the line before" in said) == (0, True)
    query = "SELECT seq, recv_ns FROM observations WHERE seq IN (39, 40)"
    _, out, _ = run("sql", str(tmp_path / "trace"), query, "-o", "jsonl")
    before, odd = map(json.loads, out.splitlines())
    assert before["recv_ns"] == odd["recv_ns"]


@pytest.mark.parametrize("recv", NO_CLOCK)
def test_a_trace_with_a_time_of_no_clock_is_not_believed(tmp_path: Path, recv: int) -> None:
    trace = forged(tmp_path / "trace", {"recv_ns": pa.array([1, 2, 3, recv, 5, 6, 7, 8])}, 8)
    for words in VERBS:
        code, _, said = run(words[0], str(trace), *words[1:])
        assert (code, "fault of tracekit" in said) == (2, False), words
        assert "received before 1970 or after 2115" in said, words


def test_a_file_that_hides_its_times_is_not_believed(tmp_path: Path) -> None:
    times = {"recv_ns": pa.array([1, 2, 3, 2**63 - 1, 5, 6, 7, 8])}
    trace = forged(tmp_path / "trace", times, 8, write_statistics=False)
    for words in VERBS[:4]:
        code, _, said = run(words[0], str(trace), *words[1:])
        assert (code, "statistics do not say when" in said) == (2, True), words


@pytest.mark.parametrize("created", [-(2**63), 2**63 - 1])
def test_a_creation_that_no_clock_had_tells_of_no_clock(tmp_path: Path, created: int) -> None:
    trace = forged(tmp_path / "trace", {"created_ns": pa.array([created] * 8, pa.int64())}, 8)
    for words in (("explain", str(trace), "ns/job-1"), ("diagnose", str(trace))):
        _, _, said = run(*words)
        assert "fault of tracekit" not in said, words


@pytest.mark.parametrize("recv", NO_CLOCK)
def test_the_writer_writes_no_such_time(tmp_path: Path, recv: int) -> None:
    with TraceWriter(tmp_path / "trace") as writer:
        for at, row in enumerate(ROWS[:9]):
            writer.append("jobs", "ADDED", recv if at == 5 else row["recv"], row["object"])
    times = TraceReader(tmp_path / "trace").table(("recv_ns",))["recv_ns"].to_pylist()
    assert times[5] == times[4]


def test_a_trace_without_times_is_answered_without_a_fault(tmp_path: Path) -> None:
    """A row that came before any time was known has none."""
    with TraceWriter(tmp_path / "trace", TraceHeader(kubernetes_version="v1.36.3")) as writer:
        for row in ROWS[:100]:
            writer.append(row["resource"], row["type"], None, row["object"])
        for row in ROWS[100:]:
            writer.append(row["resource"], row["type"], row["recv"], row["object"])
    for words in VERBS:
        code, _, said = run(words[0], str(tmp_path / "trace"), *words[1:])
        assert code in (0, 1), (words, said)
        assert "fault of tracekit" not in said, words


@pytest.mark.parametrize("place", ["0001-01-01T00:00:00Z", "-10000000000h", f"-{'9' * 400}h"])
@pytest.mark.parametrize("ask", [("timeline",), ("sql", "FROM jobs"), ("jobs",)])
def test_a_time_may_be_further_than_any_record(
    tmp_path: Path, place: str, ask: tuple[str, ...]
) -> None:
    with TraceWriter(tmp_path / "trace", TraceHeader(kubernetes_version="v1.36.3")) as writer:
        for row in ROWS[:50]:
            writer.append(row["resource"], row["type"], row["recv"], row["object"])
    trace = str(tmp_path / "trace")
    whole = run(ask[0], trace, *ask[1:])
    assert run(ask[0], trace, *ask[1:], f"--from={place}")[:2] == whole[:2]
    late = run(ask[0], trace, *ask[1:], "--to=9999-12-31T23:59:59Z")
    assert late[:2] == whole[:2]


@pytest.mark.parametrize(
    "year", ["2116-12-31", "2262-12-31", "9999-12-31", "0001-01-01", "1969-12-31"]
)
@pytest.mark.parametrize("many", [True, False])
def test_a_time_in_an_object_that_no_clock_shows_is_not_when_it_was_written(
    tmp_path: Path, year: str, many: bool
) -> None:
    """`import kubectl` made a time of it that no row can have, and ended as a fault."""
    objects = [
        {
            "apiVersion": "batch/v1", "kind": "Job", "spec": {}, "status": {},
            "metadata": {
                "name": f"j{number}", "namespace": "n", "uid": f"u{number}", "resourceVersion": "5",
                "creationTimestamp": "2026-11-21T05:00:00Z",
                "annotations": {"told": f"{year}T00:00:00Z"},
            },
        }
        for number in range(2)
    ]  # fmt: skip
    listed = {"apiVersion": "v1", "kind": "List", "items": objects, "metadata": {}}
    source, trace = tmp_path / "jobs.json", tmp_path / "trace"
    source.write_text(json.dumps(listed) if many else "\n".join(map(json.dumps, objects)))
    code, _, said = run("import", "kubectl", str(source), "-o", str(trace))
    assert code == 0, said
    times = {*TraceReader(trace).table(("recv_ns",)).column(0).to_pylist()}
    assert times == {1795237200000000000}


def test_objects_before_the_first_time_are_told(tmp_path: Path) -> None:
    """Accounts, timelines and reports could not sort them."""
    log, trace = tmp_path / "watch.jsonl", tmp_path / "trace"
    rows = list(json_lines(TRACES / "v1.36.3-restart" / "watch.jsonl.zst"))
    untimed = [{**row, "recv": None} for row in rows[: len(rows) * 2 // 3]]
    rows = [*untimed, *rows[len(untimed) :]]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    for words in (
        ("explain", str(trace), "t-cronjobs/allow"), ("timeline", str(trace)),
        ("explain", str(trace), "t-cronjobs/failing", "-o", "json"),
        ("report", str(trace), "-o", str(tmp_path / "page.html")),
    ):  # fmt: skip
        code, _, said = run(*words)
        assert code == 0, (words, said)
