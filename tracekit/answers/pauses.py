"""Times in which no controller manager led, out of the revisions of its Lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from tracekit.base.kube.leases import (
    CONTROLLER_MANAGER_LEASE,
    CONTROLLER_MANAGER_LEASE_NAMESPACE,
    LEASE_DURATION_NS,
)


class _Renewal(Protocol):
    """A revision of a Lease."""

    @property
    def row(self) -> Mapping[str, Any]: ...

    @property
    def at_ns(self) -> int: ...


class Pause(Struct, frozen=True):
    """A time in which something was not there."""

    from_ns: int
    until_ns: int
    what: str

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.until_ns - self.from_ns) / 1e9

    def holds(self, at_ns: int) -> bool:
        """Whether a time lies in it."""
        return self.from_ns <= at_ns <= self.until_ns


class Gap(Struct, frozen=True):
    """A time in which the recorder could not see a stream."""

    stream: str
    from_ns: int
    until_ns: int | None
    reason: str


def pauses_of(
    leases: Mapping[tuple[str, str, str], Sequence[_Renewal]], end_ns: int, gaps: Sequence[Gap]
) -> list[Pause]:
    """Between the holders of the Lease, and after its last word; times are Unix ns."""
    found: list[Pause] = []
    for (namespace, name, _), states in sorted(leases.items()):
        if (namespace, name) != (CONTROLLER_MANAGER_LEASE_NAMESPACE, CONTROLLER_MANAGER_LEASE):
            continue
        before: _Renewal | None = None
        for state in states:
            holder = state.row["holder"]
            if not holder:
                continue
            if before is not None and before.row["holder"] != holder:
                what = f"{before.row['holder']} was followed by {holder}"
                from_ns = min(before.at_ns, before.row["renew_ns"] or before.at_ns)
                found.append(Pause(from_ns, state.at_ns, what))
            before = state
        # Its last word, where a watch showed renewals at all and went on.
        watched = any(state.row["type"] == "MODIFIED" for state in states)
        if before is None or not watched or any(gap.stream == "leases" for gap in gaps):
            continue
        if end_ns - before.at_ns > LEASE_DURATION_NS:
            what = f"{before.row['holder']} did not renew it any more"
            found.append(Pause(before.at_ns, end_ns, what))
    return found
