"""The columns of format 1: one table, one row per thing that came in.

Every column says where it comes from and what null means, because `docs/trace-format.md` is made
from this table. Files are plain Parquet (no Arrow schema inside), so that any reader sees the same.
"""

from __future__ import annotations

from enum import Enum

import pyarrow as pa
from msgspec import Struct

from tracekit.base.kube import job_status
from tracekit.base.kube.job_status import Shape

_ABSENT = "absent in the object"


class Storage(Enum):
    """How a column is encoded in the file; readers need not care."""

    DICTIONARY = "dictionary"
    DELTA = "delta"
    PLAIN = "plain"


class Column(Struct, frozen=True):
    """One column of the trace table."""

    name: str
    type: pa.DataType
    source: str
    null: str = _ABSENT
    storage: Storage = Storage.DICTIONARY
    #: Minimum and maximum per row group, so that readers can skip row groups.
    stats: bool = False
    #: Long text that repeats from row to row: read as an Arrow dictionary by `TraceReader`.
    text: bool = False


STRING = pa.string()
INT = pa.int64()
BOOL = pa.bool_()
STRINGS = pa.list_(pa.field("element", STRING))


def _structs(**fields: pa.DataType) -> pa.DataType:
    struct = pa.struct([pa.field(name, kind) for name, kind in fields.items()])
    return pa.list_(pa.field("element", struct))


OWNERS = _structs(
    kind=STRING,
    name=STRING,
    uid=STRING,
    api_version=STRING,
    controller=BOOL,
    block_owner_deletion=BOOL,
)
MANAGERS = _structs(manager=STRING, operation=STRING, subresource=STRING, time_ns=INT)
CONDITIONS = _structs(
    type=STRING,
    status=STRING,
    reason=STRING,
    message=STRING,
    last_probe_ns=INT,
    last_transition_ns=INT,
)
CONTAINERS = _structs(
    name=STRING,
    init=BOOL,
    restart_count=INT,
    state=STRING,
    exit_code=INT,
    signal=INT,
    reason=STRING,
    started_ns=INT,
    finished_ns=INT,
)
CRON_ACTIVE = _structs(
    kind=STRING,
    namespace=STRING,
    name=STRING,
    uid=STRING,
    api_version=STRING,
    resource_version=STRING,
)

_S = Storage
_NEVER = "never"
_CONTROL = "control rows, and objects without it"

ENVELOPE = (
    Column("seq", INT, "position in the whole trace, in order of arrival, from 0", _NEVER,
           _S.PLAIN, stats=True),
    Column("stream_pos", INT, "position within its stream, from 0; control rows count",
           "rows of no stream", _S.DELTA),
    Column("stream", STRING, "plural resource, for example `pods`", "UNPARSED rows whose stream "
           "could not be read", stats=True),
    Column("type", STRING, "LIST_BEGIN, LIST, LIST_END, ADDED, MODIFIED, DELETED, BOOKMARK, "
           "ERROR, NOTE, GAP, CALL or UNPARSED", _NEVER, stats=True),
    Column("recv_ns", INT, "when it was received, Unix ns; a row that came without a time has "
           "the time of the row before it", "no time was known yet", _S.PLAIN, stats=True),
    Column("synthesized", BOOL, "true: nobody saw this state as such; it was found by comparing a "
           "relist with what was known, or put together from what `derived_from` says", _NEVER),
    Column("derived_from", STRING, "what an importer put a synthesized state together from: "
           "binding, disruption, deletion mark, deletion, metadata, request; CALL: "
           "`kubectl-text`", "rows that came as they are, and deletions that a relist told"),
    Column("rv_after", INT, "a revision that was before this row's, where `rv` is not known but "
           "chosen between two that are", "`rv` is known", _S.DELTA),
    Column("rv_before", INT, "a revision that was after this row's, likewise",
           "`rv` is known, or none is known to be after it", _S.DELTA),
    Column("not_before_ns", INT, "when it happened at the earliest, Unix ns; `recv_ns` is then "
           "when it happened at the latest", "nothing but `recv_ns` is known", _S.PLAIN),
    Column("actor", STRING, "the user whose request made this state, or was refused (CALL)",
           "the source does not tell"),
    Column("actor_agent", STRING, "that request's user agent", "the source does not tell"),
    Column("verb", STRING, "that request's verb, and its subresource after a slash",
           "the source does not tell"),
    Column("code", INT, "CALL: the HTTP status of the answer", "rows of other types"),
    Column("raw", STRING, "the object's JSON text as received; UNPARSED: the whole line; GAP: null",
           "GAP rows, and lines that are not UTF-8", _S.PLAIN),
    Column("raw_bytes", pa.binary(), "the whole line, when it is not UTF-8", "everything else",
           _S.PLAIN),
)  # fmt: skip

METADATA = (
    Column("kind", STRING, "`.kind`, or for items of a list the kind of the stream", _CONTROL),
    Column("api_version", STRING, "`.apiVersion` (items of a list have none)", _ABSENT),
    Column("namespace", STRING, "`.metadata.namespace`", "cluster-scoped objects, control rows",
           stats=True),
    Column("name", STRING, "`.metadata.name`", _CONTROL, stats=True),
    Column("uid", STRING, "`.metadata.uid`", _CONTROL, stats=True),
    Column("rv", INT, "`.metadata.resourceVersion` as a number; LIST_BEGIN, LIST_END: "
           "`.resourceVersion`", "absent or not a number", _S.DELTA, stats=True),
    Column("job", STRING, "the Job that the row belongs to: a Job's own name, a Pod's controller "
           "owner of kind Job, an Event's involved Job", "none of these", stats=True),
    Column("cronjob", STRING, "a CronJob's own name, a Job's controller owner of kind CronJob, an "
           "Event's involved CronJob", "none of these"),
    Column("generation", INT, "`.metadata.generation`"),
    Column("generate_name", STRING, "`.metadata.generateName`"),
    Column("created_ns", INT, "`.metadata.creationTimestamp`, Unix ns"),
    Column("deleted_ns", INT, "`.metadata.deletionTimestamp`, Unix ns"),
    Column("deletion_grace_s", INT, "`.metadata.deletionGracePeriodSeconds`"),
    Column("finalizers", STRINGS, "`.metadata.finalizers`"),
    Column("owner_kind", STRING, "`kind` of the owner reference with `controller: true`"),
    Column("owner_name", STRING, "`name` of that owner reference"),
    Column("owner_uid", STRING, "`uid` of that owner reference"),
    Column("owner_api_version", STRING, "`apiVersion` of that owner reference"),
    Column("owners", OWNERS, "`.metadata.ownerReferences`, all of them"),
    Column("labels", STRING, "`.metadata.labels`, canonical JSON", text=True),
    Column("annotations", STRING, "`.metadata.annotations`, canonical JSON", text=True),
    Column("managers", MANAGERS, "`.metadata.managedFields` without the fields themselves: who "
           "wrote when"),
)  # fmt: skip

STATE = (
    Column("spec", STRING, "`.spec` of Jobs, CronJobs, Pods and ResourceQuotas, canonical JSON; of "
           "Pods without `nodeName`, which has a column", text=True),
    Column("status", STRING, "`.status` of ResourceQuotas, canonical JSON", text=True),
    Column("observed_status", STRING, "fields of a Job's or CronJob's `.status` that have no "
           "column, canonical JSON", "there are none", text=True),
    Column("phase", STRING, "`.status.phase` of Pods and Namespaces"),
    Column("reason", STRING, "Pod: `.status.reason`; Event: `.reason`; ERROR: `.reason`; UNPARSED: "
           "why it could not be read"),
    Column("message", STRING, "Pod: `.status.message`; Event: `.message` or `.note`; ERROR: "
           "`.message`; NOTE: `.error`"),
    Column("start_ns", INT, "`.status.startTime` of Jobs and Pods, Unix ns"),
    Column("conditions", CONDITIONS, "`.status.conditions` of Jobs and Pods; times Unix ns"),
)  # fmt: skip

_JOB_SHAPES = {
    Shape.COUNT: (INT, "absent, which the API means as 0"),
    Shape.COUNT_OR_NONE: (INT, _ABSENT),
    Shape.TIME: (INT, _ABSENT),
    Shape.INDEXES: (STRING, _ABSENT),
    Shape.INDEXES_OR_NONE: (STRING, _ABSENT),
    Shape.UIDS: (STRINGS, f"`{job_status.UNCOUNTED}` is absent"),
}


def _job_column(field: job_status.StatusField) -> Column:
    kind, null = _JOB_SHAPES[field.shape]
    about = {
        Shape.TIME: ", Unix ns",
        Shape.UIDS: "; empty when only the outer field is there",
    }.get(field.shape, "")
    return Column(field.name, kind, f"Job: `.status.{field.path}`{about}", null)


#: Without `start_ns`, which Pods have too.
JOB = tuple(_job_column(field) for field in job_status.FIELDS if field.name != "start_ns")

POD = (
    Column("node_name", STRING, "Pod: `.spec.nodeName`"),
    Column("pod_ready", BOOL, "Pod: the condition Ready is True", "no such condition"),
    Column("pod_ready_since_ns", INT, "Pod: `lastTransitionTime` of that condition, Unix ns"),
    Column("containers", CONTAINERS, "Pod: `.status.containerStatuses`, then "
           "`.status.initContainerStatuses` (`init` true); `state` is waiting, running or "
           "terminated, the other fields are that state's"),
    Column("restarts", INT, "Pod: sum of `restartCount`, init containers too", "no statuses"),
    Column("restarts_max", INT, "Pod: greatest `restartCount` of a regular container",
           "no statuses"),
    Column("completion_index", INT, "Pod: annotation batch.kubernetes.io/job-completion-index",
           "absent or not a number"),
)  # fmt: skip

EVENT = (
    Column("involved_kind", STRING, "Event: `.involvedObject.kind` or `.regarding.kind`"),
    Column("involved_namespace", STRING, "Event: the same, `namespace`"),
    Column("involved_name", STRING, "Event: the same, `name`"),
    Column("involved_uid", STRING, "Event: the same, `uid`"),
    Column("involved_rv", INT, "Event: the same, `resourceVersion` as a number"),
    Column("event_type", STRING, "Event: `.type`, Normal or Warning"),
    Column("count", INT, "Event: `.series.count`, `.count` or `.deprecatedCount`"),
    Column("first_ns", INT, "Event: `.firstTimestamp`, `.deprecatedFirstTimestamp` or `.eventTime`,"
           " Unix ns"),
    Column("last_ns", INT, "Event: `.series.lastObservedTime`, `.lastTimestamp`, "
           "`.deprecatedLastTimestamp` or `.eventTime`, Unix ns"),
    Column("component", STRING, "Event: `.source.component`, `.reportingComponent`, "
           "`.reportingController` or `.deprecatedSource.component`, the first that is not empty"),
)  # fmt: skip

OTHERS = (
    Column("cron_active", CRON_ACTIVE, "CronJob: `.status.active`"),
    Column("last_schedule_ns", INT, "CronJob: `.status.lastScheduleTime`, Unix ns"),
    Column("last_successful_ns", INT, "CronJob: `.status.lastSuccessfulTime`, Unix ns"),
    Column("holder", STRING, "Lease: `.spec.holderIdentity`"),
    Column("lease_duration_s", INT, "Lease: `.spec.leaseDurationSeconds`"),
    Column("acquire_ns", INT, "Lease: `.spec.acquireTime`, Unix ns"),
    Column("renew_ns", INT, "Lease: `.spec.renewTime`, Unix ns"),
    Column("lease_transitions", INT, "Lease: `.spec.leaseTransitions`"),
    Column("gap_last_rv", INT, "GAP: last revision seen before", "there was none"),
    Column("gap_next_rv", INT, "GAP: first revision known again", "the stream did not come back"),
    Column("gap_from_ns", INT, "GAP: last time at which the stream was seen, Unix ns",
           "rows of other types; it never was seen"),
    Column("gap_until_ns", INT, "GAP: first time at which it was seen again, Unix ns",
           "the stream did not come back"),
    Column("gap_reason", STRING, "GAP: what happened, in words"),
)  # fmt: skip

GROUPS: dict[str, tuple[Column, ...]] = {
    "Every row": ENVELOPE,
    "Metadata of objects": METADATA,
    "Spec and status of several kinds": STATE,
    "Jobs": JOB,
    "Pods": POD,
    "Events": EVENT,
    "CronJobs, Leases, gaps": OTHERS,
}

COLUMNS: tuple[Column, ...] = tuple(column for group in GROUPS.values() for column in group)
NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
SCHEMA: pa.Schema = pa.schema([pa.field(column.name, column.type) for column in COLUMNS])

#: Columns of long, repeating text; `TraceReader` hands them out as dictionaries.
TEXT_COLUMNS: tuple[str, ...] = tuple(column.name for column in COLUMNS if column.text)

#: Columns of lists of structs.
STRUCTS: frozenset[str] = frozenset(
    column.name
    for column in COLUMNS
    if pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type)
)

#: All that a replay reads: everything but the raw text.
TYPED_COLUMNS: tuple[str, ...] = tuple(n for n in NAMES if n not in {"raw", "raw_bytes"})

#: Rows of a group are handed out by these, nulls first.
SORT_KEYS = ("namespace", "job", "rv", "seq")
#: Rows of a segment are stored by these, nulls first: the revisions of an object lie side by side,
#: which is what a compressor needs, and the rows of a job are together.
FILE_ORDER = ("namespace", "job", "stream", "uid", "rv", "seq")
