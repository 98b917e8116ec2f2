"""What a stream is doing right now: written by its thread, read by status line and metrics.

Plain attributes of one writer each, so that no lock is needed to read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class StreamState(StrEnum):
    """Where a stream is in its list/watch loop."""

    STARTING = "starting"
    LISTING = "listing"
    LIVE = "live"
    RETRYING = "retrying"
    STOPPED = "stopped"


@dataclass(slots=True)
class StreamStatus:
    """Counters and state of one stream."""

    name: str
    state: StreamState = StreamState.STARTING
    observations: int = 0
    received_bytes: int = 0
    bookmarks: int = 0
    relists: int = 0
    reconnects: int = 0
    gaps: int = 0
    synthesized_deletes: int = 0
    repeats: int = 0
    out_of_order: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    last_failure: str | None = None
    last_byte_ns: int | None = None
    #: When the watch that is open now was answered.
    connected_ns: int | None = None
    #: Since when the stream is not live; None while it is.
    down_since_ns: int | None = None
    #: Why it was not being recorded when the recording ended; None where it was.
    unseen_at_end: str | None = None

    def live(self) -> None:
        """Note that the stream is being watched."""
        self.state = StreamState.LIVE
        self.down_since_ns = None

    def failed(self, kind: str, reason: str, now_ns: int) -> None:
        """Note that the stream is not being watched."""
        self.state = StreamState.RETRYING
        self.failures[kind] = self.failures.get(kind, 0) + 1
        self.last_failure = reason
        if self.down_since_ns is None:
            self.down_since_ns = now_ns

    def is_dead(self, now_ns: int, dead_after_ns: int) -> bool:
        """Tell whether the stream has been down for too long."""
        return self.down_since_ns is not None and now_ns - self.down_since_ns > dead_after_ns
