"""What the controller remembers across a time that only the recorder did not see."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.support.erasures import with_gap
from tests.support.traces import import_log, json_lines
from tracekit.judging.judged import Judge, resolve_era

RECORD = Path(__file__).parents[1] / "data" / "replay" / "finalizer-given-back-after-it-counted"
S = 10**9


def test_a_finalizer_whose_removal_was_sent_before_is_still_waited_for(tmp_path: Path) -> None:
    """No sync counts a pod whose finalizer it waits for, which another adoption gave back."""
    rows = list(json_lines(RECORD / "watch.jsonl.zst"))
    from_ns = 1795408211 * S
    log = tmp_path / "watch.jsonl"
    cut = with_gap(rows, from_ns, from_ns + 2 * S)
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in cut))
    reader = import_log(log, tmp_path / "trace", RECORD)
    report = Judge(reader, resolve_era(reader, None, None)).report()
    assert report.divergences == []
    assert any(j.object.name == "c0003-idx" for j in report.judgements)
