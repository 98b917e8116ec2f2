"""A record that does not say its version: what hangs on which of those that fit it is unknowable.

It is judged by the newest version that its objects fit. Where that finds a divergence, the others
that fit are asked: one by which the object has none, and no other object has one either, may as
well be the version of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from tracekit.check.verdict import Judgement, Reason, Verdict
from tracekit.judge.sink import Sink
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

#: So many other rules are asked, the newest first: each that explains a Job alone judges all of
#: the record once more.
_OTHERS_MAX: Final = 16


class Place(NamedTuple):
    """An object, and the controller whose rules it follows."""

    controller: str
    kind: str
    namespace: str
    name: str


def place_of(judgement: Judgement) -> Place:
    """Where a judgement is."""
    where = judgement.object
    return Place(judgement.controller, where.kind, where.namespace, where.name)


def others_that_fit(era: Era) -> Iterator[Era]:
    """Those of the other eras that a record fits whose rules differ, the newest first."""
    seen = {_rules(era)}
    for other in era.also_fits:
        rules = _rules(other)
        if rules not in seen:
            seen.add(rules)
            yield other
            if len(seen) > _OTHERS_MAX:
                return


def _rules(era: Era) -> tuple[JobRules, CronJobEra]:
    return JobRules.of(era), CronJobEra.of(era)


def in_doubt(
    places: Collection[Place],
    era: Era,
    divergent: Callable[[Era, Collection[Place]], Collection[Place] | None],
) -> dict[Place, Era]:
    """Of the places with a divergence those that have none by another era, and by which.

    `divergent` gives the places that have one by an era, None where it explains none of those that
    are left. An era by which other places have one, too, is not that of the record.
    """
    found: dict[Place, Era] = {}
    others = others_that_fit(era)
    while len(found) < len(places) and (other := next(others, None)) is not None:
        theirs = divergent(other, [place for place in places if place not in found])
        if theirs is not None and frozenset(places).issuperset(theirs):
            found = {place: other for place in places if place not in theirs} | found
    return found


def doubted(judgement: Judgement, era: Era, other: Era | None) -> Judgement:
    """The judgement, if no other version of the record is as good an explanation."""
    if other is None:
        return judgement
    return replace(
        judgement,
        verdict=Verdict.UNKNOWABLE,
        reason=Reason.VERSION_UNSAID,
        fields=(),
        why=f"the record does not say its version, and {other.version} fits it as well, by whose "
        f"rules this is no divergence; by those of {era.version}: {judgement.why}",
    )


class HeldBack:
    """Passes judgements on but for the divergences, which wait until all are known."""

    def __init__(self, sink: Sink) -> None:
        """`sink`: where the others go."""
        self._sink = sink
        #: Whether the record as a whole contradicts the rules.
        self.is_misfit = False
        #: Each with what was taken in its place before, if anything.
        self._held: list[tuple[Judgement | None, Judgement]] = []

    @property
    def places(self) -> frozenset[Place]:
        """Where there is a divergence."""
        return frozenset(place_of(judgement) for _, judgement in self._held)

    def release(self, become: Callable[[Judgement], Judgement]) -> None:
        """Pass on what waits, as what it has become."""
        for before, after in self._held:
            if before is None:
                self._sink.take(become(after))
            else:
                self._sink.change(before, become(after))
        self._held = []

    def misfit(self, why: str) -> None:
        """Pass it on."""
        self.is_misfit = True
        self._sink.misfit(why)

    def job(self, job: tuple[str, str]) -> None:
        """Pass it on."""
        self._sink.job(job)

    def take(self, judgement: Judgement) -> None:
        """Hold a divergence back, pass anything else on."""
        if judgement.divergent:
            self._held.append((None, judgement))
        else:
            self._sink.take(judgement)

    def take_rows(self, rows: pa.Table) -> None:
        """Pass rows on: there is no divergence among them."""
        self._sink.take_rows(rows)

    def again(self, jobs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Let go of what will come again."""
        wanted = self._sink.again(jobs)
        self._held = [
            (before, after)
            for before, after in self._held
            if (after.object.namespace, after.object.name) not in wanted
        ]
        return wanted

    def change(self, before: Judgement, after: Judgement) -> None:
        """The same for a judgement that comes again; one that was held back was not passed on."""
        if before.divergent:
            self.take(after)
        elif after.divergent:
            self._held.append((before, after))
        else:
            self._sink.change(before, after)
