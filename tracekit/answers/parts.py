"""The facts of a trace in parts, so that no more of it is held than is looked at. Pure.

A part has all objects of some namespaces: what is decided about one of them is decided there. What
only all of them tell (how many waited at a time, who led, what cost most) is told beside the parts,
or gathered from one after the other by the families of rules (`RuleGroup`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from tracekit.answers.model import Case
from tracekit.answers.trace_model import Facts
from tracekit.check.verdict import Judgement


class Parts(Protocol):
    """A trace as facts in parts, as often as somebody goes through them."""

    @property
    def whole(self) -> Facts:
        """What is known of all of it; its objects may be left out."""

    def __iter__(self) -> Iterator[Facts]:
        """The parts, each with what is known of all."""


class OnePart:
    """Facts that are held as a whole."""

    def __init__(self, facts: Facts) -> None:
        self.whole = facts

    def __iter__(self) -> Iterator[Facts]:
        """All at once."""
        yield self.whole


class Accepting:
    """The same parts without the judgements that somebody accepts."""

    def __init__(self, parts: Parts, accepted: Callable[[Judgement], bool]) -> None:
        self._parts = parts
        self._accepted = accepted

    @property
    def whole(self) -> Facts:
        """What is known of all of it."""
        return self._but_for(self._parts.whole)

    def __iter__(self) -> Iterator[Facts]:
        """The parts, each with what is known of all."""
        return map(self._but_for, self._parts)

    def _but_for(self, facts: Facts) -> Facts:
        return replace(facts, judgements=facts.judgements.but_for(self._accepted))


class RuleGroup:
    """Rules that belong together, asked about one trace, part by part."""

    def of_part(self, facts: Facts) -> Iterator[Case]:
        """The cases about the objects of a part."""
        raise NotImplementedError

    def of_whole(self, whole: Facts) -> Iterator[Case]:
        """The cases that all parts tell together, once all were asked."""
        del whole
        return iter(())

    def settled(self, cases: list[Case]) -> list[Case]:
        """The cases of all parts, as all of them together make them."""
        return cases


class Plain(RuleGroup):
    """Rules of which each looks at the objects of one namespace."""

    def __init__(self, find: Callable[[Facts], Iterator[Case]]) -> None:
        self._find = find

    def of_part(self, facts: Facts) -> Iterator[Case]:
        """The cases about the objects of a part."""
        return self._find(facts)
