"""A work queue is first in, first out: no sync of a real controller overtakes another.

`late` rests on this, with slack for informers and clocks that lag (`diff/lateness.py`). Here there
is none: where a real record seems to break the order, a bound on when a key was ready is wrong, and
the next record beyond the slack is a false alarm.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.traces import TRACES, import_log
from tracekit.check.diff.key_queue import DELIVERY_JITTER_NS
from tracekit.check.diff.lateness import CALL_LATENCY_NS, Service
from tracekit.check.diff.trace import judge_groups
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.job import JobRules

#: Two Jobs each, without the others that kept the process busy.
BACKLOGS = Path(__file__).parents[1] / "data" / "backlogs"
RECORDS = [
    BACKLOGS / "refused-among-creations-in-a-backlog",
    BACKLOGS / "evicted-in-a-backlog",
    BACKLOGS / "status-signed-by-another",
    TRACES / "v1.24.17-all",
    TRACES / "v1.27.4-churn606",
    TRACES / "v1.36.3-churn7",
]


def services_of(reader: TraceReader) -> list[Service]:
    """The syncs of all Jobs, as the work queue saw them."""
    judge = Judge(reader, resolve_era(reader, None, None))
    rules = JobRules.of(judge.era)
    judged = judge_groups(reader.groups(COLUMNS), rules, judge.run_context)
    return [service for key in judged for service in key.timing.services]


def overtakings(services: list[Service]) -> Iterator[tuple[str, str, float]]:
    """Who was served before one that had been ready before it, and by how many seconds."""
    ready_first: Service | None = None  # of those that were served later
    later = sorted((s for s in services if s.judged), key=lambda s: s.served_ns)
    for service in sorted(services, key=lambda s: s.served_ns, reverse=True):
        while later and later[-1].served_ns > service.served_ns + CALL_LATENCY_NS:
            one = later.pop()
            if ready_first is None or one.certain_ns < ready_first.certain_ns:
                ready_first = one
        if ready_first is None:
            continue
        ahead_ns = service.earliest_ns - ready_first.certain_ns
        if ahead_ns > DELIVERY_JITTER_NS:
            yield service.first.key, ready_first.first.key, ahead_ns / 1e9


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_no_sync_of_a_real_controller_overtakes_another(folder: Path, tmp_path: Path) -> None:
    reader = import_log(folder / "watch.jsonl.zst", tmp_path / "trace", folder)
    services = services_of(reader)
    assert any(service.judged for service in services)
    assert list(overtakings(services)) == []


def test_a_status_is_whose_managed_fields_say_though_a_sync_might_have_written_it(
    tmp_path: Path,
) -> None:
    folder = BACKLOGS / "status-signed-by-another"
    reader = import_log(folder / "watch.jsonl.zst", tmp_path / "trace", folder)
    judgements = Judge(reader, resolve_era(reader, None, None)).report().judgements
    (written,) = (j for j in judgements if j.resource_version == "2896")
    assert written.verdict is Verdict.FOREIGN
    assert "kubectl-alice" in written.why
