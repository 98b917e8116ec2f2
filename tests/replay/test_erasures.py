"""A record of less says less, never something false: real traces, cut at random, have no divergence.

A later start, an earlier end, gaps, no Events: `python -m bench fidelity` makes many such cuts of
fresh records; here a few of the shipped ones, the same in each run.
"""

from __future__ import annotations

import random
from pathlib import Path

import orjson
import pytest

from tests.support.erasures import random_cut
from tests.support.traces import ALL, TRACES, import_log, json_lines
from tracekit.judge.judged import Judge, resolve_era

#: Of the larger ones `python -m bench fidelity --judge` makes as many cuts as one has time for.
SIZE_MAX = 100_000
SMALL = [name for name in ALL if (TRACES / name / "watch.jsonl.zst").stat().st_size < SIZE_MAX]
CUTS = 1
CUTS_MAX = 5


@pytest.mark.parametrize("name", SMALL)
def test_a_cut_record_has_no_divergence(name: str, tmp_path: Path) -> None:
    rows = list(json_lines(TRACES / name / "watch.jsonl.zst"))
    chance = random.Random(f"erasures of {name}")
    judged = number = 0
    # A cut may leave nothing to judge; then another is made.
    while number < CUTS or (judged == 0 and number < CUTS_MAX):
        number += 1
        what, kept = random_cut(rows, chance)
        log = tmp_path / "watch.jsonl"
        log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in kept))
        reader = import_log(log, tmp_path / str(number), name)
        report = Judge(reader, resolve_era(reader, None, None)).report()
        told = [(j.object, j.action, j.verdict.value, j.why) for j in report.divergences]
        assert told == [], what
        judged += len(report.judgements)
    assert judged > 0
