"""Which Events of the Job controller does which sync explain?

Events are posted by a goroutine of their own: late, merged (a higher count), aggregated or dropped.
A missing Event says nothing; an Event that no sync hands to the broadcaster is a divergence.

Upstream: client-go/tools/record/events_cache.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tracekit.kube.events import COMBINED
from tracekit.kube.timestamps import NS_PER_S
from tracekit.replay.history import EventRow
from tracekit.replay.key_facts import COMPONENT
from tracekit.replay.search_state import Explanation, KeyReplay

#: Streams are delivered side by side: an Event may arrive so long before its cause.
EVENT_SLACK_NS = NS_PER_S // 2
_Identity = tuple[str, str, str, str]
_Kind = tuple[str, str, str]


@dataclass(slots=True)
class _Supply:
    """When the syncs handed out which Events, by the Job's uid, type, reason and message.

    The uid: a Job may follow another of its name, and the Events of the first may come last.
    """

    #: Receive times of the writes after which they were handed over.
    at_ns: dict[_Identity, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: The same by uid, type and reason, and never used up.
    told_ns: dict[_Kind, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, sync: Explanation) -> None:
        """Take over what a sync handed out."""
        if sync.job is None:
            return
        uid = sync.job.view.uid
        times = {write.rv: write.recv_ns for write in sync.writes}
        for event in sync.events:
            # Before its first write a sync may tell as soon as it has begun.
            at_ns = times.get(event.after_rv, min(sync.due_ns, sync.writes[0].recv_ns))
            self.at_ns[uid, event.type, event.reason, event.message].append(at_ns)
            self.told_ns[uid, event.type, event.reason].append(at_ns)

    def has_told(self, row: EventRow) -> bool:
        """Whether as many of its kind were handed out by then as a combined Event counts.

        It is counted up by others that say something else, and of these the spam filter keeps some
        from the server: a higher count says nothing about how often its own message was told.
        """
        told_ns = self.told_ns.get((row.involved_uid, row.event_type, row.reason), [])
        return sum(at <= row.recv_ns + EVENT_SLACK_NS for at in told_ns) >= row.count

    def take(self, row: EventRow, key: _Identity, count: int) -> bool:
        """Use up `count` of them that were handed out by then."""
        times = self.at_ns.get(key, [])
        usable = [at for at in times if at <= row.recv_ns + EVENT_SLACK_NS]
        if len(usable) < count:
            return False
        for at in usable[:count]:
            times.remove(at)
        return True


def explain_events(
    replay: KeyReplay,
    lone_event: Callable[[EventRow], bool],
    *,
    restarted_ns: Sequence[int] = (),
) -> Iterable[tuple[EventRow, bool]]:
    """Every Event row of the controller about this key, and whether it is explained.

    `lone_event` tells for an Event of a sync without any other trace whether the controller could
    have emitted it.
    """
    supply = _Supply()
    for sync in replay.syncs:
        supply.add(sync)
    counts: dict[str, int] = {}
    objects: dict[_Identity, tuple[str, int]] = {}
    for row in replay.history.events:
        if row.component != COMPONENT:
            continue
        before = counts.get(row.uid, 0)
        counts[row.uid] = row.count
        if row.type == "LIST":
            continue
        message = row.message.removeprefix(COMBINED)
        repeated = max(1, row.count - before)
        identity = (row.involved_uid, row.event_type, row.reason, message)
        name, seen_ns = objects.setdefault(identity, (row.uid, row.recv_ns))
        if name != row.uid and not any(seen_ns < at_ns <= row.recv_ns for at_ns in restarted_ns):
            # One process counts a repeated Event up; a second object is not its work.
            yield row, False
            continue
        objects[identity] = (row.uid, row.recv_ns)
        if row.message == message:
            explained = supply.take(row, identity, repeated)
        else:
            explained = supply.has_told(row) and supply.take(row, identity, 1)
        yield row, explained or lone_event(row)
