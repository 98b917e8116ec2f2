"""What the coverage of a record means for a replay: holes beside its gaps, streams it never saw."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.base.coverage import Coverage
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.check.replay.run_context import INFORMER_LAG_NS, Outage

#: Streams from whose rows a replay concludes.
STREAMS = ("jobs", "pods", "cronjobs", "events", "leases")
#: All that the Job controller and the CronJob controller call is about these.
_CALLED = ("jobs", "pods")
_FOR_EVER = 1 << 62


def holes_of(coverage: Coverage) -> Iterator[Outage]:
    """Times in which a stream was not seen and that have no gap row: before, between, after looks.

    Streams that begin as close together as informers may lag have begun at once.
    """
    first_ns = min((span.from_ns for span in coverage.spans), default=0)
    for stream in STREAMS:
        spans = [span for span in coverage.spans if span.stream == stream]
        if not spans:
            continue
        begins_ns = min(span.from_ns for span in spans)
        if begins_ns - first_ns > INFORMER_LAG_NS:
            why = "the first list had not ended"
            yield Outage(first_ns, begins_ns, f"gap in {stream}: {why}", stream)
        if not all(span.is_look for span in spans):
            continue
        watched = any(span.watched for span in spans)
        why = "a watch of which all rows have one time" if watched else "a look, and no watch"
        looks = sorted({span.from_ns for span in spans})
        for at_ns, next_ns in zip(looks, [*looks[1:], _FOR_EVER], strict=True):
            yield Outage(at_ns, next_ns, f"gap in {stream}: {why}", stream)


def not_seen(coverage: Coverage) -> dict[str, str]:
    """Streams of which the record has nothing, and why."""
    missing = {
        stream: coverage.unseen.get(stream, "no row of it")
        for stream in STREAMS
        if stream != "leases" and not coverage.sees(stream)
    }
    if not coverage.sees("leases", CONTROLLER_MANAGER_LEASE_NAMESPACE):
        missing["leases"] = coverage.unseen.get("leases", "no row of it")
    return missing


def is_whole(coverage: Coverage) -> bool:
    """Whether all keys of the controllers were looked at, and their process: its silence counts."""
    return coverage.sees("leases", CONTROLLER_MANAGER_LEASE_NAMESPACE) and all(
        any(s.stream == stream and s.scope.covers(None) for s in coverage.spans)
        for stream in _CALLED
    )
