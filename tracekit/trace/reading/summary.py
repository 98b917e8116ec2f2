"""What a trace holds, in numbers: the data behind `tracekit info`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.base.coverage import Coverage
from tracekit.base.kube.stored import spec_of
from tracekit.trace.format.model import Gap, RowType, StreamSummary, TraceHeader
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.reader import TraceReader

#: Of the last state of a Job.
_LAST = (
    "uid", "seq", "type", "conditions", "start_ns", "spec",
    "active", "ready", "succeeded", "failed",
)  # fmt: skip


class LeaderSession(Struct, frozen=True):
    """One holder's time at a lease, as far as it was seen."""

    lease: str
    holder: str | None
    acquired_ns: int | None
    transitions: int | None
    first_seen_ns: int | None
    last_seen_ns: int | None


class JobOutcomes(Struct, frozen=True):
    """How the Jobs of a trace ended, by the last state seen of each."""

    total: int
    #: How many names they have, by namespace: a name may be used again. `replay` counts these.
    names: int
    #: "complete", "failed: <reason>", "suspended", "running", "not started" (no pod of it ran),
    #: "deleted unfinished"; the most frequent first.
    by_outcome: Mapping[str, int]
    #: Of all of them, finished or not, how many were deleted.
    deleted: int


class TraceSummary(Struct, frozen=True):
    """All that `tracekit info` says."""

    header: TraceHeader
    rows: int
    segments: int
    size_bytes: int
    streams: list[StreamSummary]
    gaps: list[Gap]
    coverage: Coverage
    jobs: JobOutcomes
    leaders: list[LeaderSession]
    problems: list[str]
    #: Rows whose compact encoding would have changed them: kept as they came.
    kept_rows: int
    #: Whether all of it has checksums, and they fit.
    verified: bool

    @property
    def first_ns(self) -> int | None:
        """Receive time of the earliest row."""
        return min((s.first_ns for s in self.streams if s.first_ns is not None), default=None)

    @property
    def last_ns(self) -> int | None:
        """Receive time of the latest row."""
        return max((s.last_ns for s in self.streams if s.last_ns is not None), default=None)


def summarize(reader: TraceReader) -> TraceSummary:
    """Read the whole trace, a few columns at a time."""
    return TraceSummary(
        header=reader.header,
        rows=reader.rows,
        segments=len(reader.segments),
        size_bytes=reader.size_bytes,
        streams=reader.streams(),
        gaps=reader.gaps(),
        coverage=coverage_of(reader),
        jobs=job_outcomes(reader),
        leaders=leader_sessions(reader),
        problems=list(reader.problems),
        kept_rows=reader.kept_rows,
        verified=reader.is_verifiable and not reader.problems,
    )


def job_outcomes(reader: TraceReader) -> JobOutcomes:
    """How each Job ended; memory grows with the number of Jobs, not of rows."""
    types = (RowType.LIST, RowType.ADDED, RowType.MODIFIED, RowType.DELETED)
    newest: dict[str, int] = {}
    names: set[tuple[str | None, str | None]] = set()
    for table in reader.batches(("uid", "seq", "namespace", "name"), streams=["jobs"], types=types):
        keys = table.group_by(["namespace", "name"]).aggregate([])
        names.update(zip(keys["namespace"].to_pylist(), keys["name"].to_pylist(), strict=True))
        grouped = table.group_by("uid").aggregate([("seq", "max")])
        for uid, seq in zip(
            grouped["uid"].to_pylist(), grouped["seq_max"].to_pylist(), strict=True
        ):
            if uid is not None:
                newest[uid] = max(seq, newest.get(uid, -1))
    wanted = pa.array(newest.values(), pa.int64())
    last: list[Mapping[str, Any]] = []
    for table in reader.batches(_LAST, streams=["jobs"], types=types):
        last += table.filter(pc.is_in(table["seq"], value_set=wanted)).to_pylist()
    ran = _with_pods_that_ran(reader, {row["uid"]: row for row in last if _may_wait(row)})
    outcomes = Counter(_outcome(row, ran) for row in last)
    deleted = sum(row["type"] == RowType.DELETED for row in last)
    ordered = dict(sorted(outcomes.items(), key=lambda item: (-item[1], item[0])))
    return JobOutcomes(len(last), len(names), ordered, deleted)


def _outcome(row: Mapping[str, Any], ran: AbstractSet[str]) -> str:
    """The same that the view `jobs` says of it."""
    for condition in row["conditions"] or ():
        if condition["status"] == "True" and condition["type"] == "Complete":
            return "complete"
        if condition["status"] == "True" and condition["type"] == "Failed":
            return f"failed: {condition['reason'] or 'no reason'}"
    if row["type"] == RowType.DELETED:
        return "deleted unfinished"
    if spec_of("jobs", row["spec"]).get("suspend") is True:
        return "suspended"
    waits = row["start_ns"] is None or (_may_wait(row) and row["uid"] not in ran)
    return "not started" if waits else "running"


def _may_wait(row: Mapping[str, Any]) -> bool:
    """Whether its own status tells of no pod that ever ran."""
    return not any(row[name] for name in ("ready", "succeeded", "failed"))


def _with_pods_that_ran(reader: TraceReader, jobs: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Those of the Jobs a pod of which ran, or which count more pods than were recorded."""
    if not jobs:
        return set()
    of_job: dict[str, set[str]] = {uid: set() for uid in jobs}
    ran: set[str] = set()
    asked = pa.array(jobs, pa.string())
    for table in reader.batches(("uid", "owner_uid", "phase"), streams=["pods"]):
        found = table.filter(pc.is_in(table["owner_uid"], value_set=asked))
        for row in found.group_by(["uid", "owner_uid", "phase"]).aggregate([]).to_pylist():
            of_job[row["owner_uid"]].add(row["uid"])
            if row["phase"] in ("Running", "Succeeded", "Failed"):
                ran.add(row["owner_uid"])
    return ran | {uid for uid, row in jobs.items() if (row["active"] or 0) > len(of_job[uid])}


def leader_sessions(reader: TraceReader) -> list[LeaderSession]:
    """Who held which leader election lease, in order; a new holder means a restart."""
    found: dict[tuple[str, str | None, int | None], LeaderSession] = {}
    keys = ["namespace", "name", "holder", "acquire_ns"]
    for table in reader.batches((*keys, "lease_transitions", "recv_ns"), streams=["leases"]):
        elected = table.filter(pc.is_valid(table["lease_transitions"]))
        grouped = elected.group_by(keys).aggregate(
            [("recv_ns", "min"), ("recv_ns", "max"), ("lease_transitions", "max")]
        )
        for row in grouped.to_pylist():
            key = (f"{row['namespace']}/{row['name']}", row["holder"], row["acquire_ns"])
            session = LeaderSession(
                *key, row["lease_transitions_max"], row["recv_ns_min"], row["recv_ns_max"]
            )
            found[key] = _joined(found.get(key), session)
    return sorted(found.values(), key=lambda s: (s.lease, s.first_seen_ns or 0, s.holder or ""))


def _joined(old: LeaderSession | None, new: LeaderSession) -> LeaderSession:
    if old is None:
        return new
    first = min((t for t in (old.first_seen_ns, new.first_seen_ns) if t is not None), default=None)
    last = max((t for t in (old.last_seen_ns, new.last_seen_ns) if t is not None), default=None)
    return LeaderSession(new.lease, new.holder, new.acquired_ns, new.transitions, first, last)
