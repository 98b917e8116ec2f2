"""The entrance of judging: what a trace proves of its times, and its rows on one clock.

Rows are put on the clock that is judged on here, once; verdicts go back to the recorder's clock
when they leave. A recorder's clock that is off by any constant changes no verdict so.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from tracekit.base.coverage import Coverage
from tracekit.base.kube.leases import (
    CONTROLLER_MANAGER_LEASE,
    CONTROLLER_MANAGER_LEASE_NAMESPACE,
    NODE_LEASE_NAMESPACE,
)
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.clock_notes import ClockNote
from tracekit.check.replay.commit_times import Arrivals, Timed, timed
from tracekit.check.replay.instants import JudgedNs, RecordedNs, ServerNs
from tracekit.check.replay.recorder_clock import Epoch, RecorderClock
from tracekit.check.verdict import Assumption, Judgement
from tracekit.trace.format.model import CLOCKS, STATE_TYPES, RowType
from tracekit.trace.reading.groups import Group
from tracekit.trace.reading.reader import TraceReader

#: The streams whose rows are asked whether they came late.
STREAMS: Final = ("jobs", "pods", "cronjobs")
#: Rows that are Python objects at a time, whatever is read of a record as a whole.
AT_A_TIME: Final = 10_000
#: The streams of one store: their revisions are ordered.
_STORE: Final = (*STREAMS, "leases", "namespaces")
#: The streams that tell of times.
TELLING: Final = (*_STORE, "events", CLOCKS)
#: Events may lie in another store: so many tell whether these do.
_EVENTS_MIN: Final = 3
#: One in so many may be newer than all else: the last ones.
_EVENTS_BEYOND: Final = 10
#: No clock shows a time of after 2116.
_NO_CLOCK_NS: Final = 1 << 62
_NEVER: Final = pa.scalar(0, pa.int64())
_NOBODY: Final = pa.scalar("", pa.string())
_COLUMNS: Final = (
    "seq", "rv", "recv_ns", "stream", "type", "namespace", "name", "uid", "created_ns",
    "deleted_ns", "deletion_grace_s", "renew_ns", "synthesized", "not_before_ns", "gap_until_ns",
    "managers", "node_name", "containers", "holder", "start_ns", "completion_ns",
)  # fmt: skip


def timed_of(reader: TraceReader) -> Timed:
    """What the rows of a trace prove of their times.

    Where the source is no watch but tells the API server's own times, these stand.
    """
    if reader.header.scope.get("times"):
        return Timed()
    rows = Arrivals(notes=list(_notes(reader)))
    newest = _Newest()
    for table in _by_arrival(reader):
        for some in table.to_batches(AT_A_TIME):
            if not _take(rows, some, newest):
                return Timed()
    return timed(rows, STREAMS, reader.header.clock_offset_ns)


def _notes(reader: TraceReader) -> Iterator[ClockNote]:
    """What the recorder noted of its own clock, in order."""
    columns = ("seq", "recv_ns", "raw")
    rows = reader.table(columns, streams=[CLOCKS], types=[RowType.NOTE])
    yield from clock_notes(rows.sort_by("seq").to_pylist())


def clock_notes(rows: Iterable[Mapping[str, Any]]) -> Iterator[ClockNote]:
    """What rows of the recorder's clock say by their `raw`; what is no note of it is left out."""
    for row in rows:
        try:
            said = msgspec.json.decode(row["raw"] or "", type=_Said)
        except msgspec.DecodeError:
            continue
        times = (row["recv_ns"] or 0, *(getattr(said, name) for name in _TIMES))
        if all(0 <= at_ns < _NO_CLOCK_NS for at_ns in times) and abs(said.step_ns) < _NO_CLOCK_NS:
            yield ClockNote(
                row["seq"],
                RecordedNs(times[0]),
                said.sent_ns,
                said.date_ns,
                said.before_ns,
                said.step_ns,
            )


class _Said(msgspec.Struct):
    """The text of a note, as `record/server/clock_notes.py` writes it."""

    sent_ns: RecordedNs = RecordedNs(0)
    date_ns: ServerNs = ServerNs(0)
    before_ns: RecordedNs = RecordedNs(0)
    step_ns: int = 0


_TIMES: Final = ("sent_ns", "date_ns", "before_ns")


def _by_arrival(reader: TraceReader) -> Iterator[pa.Table]:
    """The rows of the store in order of arrival, with the newest of their managers' times."""
    found = list(_dated(reader, _STORE))
    limit = max((pc.max(table["rv"]).as_py() or 0 for table in found), default=0)
    if _events_in_store(reader, limit):
        found += _dated(reader, ("events",))
    if found:
        yield pa.concat_tables(found).unify_dictionaries().sort_by("seq")


def _dated(reader: TraceReader, streams: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of some streams, with the newest of their managers' times in place of these."""
    types = [*STATE_TYPES, RowType.GAP]
    for table in reader.batches(_COLUMNS, streams=streams, types=types):
        managed = _newest(table["managers"].combine_chunks(), table.num_rows, "time_ns")
        ran = table["containers"].combine_chunks()
        begun, ended = (_newest(ran, table.num_rows, of) for of in ("started_ns", "finished_ns"))
        yield (
            table.drop_columns(["managers", "containers"])
            .append_column("managed_ns", managed)
            .append_column("ran_ns", pc.max_element_wise(begun, ended))
        )


def _events_in_store(reader: TraceReader, limit: int) -> bool:
    """Whether Events lie in the store of the rest: newer than what they are about, and no newer.

    `limit`: the newest revision of the rest; a gap has none.
    """
    rows_seen = within = 0
    for table in reader.batches(("rv", "involved_rv"), streams=["events"], types=[RowType.ADDED]):
        rows = table.filter(pc.is_valid(table["involved_rv"]))
        newer = pc.greater(rows["rv"], rows["involved_rv"])
        rows_seen += rows.num_rows
        within += pc.sum(pc.and_(newer, pc.less_equal(rows["rv"], limit))).as_py() or 0
    return rows_seen >= _EVENTS_MIN and within >= rows_seen - rows_seen // _EVENTS_BEYOND


def _newest(entries_of: Any, rows: int, time: str) -> pa.Array:
    """The newest of these times among each row's entries, null for none."""
    if hasattr(entries_of, "chunks"):
        return pa.nulls(rows, pa.int64())
    entries = pa.table(
        {
            "row": pc.list_parent_indices(entries_of),
            "time": pc.struct_field(pc.list_flatten(entries_of), time),
        }
    )
    newest = entries.group_by("row").aggregate([("time", "max")])
    places = pc.index_in(pa.array(range(rows), newest["row"].type), value_set=newest["row"])
    return newest["time_max"].take(places).combine_chunks()


class _Newest:
    """By uid, the newest time in each object so far: of an API server's clock, of another one."""

    def __init__(self) -> None:
        self._server_ns: dict[str, int] = {}
        self._written_ns: dict[str, int] = {}

    def take(
        self,
        uids: Sequence[str],
        server_ns: Sequence[int],
        written_ns: Sequence[int],
        gone: Sequence[bool],
    ) -> tuple[bytearray, array[int]]:
        """By row: whether an API server's time is newer; another clock's if it is new, else 0."""
        servers, others = self._server_ns, self._written_ns
        newer, first_ns = bytearray(), array("q")
        for uid, set_ns, other_ns, last in zip(uids, server_ns, written_ns, gone, strict=True):
            before_ns = servers.get(uid) if uid else 0
            newer.append(bool(uid) and before_ns is not None and set_ns > before_ns)
            if uid and (before_ns is None or set_ns > before_ns):
                servers[uid] = set_ns
            if uid and other_ns and other_ns > others.get(uid, 0):
                others[uid] = other_ns
                first_ns.append(other_ns if before_ns is not None else 0)
            else:
                first_ns.append(0)
            if last and uid:
                del servers[uid]
                others.pop(uid, None)
        return newer, first_ns


def _take(rows: Arrivals, some: pa.RecordBatch, newest: _Newest) -> bool:
    """Take in some rows; whether they are a watch's, which does not tell when something came."""
    if some["not_before_ns"].null_count < some.num_rows:
        return False
    gaps = some.filter(_is(some["type"], RowType.GAP))
    for gap in gaps.select(["seq", "stream", "gap_until_ns"]).to_pylist():
        rows.interrupted(gap["seq"], gap["stream"], RecordedNs(gap["gap_until_ns"] or 0))
    received = pc.and_(pc.is_valid(some["rv"]), pc.is_valid(some["recv_ns"]))
    shown = pc.and_not(received, pc.fill_null(some["synthesized"], fill_value=False))
    _add(rows, some.filter(pc.and_not(shown, _is(some["type"], RowType.GAP))), newest)
    return True


def _add(rows: Arrivals, shown: pa.RecordBatch, newest: _Newest) -> None:
    """Take in rows that show an object, a column at a time."""
    stream, name, namespace = (_texts(shown[of]) for of in ("stream", "name", "namespace"))
    lease = _is(stream, "leases")
    elected = pc.and_(
        _is(name, CONTROLLER_MANAGER_LEASE), _is(namespace, CONTROLLER_MANAGER_LEASE_NAMESPACE)
    )
    leads = pc.and_(lease, elected)
    created = _times(shown["created_ns"])
    managed, deleted = _times(shown["managed_ns"]), _times(_deleted(shown))
    server_ns = _longs(pc.max_element_wise(managed, created, deleted))
    renewed = _times(shown["renew_ns"])
    # The newest time of another clock, and whose it is: a node's, or that of a Lease's holder.
    pod, of_node = _is(stream, "pods"), pc.and_(lease, _is(namespace, NODE_LEASE_NAMESPACE))
    node, holder = _texts(shown["node_name"]), _texts(shown["holder"])
    of_lease = pc.if_else(leads, holder, pc.if_else(of_node, name, _NOBODY))
    writer = pc.if_else(pod, node, of_lease)
    ran = pc.if_else(pc.equal(node, _NOBODY), _NEVER, _times(shown["ran_ns"]))
    leased = pc.if_else(pc.or_(leads, of_node), renewed, _NEVER)
    of_status = _times(pc.max_element_wise(shown["start_ns"], shown["completion_ns"]))
    by_manager = pc.if_else(_is(stream, "jobs"), of_status, leased)
    written = pc.if_else(pod, ran, by_manager)
    gone = _is(shown["type"], RowType.DELETED)
    own, first_ns = newest.take(
        _texts(shown["uid"]).to_pylist(), server_ns, _longs(written), gone.to_pylist()
    )
    added = _is(shown["type"], RowType.ADDED)
    rows.extend(
        _longs(shown["seq"]),
        _longs(shown["rv"]),
        _longs(shown["recv_ns"]),
        stream.to_pylist(),
        pc.invert(_is(shown["type"], RowType.LIST)).to_pylist(),
        server_ns,
        own,
        _longs(pc.if_else(added, created, _NEVER)),
        _longs(pc.if_else(leads, renewed, _NEVER)),
        writer.to_pylist(),
        first_ns,
    )


def _deleted(shown: pa.RecordBatch) -> Any:
    """When deletions were asked for: their times less the grace."""
    grace = pc.fill_null(shown["deletion_grace_s"], 0)
    longest_s = _NO_CLOCK_NS // NS_PER_S  # with a longer one no clock shows when it was asked for
    near = pc.and_(pc.greater(grace, -longest_s), pc.less(grace, longest_s))
    grace_ns = pc.multiply(pc.if_else(near, grace, _NEVER), NS_PER_S)
    return pc.if_else(near, pc.subtract(shown["deleted_ns"], grace_ns), _NEVER)


def _times(reported: Any) -> Any:
    """Times that objects tell; 0 for none, and for one that no clock shows."""
    shown = pc.and_(pc.greater(reported, 0), pc.less(reported, _NO_CLOCK_NS))
    return pc.fill_null(pc.if_else(shown, reported, _NEVER), 0)


def _is(column: Any, text: str) -> Any:
    return pc.equal(_texts(column), text)


def _texts(column: Any) -> Any:
    """A column of texts as such, empty for none."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return pc.fill_null(column, "")


def _longs(column: Any) -> array[int]:
    """A column of numbers, all of them there, without a Python object for each."""
    values = memoryview(column.buffers()[1]).cast("q")
    return array("q", values[column.offset : column.offset + len(column)].tobytes())


def on_clock(groups: Iterable[Group], clock: RecorderClock) -> Iterator[Group]:
    """The same groups with their receive times on the clock that is judged on."""
    if clock.is_right:
        yield from groups
        return
    window: pa.Table | None = None
    judged: pa.Table | None = None
    for group in groups:
        if group.window is not window:
            window, judged = group.window, table_on_clock(group.window, clock)
        yield replace(group, window=judged)


def table_on_clock(
    table: pa.Table, clock: RecorderClock, before: RecorderClock | None = None
) -> pa.Table:
    """The same rows with their receive times on the clock that is judged on.

    `before`: what they had been put on that clock by, where they were.
    """
    is_right = clock.is_right and (before is None or before.is_right)
    if is_right or "recv_ns" not in table.column_names:
        return table
    times = pc.subtract(table["recv_ns"], _ahead(table, clock.epochs))
    if before is not None:
        times = pc.add(times, _ahead(table, before.epochs))
    place = table.column_names.index("recv_ns")
    return table.set_column(place, table.schema.field("recv_ns"), times)


def coverage_on_clock(coverage: Coverage, clock: RecorderClock) -> Coverage:
    """The same coverage with its times on the clock that is judged on."""
    if clock.is_right:
        return coverage

    def judged_ns(at_ns: int) -> JudgedNs:
        return clock.judged_ns(RecordedNs(at_ns))

    spans = tuple(
        span._replace(from_ns=judged_ns(span.from_ns), until_ns=judged_ns(span.until_ns))
        for span in coverage.spans
    )
    return replace(coverage, spans=spans, end_ns=judged_ns(coverage.end_ns))


def _ahead(table: pa.Table, epochs: tuple[Epoch, ...]) -> Any:
    """How far the recorder's clock was ahead at each row."""
    ahead: Any = pa.scalar(epochs[0].ahead_ns if epochs else 0, pa.int64())
    for epoch in epochs[1:]:
        later = pc.greater_equal(table["seq"], epoch.from_seq)
        ahead = pc.if_else(later, pa.scalar(epoch.ahead_ns, pa.int64()), ahead)
    return ahead


def as_recorded(judgement: Judgement, clock: RecorderClock) -> Judgement:
    """The judgement with its times on the recorder's clock, as those of the rows are."""
    time_ns = clock.recorded_ns(JudgedNs(judgement.time_ns))
    if not judgement.assumptions:
        return replace(judgement, time_ns=time_ns) if time_ns != judgement.time_ns else judgement
    assumptions = tuple(_assumed(each, clock) for each in judgement.assumptions)
    return replace(judgement, time_ns=time_ns, assumptions=assumptions)


def _assumed(assumption: Assumption, clock: RecorderClock) -> Assumption:
    return assumption._replace(
        from_ns=clock.recorded_ns(JudgedNs(assumption.from_ns)) if assumption.from_ns else 0,
        until_ns=clock.recorded_ns(JudgedNs(assumption.until_ns)),
    )
