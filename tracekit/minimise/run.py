"""From a trace to the smallest one that still shows what is asked for.

Keys are independent of each other but for what they tell of the process, so the rows of one Job
with all that belongs to it mostly do; where they do not, those whose names the verdict gives come
along, and at last everything. Then the end goes, then whole Jobs, then objects, then revisions, for
as long as the very same divergence or finding is shown and nothing is that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from msgspec.structs import replace

from tracekit.answers.findings.waiting import TERMINATING
from tracekit.answers.model import Family, family_of
from tracekit.base.errors import TracekitError, UsageError
from tracekit.check.diff.lateness import IDLE_NS
from tracekit.check.replay.instants import JudgedNs
from tracekit.check.verdict import Judgement
from tracekit.judge.judged import Judge
from tracekit.minimise.ddmin import ddmin
from tracekit.minimise.limit import OutOfTimeError, TimeLimit
from tracekit.minimise.rows import Key, Parts, rows_about, within
from tracekit.minimise.showing import Showing, Shown, divergence, showing
from tracekit.minimise.target import Target
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.table_reader import read_held
from tracekit.trace.writing.copying import copy_row, rows_of
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.era import Era

#: Words that place a finding; a divergence has more.
_FINDING = 4
LEFT_OUT = "rows that the verdict does not need were left out (tracekit minimise)"


@dataclass(slots=True)
class Minimised:
    """What came of it."""

    target: Shown
    #: The rows that are left, and how many there were.
    table: pa.Table
    rows_before: int
    header: TraceHeader
    #: What else is shown, because it could not be parted from the target.
    others: list[Shown]
    attempts: int
    #: Whether the attempts or the time ran out before nothing smaller was found.
    cut_short: bool = False


@dataclass(slots=True)
class _Search:
    """The smallest set of rows so far, and what was tried."""

    target: Shown
    header: TraceHeader
    era: Era
    parts: Parts
    attempts_max: int
    limit: TimeLimit
    say: Callable[[int, str], None]
    kept: set[int] = field(default_factory=set)
    allowed: frozenset[tuple[str, ...]] = frozenset()
    attempts: int = 0
    cut_short: bool = False
    #: Whether others may change as long as they become fewer.
    parting: bool = False
    _failed: set[frozenset[int]] = field(default_factory=set)

    def passes(self, places: set[int]) -> bool:
        """Whether these rows show the target and nothing new; if so, they are kept."""
        if places == self.kept or frozenset(places) in self._failed:
            return False
        if self.attempts >= self.attempts_max:
            self.cut_short = True
            return False
        self.attempts += 1
        try:
            found = self.limit.run(lambda: self.shown(places))
        except OutOfTimeError:
            self.cut_short = True
            return False
        if found is not None and self._allows(found):
            self.kept, self.allowed = places, found
            return True
        self._failed.add(frozenset(places))
        return False

    def shown(self, places: set[int]) -> frozenset[tuple[str, ...]] | None:
        """What else these rows show; None if they do not show the target."""

        def refuted(divergences: Sequence[Judgement]) -> bool:
            """Whether they decide already that these rows are not what is looked for."""
            shown = [*map(divergence, divergences)]
            others = frozenset(s.place for s in shown if s != self.target)
            if self.target.what and self.target not in shown:
                return True
            return bool(self.kept) and not self._allows(others)

        try:
            found = showing(self.parts.taken(places), self.header, self.era, refuted)
        except TracekitError:
            return None
        if refuted(found.divergences):
            return None
        return other_places(found, self.target)

    def _allows(self, found: frozenset[tuple[str, ...]]) -> bool:
        """Whether so much else may be shown: nothing new, or, while parting, less."""
        return found <= self.allowed or (self.parting and len(found) < len(self.allowed))

    def leave_out(self, units: Sequence[tuple[int, ...]], what: str) -> None:
        """Leave out as many of the units as can be."""
        mine = within(units, self.kept)
        everything = set(self.kept).union(*mine)

        def still(rest: Sequence[tuple[int, ...]]) -> bool:
            return self.passes(everything.difference(*(set(mine) - set(rest))))

        before = len(self.kept)
        ddmin(mine, still)
        if len(self.kept) < before:
            self.say(len(self.kept), what)

    def reduce(self) -> None:
        """Leave out whatever can be, until nothing more can."""
        before = -1
        while before != len(self.kept) and not self.cut_short:
            before = len(self.kept)
            self.cut_end()
            self.leave_out(self.parts.families, "Jobs")
            self.leave_out(self.parts.objects, "objects")
            self.leave_out(self.parts.revisions, "revisions")

    def part(self) -> None:
        """Part the target from other divergences, over steps at which those change."""
        kept, allowed = self.kept, self.allowed
        if not any(len(place) > _FINDING for place in allowed):
            return
        self.parting = True
        self._failed.clear()
        self.reduce()
        self.parting = False
        if not self.allowed <= allowed:  # what is shown now is not of the record's own
            self.kept, self.allowed = kept, allowed

    def cut_end(self) -> None:
        """Let the record end as early as it can."""
        seqs = [place for place in self.parts.order if place in self.kept]
        low, high = 0, len(seqs)
        while high - low > 1:  # the end is where a longer record shows it, and a shorter does not
            middle = (low + high) // 2
            if self.passes(set(seqs[:middle])):
                high = middle
            else:
                low = middle
        self.say(len(self.kept), "the end")


def other_places(found: Showing, target: Shown) -> frozenset[tuple[str, ...]] | None:
    """What is shown beside the target, but for the record itself; None: the target is not."""
    if target not in found.everything:
        return None
    return frozenset(other.place for other in others_of(found, target))


def others_of(found: Showing, target: Shown) -> list[Shown]:
    """What is shown beside the target, but for the record itself.

    What is left out of it is said in its header, and whether a pod is overdue when it ends follows
    from which rows were left out.
    """
    return [
        other
        for other in found.everything
        if other != target
        and family_of(other.rule) is not Family.RECORD
        and other.rule != TERMINATING.id
    ]


def minimise(
    reader: TraceReader,
    judge: Judge,
    target: Target,
    *,
    attempts_max: int,
    limit: TimeLimit,
    say: Callable[[int, str], None],
) -> Minimised:
    """The smallest rows of a trace that show the target and, if that can be, nothing else.

    `judge` is that of the whole trace. `say` gets the number of rows that are left, and what was
    last left out.

    Raises:
        UsageError: Not even all rows show it under its rules.
        OutOfTimeError: The time was over before any rows showed it.
    """
    era = judge.era
    header = _header(reader, judge, target)
    search = _first(reader, era, target, header, attempts_max, limit, say)
    say(len(search.kept), "other Jobs")
    parts = search.parts
    search.reduce()
    search.part()
    table = parts.taken(search.kept)
    found = showing(table, header, era)
    others = others_of(found, target.shown)
    return Minimised(
        target.shown, table, reader.rows, header, others, search.attempts, search.cut_short
    )


def _first(
    reader: TraceReader,
    era: Era,
    target: Target,
    header: TraceHeader,
    attempts_max: int,
    limit: TimeLimit,
    say: Callable[[int, str], None],
) -> _Search:
    """Begin with the fewest Jobs whose rows show the target."""
    for keys in _widening(target):
        table = rows_about(reader, keys)
        # Of what the rest of the trace shows nothing is asked; of these rows all.
        search = _Search(target.shown, header, era, Parts.of(table), attempts_max, limit, say)
        places = set(range(table.num_rows))
        found = limit.run(partial(search.shown, places))
        if found is not None:
            search.kept, search.allowed = places, found
            return search
    raise UsageError(
        f"{target.shown} is shown only by the trace as a whole: no part of it can be left out"
    )


def _widening(target: Target) -> Iterator[set[Key] | None]:
    if target.keys:
        yield set(target.keys)
        named = {key for key in target.mentioned if key not in target.keys}
        if named:
            yield {*target.keys, *named}
    yield None


def _header(reader: TraceReader, judge: Judge, target: Target) -> TraceHeader:
    """The header of the smaller trace: how it was judged, and that it is not all there was."""
    old, era = reader.header, judge.era
    plain = Era.resolve(era.basis).enabled_gates
    gates = {gate.value: gate in era.enabled_gates for gate in plain ^ era.enabled_gates}
    scope = {**old.scope, "left_out": LEFT_OUT}
    if target.quiet:
        known = old.scope.get("quiet") or {}
        quiet = known.get(target.quiet) or _quiet(judge, target.quiet)
        scope["quiet"] = {**known, target.quiet: quiet}
    return replace(
        old,
        kubernetes_version=old.kubernetes_version or str(era.version),
        feature_gates={**old.feature_gates, **dict(sorted(gates.items()))},
        scope=scope,
        tracekit_version=None,
        sealed_from=0,
    )


def _quiet(judge: Judge, controller: str) -> list[list[int]]:
    """Times in which the controller made no call, which only the whole trace can tell."""
    context = judge.run_context
    if not context.whole:
        return []
    calls = judge.calls_ns(controller)
    marks = [calls[0] if calls else context.end_ns, *calls, context.end_ns]
    recorded = [context.clock.recorded_ns(JudgedNs(at_ns)) for at_ns in marks]
    return [[a, b] for a, b in pairwise(recorded) if b - a >= IDLE_NS]


def write(found: Minimised, output: Path) -> int:
    """Write what came of it as a trace of its own; gives its rows."""
    session = {"source": "minimise", "target": str(found.target), "rows_before": found.rows_before}
    with TraceWriter(output, found.header, session=session) as writer:
        for row in rows_of(read_held(found.table, found.header, output)):
            copy_row(writer, row)
        return writer.next_seq
