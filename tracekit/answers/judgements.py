"""What replay said of a trace, as the findings ask for it.

Most verdicts say that a write is as the rules have it, and no rule of the findings looks at one of
these. So verdicts are asked for by what they are, or by whom they are about, and whoever holds
them makes a `Judgement` of no other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property

from tracekit.check.verdict import DIVERGENT, Judgement, Verdict

Key = tuple[str, str]


class Judgements(ABC):
    """The verdicts of a trace or of a part of one, by time wherever several are given."""

    #: How the record as a whole contradicts the rules; empty where it does not, or nobody asked.
    misfit: str = ""

    @abstractmethod
    def everything(self) -> Sequence[Judgement]:
        """All of them."""

    @abstractmethod
    def with_verdicts(self, verdicts: Collection[Verdict]) -> Sequence[Judgement]:
        """Those with one of some verdicts."""

    @abstractmethod
    def of_write(self, key: Key, action: str, subject: str) -> Sequence[Judgement]:
        """Those about such a write by an object of that namespace and name, of any kind."""

    @abstractmethod
    def verdict_of(self, key: Key, action: str, subject: str) -> Verdict | None:
        """The verdict of the first of those; None if there is none."""

    @abstractmethod
    def naming(self, keys: Collection[Key]) -> Sequence[Judgement]:
        """At least those whose object, or what was acted upon, has one of these names."""

    @abstractmethod
    def times_of(self, controller: str) -> Sequence[int]:
        """When a controller wrote as its rules have it, Unix ns, ascending."""

    @cached_property
    def divergent(self) -> Sequence[Judgement]:
        """Those that contradict the rules."""
        return self.with_verdicts(DIVERGENT)

    @cached_property
    def unknowable(self) -> Sequence[Judgement]:
        """Those that the record cannot tell."""
        return self.with_verdicts((Verdict.UNKNOWABLE,))

    @cached_property
    def _lagged(self) -> dict[Key, list[Judgement]]:
        found: defaultdict[Key, list[Judgement]] = defaultdict(list)
        for judgement in self.with_verdicts((Verdict.MATCH_LAGGED,)):
            found[judgement.object.namespace, judgement.object.name].append(judgement)
        return dict(found)

    def lagged(self, namespace: str, name: str) -> Sequence[Judgement]:
        """Of an object: the writes that only caches behind the record explain."""
        return self._lagged.get((namespace, name), ())

    def but_for(self, accepted: Callable[[Judgement], bool]) -> Judgements:
        """These without divergences that somebody accepts."""
        if not any(map(accepted, self.divergent)):
            return self
        return Listed(j for j in self.everything() if not (j.divergent and accepted(j)))


class Listed(Judgements):
    """Some that are objects already."""

    def __init__(self, judgements: Iterable[Judgement] = ()) -> None:
        self._all = list(judgements)

    def everything(self) -> Sequence[Judgement]:
        """All of them, in the order in which they were given."""
        return self._all

    def with_verdicts(self, verdicts: Collection[Verdict]) -> Sequence[Judgement]:
        """Those with one of some verdicts."""
        return [judgement for judgement in self._all if judgement.verdict in verdicts]

    @cached_property
    def _by_object(self) -> dict[Key, list[Judgement]]:
        found: defaultdict[Key, list[Judgement]] = defaultdict(list)
        for judgement in self._all:
            found[judgement.object.namespace, judgement.object.name].append(judgement)
        return dict(found)

    def of_write(self, key: Key, action: str, subject: str) -> Sequence[Judgement]:
        """Those about such a write by an object of that namespace and name, of any kind."""
        found = self._by_object.get(key, ())
        return [j for j in found if j.action == action and j.subject == subject]

    def verdict_of(self, key: Key, action: str, subject: str) -> Verdict | None:
        """The verdict of the first of those; None if there is none."""
        return next((j.verdict for j in self.of_write(key, action, subject)), None)

    def naming(self, keys: Collection[Key]) -> Sequence[Judgement]:
        """All of them: whoever asks looks for his own."""
        del keys
        return self._all

    def times_of(self, controller: str) -> Sequence[int]:
        """When a controller wrote as its rules have it, Unix ns, ascending."""
        return sorted(
            j.time_ns
            for j in self._all
            if j.controller == controller and not j.divergent and j.verdict is not Verdict.FOREIGN
        )
