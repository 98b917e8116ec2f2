"""Deletions that nobody saw: objects known before a relist and missing from it.

A list that does not say what it asked for looks at all that its stream looks at: at all namespaces
where the stream is watched or some list of it shows several, else at the one that it shows itself.

The set of live objects is only needed once a stream is listed again, which most logs never do. So
it is built then, from what is in the trace already, and kept up to date from there on: memory grows
with the objects alive at a time, and only in logs with relists.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.coverage import Scope
from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

_STATES = tuple(sorted(STATE_TYPES))
#: What only a watch brings; deletions are found by comparing lists, too.
_WATCHED = frozenset(
    {RowType.ADDED, RowType.MODIFIED, RowType.BOOKMARK, RowType.ERROR, RowType.NOTE}
)
#: Of which no object has a namespace.
_CLUSTER_WIDE = frozenset({"namespaces", "nodes"})


class _Live(NamedTuple):
    """An object that is there."""

    seq: int  # of its last state
    namespace: str | None


class LiveObjects:
    """Which objects each relisted stream holds, by uid, and where their last state is."""

    def __init__(self) -> None:
        self._live: dict[str, dict[str, _Live]] = {}
        #: Of the list that is open: its objects, and the namespaces that it shows.
        self._listed: dict[str, set[str]] = {}
        self._shown: dict[str, set[str]] = {}
        self._scopes: dict[str, Scope | None] = {}
        #: Streams whose lists are all of one scope, which is known to be more than one namespace.
        self._wide: set[str] = {*_CLUSTER_WIDE}

    def begin_list(self, stream: str, writer: TraceWriter, scope: Scope | None = None) -> None:
        """A list of a stream that was seen before begins.

        What `scope` does not cover is not gone when the list does not hold it; None: the list does
        not say what it asked for.
        """
        self._scopes[stream] = scope
        if stream not in self._live:
            writer.flush()
            reader = TraceReader(writer.path)
            self._live[stream] = _scan(reader, stream)
            if _is_watched(reader, stream) or len(_shown(reader, stream)) > 1:
                self._wide.add(stream)
        self._listed[stream], self._shown[stream] = set(), set()

    def follows(self, stream: str) -> bool:
        """Whether the objects of a stream are kept up to date."""
        return stream in self._live

    def seen(
        self, stream: str, row_type: RowType, uid: str | None, namespace: str | None, seq: int
    ) -> None:
        """A row was written."""
        live = self._live.get(stream)
        if live is not None and row_type in _WATCHED:
            self._wide.add(stream)
        if live is None or uid is None or row_type not in STATE_TYPES:
            return
        if row_type is RowType.DELETED:
            live.pop(uid, None)
            return
        live[uid] = _Live(seq, None if namespace is None else intern(namespace))
        if row_type is RowType.LIST and stream in self._listed:
            self._listed[stream].add(uid)
            if namespace:
                self._shown[stream].add(namespace)

    def end_list(self, stream: str, writer: TraceWriter) -> Iterator[bytes]:
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
        live = self._live[stream]
        gone = {
            found.seq: uid
            for uid, found in live.items()
            if uid not in listed and (scope is None or scope.covers(found.namespace))
        }
        if not gone:
            return
        writer.flush()
        for seq, raw in _states(TraceReader(writer.path), sorted(gone)):
            del live[gone[seq]]
            yield raw


def _scan(reader: TraceReader, stream: str) -> dict[str, _Live]:
    """The objects of the stream whose newest row is not a deletion."""
    newest: dict[str, _Live] = {}
    deleted: set[str] = set()
    for table in reader.batches(
        ("uid", "seq", "type", "namespace"), streams=[stream], types=_STATES
    ):
        for row in table.sort_by("seq").to_pylist():
            uid = row["uid"]
            if uid is None or (uid in newest and row["seq"] < newest[uid].seq):
                continue
            newest[uid] = _Live(row["seq"], row["namespace"])
            if row["type"] == RowType.DELETED:
                deleted.add(uid)
            else:
                deleted.discard(uid)
    return {uid: found for uid, found in newest.items() if uid not in deleted}


def _is_watched(reader: TraceReader, stream: str) -> bool:
    """Whether a row of the stream came by a watch."""
    rows = reader.batches(("seq",), streams=[stream], types=sorted(_WATCHED))
    return any(table.num_rows for table in rows)


def _shown(reader: TraceReader, stream: str) -> frozenset[str]:
    """The namespaces of what was listed of the stream."""
    rows = reader.batches(("namespace",), streams=[stream], types=[RowType.LIST])
    return frozenset(
        name for table in rows for name in table["namespace"].unique().to_pylist() if name
    )


def _states(reader: TraceReader, seqs: list[int]) -> Iterator[tuple[int, bytes]]:
    wanted = pa.array(seqs, pa.int64())
    for table in reader.batches(("seq", "raw"), first_seq=seqs[0], last_seq=seqs[-1]):
        rows = table.filter(pc.is_in(table["seq"], value_set=wanted)).sort_by("seq")
        for row in rows.to_pylist():
            yield row["seq"], row["raw"].encode()
