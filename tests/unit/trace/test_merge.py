"""Two recorders of one cluster: one real record, cut into two that each lack something."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from click.testing import CliRunner

from tests.support.erasures import early_end, late_start, with_gap
from tests.support.traces import ROOT, TRACES, import_log, json_lines
from tracekit.base.errors import TracekitError
from tracekit.cli.main import cli
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.reading.reader import TraceReader

NAME = "v1.36.3-all"
S = 10**9
STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")

Row = dict[str, Any]


@cache
def rows() -> list[Row]:
    return list(json_lines(TRACES / NAME / "watch.jsonl.zst"))


def moment(share: float) -> int:
    first, last = rows()[0]["recv"], rows()[-1]["recv"]
    return int(first + share * (last - first))


def later(record: Iterable[Row], by_ns: int) -> list[Row]:
    return [{**row, "recv": row["recv"] + by_ns} for row in record]


def trace(record: Iterable[Row], folder: Path) -> str:
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_suffix(".jsonl")
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in record))
    return str(import_log(log, folder, NAME).path)


def merge(*words: str) -> str:
    result = CliRunner().invoke(
        cli, ["merge", *words], catch_exceptions=False, standalone_mode=False
    )
    assert result.return_value == 0
    return result.output


def states(reader: TraceReader) -> Counter[Any]:
    """Each state that is told, once however it came; what was found by comparing lists apart."""
    names = ("stream", "uid", "rv", "type", "synthesized", "raw")
    found: Counter[Any] = Counter()
    for row in reader.table(names, types=STATES).to_pylist():
        key = (row["stream"], row["uid"], row["rv"], row["type"] == "DELETED", row["synthesized"])
        found[key] = 1
    return found


def verdicts(reader: TraceReader) -> Counter[Any]:
    report = Judge(reader, resolve_era(reader, None, None)).report()
    return Counter((j.controller, j.action, j.verdict.value) for j in report.judgements)


def divergences(reader: TraceReader) -> list[Any]:
    return Judge(reader, resolve_era(reader, None, None)).report().divergences


def test_two_records_fill_each_others_gaps(tmp_path: Path) -> None:
    one = trace(with_gap(rows(), moment(0.2), moment(0.4)), tmp_path / "one")
    two = trace(later(with_gap(rows(), moment(0.5), moment(0.7)), 40_000_000), tmp_path / "two")
    output = merge(one, two, "-o", str(tmp_path / "both"))
    assert "0 gaps left of" in output
    whole = TraceReader(trace(rows(), tmp_path / "whole"))
    both = TraceReader(tmp_path / "both")
    assert states(both) == states(whole)
    assert both.gaps() == []
    assert verdicts(both) == verdicts(whole)
    # The earlier receipt counts: the first recorder's, but where it was not looking.
    names = ("stream", "uid", "rv", "type", "recv_ns")
    was = {
        (r["stream"], r["uid"], r["rv"], r["type"]): r["recv_ns"]
        for r in whole.table(names, types=STATES).to_pylist()
    }
    for row in both.table(names, types=("ADDED", "MODIFIED", "DELETED")).to_pylist():
        own = was[row["stream"], row["uid"], row["rv"], row["type"]]
        hidden = moment(0.2) <= own < moment(0.4)
        assert row["recv_ns"] == own + (40_000_000 if hidden else 0)


def test_where_both_had_a_gap_one_remains(tmp_path: Path) -> None:
    one = trace(with_gap(rows(), moment(0.3), moment(0.5)), tmp_path / "one")
    two = trace(later(with_gap(rows(), moment(0.4), moment(0.6)), 1_000_000), tmp_path / "two")
    merge(one, two, "-o", str(tmp_path / "both"))
    both = TraceReader(tmp_path / "both")
    gaps = both.gaps()
    assert gaps
    for gap in gaps:
        # Quiet streams are known less far: by the last that was received of them.
        assert gap.from_ns is not None
        assert gap.until_ns is not None
        assert gap.from_ns < moment(0.4) + S
        assert moment(0.4) <= gap.until_ns <= moment(0.5) + 1_000_000
        assert gap.last_rv is not None
        assert gap.next_rv is not None
        assert gap.last_rv < gap.next_rv
    only = trace(with_gap(rows(), moment(0.4), moment(0.5)), tmp_path / "only")
    assert states(both) == states(TraceReader(only))
    assert divergences(both) == []


def test_a_recorder_that_came_later_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    one = trace(early_end(rows(), moment(0.6)), tmp_path / "one")
    two = trace(late_start(rows(), moment(0.3)), tmp_path / "two")
    merge(two, one, "-o", str(tmp_path / "both"))
    both = TraceReader(tmp_path / "both")
    whole = TraceReader(trace(rows(), tmp_path / "whole"))
    assert states(both) == states(whole)
    assert both.gaps() == []
    assert verdicts(both) == verdicts(whole)


def test_records_that_do_not_meet_leave_a_gap_and_tell_what_vanished(tmp_path: Path) -> None:
    one = trace(early_end(rows(), moment(0.3)), tmp_path / "one")
    two = trace(late_start(rows(), moment(0.5)), tmp_path / "two")
    merge(one, two, "-o", str(tmp_path / "both"))
    both = TraceReader(tmp_path / "both")
    cut = TraceReader(trace(with_gap(rows(), moment(0.3), moment(0.5)), tmp_path / "cut"))
    assert states(both) == states(cut)
    assert {g.stream for g in both.gaps()} <= {g.stream for g in cut.gaps()}
    assert {"pods", "jobs"} <= {g.stream for g in both.gaps()}
    assert divergences(both) == []


def test_clocks_that_differ_are_put_right_and_told(tmp_path: Path) -> None:
    one = trace(with_gap(rows(), moment(0.2), moment(0.4)), tmp_path / "one")
    two = trace(later(rows(), 90 * S), tmp_path / "two")
    output = merge(one, two, "-o", str(tmp_path / "both"))
    assert f"the clock of {two} is 90.0 s ahead of the first one's" in output
    both = TraceReader(tmp_path / "both")
    whole = TraceReader(trace(rows(), tmp_path / "whole"))
    last = max(s.last_ns or 0 for s in whole.streams())
    assert max(s.last_ns or 0 for s in both.streams()) == last
    assert verdicts(both) == verdicts(whole)


def test_the_same_traces_give_the_same_bytes(tmp_path: Path) -> None:
    one = trace(early_end(rows(), moment(0.2)), tmp_path / "one")
    two = trace(early_end(later(rows(), 3_000_000), moment(0.15)), tmp_path / "two")
    contents = []
    for name in ("a", "b"):
        merge(one, two, "-o", str(tmp_path / name))
        files = sorted(p for p in (tmp_path / name).rglob("*") if p.is_file())
        contents.append([p.read_bytes() for p in files])
    assert contents[0] == contents[1]


def _looked_away(chance: random.Random, record: list[Row]) -> list[Row]:
    """What is left of a record to one who looked away at random times, came late or left early."""
    first, last = record[0]["recv"], record[-1]["recv"]
    for _ in range(chance.randrange(4)):
        at_ns = chance.randrange(first, last)
        long_ns = int(chance.choice((0.05, 1, 5, 20)) * S)
        record = with_gap(record, at_ns, min(last, at_ns + long_ns))
    if not chance.randrange(3):
        record = late_start(record, first + (last - first) // 5)
    if not chance.randrange(3):
        record = early_end(record, last - (last - first) // 5)
    return record


def _watched(reader: TraceReader) -> set[Any]:
    """The states that a watch brought: stream, uid, revision, and whether it is the end."""
    table = reader.table(("stream", "uid", "rv", "type", "synthesized"), types=STATES[1:])
    return {
        (row["stream"], row["uid"], row["rv"], row["type"] == "DELETED")
        for row in table.to_pylist()
        if not row["synthesized"]
    }


@pytest.mark.parametrize("seed", range(8))
def test_what_either_saw_is_there_and_only_what_neither_saw_is_a_gap(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    record = early_end(rows(), moment(0.3))
    one = TraceReader(trace(_looked_away(chance, record), tmp_path / "one"))
    delay_ns = chance.randrange(-20_000_000, 20_000_000)
    two = TraceReader(trace(later(_looked_away(chance, record), delay_ns), tmp_path / "two"))
    merge(str(one.path), str(two.path), "-o", str(tmp_path / "both"))
    both = TraceReader(tmp_path / "both")
    whole = TraceReader(trace(record, tmp_path / "whole"))
    seen = _watched(one) | _watched(two)
    assert _watched(both) == seen
    told = states(both)
    assert max(told.values()) == 1
    gaps = [(gap.stream, gap.last_rv or 0, gap.next_rv or 1 << 62) for gap in both.gaps()]
    for stream, after, until in gaps:
        assert not [s for s in seen if s[0] == stream and after < s[2] < until]
    began = {
        name: min(r["rv"] for r in both.table(("stream", "rv"), streams=[name]).to_pylist() if r["rv"])
        for name in {s[0] for s in seen}
    }  # fmt: skip
    last = {s[0]: s[2] for s in sorted(seen, key=lambda s: s[2])}
    for stream, uid, rv, end in _watched(whole) - seen:
        listed = told[stream, uid, rv, end, False]
        inside = any(s == stream and after < rv <= until for s, after, until in gaps)
        outside = rv <= began.get(stream, rv) or rv > last.get(stream, 0)
        assert listed or inside or outside, (stream, uid, rv)


def test_one_that_is_killed_leaves_nothing_and_the_next_one_is_whole(tmp_path: Path) -> None:
    one = trace(with_gap(rows(), moment(0.2), moment(0.4)), tmp_path / "one")
    two = trace(with_gap(rows(), moment(0.5), moment(0.7)), tmp_path / "two")
    merge(one, two, "-o", str(tmp_path / "wanted"))
    both, half = tmp_path / "both", tmp_path / ".both.merging"
    command = [sys.executable, "-m", "tracekit", "merge", one, two, "-o", str(both)]
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        while not list(half.glob("trace/log/*")) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(number)
        assert process.wait() == -number
        assert not both.exists()
    merge(one, two, "-o", str(both))
    assert not half.exists()
    assert states(TraceReader(both)) == states(TraceReader(tmp_path / "wanted"))


def other_cluster(record: Iterable[Row]) -> list[Row]:
    text = orjson.dumps(list(record)).replace(b'"uid":"', b'"uid":"other-')
    found: list[Row] = orjson.loads(text)
    return found


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    short = early_end(rows(), moment(0.1))
    one = trace(short, tmp_path / "one")
    two = trace(other_cluster(short), tmp_path / "two")
    with pytest.raises(TracekitError, match="of two clusters"):
        merge(one, two, "-o", str(tmp_path / "both"))
    assert not (tmp_path / "both").exists()


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    one = trace(early_end(rows(), moment(0.1)), tmp_path / "one")
    with pytest.raises(TracekitError, match="two traces or more"):
        merge(one, "-o", str(tmp_path / "both"))
    with pytest.raises(TracekitError, match="exists"):
        merge(one, one, "-o", one)
    with pytest.raises(TracekitError, match="is not a trace"):
        merge(one, str(tmp_path / "nothing"), "-o", str(tmp_path / "both"))
    with pytest.raises(click.ClickException, match="output"):
        merge(one, one)
