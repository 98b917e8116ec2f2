"""Pages that were forged and sealed: what one of two readers refuses is damage for all verbs.

docs/trust.md: what cannot be believed is left out, its file named, and the exit status is 2.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.attack.answers import is_refusal, run
from tests.attack.forge import forged
from tests.attack.test_footers import changed
from tracekit.trace.format.segments import live_segments


def _page(footer: pq.FileMetaData, column: str = "seq") -> int:
    """Where the first page of a column begins."""
    group = footer.row_group(0)
    number = footer.schema.names.index(column)
    return int(group.column(number).data_page_offset)


def _claims_more(content: bytearray, footer: pq.FileMetaData) -> None:
    """A page that is not compressed says that it is larger so: Arrow does not look."""
    at = _page(footer) + 4  # behind the page's type and the first half of its size
    assert content[at] == 1
    content[at] = 12


def _holds_noise(content: bytearray, footer: pq.FileMetaData) -> None:
    """No page at all: nobody can read it."""
    at = _page(footer)
    content[at : at + 24] = b"\xff" * 24


def broken(tmp_path: Path, change: object) -> tuple[Path, str]:
    honest = forged(tmp_path / "honest", {}, 8, compression="none", use_dictionary=False)
    trace = changed(honest, tmp_path / "forged", change)  # type: ignore[arg-type]
    return trace, live_segments(trace)[0].path.name


@pytest.mark.parametrize(
    "words",
    [
        ("sql", "TRACE", "SELECT * FROM observations"),
        ("diagnose", "TRACE"),
        ("report", "TRACE", "-o", "PAGE"),
        ("timeline", "TRACE"),
        ("export", "--format", "jsonl", "TRACE"),
    ],
    ids=lambda words: words[0],
)
def test_a_page_that_duckdb_alone_refuses_is_damage(tmp_path: Path, words: tuple[str, ...]) -> None:
    """It was called a fault of tracekit's own, and no file was named."""
    trace, name = broken(tmp_path, _claims_more)
    places = {"TRACE": str(trace), "PAGE": str(tmp_path / "page.html")}
    code, _, said = run(*(places.get(word, word) for word in words))
    assert code == 2
    assert "fault" not in said
    assert f"{name} is damaged (it cannot be decoded: " in said


def test_another_trace_is_read_beside_it(tmp_path: Path) -> None:
    trace, name = broken(tmp_path, _claims_more)
    query = "SELECT trace, count(raw) AS n, sum(seq) AS s FROM observations GROUP BY trace"
    code, out, said = run("sql", str(trace), str(tmp_path / "honest"), query, "-o", "jsonl")
    rows = {row["trace"]: row["n"] for row in map(json.loads, out.splitlines())}
    assert (code, rows["honest"], name in said) == (2, 8, True)


def test_verify_decodes_what_is_sealed(tmp_path: Path) -> None:
    """`replay` says that `info --verify` names the file, which compared checksums alone."""
    trace, name = broken(tmp_path, _holds_noise)
    assert is_refusal(run("replay", str(trace), "--diff"))
    answer = run("info", str(trace), "--verify")
    assert is_refusal(answer)
    assert f"{name} is damaged" in answer[2]


@pytest.mark.parametrize(
    "words", [("diagnose",), ("timeline",), ("jobs",)], ids=lambda words: words[0]
)
def test_a_revision_may_be_any_number(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The least one was a fault: only the greatest had been thought of."""
    revisions = pa.array([-(2**63), -(2**62), -1, 0, 1, 2**62, 2**63 - 1, None], pa.int64())
    trace = forged(tmp_path / "trace", {"rv": revisions}, 8)
    code, out, said = run(*words, str(trace))
    assert code == 0, said
    assert "job-0" in out or words == ("diagnose",)
