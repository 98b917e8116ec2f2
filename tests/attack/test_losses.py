"""Files of a trace are gone: a gap in which alone nothing is known, or a refusal; never green."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

import tracekit
from tests.attack.answers import is_refusal, replayed, run
from tests.support.traces import TRACES
from tracekit.base.errors import TraceFormatError
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.format.segments import live_segments
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.watch import WatchImporter
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

NAME = "v1.36.3-all"
SEGMENTS_LOST = (0, 1, 4, 5, 9)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real trace in segments of 200 rows."""
    path = tmp_path_factory.mktemp("whole") / "trace"
    header = TraceHeader(kubernetes_version="v1.36.3")
    importer = WatchImporter(lambda: TraceWriter(path, header, segment_rows=200))
    importer.run([LineSource(str(TRACES / NAME / "watch.jsonl.zst"))])
    return path


def without(whole: Path, target: Path, *places: int) -> Path:
    shutil.copytree(whole, target)
    segments = live_segments(target)
    for place in places:
        segments[place].path.unlink()
    return target


def judged(trace: Path, version: str | None = None):
    reader = TraceReader(trace)
    return Judge(reader, resolve_era(reader, version, None, search_all=True)).report()


@pytest.fixture(scope="module")
def clean(whole: Path):
    return judged(whole)


@pytest.mark.parametrize("place", SEGMENTS_LOST)
def test_a_lost_segment_invents_nothing_and_hides_little(whole, clean, tmp_path, place) -> None:
    trace = without(whole, tmp_path / "t", place)
    report = judged(trace, "v1.36.3")
    assert report.divergences == []
    counts = Counter(judgement.verdict for judgement in report.judgements)
    assert counts[Verdict.UNKNOWABLE] > 0
    matches = (Verdict.MATCH, Verdict.MATCH_LAGGED)
    before = sum(judgement.verdict in matches for judgement in clean.judgements)
    assert sum(counts[verdict] for verdict in matches) > 0.8 * before


def test_what_lies_outside_of_the_loss_is_judged_as_before(whole, tmp_path) -> None:
    """By the rules of another release the trace diverges all over; it still does beside a loss."""
    before = judged(whole, "v1.28.15").divergences
    trace = without(whole, tmp_path / "t", 10)
    start = TraceReader(trace).losses[0].first
    reader = TraceReader(whole)
    over = {
        row["uid"]
        for row in reader.table(("uid",), types=["DELETED"], last_seq=start - 1).to_pylist()
    }
    kept = [(j.object, j.action, j.resource_version) for j in before if j.object.uid in over]
    found = {
        (j.object, j.action, j.resource_version) for j in judged(trace, "v1.28.15").divergences
    }
    assert len(kept) > 5
    assert set(kept) <= found


@pytest.mark.full
def test_a_gap_is_said_by_every_verb(whole, tmp_path) -> None:
    trace = without(whole, tmp_path / "t", 9)
    said = "has lost its rows 1800 to 1999"
    code, out, err = replayed(trace)
    assert (code, said in err) == (0, True)
    assert out
    code, out, err = run("info", str(trace), "-o", "json")
    assert (code, said in err) == (0, True)
    assert '"reason": "rows 1800 to 1999 of the trace are lost"' in out
    code, out, err = run(
        "sql", str(trace), "SELECT DISTINCT reason FROM gaps WHERE stream = 'pods'", "-o", "csv"
    )
    assert (code, said in err) == (0, True)
    assert "rows 1800 to 1999 of the trace are lost" in out
    counted = run("sql", str(trace), "SELECT count(*) FROM divergences", "-o", "csv")
    assert counted[1].split()[-1] == "0"
    assert tracekit.open(trace).replay().divergences == []


@pytest.mark.parametrize("places", [(12,), range(7, 13), range(13)])
def test_a_trace_that_has_lost_its_end_is_damaged_and_not_short(whole, tmp_path, places) -> None:
    trace = without(whole, tmp_path / "t", *places)
    answer = replayed(trace)
    assert is_refusal(answer), answer
    assert "has lost" in answer[2]
    assert run("info", str(trace))[0] == 2
    assert run("sql", str(trace), "SELECT count(*) FROM jobs")[0] == 2
    with pytest.raises(TraceFormatError, match="has lost"):
        tracekit.open(trace).replay()
    if len(places) < 13:
        code, out, err = run("replay", str(trace), "--diff", "--around-damage")
        assert (code, "has lost" in err) == (0, True), out


@pytest.mark.parametrize("name", ["log", "manifest.json", "trace.json"])
def test_a_trace_without_one_of_its_parts_is_no_empty_trace(whole, tmp_path, name) -> None:
    trace = Path(shutil.copytree(whole, tmp_path / "t"))
    victim = trace / name
    shutil.rmtree(victim) if victim.is_dir() else victim.unlink()
    assert is_refusal(replayed(trace))
    assert run("info", str(trace))[0] == 2


def test_a_file_of_another_trace_is_not_taken_for_a_lost_one(whole, tmp_path) -> None:
    trace = without(whole, tmp_path / "t")
    other = tmp_path / "other"
    with TraceWriter(other, TraceHeader(), segment_rows=200) as writer:
        for number in range(200):
            writer.append("jobs", "ADDED", number, {"metadata": {"name": f"j{number}"}})
    shutil.copy(live_segments(other)[0].path, live_segments(trace)[0].path)
    answer = replayed(trace)
    assert is_refusal(answer)
    assert "belongs to another trace" in answer[2]


def test_info_verify_compares_everything(whole, tmp_path) -> None:
    assert run("info", str(whole), "--verify") == (
        0,
        f"{whole}: 2,445 rows, {TraceReader(whole).size_bytes:,} bytes, all as they were written\n",
        "",
    )
    trace = without(whole, tmp_path / "t")
    victim = live_segments(trace)[3].path
    content = bytearray(victim.read_bytes())
    content[len(content) // 3] ^= 1
    victim.write_bytes(content)
    answer = run("info", str(trace), "--verify")
    assert is_refusal(answer)
    assert victim.name in answer[2]
    old = TRACES.parent / "tests" / "data" / "formats" / "1" / "trace"
    answer = run("info", str(old), "--verify")
    assert is_refusal(answer)
    assert "cannot be verified" in answer[2]
