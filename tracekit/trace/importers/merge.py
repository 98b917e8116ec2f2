"""Several recorders' traces of one cluster into one, in which each fills the others' gaps.

All of them are equal here, unlike in `combine`: the same revision is the same observation, whoever
received it, and the earlier receipt counts. Lists that no gap needs any more go, gaps that all had
stay, and deletions that nobody saw are told by comparing the lists that are left.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.trace.format.model import STATE_TYPES, Gap, RowType, TraceHeader
from tracekit.trace.importers.combine import joined_header, two_clusters
from tracekit.trace.importers.recorder_coverage import Ending, Sight, Unseen, joined, sights_of
from tracekit.trace.importers.relist import LiveObjects
from tracekit.trace.reading.coverage import scope_in
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.copying import COPIED_COLUMNS, copy_row, rows_of
from tracekit.trace.writing.writer import TraceWriter

#: Recorders' clocks that differ by more are put right by the revisions that both received.
CLOCKS_APART_NS = NS_PER_S
_BREAKS = frozenset({str(RowType.ERROR), str(RowType.NOTE)})
_BOUNDS = frozenset({str(RowType.LIST_BEGIN), str(RowType.LIST_END)})
_INDEXED = ("seq", "stream", "type", "uid", "rv", "recv_ns", "name", "synthesized", "derived_from")
#: What a header says of a source that did not watch, and of one that is not all of a record.
#: The stream of containers' last words: no watch, and no revisions.
_LOGS = "logs"
_NO_WATCH = ("times", "unlisted", "left_out")

Row = dict[str, Any]
#: Stream, uid, revision and whether it is the object's end.
Observation = tuple[str, str, int, bool]


class Receipt(NamedTuple):
    """Where an observation is told: words before a gap where they were, then the earlier one."""

    gap: bool
    at_ns: int
    source: int
    seq: int


@dataclass(slots=True)
class Merged:
    """What merging found."""

    rows: int = 0
    #: Observations by how many came from each recorder.
    taken: list[int] = field(default_factory=list)
    gaps_before: int = 0
    gaps_left: int = 0
    #: By how much each recorder's clock was put right.
    shifts_ns: list[int] = field(default_factory=list)
    #: States in a list that a recorder who was watching then had not been told.
    unreported: int = 0


@dataclass(slots=True)
class _Plan:
    """Which row of which trace stands for what."""

    best: dict[Observation, Receipt] = field(default_factory=dict)
    needed: dict[int, list[Sight]] = field(default_factory=dict)  # by source
    unseen: list[Unseen] = field(default_factory=list)
    #: When each observation is known to have been made, at the latest, by stream and revision.
    known_ns: dict[tuple[str, int], int] = field(default_factory=dict)


def merge(readers: Sequence[TraceReader], writer: TraceWriter) -> Merged:
    """Write the merged rows of traces that `merged_header` let pass."""
    found = Merged(taken=[0] * len(readers))
    receipts = [_receipts(reader) for reader in readers]
    found.shifts_ns = _shifts(receipts)
    plan = _Plan()
    sights, endings = [], []
    for source, (reader, shift_ns) in enumerate(zip(readers, found.shifts_ns, strict=True)):
        seen, ends = sights_of(reader, source, shift_ns)
        sights += seen
        endings += ends
        found.gaps_before += len(reader.gaps())
    _choose_lists(plan, sights, endings)
    _choose_rows(plan, receipts, found)
    _write(writer, readers, plan, found)
    found.rows = writer.next_seq
    return found


#### Which cluster, and what is said of it ####


def merged_header(readers: Sequence[TraceReader], names: Sequence[str]) -> TraceHeader:
    """What the traces together say of the cluster.

    Raises:
        UsageError: They are of several clusters, of different parts of one, or no records of
            watches.
    """
    headers = [reader.header for reader in readers]
    for name, header in zip(names, headers, strict=True):
        odd = next((part for part in _NO_WATCH if header.scope.get(part)), None)
        if odd is not None:
            raise UsageError(
                f"{name} was not recorded by list and watch as it is ({header.scope[odd]}): merge "
                "takes such records only; `tracekit import A --with B -o TRACE` combines others"
            )
        if len(header.scope.get("namespaces") or ()) > 1:
            raise UsageError(
                f"{name} records several namespaces by themselves, whose gaps a trace does not "
                "tell apart: merge traces of all namespaces, or of one"
            )
    _check_same(headers, names)
    versions = {h.kubernetes_version for h in headers if h.kubernetes_version}
    if len(versions) > 1:
        raise UsageError(
            f"the traces are of {' and '.join(sorted(versions))}: a merged trace is judged by one "
            "version's rules, so merge those of one version"
        )
    return replace(
        joined_header(headers[0], readers),
        scope={k: v for h in reversed(headers) for k, v in h.scope.items() if v is not None}
        | {name: headers[0].scope.get(name) for name in ("namespaces", "selector")},
        sealed_from=0,
    )


def _check_same(headers: Sequence[TraceHeader], names: Sequence[str]) -> None:
    uids: dict[str, str] = {}
    parts: dict[Any, str] = {}
    for header, name in zip(headers, names, strict=True):
        uid = header.scope.get("cluster_uid")
        if isinstance(uid, str):
            uids.setdefault(uid, name)
        spaces = header.scope.get("namespaces")
        part = (tuple(spaces or ()), header.scope.get("selector"), header.scope.get("pods"))
        parts.setdefault(part, name)
    if len(uids) > 1:
        one, two, *_ = uids.values()
        raise UsageError(
            f"{one} and {two} are of two clusters (their kube-system namespaces have different "
            "uids): merge traces of one"
        )
    if len(parts) > 1:
        one, two, *_ = parts.values()
        raise UsageError(
            f"{one} and {two} record different parts of a cluster (namespaces, selector): merge "
            "traces of the same part"
        )


#### Which rows ####


def _receipts(reader: TraceReader) -> dict[Observation, Row]:
    """Every state that a trace tells, where it does so first; a watch tells more than a list."""
    found: dict[Observation, Row] = {}
    silent = _silent_logs(reader)
    for table in reader.batches(_INDEXED, types=sorted(STATE_TYPES)):
        for row in table.to_pylist():
            if row["synthesized"] and row["derived_from"] is None:
                continue  # told by comparing lists, which is done anew
            key = _observation(row)
            if key is None:
                continue
            row["gap"] = row["seq"] in silent
            known = found.get(key)
            if known is None or _rank(row) < _rank(known):
                found[key] = row
    return found


def _observation(row: Row) -> Observation | None:
    """What tells the row from all others; None where nothing does."""
    stream, uid, rv = row["stream"] or "", row["uid"], row["rv"]
    if uid is None or (rv is None and stream != _LOGS):
        return None
    return stream, uid, rv or 0, row["type"] == RowType.DELETED


def _silent_logs(reader: TraceReader) -> set[int]:
    """The rows that say why the last words of a container could not be had."""
    return {
        row["seq"]
        for table in reader.batches(("seq", "raw"), streams=[_LOGS])
        for row in table.to_pylist()
        if '"gap"' in (row["raw"] or "") and "gap" in orjson.loads(row["raw"])
    }


def _rank(row: Row) -> tuple[bool, bool, int]:
    return row["gap"], row["type"] == RowType.LIST, row["seq"]


def _shifts(receipts: Sequence[Mapping[Observation, Row]]) -> list[int]:
    """What to add to each recorder's times, so that all have the clock of the first.

    Raises:
        UsageError: A recorder has no object in common with the others, or another cluster's.
    """
    shifts = [0]
    base = {key: row["recv_ns"] for key, row in receipts[0].items() if row["type"] != RowType.LIST}
    objects = {(stream, rv): (uid, row) for (stream, uid, rv, _), row in receipts[0].items()}
    uids = {uid for _, uid, _, _ in receipts[0]}
    for other in receipts[1:]:
        for (stream, uid, rv, _), row in other.items():
            known = objects.get((stream, rv))
            if known is not None and known[0] != uid and stream != "events":
                raise two_clusters(rv, known[1]["name"], row["name"])
        if uids.isdisjoint(uid for _, uid, _, _ in other):
            raise UsageError(
                "the traces have no object in common, so nothing shows that they are of one "
                "cluster, or of one time"
            )
        apart = [
            row["recv_ns"] - base[key]
            for key, row in other.items()
            if key in base and row["type"] != RowType.LIST
        ]
        middle = int(median(apart)) if apart else 0
        shift = -middle if abs(middle) > CLOCKS_APART_NS else 0
        shifts.append(shift)
        for key, row in other.items():
            if row["type"] != RowType.LIST:
                base.setdefault(key, row["recv_ns"] + shift)
        uids |= {uid for _, uid, _, _ in other}
    return shifts


def _choose_lists(plan: _Plan, sights: Sequence[Sight], endings: Sequence[Ending]) -> None:
    by_stream = attrgetter("stream")
    for stream, group in groupby(sorted(sights, key=by_stream), key=by_stream):
        mine = [e for e in endings if e.sight is not None and e.sight.stream == stream]
        needed, unseen = joined(group, mine)
        for sight in needed:
            plan.needed.setdefault(sight.source, []).append(sight)
        plan.unseen += unseen


def _choose_rows(plan: _Plan, receipts: Sequence[Mapping[Observation, Row]], found: Merged) -> None:
    """For each observation the earliest receipt by a watch; by a list only with that list."""
    listed: set[Observation] = set()
    kept: set[Observation] = set()
    for source, (mine, shift_ns) in enumerate(zip(receipts, found.shifts_ns, strict=True)):
        for key, row in mine.items():
            if row["type"] == RowType.LIST:
                (kept if _in_needed(plan, source, row["seq"]) else listed).add(key)
                continue
            receipt = Receipt(row["gap"], row["recv_ns"] + shift_ns, source, row["seq"])
            known = plan.best.get(key)
            if known is None or receipt < known:
                plan.best[key] = receipt
    found.unreported = sum(1 for key in listed if key not in plan.best and key not in kept)
    _order(plan)


def _in_needed(plan: _Plan, source: int, seq: int) -> bool:
    return any(
        sight.listed is not None and sight.listed[0] <= seq <= sight.listed[1]
        for sight in plan.needed.get(source, ())
    )


def _order(plan: _Plan) -> None:
    """A revision was there by the time at which a later one of its stream was received."""
    latest: dict[str, int] = {}
    for key in sorted(plan.best, key=lambda k: (k[0], -k[2])):
        stream, rv = key[0], key[2]
        at_ns = min(plan.best[key].at_ns, latest.get(stream, 1 << 62))
        plan.known_ns[stream, rv] = latest[stream] = at_ns


#### Writing ####


def _write(writer: TraceWriter, readers: Sequence[TraceReader], plan: _Plan, found: Merged) -> None:
    live = LiveObjects()
    gaps = {id(u.after): u for u in plan.unseen if u.after is not None}
    begun: set[str] = set()
    lists = {
        (sight.source, sight.listed[0]): sight
        for sights in plan.needed.values()
        for sight in sights
        if sight.listed is not None
    }
    merged = heapq.merge(
        *(_wanted(reader, source, plan, found) for source, reader in enumerate(readers)),
        key=lambda item: item[0],
    )
    for _, row in merged:
        stream, kind = row["stream"], row["type"]
        source = row.pop("of")
        begins = lists.get((source, row["seq"])) if kind == RowType.LIST_BEGIN else None
        if begins is not None:
            if id(begins) in gaps:
                _write_gap(writer, gaps[id(begins)])
                found.gaps_left += 1
            if stream in begun:
                live.begin_list(stream, writer, scope_in(row["raw"]))
            begun.add(stream)
        at = writer.next_seq
        copy_row(writer, row)
        if live.follows(stream):
            raw = (row["raw"] or "{}").encode()
            live.seen(stream, RowType(kind), row["uid"], row["namespace"], at, raw)
        if kind == RowType.LIST_END:
            for raw in live.end_list(stream):
                writer.append(stream, RowType.DELETED, row["recv_ns"], raw, synthesized=True)
    for unseen in plan.unseen:
        if unseen.after is None or unseen.after.listed is None:
            _write_gap(writer, unseen)
            found.gaps_left += 1


def _write_gap(writer: TraceWriter, unseen: Unseen) -> None:
    before, after = unseen.before, unseen.after
    writer.gap(
        Gap(
            before.stream,
            unseen.reason,
            before.end_rv,
            None if after is None else after.start_rv,
            before.until_ns,
            None if after is None else after.from_ns,
        ),
        before.until_ns if after is None else after.from_ns,
    )


def _wanted(
    reader: TraceReader, source: int, plan: _Plan, found: Merged
) -> Iterator[tuple[tuple[int, int, int], Row]]:
    """The rows of one trace that are to be written, each with its place in the order of all."""
    shift_ns = found.shifts_ns[source]
    needed = plan.needed.get(source, [])
    place = 0
    for row in rows_of(reader, (*COPIED_COLUMNS, "rv")):
        if not _is_wanted(row, source, plan, needed):
            continue
        if row["recv_ns"] is not None:
            row["recv_ns"] += shift_ns
        if row["not_before_ns"] is not None:
            row["not_before_ns"] += shift_ns
        at_ns = row["recv_ns"] or place
        if row["type"] in STATE_TYPES and row["type"] != RowType.LIST:
            at_ns = plan.known_ns.get((row["stream"] or "", row["rv"] or 0), at_ns)
            found.taken[source] += 1
        place = max(place, at_ns)  # what one recorder took down stays in its order
        row["of"] = source
        yield (place, source, row["seq"]), row


def _is_wanted(row: Row, source: int, plan: _Plan, needed: Sequence[Sight]) -> bool:
    kind, seq = row["type"], row["seq"]
    if kind == RowType.GAP or (row["synthesized"] and row["derived_from"] is None):
        return False  # those that are left are written anew
    if kind in _BOUNDS or kind == RowType.LIST:
        return _in_needed(plan, source, seq)
    if kind in _BREAKS:
        # What broke is of interest where nobody else was watching.
        return any(
            s.stream == row["stream"] and s.listed is not None and s.after_seq < seq <= s.listed[1]
            for s in needed
        )
    observation = _observation(row) if kind in STATE_TYPES else None
    if observation is None:
        return True
    best = plan.best.get(observation)
    return best is not None and (best.source, best.seq) == (source, seq)
