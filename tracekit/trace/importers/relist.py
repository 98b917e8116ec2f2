"""Deletions that nobody saw: objects known before a relist and missing from it.

A list that does not say what it asked for looks at all that its stream looks at: at all namespaces
where the stream is watched or some list of it shows several, else at the one that it shows itself.

The set of live objects is only needed once a stream is listed again, which most logs never do. So
it is built then, from what is in the trace already, and kept up to date from there on, with their
last states: memory grows with the objects alive at a time, and only in logs with relists. What is
in the trace is not asked for again: a log may consist of lists, and each would read all of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from sys import intern
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from tracekit.base.coverage import Scope
from tracekit.base.live_objects import KnownObjects
from tracekit.trace.format.model import CLUSTER_WIDE, STATE_TYPES, RowType
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

#: What only a watch brings; deletions are found by comparing lists, too.
_WATCHED = frozenset(
    {RowType.ADDED, RowType.MODIFIED, RowType.BOOKMARK, RowType.ERROR, RowType.NOTE}
)
#: So many streams are looked for in the trace one by one, when each is listed again; with the next
#: one all are. A cluster has fewer, and a log may name as many as it likes.
_ONE_BY_ONE = 16


class _Live(NamedTuple):
    """An object that is there."""

    seq: int  # of its last state
    namespace: str | None


class _Stream(Struct):
    """What is known of a stream that is listed again."""

    #: Where the last state of an object is, and that state itself.
    live: dict[str, _Live] = field(default_factory=dict)
    states: KnownObjects = field(default_factory=KnownObjects)

    def put(self, uid: str, found: _Live, raw: bytes) -> None:
        self.live[uid] = found
        self.states.put(uid, "", raw)

    def drop(self, uid: str) -> None:
        self.live.pop(uid, None)
        self.states.drop(uid)


class LiveObjects:
    """Which objects each relisted stream holds, by uid, and where their last state is."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        #: Whether all streams are followed, those that are yet to come as well.
        self._all = False
        #: Of the list that is open: its objects, and the namespaces that it shows.
        self._listed: dict[str, set[str]] = {}
        self._shown: dict[str, set[str]] = {}
        self._scopes: dict[str, Scope | None] = {}
        #: Streams whose lists are all of one scope, which is known to be more than one namespace.
        self._wide: set[str] = {*CLUSTER_WIDE}

    def begin_list(self, stream: str, writer: TraceWriter, scope: Scope | None = None) -> None:
        """A list of a stream that was seen before begins.

        What `scope` does not cover is not gone when the list does not hold it; None: the list does
        not say what it asked for.
        """
        self._scopes[stream] = scope
        if not self.follows(stream):
            self._follow(stream, writer)
        self._listed[stream], self._shown[stream] = set(), set()

    def _follow(self, stream: str, writer: TraceWriter) -> None:
        """Learn from the trace what there is of a stream, or of all that are not followed yet."""
        self._all = len(self._streams) >= _ONE_BY_ONE
        writer.flush()
        reader = TraceReader(writer.path)
        past = _past(reader, None if self._all else [stream])
        found = {name: seen for name, seen in past.items() if name not in self._streams}
        for name, seen in found.items():
            self._streams[name] = _Stream()
            if seen.is_watched or len(seen.shown) > 1:
                self._wide.add(name)
        there = {live.seq: (name, uid, live) for name in found for uid, live in found[name].there()}
        for seq, raw in _states(reader, sorted(there)):
            name, uid, live = there[seq]
            self._streams[name].put(uid, live, raw)
        self._streams.setdefault(stream, _Stream())

    def follows(self, stream: str) -> bool:
        """Whether the objects of a stream are kept up to date."""
        return self._all or stream in self._streams

    def seen(
        self,
        stream: str,
        row_type: RowType,
        uid: str | None,
        namespace: str | None,
        seq: int,
        raw: bytes,
    ) -> None:
        """A row was written; `raw` is the text of its object."""
        if not self.follows(stream):
            return
        if row_type in _WATCHED:
            self._wide.add(stream)
        if uid is None or row_type not in STATE_TYPES:
            return
        known = self._streams.setdefault(stream, _Stream())
        if row_type is RowType.DELETED:
            known.drop(uid)
            return
        known.put(uid, _Live(seq, None if namespace is None else intern(namespace)), raw)
        if row_type is RowType.LIST and stream in self._listed:
            self._listed[stream].add(uid)
            if namespace:
                self._shown[stream].add(namespace)

    def end_list(self, stream: str) -> Iterator[bytes]:
        """The last states of the objects that are gone, oldest first."""
        listed = self._listed.pop(stream, None)
        if listed is None:
            return
        scope, shown = self._scopes.pop(stream, None), self._shown.pop(stream)
        if scope is None and stream not in self._wide:
            if len(shown) > 1:
                self._wide.add(stream)
            else:
                scope = Scope(frozenset(shown))
        known = self._streams.setdefault(stream, _Stream())
        gone = [
            (found.seq, uid)
            for uid, found in known.live.items()
            if uid not in listed and (scope is None or scope.covers(found.namespace))
        ]
        for _, uid in sorted(gone):
            raw = known.states.body(uid)
            known.drop(uid)
            yield raw


class _Past(Struct):
    """What a trace has of a stream."""

    newest: dict[str, _Live] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    #: Whether a row of it came by a watch; the namespaces of what was listed.
    is_watched: bool = False
    shown: set[str] = field(default_factory=set)

    def take(self, row: dict[str, Any]) -> None:
        kind, uid = RowType(row["type"]), row["uid"]
        self.is_watched |= kind in _WATCHED
        if kind is RowType.LIST and row["namespace"]:
            self.shown.add(row["namespace"])
        if kind not in STATE_TYPES or uid is None:
            return
        if uid in self.newest and row["seq"] < self.newest[uid].seq:
            return
        self.newest[uid] = _Live(row["seq"], row["namespace"])
        if kind is RowType.DELETED:
            self.deleted.add(uid)
        else:
            self.deleted.discard(uid)

    def there(self) -> Iterator[tuple[str, _Live]]:
        """The objects whose newest row is not a deletion."""
        return ((uid, live) for uid, live in self.newest.items() if uid not in self.deleted)


def _past(reader: TraceReader, streams: list[str] | None) -> dict[str, _Past]:
    """What the trace has of some streams, or of all."""
    past: defaultdict[str, _Past] = defaultdict(_Past)
    columns = ("stream", "uid", "seq", "type", "namespace")
    for table in reader.batches(columns, streams=streams):
        for row in table.sort_by("seq").to_pylist():
            if row["stream"] is not None:
                past[row["stream"]].take(row)
    return past


def _states(reader: TraceReader, seqs: list[int]) -> Iterator[tuple[int, bytes]]:
    if not seqs:
        return
    wanted = pa.array(seqs, pa.int64())
    for table in reader.batches(("seq", "raw"), first_seq=seqs[0], last_seq=seqs[-1]):
        rows = table.filter(pc.is_in(table["seq"], value_set=wanted)).sort_by("seq")
        for row in rows.to_pylist():
            yield row["seq"], row["raw"].encode()
