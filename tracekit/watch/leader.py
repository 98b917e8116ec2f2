"""Whether somebody leads: the lease of the controller manager, as it is renewed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.answers.findings.leaders import LEADER
from tracekit.answers.model import Case, Target
from tracekit.base.durations import span
from tracekit.base.kube.leases import (
    CONTROLLER_MANAGER_LEASE,
    CONTROLLER_MANAGER_LEASE_NAMESPACE,
    LEASE_DURATION_NS,
)
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.watch.steady_clock import SteadyClock

#: A record that tells nothing at all for so long, no bookmark either, is of a silent cluster.
SILENT_NS = 75 * NS_PER_S
#: A clock that was set looks like silence, until the recorder's note of it has come.
_NOTED_NS = NS_PER_S
_COLUMNS = ("rv", "recv_ns", "holder")
#: Those of rows that are looked at.
LEASE_COLUMNS = ("stream", "name", *_COLUMNS)


class Leader:
    """When the lease was renewed last, by a clock that nobody sets."""

    def __init__(self, clock: SteadyClock) -> None:
        self._clock = clock
        self._rv = 0
        self._renewed_ns = 0
        self._silent_ns: int | None = None  # when it was first asked and the lease overdue
        self._is_reported = False

    def feed(self, rows: pa.Table) -> None:
        """Take in rows of that clock, in order of arrival.

        A revision that is listed again renews nothing.
        """
        mine = pc.and_(
            pc.equal(pc.cast(rows["stream"], pa.string()), "leases"),
            pc.equal(rows["name"], CONTROLLER_MANAGER_LEASE),
        )
        leases = rows.filter(pc.fill_null(mine, False)).select(_COLUMNS)  # noqa: FBT003
        for row in leases.to_pylist():
            if row["rv"] is not None and row["rv"] > self._rv:
                self._rv = row["rv"]
                if row["holder"]:  # who goes, and says so, leaves it without one
                    self._renewed_ns, self._silent_ns = row["recv_ns"], None
                    self._is_reported = False

    def lost(self, now_ns: int, waiting: int) -> Iterator[Case]:
        """The loss of the leader, once; `now_ns` is a time of the recorder's clock."""
        asked_ns, known_ns = self._clock.steady_ns(now_ns), self._clock.now_ns
        # What the recorder has not brought yet proves nothing.
        now_ns = known_ns if asked_ns - known_ns < SILENT_NS else asked_ns
        silent_ns = now_ns - self._renewed_ns
        if not self._renewed_ns or silent_ns < LEASE_DURATION_NS or self._is_reported:
            self._silent_ns = None
            return
        if self._silent_ns is None:
            self._silent_ns = asked_ns
        if abs(asked_ns - self._silent_ns) < _NOTED_NS:
            return
        self._is_reported = True
        renewed_ns = self._clock.shown_ns(self._renewed_ns)
        yield Case(
            LEADER,
            Target("Lease", CONTROLLER_MANAGER_LEASE_NAMESPACE, CONTROLLER_MANAGER_LEASE),
            f"nobody has renewed it for {span(silent_ns)}",
            renewed_ns,
            self._clock.shown_ns(now_ns),
            f"last renewed {format_rfc3339(renewed_ns)}; {waiting} Jobs wait for their "
            "first status",
        )
