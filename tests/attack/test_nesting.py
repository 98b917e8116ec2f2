"""One object that is nested deeper than any of the API is one row that nobody reads, and no more.

docs/trust.md: what is no object of an API server's counts as absent, its text stays in the row.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attack.answers import run
from tracekit.base.json_text import json_text
from tracekit.record.streams.pages import page_of
from tracekit.trace.format.limits import NESTING_MAX, TOO_DEEP

#: More than a reader takes; than the fast writer of JSON takes; nearly what its reader takes.
LEVELS = (NESTING_MAX, 300, 900)
BEGIN_NS = 1_700_000_000 * 10**9


def nested(levels: int) -> dict:
    value: dict = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def job(name: str, spec: dict) -> dict:
    about = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "5"}
    about["creationTimestamp"] = "2023-11-14T22:13:20Z"
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": about, "spec": spec}


def text(value: dict, levels: int) -> str:
    """As JSON with the nested object in the place of "DEEP", which no writer's stack has to hold."""
    return json.dumps(value).replace('"DEEP"', '{"a":' * levels + "{}" + "}" * levels)


def check(trace: Path) -> None:
    code, out, said = run("sql", str(trace), "SELECT type, reason FROM observations", "-o", "jsonl")
    assert code == 0, said
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["reason"] for row in rows if row["type"] == "UNPARSED"] == [TOO_DEEP]
    code, out, said = run("jobs", str(trace), "-o", "jsonl")
    assert (code, [json.loads(line)["job"] for line in out.splitlines()]) == (0, ["sound"]), said
    code, _, said = run("replay", str(trace), "--diff", "--kubernetes-version", "v1.36.3")
    assert code == 0, said


@pytest.mark.parametrize("levels", LEVELS)
def test_a_row_of_a_log_leaves_the_others_readable(tmp_path: Path, levels: int) -> None:
    """Its template was written as no reader takes it: the whole trace was refused for it."""
    log, trace = tmp_path / "watch.jsonl", tmp_path / "trace"
    rows = [job("sound", {}), job("deep", {"x": "DEEP"})]
    lines = (
        text({"recv": BEGIN_NS + at, "resource": "jobs", "type": "ADDED", "object": row}, levels)
        for at, row in enumerate(rows)
    )
    log.write_text("".join(f"{line}\n" for line in lines))
    code, _, said = run("import", "watch", str(log), "-o", str(trace))
    assert code == 0, said
    check(trace)


@pytest.mark.parametrize("levels", LEVELS)
def test_an_item_of_a_list_leaves_the_others_readable(tmp_path: Path, levels: int) -> None:
    """It was "a fault of tracekit's own (TypeError: Recursion limit reached)"."""
    file, trace = tmp_path / "jobs.json", tmp_path / "trace"
    items = [job("sound", {}), job("deep", {"x": "DEEP"})]
    listed = {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}
    file.write_text(text(listed, levels))
    code, _, said = run("import", str(file), "-o", str(trace))
    assert code == 0, said
    check(trace)


def test_an_item_that_a_server_lists_is_taken_as_it_came() -> None:
    item = job("deep", nested(300))
    (taken,) = page_of({"metadata": {"resourceVersion": "5"}, "items": [item]}).items
    assert json.loads(taken.raw) == item


@pytest.mark.parametrize(
    "value", [10**30, -(2**64), "\ud800", nested(300)], ids=["large", "small", "half", "deep"]
)
def test_what_a_fast_writer_refuses_is_written(value: object) -> None:
    assert json.loads(json_text({"a": value})) == {"a": value}


def test_what_nothing_writes_is_said() -> None:
    with pytest.raises(RecursionError):
        json_text(nested(100_000))
