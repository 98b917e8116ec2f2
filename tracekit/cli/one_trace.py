"""What verbs do alike that ask one trace and print the first of what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from typing import Any, TypeVar

from tracekit.base.errors import UsageError
from tracekit.cli.damage import tell_problems
from tracekit.cli.snapshot_input import as_trace
from tracekit.sql.session import Session

_Item = TypeVar("_Item")


def session_of_one(trace: str) -> tuple[Session, set[str]]:
    """A session on the one trace that a word names, and what was said of it on stderr.

    Raises:
        UsageError: It names several.
    """
    session = Session([as_trace(trace)])
    if len(session.sources) > 1:
        raise UsageError(f"{trace} names {len(session.sources)} traces: ask about one at a time")
    return session, tell_problems(session, set())


def first_of(
    items: Iterable[_Item], most: int, key: Callable[[_Item], Any]
) -> tuple[list[_Item], int]:
    """The first items in the order of `key`, so many at most, and how many there are."""
    count = 0

    def counting() -> Iterator[_Item]:
        nonlocal count
        for item in items:
            count += 1
            yield item

    return nsmallest(most, counting(), key=key), count
