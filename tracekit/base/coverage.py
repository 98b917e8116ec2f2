"""What a record covers: of which objects, at what time, absence would have been seen.

Absence is evidence only where somebody looked. A list is one look at its scope; a watch goes on
from the end of a list. Before a stream's first list has ended nothing of it is covered, nor after
the last look of a stream that is not watched, and what a gap leaves is a hole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Scope(NamedTuple):
    """What a list or watch asked for.

    `namespaces` is None for all of them; an empty set is a scope that nobody knows, which covers
    nothing: who asked for one namespace, or for the objects with a label, has not seen the others.
    """

    namespaces: frozenset[str] | None
    #: A label or field selector: what it leaves out is not covered, and nobody knows what that is.
    selector: str | None = None

    def covers(self, namespace: str | None) -> bool:
        """Whether an object of that namespace would have been listed; None: any object at all."""
        if self.selector is not None:
            return False
        return self.namespaces is None or (namespace is not None and namespace in self.namespaces)

    def __str__(self) -> str:
        """The scope in words."""
        if self.namespaces is None:
            words = "all namespaces"
        elif self.namespaces:
            noun = "namespace" if len(self.namespaces) == 1 else "namespaces"
            words = f"{noun} {', '.join(sorted(self.namespaces))}"
        else:
            words = "an unknown scope"
        return words if self.selector is None else f"{words}, {self.selector} only"


ALL = Scope(None)
UNKNOWN = Scope(frozenset())


def scope_of(value: object) -> Scope | None:
    """The scope that a document's `scope` names: `all`, a namespace, or a list of these.

    None if there is no such field, or something else stands there: then nobody says it.
    """
    if value == "all":
        return ALL
    if isinstance(value, str) and value:
        return Scope(frozenset((value,)))
    if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
        return Scope(frozenset(value))
    return None


class Span(NamedTuple):
    """A time, in Unix ns, in which a stream was watched; a look has one instant."""

    stream: str
    scope: Scope
    from_ns: int
    until_ns: int

    @property
    def is_look(self) -> bool:
        """Whether it is one look only."""
        return self.from_ns == self.until_ns


@dataclass(frozen=True, slots=True)
class Coverage:
    """All that a record covers. Times are Unix ns by the recorder's clock."""

    spans: tuple[Span, ...] = ()

    def covers(self, stream: str, namespace: str | None, from_ns: int, until_ns: int) -> bool:
        """Whether an object could not have been there in all this time without being seen."""
        return not any(self.holes(stream, namespace, from_ns, until_ns))

    def last_look(self, stream: str, namespace: str | None, before_ns: int) -> int | None:
        """The last time, not after that one, at which absence would have been seen."""
        return max(
            (
                min(span.until_ns, before_ns)
                for span in self._of(stream, namespace)
                if span.from_ns <= before_ns
            ),
            default=None,
        )

    def holes(
        self, stream: str, namespace: str | None, from_ns: int, until_ns: int
    ) -> Iterator[tuple[int, int]]:
        """The times between two others of which nothing follows from absence, in order."""
        at_ns, touched = from_ns, False
        for span in sorted(self._of(stream, namespace), key=lambda span: span.from_ns):
            if span.until_ns < at_ns or span.from_ns > until_ns:
                continue
            if span.from_ns > at_ns:
                yield at_ns, span.from_ns
            at_ns, touched = max(at_ns, span.until_ns), True
        if at_ns < until_ns or not touched:
            yield at_ns, until_ns

    def _of(self, stream: str, namespace: str | None) -> Iterator[Span]:
        return (s for s in self.spans if s.stream == stream and s.scope.covers(namespace))


@dataclass(slots=True)
class CoverageBuilder:
    """Makes the coverage of a record out of its lists' ends, its watches and its gaps, in order."""

    _open: dict[tuple[str, Scope], tuple[int, bool]] = field(default_factory=dict)
    _spans: list[Span] = field(default_factory=list)

    def listed(self, stream: str, scope: Scope, at_ns: int) -> None:
        """A list of that scope has ended: what it did not hold is not there."""
        before = self._open.get((stream, scope))
        if before is None:
            self._open[stream, scope] = (at_ns, False)
        elif not before[1]:  # a look, and another: nothing is known of the time between
            self._spans.append(Span(stream, scope, before[0], before[0]))
            self._open[stream, scope] = (at_ns, False)

    def watched(self, stream: str, scope: Scope) -> None:
        """The stream is watched from the end of its list on."""
        before = self._open.get((stream, scope))
        if before is not None:
            self._open[stream, scope] = (before[0], True)

    def lost(self, stream: str, at_ns: int) -> None:
        """The stream was last seen at that time: a gap begins."""
        for key in [key for key in self._open if key[0] == stream]:
            self._close(key, at_ns)

    def close(self, end_ns: int) -> Coverage:
        """What the record covers, which ends at that time."""
        for key in list(self._open):
            self._close(key, end_ns)
        return Coverage(tuple(sorted(self._spans, key=_place)))

    def _close(self, key: tuple[str, Scope], at_ns: int) -> None:
        from_ns, watched = self._open.pop(key)
        until_ns = max(from_ns, at_ns) if watched else from_ns
        self._spans.append(Span(*key, from_ns, until_ns))


def _place(span: Span) -> tuple[str, int, int]:
    return span.stream, span.from_ns, span.until_ns
