"""The coverage of a trace, out of its lists, watches and gaps; older traces have it by the same.

What a list asked for stands in its LIST_BEGIN, else in the trace's header. Where nobody says it, it
is read off the rows: one request asks for one namespace or for all, so a record that shows several
of them has asked for all, and one that shows a single one has asked for that one at least.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.coverage import ALL, Coverage, Listed, Scope, Span, asked_in, scope_of, spans_of
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.trace.format.model import CLOCKS, STATE_TYPES, RowType, TraceHeader
from tracekit.trace.reading.reader import TraceReader

#: Sources that ask for lists: a stream of theirs that shows no change was not watched.
_LOOKING = frozenset({"import kubectl", "import kshrk", "import sched-recorder"})
#: What only a watch brings, or what becomes of one.
_WATCH_TYPES = frozenset(
    {RowType.ADDED, RowType.MODIFIED, RowType.DELETED, RowType.BOOKMARK, RowType.ERROR,
     RowType.NOTE}
)  # fmt: skip
_KEYS = ["stream", "type", "namespace", "synthesized"]
#: The columns of all rows that are looked at, and those of the bounds of lists.
COLUMNS = (*_KEYS, "recv_ns", "name", "code")
BOUNDS = (
    "seq", "stream", "type", "recv_ns", "rv", "raw", "gap_from_ns", "gap_until_ns", "gap_reason"
)  # fmt: skip
#: What of objects dates lists that do not say when they were taken.
DATES = ("rv", "created_ns")
_BOUND_TYPES = (RowType.LIST_BEGIN, RowType.LIST_END, RowType.GAP)
_SEVERAL = 2
#: HTTP status codes from here on.
_REFUSED = 400
#: What these show says nothing of what the others asked for.
_APART = frozenset({"leases", "namespaces"})


class _List(NamedTuple):
    """A list that has ended; the scope is None where it does not say what it asked for."""

    scope: Scope | None
    at_ns: int
    first_seq: int
    last_seq: int
    #: Its revision; None where it does not say it.
    rv: int | None = None
    #: The namespaces of its items, where these were looked at.
    shown: frozenset[str] | None = None


class _Gap(NamedTuple):
    from_ns: int
    until_ns: int | None
    reason: str


@dataclass(slots=True)
class _Stream:
    """What the rows of one stream are like."""

    watched: bool = False
    has_states: bool = False
    #: Whether a log of requests has some of them, none of which made a state: all were refused.
    has_refusals: bool | None = None
    is_listed: bool = False
    namespaces: set[str] = field(default_factory=set)
    lists: list[_List] = field(default_factory=list)
    gaps: list[_Gap] = field(default_factory=list)


def coverage_of(reader: TraceReader) -> Coverage:
    """What a trace covers."""
    seen = SeenRows()
    for table in reader.batches(COLUMNS):
        seen.feed(table)
    seen.bounds(reader.table(BOUNDS, types=_BOUND_TYPES))
    for stream in seen.looked_at():
        names = ("seq", "namespace")
        seen.listed(stream, reader.table(names, streams=[stream], types=[RowType.LIST]))
    if not _is_timed(reader.header):
        seen.date(reader.table(DATES, types=sorted(STATE_TYPES)))
    return seen.coverage(reader.header)


class SeenRows:
    """What the rows of a trace tell of its coverage, as they come."""

    def __init__(self) -> None:
        """No row was there yet."""
        self._streams: defaultdict[str, _Stream] = defaultdict(_Stream)
        #: By stream, what the list that is open asked for, and where it begins.
        self._begun: dict[str, tuple[Scope | None, int]] = {}
        #: Of the stream of namespaces, up to two names.
        self._spaces: set[str] = set()
        self._first_ns, self._last_ns = 1 << 62, 0

    def feed(self, table: pa.Table) -> None:
        """Take in rows with `COLUMNS`, in any order."""
        grouped = table.group_by(_KEYS).aggregate(
            [("recv_ns", "min_max"), ("name", "min_max"), ("code", "min")]
        )
        for row in grouped.to_pylist():
            times, names = row["recv_ns_min_max"], row["name_min_max"]
            if times["min"] is not None:
                self._first_ns = min(self._first_ns, times["min"])
                self._last_ns = max(self._last_ns, times["max"])
            if row["stream"] and row["stream"] != CLOCKS:
                _take(self._streams[row["stream"]], row)
            if row["stream"] == "namespaces" and names["min"] and len(self._spaces) < _SEVERAL:
                self._spaces.update(names.values())

    def take(self, rows: pa.Table) -> None:
        """Take in rows with all columns, in order of arrival."""
        self.feed(rows)
        kinds = pa.array([str(kind) for kind in _BOUND_TYPES])
        bounds = rows.filter(pc.is_in(pc.cast(rows["type"], pa.string()), value_set=kinds))
        self.bounds(bounds)

    def bounds(self, table: pa.Table) -> None:
        """Take in bounds of lists and gaps, rows with `BOUNDS` in order of arrival."""
        for row in table.select(list(BOUNDS)).to_pylist():
            stream = row["stream"] or ""
            if row["type"] == RowType.GAP:
                gap = _Gap(row["gap_from_ns"] or 0, row["gap_until_ns"], row["gap_reason"] or "")
                self._streams[stream].gaps.append(gap)
                continue
            own, seq = scope_in(row["raw"]), row["seq"]
            if row["type"] == RowType.LIST_BEGIN:
                self._begun[stream] = own, seq
            else:
                scope, first_seq = self._begun.get(stream, (None, seq))
                ended = _List(own or scope, row["recv_ns"] or 0, first_seq, seq, row["rv"] or None)
                self._streams[stream].lists.append(ended)

    def looked_at(self) -> list[str]:
        """Streams without a watch of which a list does not say what it asked for."""
        return [
            name
            for name, seen in self._streams.items()
            if name != "namespaces"
            and not seen.watched
            and any(found.scope is None for found in seen.lists)
        ]

    def listed(self, stream: str, table: pa.Table) -> None:
        """Take in all items of a stream's lists, with `seq` and `namespace`, in order."""
        seqs, spaces = table["seq"].to_pylist(), table["namespace"].to_pylist()
        lists = self._streams[stream].lists
        for place, ended in enumerate(lists):
            first, last = bisect_left(seqs, ended.first_seq), bisect_left(seqs, ended.last_seq)
            shown = frozenset(space for space in spaces[first:last] if space)
            lists[place] = ended._replace(shown=shown)

    def date(self, table: pa.Table) -> None:
        """Date lists without a time by the creation of objects, rows with `DATES`.

        What a list of some revision is of was there when all of lower revisions had been written,
        and when the lists of lower revisions were taken.
        """
        lists = [ended for seen in self._streams.values() for ended in seen.lists]
        known = [(ended.rv, ended.at_ns) for ended in lists if ended.rv is not None]
        written = zip(table["rv"].to_pylist(), table["created_ns"].to_pylist(), strict=True)
        known += [(rv, at_ns) for rv, at_ns in written if rv is not None and at_ns is not None]
        known.sort()
        revisions = [rv for rv, _ in known]
        latest = [*accumulate((at_ns for _, at_ns in known), max)]
        for seen in self._streams.values():
            seen.lists = [
                ended
                if ended.rv is None
                else ended._replace(at_ns=latest[bisect_right(revisions, ended.rv) - 1])
                for ended in seen.lists
            ]

    def coverage(self, header: TraceHeader, end_ns: int = 0) -> Coverage:
        """What these rows cover; the record goes on until `end_ns`, if it has no later row."""
        end_ns = max(end_ns, self._last_ns)
        scopes = _Scopes(header, self._streams, several=len(self._spaces) >= _SEVERAL)
        bounds_ns = min(self._first_ns, end_ns), end_ns
        watching = any(seen.watched for seen in self._streams.values())
        spans: list[Span] = []
        unseen: dict[str, str] = {}
        everywhere = self._streams.get("", _Stream()).gaps  # of a part of the trace that is lost
        for name in sorted({*self._streams, *header.streams} - {""}):
            seen = self._streams.get(name, _Stream())
            seen = replace(seen, gaps=[*seen.gaps, *everywhere])
            about = header.streams.get(name)
            said = about if isinstance(about, Mapping) else {}
            if said.get("recorded") is False and not seen.has_refusals:
                unseen[name] = str(said.get("reason") or "not recorded")
                continue
            found = list(_spans(name, seen, scopes, bounds_ns, watching=watching))
            spans += found
            if not found and seen.gaps:
                unseen[name] = seen.gaps[0].reason
        timed = _is_timed(header)
        undated = {
            name
            for name, seen in self._streams.items()
            if any(ended.rv is None for ended in seen.lists)
        }
        return Coverage(
            tuple(sorted(spans, key=_place)),
            end_ns,
            unseen,
            timed,
            frozenset() if timed else frozenset(undated),
        )


def _is_timed(header: TraceHeader) -> bool:
    """Whether its rows have times at which they were received."""
    return not header.scope.get("times")


def _spans(
    name: str, seen: _Stream, scopes: _Scopes, bounds_ns: tuple[int, int], *, watching: bool
) -> Iterator[Span]:
    first_ns, end_ns = bounds_ns
    watched = seen.watched or scopes.records
    if not watched and watching and not scopes.looks:
        # A watch log's stream at which nothing happened; one that was polled has several lists.
        watched = len({ended.scope for ended in seen.lists}) == len(seen.lists)
    # Lists of a stream that do not say what they asked for asked for the same: for all namespaces
    # if one shows several. A look shows the one that it asked for, and if it is empty, none.
    several = any(len(ended.shown or ()) > 1 for ended in seen.lists)
    own = ALL if several else scopes.of(name)
    lists = [
        Listed(
            ended.scope
            or (own if watched or several or ended.shown is None else Scope(ended.shown)),
            ended.at_ns,
        )
        for ended in seen.lists
    ]
    if not lists and (seen.has_states or seen.has_refusals) and not seen.is_listed:
        lists, watched = [Listed(scopes.of(name), first_ns)], True
    gaps = [(gap.from_ns, gap.until_ns) for gap in seen.gaps]
    yield from spans_of(name, lists, gaps, end_ns, watched=watched)


class _Scopes:
    """What lists asked for that do not say it themselves."""

    def __init__(
        self, header: TraceHeader, streams: Mapping[str, _Stream], *, several: bool
    ) -> None:
        """`several`: whether the cluster's namespaces were listed too, more than one."""
        sources = {str(session.get("source") or "") for session in header.sessions}
        self.records = bool(sources) and sources <= {"record", "simulate"}
        self.looks = bool(sources & _LOOKING)
        self._streams = streams
        named, selector = header.scope.get("namespaces"), header.scope.get("selector")
        self._selector = str(selector) if selector else None
        self._pods = "job-name" if header.scope.get("pods") == "job" else None
        self._named = scope_of(list(named)) if isinstance(named, list | tuple) else None
        self._all = several or self.records
        shown: set[str] = set()
        for name, seen in streams.items():
            if name not in _APART:
                self._all = self._all or len(seen.namespaces) > 1
                shown |= seen.namespaces
        self._shown = frozenset(shown)

    def of(self, stream: str) -> Scope:
        """What the lists of a stream asked for."""
        if stream == "namespaces" and self._named is None:
            return ALL
        if stream == "leases":
            seen = self._streams.get(stream, _Stream()).namespaces
            own = {CONTROLLER_MANAGER_LEASE_NAMESPACE} if self.records else set()
            return ALL if self._all and self._named is None else Scope(frozenset(seen | own))
        selector = self._selector
        if stream == "pods" and self._pods is not None:
            selector = self._pods if selector is None else f"{selector},{self._pods}"
        if stream not in ("jobs", "cronjobs", "pods"):
            selector = None
        if self._named is not None:
            return self._named._replace(selector=selector)
        return Scope(None if self._all else self._shown, selector)


def _take(seen: _Stream, row: Mapping[str, Any]) -> None:
    kind = row["type"]
    seen.is_listed = seen.is_listed or kind == RowType.LIST_BEGIN
    # What was put together, or found gone by comparing lists, no watch has brought.
    seen.watched = seen.watched or (kind in _WATCH_TYPES and not row["synthesized"])
    if kind == RowType.CALL:
        refused = (row["code_min"] or 0) >= _REFUSED
        seen.has_refusals = refused and seen.has_refusals is not False
    if kind in STATE_TYPES:
        seen.has_states = True
        if row["namespace"]:
            seen.namespaces.add(row["namespace"])


def scope_in(raw: str | None) -> Scope | None:
    """What the text of a list's bound says that it asked for; None where it does not."""
    try:
        body = orjson.loads(raw or "null")
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    return asked_in(body)


def _place(span: Span) -> tuple[str, int, int]:
    return span.stream, span.from_ns, span.until_ns
