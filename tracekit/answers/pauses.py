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
from tracekit.base.kube.timestamps import NS_PER_S

#: A Lease that was not renewed for so long before a look that nothing else dates: what was printed
#: in several commands is as old as the first of them, and its time that of the last. A choice.
_UNDATED_NS = 300 * NS_PER_S
#: The same, where another Lease of that look was renewed later: two clocks may differ. A choice.
_DATED_NS = 60 * NS_PER_S


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
    #: It had not ended when the look was that shows it.
    lasts: bool = False

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
        unheld = _at_a_look(leases, states)
        if unheld is not None:
            found.append(unheld)
            continue
        # Its last word, where a watch showed renewals at all and went on.
        watched = any(state.row["type"] == "MODIFIED" for state in states)
        if before is None or not watched or any(gap.stream == "leases" for gap in gaps):
            continue
        if end_ns - before.at_ns > LEASE_DURATION_NS:
            what = f"{before.row['holder']} did not renew it any more"
            found.append(Pause(before.at_ns, end_ns, what))
    return found


def _at_a_look(
    leases: Mapping[tuple[str, str, str], Sequence[_Renewal]], states: Sequence[_Renewal]
) -> Pause | None:
    """The time since its last renewal, where a look alone tells of the Lease and shows it old.

    Another Lease of the control plane that was renewed later dates the look better than the time
    of a file that may be a copy.
    """
    last = states[-1]
    renew_ns = last.row["renew_ns"]
    if not renew_ns or any(state.row["type"] != "LIST" for state in states):
        return None
    others = [
        other[-1].row["renew_ns"]
        for key, other in leases.items()
        if key[0] == CONTROLLER_MANAGER_LEASE_NAMESPACE and other is not states
    ]
    dated_ns = max((at_ns for at_ns in others if at_ns), default=None)
    until_ns = last.at_ns if dated_ns is None else min(last.at_ns, dated_ns)
    if until_ns - renew_ns <= (_UNDATED_NS if dated_ns is None else _DATED_NS):
        return None
    holder = last.row["holder"]
    what = f"{holder} held it last" if holder else "it was given up, and nobody took it"
    return Pause(renew_ns, until_ns, what, lasts=True)
