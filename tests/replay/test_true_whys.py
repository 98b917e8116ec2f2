"""A why is true of the record: it tells of no time that the record does not have."""

from __future__ import annotations

import random

from tests.lies import plant
from tests.replay.test_planted_lies import record, rules
from tests.support.raw_histories import histories_of
from tracekit.diff.judge import judge_key

PLACE = "v1.23.17-all"


def test_nobody_waited_for_minutes_in_a_record_of_seconds() -> None:
    """No cut explains this lie, and the attempts at it are made in the far future, too."""
    lied = plant("pod-extra", record(PLACE), random.Random(1))
    assert lied is not None
    rows, lie = lied
    histories, context = histories_of(rows)
    (history,) = (history for history in histories if history.key == lie.key)
    judged = judge_key(history, rules(PLACE), context)
    assert any(judgement.divergent for judgement in judged.judgements)
    assert not [j.why for j in judged.judgements if "5 minutes" in j.why]
