"""Syncs of an account that left no write: told by the controller manager's own log. Pure.

Only `-v` tells them: no verdict rests on them, and a busy Job has thousands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tracekit.report.narrative import Narrative, Step, clock, in_order

_NS_PER_MS = 1_000_000
WHO = "controller manager's log"


class LoggedSync(NamedTuple):
    """A sync, or one that failed, as the log has it; times in Unix ns by its own clock."""

    ended_ns: int
    #: None: the log does not say (CronJobs').
    began_ns: int | None
    #: Why it failed; empty if it did not.
    error: str = ""


def add_logged_syncs(narrative: Narrative, syncs: Iterable[LoggedSync]) -> None:
    """Add a step for each sync that the controller manager's log has."""
    narrative.steps = in_order([*narrative.steps, *map(_step, syncs)])


def _step(sync: LoggedSync) -> Step:
    details = ["its log does not say when it began"]
    if sync.began_ns is not None:
        took_ms = (sync.ended_ns - sync.began_ns) / _NS_PER_MS
        details = [f"it began at {clock(sync.began_ns)} and took {took_ms:,.1f} ms"]
    if sync.error:
        details = [f"it said: {sync.error}"]
    what = "has a sync that failed" if sync.error else "has the end of a sync"
    return Step(sync.ended_ns, None, WHO, what, tuple(details), verbose_only=True)
