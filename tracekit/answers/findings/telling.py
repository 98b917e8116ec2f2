"""Which of several Events of type Warning about pods tells most of what became of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from tracekit.answers.remedies import NOT_BEGUN
from tracekit.answers.trace_model import State

#: Of what does a pod no harm: no logs are shipped from Fargate, too many name servers.
HARMLESS: Final = ("LoggingDisabled", "DNSConfigForming")
#: What says that something failed, and nothing of why: others' words come before it.
_VAGUE: Final = (
    "timed out waiting for the condition", "context deadline exceeded", "Error: ImagePullBackOff",
    "Error: ErrImagePull", "Back-off ",
)  # fmt: skip
#: What weighs so much tells of nothing that lasted.
_OVER: Final = 2
_RUNS: Final = ("Started", "Unhealthy")


def most_telling(events: Iterable[State]) -> State | None:
    """The Warning that tells most, why rather than that; None where all was over, or harmless.

    Args:
        events: About pods, those of type Normal, too: they tell what was over.
    """
    by_pod: defaultdict[str, list[State]] = defaultdict(list)
    for event in events:
        by_pod[event.row["involved_name"] or ""].append(event)
    warnings = [
        (_weight(event, beside), -event.last_ns, place, event)
        for place, beside in enumerate(by_pod.values())
        for event in beside
        if event.row["event_type"] == "Warning"
    ]
    warnings = [entry for entry in warnings if entry[0] < _OVER]
    return min(warnings, key=lambda entry: entry[:3], default=(0, 0, 0, None))[3]


def is_harmless(event: State) -> bool:
    """Whether a Warning tells of nothing that does harm."""
    return event.row["reason"] in HARMLESS


def restarts(event: State) -> bool:
    """Whether it tells of a container that is begun again after it ended."""
    return event.row["reason"] == "BackOff" and "restarting" in str(event.row["message"] or "")


def _weight(event: State, beside: Sequence[State]) -> int:
    """The least of what tells most."""
    message = str(event.row["message"] or "")
    if is_harmless(event):
        return _OVER
    if is_over(event, beside):
        return _OVER
    return int(any(words in message for words in _VAGUE))


def is_over(event: State, beside: Iterable[State]) -> bool:
    """Whether it tells of what hindered a pod from beginning, and others that it began after it."""
    return event.row["reason"] in NOT_BEGUN and any(_is_after(other, event) for other in beside)


def _is_after(other: State, event: State) -> bool:
    """Whether another Event tells that a pod began after what hindered it from that."""
    if other.last_ns <= event.last_ns:
        return False
    placed = event.row["reason"] == "FailedScheduling" and other.row["reason"] == "Scheduled"
    return placed or restarts(other) or other.row["reason"] in _RUNS
