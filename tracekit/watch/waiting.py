"""Jobs that wait for the controller: created, not suspended, and without a first status."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.watch.steady_clock import SteadyClock

#: What the controller is allowed before a Job counts as waiting.
AT_ONCE_NS = 2_000_000_000
_STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")
_COLUMNS = ("uid", "type", "recv_ns", "start_ns", "spec", "conditions", "created_ns")
#: Those of rows that are looked at.
JOB_COLUMNS = ("stream", *_COLUMNS)


class WaitingJobs:
    """Which Jobs wait, and since when."""

    def __init__(self, clock: SteadyClock) -> None:
        self._clock = clock
        self._since_ns: dict[str, int] = {}

    def feed(self, rows: pa.Table) -> None:
        """Take in rows of a clock that nobody sets, in order of arrival."""
        jobs = pc.and_(
            pc.equal(pc.cast(rows["stream"], pa.string()), "jobs"),
            pc.is_in(pc.cast(rows["type"], pa.string()), pa.array(_STATES)),
        )
        for row in rows.filter(pc.fill_null(jobs, False)).select(_COLUMNS).to_pylist():  # noqa: FBT003
            uid = row["uid"]
            waits = (
                row["type"] != "DELETED"
                and row["start_ns"] is None
                and not row["conditions"]
                and '"suspend":true' not in (row["spec"] or "")
                and '"managedBy":' not in (row["spec"] or "")
            )
            if waits:
                at_ns = row["created_ns"] if row["type"] == "LIST" else row["recv_ns"]
                self._since_ns.setdefault(uid, at_ns or row["recv_ns"])
            else:
                self._since_ns.pop(uid, None)

    @property
    def count(self) -> int:
        """How many wait longer than a controller that keeps up takes."""
        now_ns = self._clock.now_ns
        return sum(1 for at_ns in self._since_ns.values() if now_ns - at_ns > AT_ONCE_NS)

    def longest_ns(self, now_ns: int) -> int:
        """For how long the first of them has waited; `now_ns` is a time of the recorder's clock."""
        now_ns = self._clock.steady_ns(now_ns)
        return max(0, now_ns - min(self._since_ns.values(), default=now_ns))
