"""What a record as a whole says about the time in which its CronJobs lived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracekit.kube.timestamps import NS_PER_S
from tracekit.replay.cron_history import WatchRow

_LEASE = "kube-controller-manager"
_STREAMS = frozenset({"cronjobs", "jobs"})
#: How long a new controller manager may take until its caches are filled and its timers armed.
START_NS = 15 * NS_PER_S
#: A write this close before an end may have a rest that was not recorded.
_REST_NS = 15 * NS_PER_S


@dataclass(frozen=True, slots=True)
class BlindTime:
    """A time about which nothing can be demanded."""

    from_ns: int
    until_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class CronRunContext:
    """The end of a record, the times in which nobody could see, namespaces that terminate."""

    end_ns: int
    blind: tuple[BlindTime, ...] = ()
    #: Times in which nothing tells that a controller manager was alive: nothing was owed in them.
    quiet: tuple[BlindTime, ...] = ()
    #: Namespace and when it was first seen to terminate.
    terminating: tuple[tuple[str, int], ...] = ()
    #: Up to which revision both the Jobs and the CronJobs were seen; later ones may lack company.
    seen_rv: int | None = None

    @property
    def owes_nothing(self) -> tuple[BlindTime, ...]:
        """Times in which silence proves nothing."""
        return (*self.blind, *self.quiet)

    def ends(self) -> Sequence[tuple[int, int]]:
        """Times of writes whose sync may have been cut off."""
        return [
            (self.end_ns - _REST_NS, self.end_ns),
            *((b.from_ns - _REST_NS, b.until_ns) for b in self.blind),
        ]

    def blind_at(self, at_ns: int, slack_ns: int) -> BlindTime | None:
        """The blind time at an instant, or so shortly before that its effects may still show."""
        for blind in self.blind:
            if blind.from_ns <= at_ns <= blind.until_ns + slack_ns:
                return blind
        return None


def cron_run_context_of(rows: Iterable[WatchRow]) -> CronRunContext:
    """Read the end, the leases, the gaps and the terminating namespaces of a watch log."""
    end_ns = 0
    blind: list[BlindTime] = []
    terminating: dict[str, int] = {}
    holder: str | None = None
    lease_rv: object = None
    held_ns = 0
    broken: dict[str, tuple[int, str]] = {}
    seen: dict[str, int] = dict.fromkeys(_STREAMS, 0)
    for row in rows:
        end_ns = max(end_ns, row.recv_ns)
        meta = row.object.get("metadata") or {}
        if row.resource in seen:
            rv = str(meta.get("resourceVersion") or row.object.get("resourceVersion") or "")
            seen[row.resource] = max(seen[row.resource], int(rv) if rv.isdigit() else 0)
        if row.type in {"ERROR", "NOTE"} and row.resource in _STREAMS:
            broken.setdefault(row.resource, (row.recv_ns, f"gap in {row.resource}"))
        elif row.type == "LIST_END" and row.resource in broken:
            from_ns, why = broken.pop(row.resource)
            blind.append(BlindTime(from_ns, row.recv_ns, why))
        elif row.resource == "leases" and meta.get("name") == _LEASE:
            if meta.get("resourceVersion") == lease_rv:
                continue  # listed again, not renewed
            lease_rv = meta.get("resourceVersion")
            now = (row.object.get("spec") or {}).get("holderIdentity")
            if holder and now and now != holder:
                why = f"the controller manager {holder} was followed by {now}"
                blind.append(BlindTime(held_ns, row.recv_ns + START_NS, why))
            holder, held_ns = now or holder, row.recv_ns
        elif row.resource == "namespaces" and meta.get("deletionTimestamp"):
            terminating.setdefault(str(meta.get("name")), row.recv_ns)
    blind += [BlindTime(from_ns, end_ns, why) for from_ns, why in broken.values()]
    return CronRunContext(
        end_ns,
        tuple(blind),
        terminating=tuple(terminating.items()),
        seen_rv=min(seen.values()),
    )
