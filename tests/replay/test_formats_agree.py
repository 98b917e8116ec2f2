"""One trace in both formats: every verb gives the same bytes of output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.attack.answers import run
from tests.support.traces import TRACES, import_log
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.whole import compact_in_place

NAME = "v1.36.3-troubles"
TRACE = "trace"
ASKED = {
    "replay": ("replay", TRACE),
    "diff": ("replay", TRACE, "--diff", "-o", "jsonl"),
    "jobs": ("jobs", TRACE),
    "diagnose": ("diagnose", TRACE, "-o", "json"),
    "observations": ("sql", TRACE, "SELECT * FROM observations ORDER BY seq", "-o", "json"),
    "objects": ("sql", TRACE, "SELECT * FROM objects ORDER BY ALL", "-o", "json"),
    "verdicts": ("sql", TRACE, "SELECT * FROM verdicts ORDER BY ALL", "-o", "json"),
    "attempts": ("sql", TRACE, "SELECT * FROM attempts ORDER BY ALL", "-o", "json"),
    "jsonl": ("export", TRACE, "--format", "jsonl"),
    "chrome": ("export", TRACE, "--format", "chrome"),
    "report": ("report", TRACE, "-o", "report.html"),
    "redact": ("redact", TRACE, "--check"),
    "combine": (
        *("import", "audit", str(TRACES / NAME / "audit.jsonl.zst"), "--with", TRACE),
        *("-o", "combined"),
    ),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two folders with a trace of one name: wide, and compacted."""
    found = {}
    for form in ("wide", "narrow"):
        found[form] = tmp_path_factory.mktemp(form)
        import_log(TRACES / NAME / "watch.jsonl.zst", found[form] / TRACE, NAME)
    compact_in_place(found["narrow"] / TRACE)
    files = TraceReader(found["narrow"] / TRACE)._snapshot.files
    assert files
    assert all(file.is_narrow for file in files)
    return found


def answer(folder: Path, words: tuple[str, ...]) -> tuple[object, ...]:
    """What a verb says in that folder, and what it leaves there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, out, err = run(*words)
        left = Path("report.html").read_bytes() if words[0] == "report" else b""
        rows = TraceReader("combined").table().to_pylist() if words[0] == "import" else []
    return code, out, err, left, rows


@pytest.mark.parametrize("verb", ASKED)
def test_a_verb_says_the_same_of_both(places: dict[str, Path], verb: str) -> None:
    said = answer(places["wide"], ASKED[verb])
    assert said[0] in (0, 1), said[2]
    assert any(said[1:]), "nothing was said"
    assert answer(places["narrow"], ASKED[verb]) == said


@pytest.mark.full
def test_explaining_a_job_says_the_same_of_both(places: dict[str, Path]) -> None:
    keys = TraceReader(places["wide"] / TRACE).table(("namespace", "job")).to_pylist()
    namespace, job = next((r["namespace"], r["job"]) for r in keys if r["job"] is not None)
    words = ("explain", TRACE, job, "-n", namespace)
    said = answer(places["wide"], words)
    assert said[0] in (0, 1), said[2]
    assert job in str(said[1])
    assert answer(places["narrow"], words) == said


def test_info_differs_in_size_alone(places: dict[str, Path]) -> None:
    wide, narrow = (run("info", os.fspath(places[form] / TRACE))[1] for form in ("wide", "narrow"))
    differing = [
        a.split()[0] for a, b in zip(wide.splitlines(), narrow.splitlines(), strict=True) if a != b
    ]
    assert differing == ["Trace", "Size"]
