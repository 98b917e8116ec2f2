"""The invariant: after any schedule of faults, what was recorded and what the gaps cover is what was served."""

from __future__ import annotations

import os

import pytest

from tests.record.harness import run_schedule, violations

#: `TRACEKIT_FAULT_SCHEDULES=500` runs the number that a release is judged by.
SCHEDULES = int(os.environ.get("TRACEKIT_FAULT_SCHEDULES", "60"))
FIRST_SEED = int(os.environ.get("TRACEKIT_FAULT_FIRST_SEED", "1"))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SCHEDULES))
def test_nothing_is_lost_silently(tmp_path, seed: int) -> None:
    cluster, faults, watchers, sink = run_schedule(tmp_path, seed)
    for watcher in watchers:
        assert violations(cluster, sink.items, watcher.spec.resource) == [], (seed, faults.done)
