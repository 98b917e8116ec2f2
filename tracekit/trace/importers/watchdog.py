"""Looks for what should not happen in the order of observations, one line at a time.

Small state per stream, none per object. Contradictions between clusters are errors, everything
else is counted: the rows are kept as they came, and a reader must cope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.extract import number_of
from tracekit.trace.format.model import STATE_TYPES, STREAM_KINDS, WITHOUT_COLUMNS, RowType

#: Namespaces that no one can delete: their uid is the cluster's.
_IMMORTAL = frozenset({"kube-system", "default", "kube-public"})
#: A list may come from a cache that is a little behind; further back, it is another history.
_BEHIND_MAX = 1000
#: What is said of lines that came at a time before the one above.
EARLIER = "receive times earlier than the line before"
UNTIMED = "lines without a receive time, given that of the line before"
_WATCHED = frozenset({RowType.ADDED, RowType.MODIFIED, RowType.DELETED, RowType.BOOKMARK})


class Place(NamedTuple):
    """Where a line stands."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file} line {self.line}"


class Seen(NamedTuple):
    """What of a row is looked at."""

    stream: str
    type: RowType
    rv: int | None
    uid: str | None
    #: Whatever stands there: of an object that no server made it need not be text.
    name: Any
    recv_ns: int | None
    namespace: str | None


class Run(NamedTuple):
    """What is looked at of many states of one stream at once, in their order."""

    stream: str
    rows: int
    #: Revisions of those that are no part of a list.
    watched: list[int | None]
    greatest_rv: int | None
    names: list[str | None]
    last_ns: int


def seen_of(stream: str, row_type: RowType, obj: dict[str, Any], recv_ns: int | None) -> Seen:
    """The same of an object of any shape."""
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    rv = number_of(meta.get("resourceVersion") or obj.get("resourceVersion"))
    uid = meta.get("uid")
    uid = uid if isinstance(uid, str) else None
    space = meta.get("namespace")
    space = space if isinstance(space, str) else None
    return Seen(stream, row_type, rv, uid, meta.get("name"), recv_ns, space)


@dataclass(slots=True)
class StreamState:
    """Where a stream stands."""

    #: Greatest revision seen.
    last_rv: int | None = None
    #: Revision of the newest watch event; they must ascend.
    watch_rv: int | None = None
    last_ns: int | None = None
    lists: int = 0
    #: A list just went far back: revisions start again from there.
    rewound: bool = False
    #: Why the stream broke, None while it goes on.
    broken: str | None = None
    #: How many rows had been seen of all streams when it broke.
    broken_at: int = 0


class Watchdog:
    """Remembers just enough to notice disorder."""

    def __init__(self) -> None:
        self.problems: Counter[str] = Counter()
        #: Why the row just looked at begins after a gap, None if it does not.
        self.relisted: str | None = None
        self._streams: dict[str, StreamState] = {}
        self.last_ns: int | None = None
        self._cluster: dict[str, tuple[str, Place]] = {}
        self._rows = 0
        #: Of all rows, the number of the last that shows a stream alive.
        self._alive_at = 0

    def streams(self) -> list[str]:
        """The streams seen so far, in order of appearance."""
        return list(self._streams)

    def state(self, stream: str) -> StreamState:
        """Where that stream stands."""
        known = self._streams.get(stream)
        if known is None:
            known = self._streams[stream] = StreamState()
        return known

    def broken(self) -> dict[str, str]:
        """Streams that broke and did not come back although others went on, and why."""
        return {
            name: state.broken
            for name, state in self._streams.items()
            if state.broken is not None and state.broken_at < self._alive_at
        }

    def look(self, row: Seen, at: Place) -> None:
        """Check one row before it is written."""
        stream, row_type, rv, uid, name, recv_ns, _ = row
        state = self.state(stream)
        self._times(recv_ns)
        self.relisted = None
        if row_type is RowType.LIST_BEGIN:
            self._list(stream, state, rv)
        elif row_type in _WATCHED:
            self._watch(stream, row_type, state, rv)
        if stream == "namespaces" and uid is not None and type(name) is str and name in _IMMORTAL:
            self._same_cluster(name, uid, at)
        if row_type in STATE_TYPES:
            if not name:
                self.problems["objects without a name in their metadata"] += 1
            if stream not in STREAM_KINDS and stream not in WITHOUT_COLUMNS:
                self.problems[f"objects of the unknown kind {stream}, kept without columns"] += 1

    def seen(self, row: Seen) -> None:
        """Advance over a row that was written."""
        stream, row_type, rv, _, _, recv_ns, _ = row
        state = self.state(stream)
        if recv_ns is not None:
            state.last_ns = recv_ns
        self._rows += 1
        if row_type in (RowType.NOTE, RowType.ERROR):
            state.broken = f"the stream broke ({row_type}) and did not come back"
            state.broken_at = self._rows
            return
        state.broken = None
        self._alive_at = self._rows
        if rv is None:
            return
        if state.rewound:
            state.last_rv = state.watch_rv = None
            state.rewound = False
        if state.last_rv is None or rv > state.last_rv:
            state.last_rv = rv
        if row_type in _WATCHED or row_type is RowType.LIST_END:
            state.watch_rv = rv

    def passes(self, runs: Sequence[Run], first_ns: int, last_ns: int) -> bool:
        """Advance over many rows, as `look` and `seen` would, if there is nothing to say of any.

        Otherwise nothing is done, and each is to be looked at. The times of all ascend.
        """
        if self.last_ns is not None and first_ns < self.last_ns:
            return False
        if not all(self._is_usual(run) for run in runs):
            return False
        for run in runs:
            state = self._streams[run.stream]
            state.last_ns = run.last_ns
            state.broken = None
            if run.greatest_rv is not None:
                state.last_rv = max(run.greatest_rv, state.last_rv or 0)
            if run.watched:
                state.watch_rv = run.watched[-1]
            self._rows += run.rows
        self._alive_at = self._rows
        self.last_ns = last_ns
        return True

    def _is_usual(self, run: Run) -> bool:
        """Whether there is nothing to say of any of these rows."""
        state = self._streams.get(run.stream)
        if state is None or state.rewound or run.stream not in STREAM_KINDS or not all(run.names):
            return False
        if run.stream == "namespaces" and not _IMMORTAL.isdisjoint(run.names):
            return False
        if state.watch_rv is None:
            return not run.watched
        last = state.watch_rv
        for rv in run.watched:
            if rv is None or rv <= last:
                return False
            last = rv
        return True

    def _times(self, recv_ns: int | None) -> None:
        if recv_ns is None:
            self.problems[UNTIMED] += 1
            return
        if self.last_ns is not None and recv_ns < self.last_ns:
            self.problems[EARLIER] += 1
        self.last_ns = recv_ns

    def _list(self, stream: str, state: StreamState, rv: int | None) -> None:
        state.lists += 1
        if state.last_rv is None and state.last_ns is None:
            return
        self.relisted = "the stream was listed again"
        if rv is not None and state.last_rv is not None and rv < state.last_rv - _BEHIND_MAX:
            self.relisted = (
                f"resourceVersion went back from {state.last_rv} to {rv}: "
                "etcd was restored, or this is another cluster"
            )
            self.problems[f"{stream}: {self.relisted}"] += 1
            state.rewound = True

    def _watch(self, stream: str, row_type: RowType, state: StreamState, rv: int | None) -> None:
        if rv is None:
            self.problems["objects without a numeric resourceVersion"] += 1
        elif state.watch_rv is None:
            if state.lists == 0:
                self.problems[f"{stream}: the stream begins without a list"] += 1
        elif rv == state.watch_rv and row_type is not RowType.BOOKMARK:
            self.problems["observations that repeat the revision before"] += 1
        elif rv < state.watch_rv:
            self.problems["observations out of order"] += 1

    def _same_cluster(self, name: str, uid: str, at: Place) -> None:
        known, where = self._cluster.setdefault(name, (uid, at))
        if known != uid:
            raise TraceFormatError(
                f"the input mixes two clusters (namespace {name} has uid {known} at {where} and "
                f"{uid} at {at}): import each cluster into a trace of its own"
            )
