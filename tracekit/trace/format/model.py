"""What a trace is made of: row types, gaps and the header. Pure data, no I/O.

A trace is a directory: `trace.json` (the header below), `manifest.json` (`manifest.py`) and
`log/<first>-<last>.parquet` segments, one row per thing that came in. `docs/trace-format.md` is the
contract; `schema.py` has the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field

from tracekit.base.kube.timestamps import NS_PER_S

#: The format that this code writes, and the newest that it reads.
FORMAT_VERSION = 2
#: What wide and plain segments say of themselves: they are as they were in format 1.
WIDE_VERSION = 1

HEADER_NAME = "trace.json"
MANIFEST_NAME = "manifest.json"
LOG_DIR = "log"
SEGMENT_SUFFIX = ".parquet"
SEQ_DIGITS = 16


class RowType(StrEnum):
    """What one row stands for: the watch's own words first, then ours."""

    LIST_BEGIN = "LIST_BEGIN"
    LIST = "LIST"
    LIST_END = "LIST_END"
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"
    NOTE = "NOTE"
    #: A time in which the recorder could not see one stream.
    GAP = "GAP"
    #: A request that changed nothing that is known: refused, without effect, or without a body.
    CALL = "CALL"
    #: Something that arrived and could not be read as any of the above; `raw` has all of it.
    UNPARSED = "UNPARSED"


#: Receive times lie before it, in ns, and not before 1970. No clock shows the year 2116 unless it
#: was set to it; what lies beyond stands for "never", and sums with it would leave 64 bits.
RECEIVED_BEFORE_NS: Final = 1 << 62

#: Rows whose object is a state of a Kubernetes object.
STATE_TYPES = frozenset({RowType.LIST, RowType.ADDED, RowType.MODIFIED, RowType.DELETED})

#: Types that a line of a watch log may have.
WATCH_LOG_TYPES = frozenset(set(RowType) - {RowType.GAP, RowType.CALL, RowType.UNPARSED})

#: Streams whose objects fill typed columns, and the kind that their objects have (the items of a
#: list come without `kind`). Any other stream is kept too: metadata columns and `raw`.
STREAM_KINDS: Mapping[str, str] = {
    "jobs": "Job",
    "cronjobs": "CronJob",
    "pods": "Pod",
    "events": "Event",
    "leases": "Lease",
    "namespaces": "Namespace",
    "resourcequotas": "ResourceQuota",
}
#: Kinds by stream that lists may have beside them, of which the trace has no columns but those of
#: every object.
WITHOUT_COLUMNS: Mapping[str, str] = {"workloads": "Workload", "nodes": "Node"}
#: Streams of which no object has a namespace: any list of them is of all.
CLUSTER_WIDE = frozenset({"namespaces", "nodes"})


class Gap(Struct, frozen=True):
    """A time in which one stream was not seen; what happened in it is unknowable."""

    stream: str
    reason: str
    #: The last revision seen before, None if there was none.
    last_rv: int | None = None
    #: The first revision known again, None if the stream never came back.
    next_rv: int | None = None
    from_ns: int | None = None
    until_ns: int | None = None
    #: Position in the trace, None before it is written.
    seq: int | None = None


class Origin(Struct, frozen=True):
    """How a row is known when it is not a watch that told it; all of it may be unknown."""

    #: What a synthesized state was put together from; None for one that came as it is.
    derived_from: str | None = None
    #: Revisions between which the row's own was chosen; None where it is known.
    rv_after: int | None = None
    rv_before: int | None = None
    #: When it happened at the earliest, Unix ns.
    not_before_ns: int | None = None
    #: Whose request it was, with which client, and what it asked for.
    actor: str | None = None
    actor_agent: str | None = None
    verb: str | None = None


class Call(Struct, frozen=True):
    """A request that made no state that is known: refused, without effect or without a body."""

    stream: str
    recv_ns: int
    raw: bytes
    origin: Origin
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    #: The Job or CronJob that the object belongs to.
    job: str | None = None
    cronjob: str | None = None
    #: HTTP status of the answer, and what it said.
    code: int | None = None
    reason: str | None = None
    message: str | None = None


#: What a scope says of a source in which nothing is a state: why, as a sentence.
STATELESS: Final = "stateless"
#: The stream of what a recorder notes of its own clock.
CLOCKS: Final = "clocks"
#: What a scope says of the recorder's clock: how far it was ahead, in ns.
CLOCK_OFFSET: Final = "clock_offset_ns"
#: No clock that is worth judging by is farther off.
CLOCK_OFFSET_MAX_NS: Final = 1_000_000_000 * NS_PER_S


class TraceHeader(Struct, frozen=True):
    """What is known of a trace as a whole; the contents of `trace.json`."""

    #: For example "v1.36.3"; None when nobody said.
    kubernetes_version: str | None = None
    #: Only gates that somebody set; all others have the version's default.
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    #: Command line of the controller manager, as far as it is known.
    controller_flags: tuple[str, ...] = ()
    #: What was watched: `namespaces` (None: as lists say), `selector` and what else was said.
    scope: Mapping[str, Any] = field(default_factory=lambda: {"namespaces": None, "selector": None})
    #: One mapping per writer run: `source`, `first_seq` and what that writer adds.
    sessions: tuple[Mapping[str, Any], ...] = ()
    #: What a writer says about its streams (for example which ones were forbidden), by stream.
    streams: Mapping[str, Any] = field(default_factory=dict)
    #: Segments that begin at this row or later can be verified; None: written before there were
    #: checksums.
    sealed_from: int | None = None
    format_version: int = FORMAT_VERSION
    tracekit_version: str | None = None

    @property
    def clock_offset_ns(self) -> int | None:
        """How far the recorder's clock was ahead, where somebody said so; in ns."""
        said = self.scope.get(CLOCK_OFFSET)
        return said if type(said) is int and abs(said) <= CLOCK_OFFSET_MAX_NS else None


class StreamSummary(Struct, frozen=True):
    """What a trace holds of one stream."""

    stream: str
    #: Rows by type, in the order of `RowType`.
    counts: Mapping[str, int]
    first_ns: int | None
    last_ns: int | None
    first_rv: int | None
    last_rv: int | None

    @property
    def rows(self) -> int:
        """All rows of the stream."""
        return sum(self.counts.values())
