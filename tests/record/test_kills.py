"""kill -9 and `--append` (a few; `python -m tests.record.kills` does a hundred)."""

from __future__ import annotations

import os
from pathlib import Path

from tests.record.kills import run_kills

KILLS = int(os.environ.get("TRACEKIT_KILLS", "3"))


def test_kills_lose_nothing_that_was_flushed(tmp_path: Path) -> None:
    result = run_kills(tmp_path, kills=KILLS, seed=7, compact_chance=0.5)
    assert (result.lost_rows, result.unreadable, result.violations) == (0, [], [])
