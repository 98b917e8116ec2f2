"""The typed columns of many objects at once: decoded as what a server writes, column by column.

`extract.py` says what each column of one object is, whatever arrived. Nearly all objects are just
what the API promises, and these are read here: only the fields that have columns are decoded, and a
text that many objects share (a spec, labels) is brought into its canonical form once. An object
with anything that the API does not promise is left to `extract`; tests hold both to one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import orjson
from msgspec.structs import astuple

from tracekit.base.kube.job_status import FIELDS, Shape
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.base.kube.views import COMPLETION_INDEX_ANNOTATION, go_atoi
from tracekit.base.remembered import Remembered
from tracekit.trace.format import api_fields
from tracekit.trace.format.api_fields import Text, Typed
from tracekit.trace.format.extract import INT64_MAX, INT64_MIN, canonical_json, number_of
from tracekit.trace.format.model import STREAM_KINDS

#: Bytes of shared texts, as they came, of which the canonical forms are remembered.
_REMEMBERED_BYTES = 8 * 1024 * 1024
_REMEMBERED_TIMES = 65_536

#: Values of columns by their names: one of each row, or `Lists`.
Columns = dict[str, Any]


class Lists(NamedTuple):
    """A list of structs for each row: where each begins (None: it is null), and all their fields.

    The last offset is where the last list ends.
    """

    offsets: list[int | None]
    fields: list[Sequence[Any]]

    @classmethod
    def of(
        cls, values: Iterable[Sequence[Any] | None], width: int, row: Callable[[Any], Any] = tuple
    ) -> Lists:
        """The lists of some rows, whose structs have so many fields; `row` gives those of one."""
        offsets: list[int | None] = []
        flat: list[Any] = []
        for value in values:
            offsets.append(None if value is None else len(flat))  # a null offset is a null list
            if value:
                flat += value
        offsets.append(len(flat))
        return cls(offsets, list(zip(*map(row, flat), strict=True)) if flat else [()] * width)


#### Texts and times that come again and again ####


def _map(value: Any) -> tuple[str | None]:
    return (canonical_json(value) if type(value) is dict else None,)


def _annotations(value: Any) -> tuple[str | None, int | None]:
    """The annotations, and the completion index among them."""
    if type(value) is not dict:
        return None, None
    index = value.get(COMPLETION_INDEX_ANNOTATION)
    if type(index) is not str or len(index) >= 20:  # noqa: PLR2004 - Python refuses huge numbers
        return canonical_json(value), None
    number = go_atoi(index)
    fits = number is not None and INT64_MIN <= number <= INT64_MAX
    return canonical_json(value), number if fits else None


def _pod_spec(value: Any) -> tuple[str | None, str | None]:
    """The spec without its node, and the node."""
    if type(value) is not dict:
        return None, None
    node = value.get("nodeName")
    if type(node) is not str:
        return canonical_json(value), None
    return canonical_json({key: item for key, item in value.items() if key != "nodeName"}), node


def _remembered(make: Callable[[Any], Any]) -> Callable[[msgspec.Raw], Any]:
    """What becomes of a part of an object, by its text as it came; of none what is made of null."""

    def made(text: bytes) -> Any:
        return make(orjson.loads(text) if text else None)

    known = Remembered(made, _REMEMBERED_BYTES)
    return lambda raw: known.of(bytes(raw))


_MAPS = _remembered(_map)
_ANNOTATIONS = _remembered(_annotations)
_POD_SPECS = _remembered(_pod_spec)


class _Times(dict[str | None, int | None]):
    def __missing__(self, text: str) -> int | None:
        at = parse_rfc3339(text)
        if at is not None and not INT64_MIN <= at <= INT64_MAX:
            at = None
        if len(self) > _REMEMBERED_TIMES:
            self.clear()
            self[None] = None
        self[text] = at
        return at


_TIMES = _Times({None: None})


def _times(texts: Iterable[str | None]) -> list[int | None]:
    return list(map(_TIMES.__getitem__, texts))


#### Decoding ####


def _job_shared(obj: Any) -> None:
    obj.spec = _MAPS(obj.spec)


def _pod_shared(obj: Any) -> None:
    obj.spec = _POD_SPECS(obj.spec)


def _quota_shared(obj: Any) -> None:
    obj.spec, obj.status = _MAPS(obj.spec), _MAPS(obj.status)


def _no_shared(_: Any) -> None:
    pass


_SHAPES: dict[str, tuple[type[Typed], Callable[[Any], None]]] = {
    "jobs": (api_fields.Job, _job_shared),
    "cronjobs": (api_fields.CronJob, _job_shared),
    "pods": (api_fields.Pod, _pod_shared),
    "events": (api_fields.Event, _no_shared),
    "leases": (api_fields.Lease, _no_shared),
    "namespaces": (api_fields.Namespace, _no_shared),
    "resourcequotas": (api_fields.Quota, _quota_shared),
}
_DECODERS = {
    stream: (msgspec.json.Decoder(shape).decode, shared)
    for stream, (shape, shared) in _SHAPES.items()
}
_ANY_DECODER = msgspec.json.Decoder(Typed).decode, _no_shared
_REFUSED = (msgspec.DecodeError, orjson.JSONDecodeError, UnicodeDecodeError, RecursionError)


def decoded(stream: str | None, raw: bytes | str) -> Typed | None:
    """An object of a stream; None if it is not one that the API promises: then ask `extract`."""
    decode, shared = _DECODERS.get(stream or "", _ANY_DECODER)
    try:
        if not raw.isascii() and type(raw) is bytes:
            raw.decode()  # what has no column is not looked at below
        obj = decode(raw)
        meta = obj.metadata
        meta.labels = _MAPS(meta.labels)
        meta.annotations = _ANNOTATIONS(meta.annotations)
        shared(obj)
    except _REFUSED:
        return None
    if (
        type(obj) is api_fields.Event
        and obj.involved_object is not None
        and obj.regarding is not None
    ):
        return None
    return obj


#### Columns ####


def columns_of(stream: str | None, objects: Sequence[Typed]) -> Columns:
    """The columns that some objects of one stream fill, as `extract` does; there is one at least.

    A column of structs is given as `Lists`.
    """
    columns: Columns = {}
    default = STREAM_KINDS.get(stream) if stream is not None else None
    columns["kind"] = [o.kind if o.kind is not None else default for o in objects]
    columns["api_version"] = [o.api_version for o in objects]
    _metadata([o.metadata for o in objects], columns)
    reader = _READERS.get(stream or "")
    if reader is not None:
        reader(objects, columns)
    return columns


def _fields(structs: Sequence[Any | None], empty: Any) -> list[Any]:
    """The fields of some structs, each as the sequence of all its values."""
    return list(zip(*[astuple(s) if s is not None else empty for s in structs], strict=True))


def _nothing(shape: type[msgspec.Struct]) -> tuple[None, ...]:
    return (None,) * len(shape.__struct_fields__)


_NO_JOB_STATUS = _nothing(api_fields.JobStatus)
_NO_CRONJOB_STATUS = _nothing(api_fields.CronJobStatus)
_NO_POD_STATUS = _nothing(api_fields.PodStatus)
_NO_LEASE_SPEC = _nothing(api_fields.LeaseSpec)
_NO_DETAIL = _nothing(api_fields.Detail)


def _lists(values: Sequence[list[Any] | None], shape: type[msgspec.Struct]) -> Lists | None:
    """Lists of structs as their fields; None if all are null."""
    if all(value is None for value in values):
        return None
    return Lists.of(values, len(_nothing(shape)), astuple)


def _with_times(lists: Lists | None, *places: int) -> Lists | None:
    if lists is not None:
        for place in places:
            lists.fields[place] = _times(lists.fields[place])
    return lists


def _metadata(metas: list[api_fields.Metadata], columns: Columns) -> None:
    (
        columns["namespace"],
        columns["name"],
        columns["uid"],
        revisions,
        created,
        columns["generation"],
        columns["generate_name"],
        deleted,
        columns["deletion_grace_s"],
        columns["finalizers"],
        labels,
        annotations,
        owners,
        managers,
    ) = zip(*map(astuple, metas), strict=True)
    columns["rv"] = list(map(number_of, revisions))
    columns["created_ns"] = _times(created)
    columns["deleted_ns"] = _times(deleted)
    columns["labels"] = [text for (text,) in labels]
    columns["annotations"] = [text for text, _ in annotations]
    columns["owners"] = _lists(owners, api_fields.Owner)
    columns["managers"] = _with_times(_lists(managers, api_fields.Manager), 3)
    if columns["owners"] is None:
        return
    found = [_controller(refs) for refs in owners]
    for at, name in enumerate(("owner_kind", "owner_name", "owner_uid", "owner_api_version")):
        columns[name] = [owner[at] for owner in found]


def _controller(refs: list[api_fields.Owner] | None) -> tuple[Text, Text, Text, Text]:
    for ref in refs or ():
        if ref.controller:
            return ref.kind, ref.name, ref.uid, ref.api_version
    return None, None, None, None


def _owned(columns: Columns, kind: str) -> list[str | None] | None:
    """For each row the name of its controller owner, if that is of a kind."""
    kinds = columns.get("owner_kind")
    if kinds is None:
        return None
    names = columns["owner_name"]
    return [name if one == kind else None for one, name in zip(kinds, names, strict=True)]


def _conditions(values: Sequence[list[api_fields.Condition] | None]) -> Lists | None:
    return _with_times(_lists(values, api_fields.Condition), 4, 5)


def _jobs(objects: Sequence[Any], columns: Columns) -> None:
    columns["job"] = columns["name"]
    columns["cronjob"] = _owned(columns, "CronJob")
    columns["spec"] = [o.spec[0] for o in objects]
    *values, uncounted, conditions = _fields([o.status for o in objects], _NO_JOB_STATUS)
    plain = [field for field in FIELDS if field.shape is not Shape.UIDS]
    for field, cells in zip(plain, values, strict=True):
        columns[field.name] = _times(cells) if field.shape is Shape.TIME else cells
    for place, field in enumerate(field for field in FIELDS if field.shape is Shape.UIDS):
        columns[field.name] = [u and (astuple(u)[place] or []) for u in uncounted]
    columns["conditions"] = _conditions(conditions)


def _cronjobs(objects: Sequence[Any], columns: Columns) -> None:
    columns["cronjob"] = columns["name"]
    columns["spec"] = [o.spec[0] for o in objects]
    active, scheduled, successful = _fields([o.status for o in objects], _NO_CRONJOB_STATUS)
    columns["cron_active"] = _lists(active, api_fields.Active)
    columns["last_schedule_ns"] = _times(scheduled)
    columns["last_successful_ns"] = _times(successful)


def _logs(_: Sequence[Any], columns: Columns) -> None:
    columns["job"] = _owned(columns, "Job")


def _pods(objects: Sequence[Any], columns: Columns) -> None:
    columns["job"] = _owned(columns, "Job")
    columns["spec"], columns["node_name"] = zip(*[o.spec for o in objects], strict=True)
    columns["completion_index"] = [o.metadata.annotations[1] for o in objects]
    (
        columns["phase"],
        columns["reason"],
        columns["message"],
        started,
        conditions,
        regular,
        init,
    ) = _fields([o.status for o in objects], _NO_POD_STATUS)
    columns["start_ns"] = _times(started)
    columns["conditions"] = _conditions(conditions)
    ready = [_ready(items) for items in conditions]
    columns["pod_ready"] = [None if item is None else item.status == "True" for item in ready]
    columns["pod_ready_since_ns"] = _times(
        None if item is None else item.last_transition_time for item in ready
    )
    _containers(regular, init, columns)


def _ready(conditions: list[api_fields.Condition] | None) -> api_fields.Condition | None:
    for item in conditions or ():
        if item.type == "Ready":
            return item
    return None


def _containers(
    regular: Sequence[list[api_fields.Container] | None],
    init: Sequence[list[api_fields.Container] | None],
    columns: Columns,
) -> None:
    containers: list[list[tuple[Any, ...]] | None] = []
    restarts: list[int | None] = []
    most: list[int | None] = []
    for some, others in zip(regular, init, strict=True):
        if some is None and others is None:
            containers.append(None)
            restarts.append(None)
            most.append(None)
            continue
        counts = [item.restart_count or 0 for item in some or ()]
        most.append(max(counts, default=None))
        total = sum(counts) + sum(item.restart_count or 0 for item in others or ())
        restarts.append(total if INT64_MIN <= total <= INT64_MAX else None)
        containers.append(
            [
                *(_container(item, init=False) for item in some or ()),
                *(_container(item, init=True) for item in others or ()),
            ]
        )
    if all(value is None for value in containers):
        return
    width = 4 + len(_NO_DETAIL)
    columns["containers"] = _with_times(Lists.of(containers, width), 7, 8)
    columns["restarts"], columns["restarts_max"] = restarts, most


def _container(item: api_fields.Container, *, init: bool) -> tuple[Any, ...]:
    states = item.state
    name, detail = None, None
    if states is not None:
        if states.terminated is not None:
            name, detail = "terminated", states.terminated
        elif states.running is not None:
            name, detail = "running", states.running
        elif states.waiting is not None:
            name, detail = "waiting", states.waiting
    details = _NO_DETAIL if detail is None else astuple(detail)
    return (item.name, init, item.restart_count, name, *details)


def _events(objects: Sequence[Any], columns: Columns) -> None:
    involved = [o.involved_object or o.regarding or _NOBODY for o in objects]
    columns["involved_kind"] = kinds = [i.kind for i in involved]
    columns["involved_namespace"] = [i.namespace for i in involved]
    columns["involved_name"] = names = [i.name for i in involved]
    columns["involved_uid"] = [i.uid for i in involved]
    columns["involved_rv"] = [number_of(i.resource_version) for i in involved]
    pairs = list(zip(kinds, names, strict=True))
    columns["job"] = [name if kind == "Job" else None for kind, name in pairs]
    columns["cronjob"] = [name if kind == "CronJob" else None for kind, name in pairs]
    columns["reason"] = [o.reason for o in objects]
    columns["message"] = [o.message or o.note or None for o in objects]
    columns["event_type"] = [o.type for o in objects]
    columns["count"] = [
        _first((o.series and o.series.count, o.count, o.deprecated_count)) for o in objects
    ]
    columns["first_ns"] = [_first(map(_TIMES.__getitem__, first(o))) for o in objects]
    columns["last_ns"] = [
        _first(map(_TIMES.__getitem__, (o.series and o.series.last_observed_time, *last(o))))
        for o in objects
    ]
    columns["component"] = [
        (o.source and o.source.component)
        or o.reporting_component
        or o.reporting_controller
        or (o.deprecated_source and o.deprecated_source.component)
        or None
        for o in objects
    ]


_NOBODY = api_fields.Involved()
first = attrgetter("first_timestamp", "deprecated_first_timestamp", "event_time")
last = attrgetter("last_timestamp", "deprecated_last_timestamp", "event_time")


def _first(values: Iterable[int | None]) -> int | None:
    for value in values:
        if value is not None:
            return value
    return None


def _leases(objects: Sequence[Any], columns: Columns) -> None:
    (
        columns["holder"],
        columns["lease_duration_s"],
        acquired,
        renewed,
        columns["lease_transitions"],
    ) = _fields([o.spec for o in objects], _NO_LEASE_SPEC)
    columns["acquire_ns"] = _times(acquired)
    columns["renew_ns"] = _times(renewed)


def _namespaces(objects: Sequence[Any], columns: Columns) -> None:
    columns["phase"] = [o.status and o.status.phase for o in objects]


def _quotas(objects: Sequence[Any], columns: Columns) -> None:
    columns["spec"] = [o.spec[0] for o in objects]
    columns["status"] = [o.status[0] for o in objects]


_READERS: dict[str, Callable[[Sequence[Any], Columns], None]] = {
    "jobs": _jobs,
    "logs": _logs,
    "cronjobs": _cronjobs,
    "pods": _pods,
    "events": _events,
    "leases": _leases,
    "namespaces": _namespaces,
    "resourcequotas": _quotas,
}
