"""A why is true of the record: it tells of no time that the record does not have."""

from __future__ import annotations

import random

import pytest

from tests.lies import plant
from tests.replay.test_planted_lies import record
from tests.support.judged_rows import judge_of

PLACE = "v1.23.17-all"


@pytest.mark.full
def test_nobody_waited_for_minutes_in_a_record_of_seconds() -> None:
    """No cut explains this lie, and the attempts at it are made in the far future, too."""
    lied = plant("pod-extra", record(PLACE), random.Random(1))
    assert lied is not None
    rows, lie = lied
    with judge_of(rows, PLACE) as judge:
        judgements = judge.about("Job", *lie.key.split("/"))
    assert any(judgement.divergent for judgement in judgements)
    assert not [j.why for j in judgements if "5 minutes" in j.why]
