"""Records of real control planes with a lie of each kind in them, imported and judged once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import orjson

from tests.lies import draws_of, plant
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.judge.judged import Judge, resolve_era
from tracekit.minimise.showing import Showing, showing_of
from tracekit.trace.reading.objects import Objects, objects_of
from tracekit.trace.reading.reader import TraceReader

#: The kinds of divergence that a lie in the churn leads to first, each with such a lie.
CHURN = {
    "TK101": "body-image",
    "TK102": "pod-removed",
    "TK103": "pod-extra",
    "TK104": "retry-early",
    "TK108": "deletion-extra-active",
    "TK109": "spec-deadline-later",
    "TK112": "finalizer-kept",
    "TK113": "finalizer-early",
    "TK126": "status-ready-high",
    "TK128": "status-after-finish",
    "TK129": "deadline-early",
    "TK130": "deadline-late",
    "TK133": "event-create-twice",
}
#: The same of CronJobs and TTLs, of which the churn has none or few.
SCENES = {
    "TK143": "cron-policy-allow",  # first, for there is one place for it
    "TK136": "cron-body-label",
    "TK137": "cron-job-removed",
    "TK142": "cron-history-missing",
    "TK157": "ttl-missing",
}
LIES = {"v1.36.3-churn7": CHURN, "v1.36.3-all": SCENES}
#: The draw to begin with. Which retry is early enough to be told by its own Job's rows is chance;
#: others rest on the pace of the whole process, and take thousands of attempts on thousands of rows.
FIRST_DRAW = {"retry-early": 5}


@dataclass(frozen=True)
class Lied:
    """A record with lies in it."""

    reader: TraceReader
    judge: Judge
    showing: Showing
    objects: Objects


@cache
def lied(name: str) -> Lied:
    """The record of that name with all of its lies."""
    rows = list(json_lines(TRACES / name / "watch.jsonl.zst"))
    taken: set[str] = set()
    for kind in LIES[name].values():
        first = FIRST_DRAW.get(kind, 0)
        for attempt in range(first, first + 20):
            planted = plant(kind, rows, draws_of(kind, name, attempt))
            if planted is not None and planted[1].key not in taken:
                rows, lie = planted
                taken.add(lie.key)
                break
        else:
            raise AssertionError(f"no place for {kind}")
    folder = Path(mkdtemp(prefix="tracekit-test-"))
    log = folder / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    reader = import_log(log, folder / "trace", name)
    judge = Judge(reader, resolve_era(reader, None, None))
    return Lied(reader, judge, showing_of(reader, judge), objects_of(reader))
