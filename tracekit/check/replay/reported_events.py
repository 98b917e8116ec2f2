"""What the controller's own Events about one key tell: what it had seen, and what it could tell."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from tracekit.base.kube.events import SPAM_BURST, SPAM_REFILL_NS, SpamBucket
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.history import History, WriteKind

#: What the controller's Events, and an audit log, call it.
COMPONENT = "job-controller"
#: How long an Event may wait for the tokens of a throttled client before it is posted.
EVENT_LAG_NS = 300 * NS_PER_S


def job_counts(history: History) -> tuple[list[int], list[int]]:
    """When the controller's Events came, and how far in the Job's revisions they had got by then.

    An Event names the revision that its sync held: the one in its cache, or the one that its own
    status write had made of that.
    """
    own = [event for event in history.events if event.component == COMPONENT]
    if not own:
        return [], []
    written = {write.rv for write in history.writes if write.kind is WriteKind.STATUS_UPDATE}
    positions = {job.rv: max(0, job.position - (job.rv in written)) for job in history.jobs}
    placed = sorted(
        (event.recv_ns, positions[event.involved_rv])
        for event in own
        if event.involved_rv in positions
    )
    return [at_ns for at_ns, _ in placed], list(accumulate((place for _, place in placed), max))


def events_spent(history: History) -> Iterator[tuple[int, int]]:
    """From when to when the spam filter may have dropped Events of the key's Jobs."""
    own = [event for event in history.events if event.component == COMPONENT]
    times, counted = [event.recv_ns for event in own], [event.count for event in own]
    if sum(counted) < SPAM_BURST and min(counted, default=0) >= 0 and times == sorted(times):
        return
    buckets: dict[str, SpamBucket] = {}
    counts: dict[str, int] = {}
    for event in own:
        bucket = buckets.setdefault(event.involved_uid, SpamBucket(event.recv_ns))
        bucket.left_at(event.recv_ns)
        bucket.spend(max(0, event.count - counts.get(event.name, 0)))
        counts[event.name] = event.count
        if not bucket.left_at(event.recv_ns):
            yield event.recv_ns - EVENT_LAG_NS, event.recv_ns + SPAM_REFILL_NS
