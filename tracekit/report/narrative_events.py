"""The account of a pod of which Events alone are there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.answers.words import clock, counted
from tracekit.report.narrative import Narrative, Step, in_order


def narrative_of_events(
    namespace: str, name: str, events: Iterable[Mapping[str, Any]]
) -> Narrative:
    """What Events tell of a pod that nobody saw; `events` are their rows, oldest first."""
    newest = {row["uid"] or id(row): row for row in events if row["type"] != "DELETED"}
    steps = in_order(map(_step, newest.values()))
    closing = "The record has Events of this pod alone: how it stood, and what it ran, is unknown."
    return Narrative("Pod", namespace, name, steps, closing)


def _step(row: Mapping[str, Any]) -> Step:
    first_ns = row["first_ns"] or row["last_ns"] or row["recv_ns"] or 0
    last_ns, times = row["last_ns"] or first_ns, int(row["count"] or 1)
    warned = " (Warning)" if row["event_type"] == "Warning" else ""
    details = [row["message"]] if row["message"] else []
    if times > 1 and last_ns > first_ns:
        details.append(f"{counted(times, 'time')}, last at {clock(last_ns)}")
    who = row["component"] or "an Event"
    return Step(first_ns, None, who, f"said {row['reason']}{warned}", tuple(details))
