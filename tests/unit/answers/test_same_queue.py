"""Which other versions serve a Job at the very same times."""

from __future__ import annotations

import pytest

from tracekit.answers.whatif.answers import Prover
from tracekit.check.replay.run_context import RunContext
from tracekit.versions.era import Era


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("v1.34.0", True),
        ("v1.37.1", True),  # an orphan's finalizer is tried again: its Job is done with
        ("v1.33.0", False),  # what a deletion leaves holds the next Job of that name up
    ],
)
def test_a_queue_is_another_only_by_what_serves_jobs(other: str, same: bool):
    prover = Prover(Era.resolve("v1.36.3"), Era.resolve(other), RunContext(0))
    assert prover.same_queue is same
