"""Which Events of the Job controller does which sync explain?

Events are posted by a goroutine of their own: late, merged (a higher count), aggregated or dropped.
A missing Event says nothing; an Event that no sync hands to the broadcaster is a divergence.

Upstream: client-go/tools/record/events_cache.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tracekit.base.kube.events import COMBINED, REFUSED_CALLS, SPAM_BURST
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.history import EventRow
from tracekit.check.replay.recorded_api import PredictedEvent
from tracekit.check.replay.reported_events import COMPONENT
from tracekit.check.replay.search_state import Explanation, KeyReplay

#: Streams are delivered side by side: an Event may arrive so long before its cause.
EVENT_SLACK_NS = NS_PER_S // 2
_Identity = tuple[str, str, str, str]


class EventSource(Enum):
    """Who hands out an Event."""

    BY_A_SYNC = "a sync that is explained, or one without a write between two that are"
    #: Its first row counts more than syncs that are explained hand out: as only a sync without a
    #: write together with a post that was lost leads to.
    UNPOSTED = "a sync without a write, and an Event before it that was never posted"
    BY_NOBODY = "nobody"


@dataclass(slots=True)
class _Supply:
    """When the syncs handed out which Events, by the Job's uid, type, reason and message.

    The uid: a Job may follow another of its name, and the Events of the first may come last.
    """

    syncs: Sequence[Explanation]
    width_ns: Callable[[int], int]  # to within what the times of writes are known
    #: Receive times of the writes after which they were handed over.
    at_ns: dict[_Identity, list[int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for identity, at_ns in self._handed_out():
            self.at_ns.setdefault(identity, []).append(at_ns)

    def _handed_out(self) -> Iterator[tuple[_Identity, int]]:
        for sync in self.syncs:
            if sync.job is None or not sync.events:
                continue
            uid = sync.job.view.uid
            for event, at_ns in events_of(sync):
                yield (uid, event.type, event.reason, event.message), at_ns

    def has_reported(self, row: EventRow) -> bool:
        """Whether as many of its kind were handed out by then as a combined Event counts.

        It is counted up by others that say something else, and of these the spam filter keeps some
        from the server: a higher count says nothing about how often its own message was told.
        """
        kind = (row.involved_uid, row.event_type, row.reason)
        until_ns = self._until_ns(row)
        return (
            sum(reported[:3] == kind and at <= until_ns for reported, at in self._handed_out())
            >= row.count
        )

    def may_be_held_back(self, row: EventRow) -> bool:
        """Whether the spam filter may have kept Events of this Job from the server by then."""
        until_ns = self._until_ns(row)
        reported = (at_ns for (uid, *_), at_ns in self._handed_out() if uid == row.involved_uid)
        return sum(at <= until_ns for at in reported) >= SPAM_BURST

    def _until_ns(self, row: EventRow) -> int:
        """By when an Event was handed out."""
        return row.recv_ns + EVENT_SLACK_NS + self.width_ns(row.recv_ns)

    def take(self, row: EventRow, key: _Identity, count: int) -> bool:
        """Use up `count` of them that were handed out by then."""
        times = self.at_ns.get(key, ())
        until_ns = self._until_ns(row)
        usable = [at for at in times if at <= until_ns]
        if len(usable) < count:
            return False
        for at in usable[:count]:
            self.at_ns[key].remove(at)
        return True


def explain_events(
    replay: KeyReplay,
    lone_event: Callable[[EventRow], bool],
    *,
    restarted_ns: Sequence[int] = (),
    width_ns: Callable[[int], int] = lambda _: 0,
) -> Iterator[tuple[EventRow, EventSource]]:
    """Every Event row of the controller about this key, and who hands it out.

    `lone_event` tells for an Event of a sync without any other trace whether the controller could
    have emitted it.
    """
    own = [row for row in replay.history.events if row.component == COMPONENT]
    if not own:
        return
    supply = _Supply(replay.syncs, width_ns)
    counts: dict[str, int] = {}
    objects: dict[tuple[_Identity, bool], tuple[str, int]] = {}
    for row in own:
        before = counts.get(row.uid, 0)
        counts[row.uid] = row.count
        if row.type == "LIST":
            continue
        message = row.message.removeprefix(COMBINED)
        repeated = max(1, row.count - before)
        identity = (row.involved_uid, row.event_type, row.reason, message)
        # What was told in a combined Event may be told alone after: its key made room for another.
        counted = (identity, row.message != message)
        name, seen_ns = objects.setdefault(counted, (row.uid, row.recv_ns))
        if name != row.uid and not any(seen_ns < at_ns <= row.recv_ns for at_ns in restarted_ns):
            # One process counts a repeated Event up; a second object is not its work.
            yield row, EventSource.BY_NOBODY
            continue
        objects[counted] = (row.uid, row.recv_ns)
        if row.message == message:
            explained = supply.take(row, identity, repeated)
        else:
            explained = supply.has_reported(row) and supply.take(row, identity, 1)
        reported = EventSource.BY_A_SYNC if explained or lone_event(row) else EventSource.BY_NOBODY
        whole = explained and row.message == message  # one of a combined Event may be any of many
        if reported is EventSource.BY_A_SYNC and not whole and _first_post_lost(row):
            # What is refused again and again is told so often that the filter keeps most of it.
            refused = row.reason in REFUSED_CALLS
            reported = reported if refused or supply.may_be_held_back(row) else EventSource.UNPOSTED
        yield row, reported


def events_of(sync: Explanation) -> Iterator[tuple[PredictedEvent, int]]:
    """Each Event of a sync, and from when on it can have told it."""
    times = {write.rv: write.recv_ns for write in sync.writes}
    # Before its first write a sync may tell as soon as it has begun.
    began_ns = min(sync.due_ns, sync.writes[0].recv_ns)
    for event in sync.events:
        yield event, times.get(event.after_rv, began_ns)


def _first_post_lost(row: EventRow) -> bool:
    """Whether the post of the first that this Event counts never came through."""
    return row.type == "ADDED" and row.count > 1
