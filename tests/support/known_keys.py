"""Keys that were judged before are not judged again, where records differ in one place only.

What is said of a key follows from its history, the rules and what the trace tells of the time in
which it lived, and from nothing else: the rooms that judge are pure (docs/architecture.md). So what
was said is taken again where all three are the same, each row to the byte of its raw text. One
process remembers, for itself: no other code and no other trace can have said it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from unittest import mock

from msgspec.structs import replace

from tracekit.check.diff.alternative_readings import judge_as_known
from tracekit.check.diff.cronjob import CronKeyJudge
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.replay.cron_history import CronHistory
from tracekit.check.replay.history import History, Revision
from tracekit.check.replay.run_context import RunContext
from tracekit.check.replay.search_state import KeyReplay
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.job import JobRules

T = TypeVar("T")
_KEYS_MAX = 4000
#: By the rows of a key: by which rules and in which time it was judged, and what was said.
_known: OrderedDict[Hashable, list[tuple[Any, RunContext, Any]]] = OrderedDict()
_texts: dict[str, str] = {}  # one string for each distinct text


@contextmanager
def judging_known_keys_once(reader: TraceReader) -> Iterator[None]:
    """Until the end of the block keys are judged as keys of this trace, or looked up."""
    columns = (reader.table(("seq", "raw")).column(name).to_pylist() for name in ("seq", "raw"))
    rows = _Rows({seq: _texts.setdefault(raw, raw) for seq, raw in zip(*columns, strict=True)})
    with (
        mock.patch("tracekit.check.diff.trace.judge_as_known", rows.job),
        mock.patch("tracekit.check.diff.cronjob.CronKeyJudge", partial(_CronKey, rows)),
    ):
        yield


class _Rows:
    """The raw texts of a trace, by the number of the row."""

    def __init__(self, texts: dict[int, str]) -> None:
        self._texts = texts

    def job(self, history: History, rules: JobRules, context: RunContext) -> KeyJudgement:
        """`judge_as_known`."""
        if context.shown is not None:  # the second search, which other keys ask for
            return judge_as_known(history, rules, context)
        key = (
            (history.namespace, history.name),
            tuple(self.states(history.jobs)),
            tuple(self.states(history.pods)),
            tuple(replace(event, seq=0) for event in history.events),
            tuple(history.refused),
        )

        def judged() -> tuple[Any, ...]:
            found = judge_as_known(history, rules, context)
            return found.replay.final, found.judgements, found.timing

        final, judgements, timing = said(key, rules, context, judged)
        return KeyJudgement(KeyReplay(history, final, [], []), judgements, timing)

    def states(self, revisions: Iterable[Revision[Any]]) -> Iterator[tuple[Any, ...]]:
        """All that there is of revisions but for the numbers of their rows."""
        for r in revisions:
            yield (
                r.rv, r.recv_ns, r.late_ns, r.came_ns, r.type, r.synthesized, r.actor,
                r.rv_after, r.rv_before, self._texts[r.seq],
            )  # fmt: skip


class _CronKey(CronKeyJudge):
    """Looks up first what was said of a CronJob."""

    def __init__(self, rows: _Rows, *given: Any) -> None:
        super().__init__(*given)
        self._rows = rows

    def run(self) -> None:
        history: CronHistory = self.history
        key = (
            (history.namespace, history.name),
            tuple(self._rows.states(history.cron_jobs)),
            tuple(self._rows.states(history.jobs)),
            tuple(self._rows.states(history.strangers)),
            tuple(replace(event, seq=0) for event in history.events),
            tuple(history.pods_deleted_ns),
        )

        def judged() -> tuple[Any, ...]:
            super(_CronKey, self).run()
            return tuple(self.found), self.timing

        found, self.timing = said(key, self.runner, self.context, judged)
        self.found = list(found)


def said(key: Hashable, rules: Any, context: RunContext, judged: Callable[[], T]) -> T:
    """What was said of a key before by these rules and in this time, or is now."""
    found = _known.setdefault(key, [])
    _known.move_to_end(key)
    for by, during, answer in found:
        if by == rules and during == context:
            return answer
    answer = judged()
    found.append((rules, context, answer))
    if len(_known) > _KEYS_MAX:
        _known.popitem(last=False)
    return answer
