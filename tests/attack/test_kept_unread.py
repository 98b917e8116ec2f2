"""What an import keeps as text that nobody reads is said, and one odd entry costs nothing else."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from tests.attack.answers import run
from tests.support.traces import TRACES, json_lines
from tracekit.trace.format.limits import ROW_BYTES_MAX, TOO_DEEP, TOO_LARGE

SHIPPED = TRACES / "v1.36.3-twins"
WATCH = [row for row in islice(json_lines(SHIPPED / "watch.jsonl.zst"), 60) if row]
AUDIT = list(islice(json_lines(SHIPPED / "audit.jsonl.zst"), 400))
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "5",
        "creationTimestamp": "2026-11-21T05:42:44Z",
    },
    "status": {"phase": "Running"},
}  # fmt: skip
ODD = {TOO_DEEP: '"DEEP"', TOO_LARGE: '"LARGE"'}


def odd(text: str) -> str:
    text = text.replace('"DEEP"', "[" * 300 + "]" * 300)
    return text.replace('"LARGE"', json.dumps("a" * ROW_BYTES_MAX))


@pytest.mark.parametrize("why", list(ODD))
def test_an_object_that_is_kept_unread_is_said(tmp_path: Path, why: str) -> None:
    """The row was there, and neither the import nor `info` had a word for it."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [POD, {**POD, "x": "ODD"}]}
    (tmp_path / "list.json").write_text(odd(json.dumps(listed).replace('"ODD"', ODD[why])))
    trace = str(tmp_path / "trace")
    code, _, said = run("import", str(tmp_path / "list.json"), "-o", trace)
    assert (code, f"text that nobody reads (UNPARSED): {why}" in said) == (0, True), said
    code, out, _ = run("info", trace)
    assert (code, "1 row kept as text that nobody reads (UNPARSED)" in out) == (0, True)


@pytest.mark.parametrize("other", ["{}", "null", '{"metadata":{"name":"other"}}'])
def test_a_line_with_two_objects_is_kept_whole(tmp_path: Path, other: str) -> None:
    """The last one was taken, and the first one was gone without a word."""
    lines = [json.dumps(row) for row in WATCH]
    lines[40] = f'{lines[40][:-1]}, "object": {other}}}'
    (tmp_path / "watch.jsonl").write_text("\n".join(lines) + "\n")
    trace = str(tmp_path / "trace")
    code, _, said = run("import", "watch", str(tmp_path / "watch.jsonl"), "-o", trace)
    assert (code, "1 line could not be read, kept as text" in said) == (0, True), said
    _, out, _ = run("sql", trace, "SELECT raw FROM observations WHERE seq = 40", "-o", "jsonl")
    assert json.loads(out)["raw"] == lines[40]


@pytest.mark.parametrize("year", ["0001", "1969", "2117", "2300", "9999"])
@pytest.mark.parametrize("field", ["requestReceivedTimestamp", "stageTimestamp"])
def test_an_entry_of_a_time_that_no_row_can_have_costs_no_other(
    tmp_path: Path, year: str, field: str
) -> None:
    """It ended the import: with a fault, or as the log of servers whose clocks differ by decades."""
    at, entry = next(
        (at, entry)
        for at, entry in enumerate(AUDIT)
        if (entry["verb"], entry["stage"]) == ("create", "ResponseComplete")
        and entry["objectRef"]["resource"] == "jobs"
    )
    text = f"{year}-01-01T00:00:00.000001Z"
    entries = [*AUDIT[:at], {**entry, field: text}, *AUDIT[at + 1 :]]
    (tmp_path / "audit.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))
    code, _, said = run("import", "audit", str(tmp_path / "audit.jsonl"), "-o", str(tmp_path / "t"))
    assert code == 0, said
    left_out = "without a time that a row can have, left out" in said
    assert left_out == (field == "stageTimestamp"), said
