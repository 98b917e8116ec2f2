"""What a record covers: of which objects, at what time, absence would have been seen.

Absence is evidence only where somebody looked. A list is one look at its scope; a watch goes on
from the end of a list. Before a stream's first list has ended nothing of it is covered, nor after
the last look of a stream that is not watched, and what a gap leaves is a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct, field

from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.spans import Spans


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

    def lists(self, namespace: str | None) -> bool:
        """The same of an object that the selector picks."""
        return self._replace(selector=None).covers(namespace)

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


def asked_in(document: Mapping[str, object]) -> Scope | None:
    """What the bound of a list says that it asked for, None if it does not.

    A recorder that lists namespaces one by one names that of the part.
    """
    found = scope_of(document.get("scope")) or scope_of(document.get("namespace"))
    selector = document.get("selector")
    if found is None or not isinstance(selector, str) or not selector:
        return found
    return found._replace(selector=selector)


def scope_document(scope: Scope) -> dict[str, object]:
    """The scope as it stands in the bound of a list, for `asked_in`."""
    spaces = "all" if scope.namespaces is None else sorted(scope.namespaces)
    found: dict[str, object] = {"scope": spaces}
    return found if scope.selector is None else {**found, "selector": scope.selector}


class Span(NamedTuple):
    """A time, in Unix ns, in which a stream was watched; a look has one instant."""

    stream: str
    scope: Scope
    from_ns: int
    until_ns: int
    #: Whether a watch saw it, if only one whose rows all have one time, as without stamps.
    watched: bool = False

    @property
    def is_look(self) -> bool:
        """Whether it has one instant only: a look, or a watch that tells no other time."""
        return self.from_ns == self.until_ns


class Listed(NamedTuple):
    """A list that has ended: what of its scope it did not hold was not there."""

    scope: Scope
    at_ns: int


class _Seen:
    """The spans that cover one place, to be looked up by time: a record may have many gaps."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = sorted(spans, key=lambda span: span.from_ns)
        self._by_time = Spans((span.from_ns, span.until_ns) for span in self._spans)
        self.first_ns = self._spans[0].from_ns if self._spans else None
        self.watched = any(not span.is_look for span in self._spans)

    def last(self, before_ns: int) -> int | None:
        """The last time, not after that one, within a span or at its end."""
        end_ns = self._by_time.end_by(before_ns)
        return None if end_ns is None else min(end_ns, before_ns)

    def within(self, from_ns: int, until_ns: int) -> Iterator[Span]:
        """The spans that reach into that time, in the order in which they begin."""
        near = (self._spans[place] for place in self._by_time.near(from_ns, until_ns))
        return (span for span in near if span.until_ns >= from_ns)


class Coverage(Struct, frozen=True, dict=True):
    """All that a record covers. Times are Unix ns by the recorder's clock.

    A selector is taken to pick what belongs together, Jobs with their pods: who asks about any
    object at all asks `Scope.covers`.
    """

    spans: tuple[Span, ...] = ()
    #: When the record ends.
    end_ns: int = 0
    #: Why a stream of which nothing was seen has no span.
    unseen: Mapping[str, str] = field(default_factory=dict)
    #: Whether looks have the times at which they were taken; else each was taken then or later.
    timed: bool = True
    #: Streams with lists that tell neither that nor their revision: they are taken to have been
    #: asked for together with whatever else there is.
    undated: frozenset[str] = frozenset()

    def covers(self, stream: str, namespace: str | None, from_ns: int, until_ns: int) -> bool:
        """Whether an object could not have been there in all this time without being seen."""
        return not any(self.holes(stream, namespace, from_ns, until_ns))

    def last_look(self, stream: str, namespace: str | None, before_ns: int) -> int | None:
        """The last time, not after that one, at which absence would have been seen."""
        return self._seen(stream, namespace).last(before_ns)

    def seen_until(self, stream: str, namespace: str | None, end_ns: int) -> int:
        """The last time, until the end, as of which the stream is known; 0 if it never was seen."""
        look = self.last_look(stream, namespace, end_ns)
        return end_ns if look is not None and stream in self.undated else look or 0

    def first_look(self, stream: str, namespace: str | None) -> int | None:
        """The first time at which absence would have been seen."""
        return self._seen(stream, namespace).first_ns

    def sees(self, stream: str, namespace: str | None = None) -> bool:
        """Whether the stream was ever looked at: in that namespace, or None: anywhere."""
        if namespace is None:
            return any(s.stream == stream and s.scope != UNKNOWN for s in self.spans)
        return self.first_look(stream, namespace) is not None

    def has(self, stream: str) -> bool:
        """Whether the stream was ever looked at, wherever that was."""
        return any(span.stream == stream for span in self.spans)

    def watches(self, stream: str, namespace: str | None) -> bool:
        """Whether the stream was ever watched there, and not only looked at."""
        return self._seen(stream, namespace).watched

    def holes(
        self, stream: str, namespace: str | None, from_ns: int, until_ns: int
    ) -> Iterator[tuple[int, int]]:
        """The times between two others of which nothing follows from absence, in order."""
        at_ns, touched = from_ns, False
        for span in self._seen(stream, namespace).within(from_ns, until_ns):
            if span.until_ns < at_ns:
                continue
            if span.from_ns > at_ns:
                yield at_ns, span.from_ns
            at_ns, touched = max(at_ns, span.until_ns), True
        if at_ns < until_ns or not touched:
            yield at_ns, until_ns

    def blind(
        self, streams: Iterable[str], namespace: str | None, from_ns: int, until_ns: int
    ) -> str:
        """Why nothing follows from absence in some of these streams then; empty if it does.

        What lies after the end of the record is nobody's to see, and no hole.
        """
        until_ns = min(until_ns, max(self.end_ns, from_ns))
        for stream in streams:
            if not self.covers(stream, namespace, from_ns, until_ns):
                return self.why(stream, namespace, from_ns)
        return ""

    def why(self, stream: str, namespace: str | None, at_ns: int) -> str:
        """Where and when the stream was not seen around that time, in words."""
        place = "" if namespace is None else f" in namespace {namespace}"
        if stream in self.unseen:
            return f"{stream} were not seen: {self.unseen[stream]}"
        if not self.sees(stream, namespace):
            return f"nobody looked at {stream}{place}"
        last_ns = self.last_look(stream, namespace, at_ns)
        if last_ns is None:
            first_ns = self.first_look(stream, namespace)
            return f"{stream}{place} were first seen at {format_rfc3339(first_ns)}"
        return f"the last look at {stream}{place} was at {format_rfc3339(last_ns)}"

    def holes_of(self, stream: str, scope: Scope) -> Iterator[tuple[int, int]]:
        """The times, from the first look at anything to the end, without a look of that scope."""
        at_ns = min((span.from_ns for span in self.spans), default=self.end_ns)
        for span in self.spans:
            if (span.stream, span.scope) == (stream, scope):
                if span.from_ns > at_ns:
                    yield at_ns, span.from_ns
                at_ns = max(at_ns, span.until_ns)
        if at_ns < self.end_ns:
            yield at_ns, self.end_ns

    def _seen(self, stream: str, namespace: str | None) -> _Seen:
        """What covers a namespace; None: all of them."""
        place = stream, namespace
        if place not in self._places:
            everywhere = self._spans_at.get((stream, None), [])
            here = self._spans_at.get(place, []) if namespace is not None else []
            if here or namespace is None:
                self._places[place] = _Seen([*everywhere, *here])
            else:  # one for all such namespaces: there may be as many as there are gaps
                self._places[place] = self._seen(stream, None)
        return self._places[place]

    @cached_property
    def _places(self) -> dict[tuple[str, str | None], _Seen]:
        return {}

    @cached_property
    def _spans_at(self) -> dict[tuple[str, str | None], list[Span]]:
        """The spans by stream and each namespace that they name; None: those of all."""
        found: dict[tuple[str, str | None], list[Span]] = {}
        for span in self.spans:
            named = span.scope.namespaces
            for namespace in (None,) if named is None else named:
                found.setdefault((span.stream, namespace), []).append(span)
        return found


def spans_of(
    stream: str,
    lists: Iterable[Listed],
    gaps: Iterable[tuple[int, int | None]],
    end_ns: int,
    *,
    watched: bool,
) -> Iterator[Span]:
    """What a stream covers, by its lists, of which those of one scope follow each other.

    `gaps`: from when until when it was not seen; None: it did not come back, but for a list after
    that. `watched`: it goes on from the end of its first list; else each list is one look.
    """
    by_scope: dict[Scope, list[int]] = {}
    for scope, at_ns in lists:
        by_scope.setdefault(scope, []).append(at_ns)
    for scope, looks in by_scope.items():
        looks.sort()
        if not watched:
            yield from (Span(stream, scope, at_ns, at_ns) for at_ns in dict.fromkeys(looks))
            continue
        at_ns = looks[0]
        for from_ns, back_ns in sorted(gaps, key=lambda gap: gap[0]):
            again = (look for look in looks if look > from_ns)
            until_ns = next(again, None) if back_ns is None else back_ns
            if until_ns is not None and until_ns <= at_ns:
                continue
            if from_ns >= at_ns:
                yield Span(stream, scope, at_ns, from_ns, watched=True)
            if until_ns is None:
                break
            at_ns = until_ns
        else:
            yield Span(stream, scope, at_ns, max(at_ns, end_ns), watched=True)
