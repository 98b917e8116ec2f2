"""What a CronJob's writes met is found in one walk, and is what comparing all with all finds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.operations import growth
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.cron_answers import Answers
from tracekit.check.diff.cron_pending import Wanted
from tracekit.check.replay.history import Write, WriteKind
from tracekit.check.replay.key_facts import INFORMER_LAG_NS

_KINDS = (WriteKind.JOB_CREATE, WriteKind.STATUS_UPDATE)
_NOTHING: Any = None  # subjects are "status" of all these


def _want(kind: WriteKind, since_ns: int, certain_ns: int, until_ns: int | None) -> Wanted:
    return Wanted(kind, _NOTHING, since_ns, certain_ns, since_ns < 0, None, _NOTHING, 1, until_ns)


def _write(kind: WriteKind, at_ns: int, index: int) -> Write:
    return Write(kind, index, at_ns, at_ns, "uid", index=index)


def _met(want: Wanted, write: Write) -> bool:
    late = want.until_ns is not None and write.recv_ns > want.until_ns + INFORMER_LAG_NS
    return write.kind is want.kind and write.recv_ns >= want.since_ns - INFORMER_LAG_NS and not late


@pytest.mark.parametrize("seed", range(50))
def test_each_sync_has_the_want_that_comparing_all_finds(seed: int) -> None:
    draw = random.Random(seed)
    wants = []
    for _ in range(draw.randrange(12)):
        since_s = draw.randrange(60)
        until_s = draw.choice([None, since_s + draw.randrange(20)])
        wants.append(
            _want(
                draw.choice(_KINDS),
                since_s * NS_PER_S,
                (since_s + draw.randrange(5)) * NS_PER_S,
                None if until_s is None else until_s * NS_PER_S,
            )
        )
    writes = [
        _write(draw.choice(_KINDS), draw.randrange(70) * NS_PER_S, index)
        for index in range(draw.randrange(12))
    ]
    answers = Answers(wants, writes)
    for size in (1, 2, 3):
        for at in range(len(writes)):
            some = writes[at : at + size]
            asked = [w for w in wants if any(_met(w, write) for write in some)]
            assert answers.met_by(some) is min(asked, key=lambda w: w.certain_ns, default=None)
    for want in wants:
        assert answers.is_met(want) is any(_met(want, write) for write in writes)


@pytest.mark.parametrize("open_end", [False, True])
def test_a_month_of_runs_is_walked_once(open_end: bool) -> None:
    def runs(count: int):
        wants, writes = [], []
        if open_end:
            wants.append(_want(_KINDS[1], 0, 0, None))
        for run in range(count):
            at_ns = run * 60 * NS_PER_S
            wants.append(_want(_KINDS[1], at_ns, at_ns, at_ns + NS_PER_S))
            writes.append(_write(_KINDS[1], at_ns, run))

        def ask() -> None:
            answers = Answers(wants, writes)
            for write in writes:
                answers.met_by([write])
            for want in wants:
                answers.is_met(want)

        return ask

    assert growth(runs, 50) < 1.3
