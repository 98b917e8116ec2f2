"""Several traces of one cluster into one: the same revision is the same observation.

The rows of the best source stay; of the others comes what it does not have. Of a revision that both
have, the other one's origin (who wrote it, when at the earliest) goes to the row that stays. States
that were put together are told by what they are of: the pod's node, its mark, its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.model import STATE_TYPES, Origin, TraceHeader
from tracekit.trace.importers.callers import Callers
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.copying import COPIED_COLUMNS, copy_row, origin_of, rows_of
from tracekit.trace.writing.writer import TraceWriter

_COLUMNS = (*COPIED_COLUMNS, "rv", "node_name", "deleted_ns", "deletion_grace_s")

#: Verbs of requests that write nothing.
_LOOKS = frozenset({"get", "list"})

Raw = dict[str, Any]


@dataclass(slots=True)
class Combined:
    """What combining found."""

    #: Revisions that two sources tell.
    shared: int = 0
    #: Rows that only another source had.
    added: int = 0
    #: Rows that learned who wrote them.
    named: int = 0
    #: Whether every row about Jobs has a time of its own.
    timed: bool = True


@dataclass(slots=True)
class _Index:
    """Where the revisions of the best source are, by stream and revision, and by object."""

    rows: dict[tuple[str, int, bool], Raw] = field(default_factory=dict)
    objects: dict[str, list[Raw]] = field(default_factory=dict)
    origins: dict[int, Origin] = field(default_factory=dict)  # by seq
    times: dict[int, int] = field(default_factory=dict)  # by seq
    #: Revisions that a state that was put together was found to be.
    matched: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, reader: TraceReader) -> _Index:
        index = cls()
        columns = ("seq", "stream", "type", "uid", "rv", "node_name", "deleted_ns", "name",
                   "deletion_grace_s", "actor", "rv_after")  # fmt: skip
        for table in reader.batches(columns, types=sorted(STATE_TYPES)):
            for row in table.to_pylist():
                if row["rv"] is None or row["uid"] is None:
                    continue
                key = (row["stream"], row["rv"], row["type"] == "DELETED")
                if row["rv_after"] is None:  # else the revision was chosen: it may be another's
                    index.rows.setdefault(key, row)
                index.objects.setdefault(row["uid"], []).append(row)
        for rows in index.objects.values():
            rows.sort(key=lambda row: (row["rv"], row["seq"]))
        return index

    def counterpart(self, row: Raw) -> Raw | None:
        """The row of the best source that tells the same write."""
        if row["derived_from"] is not None and row["rv_after"] is not None:
            return self._derived(row)
        gone = row["type"] == "DELETED"
        found = self.rows.get((row["stream"], row["rv"], gone))
        if found is None:
            found = self.rows.get((row["stream"], row["rv"], not gone))
        if found is not None and found["uid"] != row["uid"]:
            raise two_clusters(row["rv"], found["name"], row["name"])
        return found

    def _derived(self, row: Raw) -> Raw | None:
        """A state that was put together: the one of its object that shows the same change."""
        known = self.objects.get(row["uid"] or "", [])
        if row["type"] == "DELETED":
            return next((r for r in known if r["type"] == "DELETED"), None)
        found = next(
            (
                after
                for before, after in zip([None, *known], known, strict=False)
                if after["rv"] not in self.matched and _shows(row, before, after)
            ),
            None,
        )
        if found is not None:
            self.matched.add(found["rv"])
        return found

    def learn(self, same: Raw, row: Raw) -> None:
        """Take from the other source's row who made the write; of several that of the first."""
        if row["verb"] in _LOOKS:
            return  # of somebody who read the object
        if row["actor"] is not None and same["actor"] is None:
            origin = replace(origin_of(row), derived_from=None, rv_after=None, rv_before=None)
            self.origins.setdefault(same["seq"], origin)

    def covers(self, row: Raw) -> bool:
        """Whether the best source saw the object both before and after a state put together."""
        known = self.objects.get(row["uid"] or "", [])
        return bool(known) and known[0]["rv"] < row["rv"] < known[-1]["rv"]


def _shows(row: Raw, before: Raw | None, after: Raw) -> bool:
    """Whether a row of the best source shows the change that a state was put together from.

    Between two revisions that the log does tell, an object's writes follow one another as there.
    """
    low, high = row["rv_after"], row["rv_before"]
    if after["type"] == "DELETED" or not low < after["rv"]:
        return False
    if high is not None and after["rv"] >= high:
        return False
    match row["derived_from"]:
        case "binding":
            return bool(after["node_name"]) and (before is None or not before["node_name"])
        case "disruption":
            return after["deleted_ns"] is None and after["node_name"] == row["node_name"]
        case "deletion mark":
            mark = (row["deleted_ns"], row["deletion_grace_s"])
            first = before is not None and before["deleted_ns"] is None and after["deleted_ns"]
            return bool(first) or (after["deleted_ns"], after["deletion_grace_s"]) == mark
    return True


def two_clusters(rv: int, one: str | None, two: str | None) -> TraceFormatError:
    """What to raise for sources that tell one revision of two objects."""
    return TraceFormatError(
        f"the sources are of two clusters: revision {rv} is of {one} in one and of {two} in "
        "another; import each into a trace of its own"
    )


def combine(writer: TraceWriter, traces: Sequence[TraceReader]) -> Combined:
    """Write the rows of all traces, the best one first in `traces`."""
    best, *others = traces
    index = _Index.of(best)
    found = Combined()
    added: list[Iterator[Raw]] = []
    kept: list[list[int]] = []
    best_timed = not best.header.scope.get("times")
    for other in others:
        timed = not best_timed and not other.header.scope.get("times")
        mine = list(_taken(other, index, found, timed=timed))
        callers = Callers(_rows(other))
        if callers:
            for seq, origin in callers.name(_rows(best)):
                index.origins.setdefault(seq, origin)
            mine = [seq for seq in mine if seq not in callers.matched]
        kept.append(mine)
        added.append(_only(other, set(mine)))
    found.named = len(index.origins)
    found.added = sum(map(len, kept))
    for row in _merged(_rows(best), added):
        if row["of"] == 0:
            row["recv_ns"] = index.times.get(row["seq"], row["recv_ns"])
        copy_row(writer, row, index.origins.get(row["seq"]) if row["of"] == 0 else None)
    judged = [r for r in index.rows.values() if r["stream"] in ("jobs", "pods", "cronjobs")]
    found.timed = best_timed or all(row["seq"] in index.times for row in judged)
    return found


def _taken(other: TraceReader, index: _Index, found: Combined, *, timed: bool) -> Iterator[int]:
    """The rows of a lesser source that only it has; what the best has learns from the others."""
    for row in _rows(other):
        if row["type"] in STATE_TYPES:
            same = index.counterpart(row)
            if same is not None:
                found.shared += 1
                if timed:
                    index.times[same["seq"]] = row["recv_ns"]
                index.learn(same, row)
            elif row["rv_after"] is None or not index.covers(row):
                yield row["seq"]
        elif row["type"] == "CALL":  # bounds of lists, notes and gaps are of that source only
            yield row["seq"]


def _rows(reader: TraceReader, of: int = 0) -> Iterator[Raw]:
    for row in rows_of(reader, _COLUMNS):
        row["of"] = of
        yield row


def _only(reader: TraceReader, seqs: set[int]) -> Iterator[Raw]:
    return (row for row in _rows(reader, 1) if row["seq"] in seqs)


def _merged(best: Iterator[Raw], others: Sequence[Iterator[Raw]]) -> Iterator[Raw]:
    """The rows of the best in their order, the others' where their time comes."""
    heads = [next(other, None) for other in others]
    for row in best:
        at_ns = row["recv_ns"] if row["recv_ns"] is not None else 0
        yield from _due(others, heads, at_ns)
        yield row
    yield from _due(others, heads, None)


def _due(
    others: Sequence[Iterator[Raw]], heads: list[Raw | None], until_ns: int | None
) -> Iterator[Raw]:
    while True:
        waiting = [
            (head["recv_ns"] or 0, i)
            for i, head in enumerate(heads)
            if head is not None and (until_ns is None or (head["recv_ns"] or 0) < until_ns)
        ]
        if not waiting:
            return
        _, which = min(waiting)
        head = heads[which]
        assert head is not None  # noqa: S101 - it is waiting
        yield head
        heads[which] = next(others[which], None)


def joined_header(first: TraceHeader, readers: Sequence[TraceReader]) -> TraceHeader:
    """What `first` says of a cluster, and what it leaves open as the best source says it."""
    headers = [reader.header for reader in readers]
    version = next((h.kubernetes_version for h in headers if h.kubernetes_version), None)
    flags = next((h.controller_flags for h in headers if h.controller_flags), ())
    gates = {k: v for h in reversed(headers) for k, v in h.feature_gates.items()}
    return replace(
        first,
        kubernetes_version=first.kubernetes_version or version,
        feature_gates={**gates, **first.feature_gates},
        controller_flags=first.controller_flags or flags,
        sessions=tuple(session for h in headers for session in h.sessions),
        streams=_reconciled_streams(readers),
    )


def _reconciled_streams(readers: Iterable[TraceReader]) -> dict[str, Any]:
    """What is said about streams: that one is not recorded only if no source has it."""
    notes: dict[str, Any] = {}
    has: set[str] = set()
    for reader in readers:
        missing = {
            name
            for name, note in reader.header.streams.items()
            if isinstance(note, dict) and note.get("recorded") is False
        }
        has |= {stream.stream for stream in reader.streams()} - missing
        for name, note in reader.header.streams.items():
            notes.setdefault(name, note)
    return {
        name: note
        for name, note in notes.items()
        if not (isinstance(note, dict) and note.get("recorded") is False and name in has)
    }
