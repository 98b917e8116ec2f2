"""What a trace as a whole tells a replay: its end, its gaps, the controller manager's restarts."""

from __future__ import annotations

from tracekit.replay.run_context import Outage, RunContext
from tracekit.trace.reader import TraceReader

_LEASE = "kube-controller-manager"
_LEASE_NAMESPACE = "kube-system"


def run_context_of(reader: TraceReader) -> RunContext:
    """Read the time bounds, the leases and the gaps of a trace."""
    last = [stream.last_ns for stream in reader.streams() if stream.last_ns is not None]
    gaps = tuple(
        Outage(gap.from_ns or 0, gap.until_ns or (1 << 62), f"gap in {gap.stream}: {gap.reason}")
        for gap in reader.gaps()
        if gap.stream in ("jobs", "pods")
    )
    return RunContext(max(last, default=0), _restarts(reader), gaps, _namespaces_ending(reader))


def _restarts(reader: TraceReader) -> tuple[Outage, ...]:
    """Times in which the lease of the controller manager changed hands."""
    rows = reader.table(
        ("recv_ns", "name", "holder"), streams=["leases"], namespace=_LEASE_NAMESPACE
    ).to_pylist()
    found: list[Outage] = []
    before: dict[str, object] | None = None
    for row in rows:
        if row["name"] != _LEASE or not row["holder"] or row["recv_ns"] is None:
            continue
        if before is not None and before["holder"] != row["holder"]:
            found.append(
                Outage(
                    int(str(before["recv_ns"])),
                    row["recv_ns"],
                    f"the controller manager {before['holder']} was followed by {row['holder']}",
                )
            )
        before = row
    return tuple(found)


def _namespaces_ending(reader: TraceReader) -> dict[str, int]:
    """Namespaces that were being deleted, with the revision that first shows it."""
    rows = reader.table(("name", "rv", "deleted_ns"), streams=["namespaces"]).to_pylist()
    found: dict[str, int] = {}
    for row in rows:
        if row["deleted_ns"] is not None and row["rv"] is not None and row["name"] is not None:
            found[row["name"]] = min(row["rv"], found.get(row["name"], row["rv"]))
    return found
