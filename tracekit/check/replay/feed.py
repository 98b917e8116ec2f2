"""From the typed columns of a trace to the histories of its keys.

The groups of a trace come by namespace and Job, first the rows of a namespace that belong to no
Job; neighbouring groups share a table, the window. A window is converted at once, stream by stream
and column by column; nested columns only where something will be read from them; JSON text (specs,
labels, annotations) once per distinct text. The raw objects stay on disk.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeVar

import orjson
from msgspec.structs import replace as copied

from tracekit.base.kube import job_status
from tracekit.base.kube.api_types import as_type
from tracekit.base.kube.decode import EMPTY, as_string_map
from tracekit.base.kube.field_managers import CONTROLLER_MANAGERS
from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.views import (
    COMPLETION_INDEX_ANNOTATION,
    JOB_TRACKING_FINALIZER,
    UNKNOWN_COMPLETION_INDEX,
    Condition,
    ContainerStatus,
    JobSpec,
    JobStatus,
    JobView,
    OwnerRef,
    PodView,
    completion_index,
    job_spec_from_raw,
    sidecar_restarts_max,
    sidecars_of,
)
from tracekit.check.replay.history import (
    Actor,
    EventRow,
    History,
    RefusedCall,
    Revision,
    build_history,
)
from tracekit.check.replay.row_evidence import RowEvidence

#: The columns that a replay reads.
COLUMNS: Final = (
    "seq", "stream", "type", "recv_ns", "rv", "namespace", "name", "uid", "generation",
    "generate_name", "created_ns", "deleted_ns", "deletion_grace_s", "finalizers", "owner_kind",
    "owner_name", "owner_uid", "owner_api_version", "owners", "labels", "annotations", "managers",
    "spec", "phase", "reason", "message", "conditions", *job_status.NAMES, "node_name",
    "pod_ready", "pod_ready_since_ns",
    "containers", "restarts", "restarts_max", "involved_kind", "involved_uid", "involved_rv",
    "event_type", "count", "component", "first_ns", "synthesized", "derived_from", "rv_after",
    "rv_before", "not_before_ns", "actor", "actor_agent", "verb", "code", "cronjob", "cron_active",
    "last_schedule_ns", "last_successful_ns",
)  # fmt: skip

T = TypeVar("T")
STATES = frozenset({"LIST", "ADDED", "MODIFIED", "DELETED"})


class RowGroup(Protocol):
    """The rows of one Job, or of a namespace's rows of no Job, inside a window."""

    @property
    def namespace(self) -> str | None:
        """The namespace; None for rows of none."""
        ...

    @property
    def job(self) -> str | None:
        """The Job's name; None for rows of none."""
        ...

    @property
    def window(self) -> Any:
        """The table (as pyarrow has it) that holds the rows."""
        ...

    @property
    def start(self) -> int:
        """The first row of the group."""
        ...

    @property
    def count(self) -> int:
        """How many rows the group has, sorted by revision."""
        ...


class Decoder(Generic[T]):
    """Decodes JSON text once per distinct text."""

    def __init__(self, build: Callable[[Mapping[str, Any]], T], limit: int = 4096) -> None:
        self._build = build
        self._limit = limit
        self._known: dict[str | None, T] = {}

    def __call__(self, text: str | None) -> T:
        """What a text stands for."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= self._limit:
                self._known.clear()
            value = orjson.loads(text) if text is not None else EMPTY
            found = self._build(value if isinstance(value, dict) else EMPTY)
            self._known[text] = found
        return found


class Texts(Generic[T]):
    """A column of JSON texts, in memory a dictionary: each distinct text is made into a T once."""

    def __init__(self, table: Any, name: str, decode: Callable[[str | None], T]) -> None:
        column = table.column(name).combine_chunks()
        self._numbers = column.indices  # into the distinct texts, null for none
        self._texts = column.dictionary
        self._decode = decode
        self._known: dict[int | None, T] = {}
        self._of_rows: list[int | None] | None = None

    def at(self, row: int) -> T:
        """What the text of one row stands for."""
        if self._of_rows is None:  # a cell alone takes a hundred times as long as one of them all
            self._of_rows = self._numbers.to_pylist()
        return self._of(self._of_rows[row])

    def take(self, rows: list[int]) -> list[T]:
        """What the texts of some rows stand for."""
        known, numbers = self._known, self._numbers.take(rows).to_pylist()
        for number in dict.fromkeys(numbers):
            self._of(number)
        return [known[number] for number in numbers]

    def _of(self, number: int | None) -> T:
        if number not in self._known:
            text = None if number is None else self._texts[number].as_py()
            self._known[number] = self._decode(text)
        return self._known[number]


_pod_spec: Decoder[Mapping[str, Any]] = Decoder(partial(as_type, "core.PodSpec"), 512)
_labels: Decoder[Mapping[str, str]] = Decoder(as_string_map)
_job_spec: Decoder[JobSpec] = Decoder(job_spec_from_raw)
_sidecars: Decoder[frozenset[str]] = Decoder(sidecars_of, 512)


@dataclass(slots=True)
class _Stream(Generic[T]):
    """What a window holds of one stream: the rows, and what they were made into."""

    rows: list[int]
    items: list[T]

    def of(self, group: RowGroup) -> list[T]:
        """The items of one group."""
        first = bisect_left(self.rows, group.start)
        return self.items[first : bisect_left(self.rows, group.start + group.count, first)]


class Rows:
    """The rows of a window, and what their texts stand for; knows nothing of what is made of it."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.created: list[int] = []  # rows of new pods
        self.jobs: list[int] = []  # rows of Jobs
        self._owners: dict[int, tuple[OwnerRef, ...]] = {}
        self._generate_names: dict[int, str | None] = {}

    @cached_property
    def labels(self) -> Texts[Mapping[str, str]]:
        """Of every row."""
        return Texts(self.table, "labels", _labels)

    @cached_property
    def annotations(self) -> Texts[Mapping[str, str]]:
        """Of every row."""
        return Texts(self.table, "annotations", _labels)

    @cached_property
    def job_specs(self) -> Texts[JobSpec]:
        """Of Jobs."""
        return Texts(self.table, "spec", _job_spec)

    @cached_property
    def pod_specs(self) -> Texts[Mapping[str, Any]]:
        """Of pods, as they came."""
        return Texts(self.table, "spec", _pod_spec)

    @cached_property
    def statuses_of_others(self) -> frozenset[int]:
        """Rows of Jobs in whose status others than a controller manager have set fields.

        Up to 1.21 no managedFields entry says that it is of a status.
        """
        signed = structs(self.table, self.jobs, "managers", ("manager", "subresource"))
        others = {
            (manager, subresource)
            for manager, subresource in set(chain.from_iterable(signed))
            if subresource == "status" and manager not in CONTROLLER_MANAGERS
        }
        if not others:  # hardly any window has one
            return frozenset()
        pairs = zip(self.jobs, signed, strict=True)
        return frozenset(row for row, entries in pairs if not others.isdisjoint(entries))

    @cached_property
    def sidecars(self) -> Texts[frozenset[str]]:
        """Of pods."""
        return Texts(self.table, "spec", _sidecar_names)

    def cell(self, name: str, row: int) -> Any:
        """One value."""
        return self.table.column(name)[row].as_py()

    def generate_name(self, row: int) -> str:
        """metadata.generateName of a row: of all new pods at once when the first is asked for."""
        if not self._generate_names and self.created:
            names = (name for (name,) in scalars(self.table, self.created, ("generate_name",)))
            self._generate_names = dict(zip(self.created, names, strict=True))
        if row not in self._generate_names:
            self._generate_names[row] = self.cell("generate_name", row)
        return self._generate_names[row] or ""

    def owners(self, row: int) -> tuple[OwnerRef, ...]:
        """The owner references of a row: of all new pods at once when the first is asked for."""
        if not self._owners and self.created:
            entries = structs(self.table, self.created, "owners", _OWNER)
            self._owners = {
                created: tuple(map(_owner_ref, listed))
                for created, listed in zip(self.created, entries, strict=True)
            }
        if row not in self._owners:
            listed = structs(self.table, [row], "owners", _OWNER)[0]
            self._owners[row] = tuple(map(_owner_ref, listed))
        return self._owners[row]


class _Window:
    """A window, converted."""

    def __init__(self, table: Any) -> None:
        self.table = table
        rows: dict[str, list[int]] = {"jobs": [], "pods": [], "events": []}
        columns = (table.column(name).to_pylist() for name in ("stream", "type", "rv", "uid"))
        calls: list[int] = []
        held = Rows(table)
        for row, (stream, kind, rv, uid) in enumerate(zip(*columns, strict=True)):
            if kind == "CALL":
                calls.append(row)
            if kind == "ADDED" and stream == "pods":
                held.created.append(row)
            wanted = rows.get(stream)
            if wanted is not None and kind in STATES and rv is not None and uid is not None:
                wanted.append(row)
        held.jobs = rows["jobs"]
        self.jobs = _Stream(rows["jobs"], list(_jobs(held, rows["jobs"])))
        self.pods = _Stream(rows["pods"], list(_pods(held, rows["pods"])))
        self.events = _Stream(rows["events"], list(event_rows(table, rows["events"])))
        self.refused = _Stream(calls, list(_refused(table, calls)))


def histories(
    groups: Iterable[RowGroup],
    only: Collection[tuple[str, str]] | None = None,
    written_ns: Mapping[int, int] | None = None,
) -> Iterator[History]:
    """The history of every Job of the groups, which come sorted by namespace and Job.

    `only` names the Jobs that are wanted, as (namespace, name); None wants all. Pods without
    a controller are offered to every Job of their namespace whose selector they match.
    """
    namespace: str | None = None
    orphans: dict[str, list[Revision[PodView]]] = {}
    window: _Window | None = None
    for group in groups:
        if group.namespace is None:
            continue
        if only is not None and group.job is not None and (group.namespace, group.job) not in only:
            continue
        if group.namespace != namespace:
            namespace, orphans = group.namespace, {}
        if window is None or window.table is not group.window:
            window = _Window(group.window)
        pods = window.pods.of(group)
        if group.job is None:
            orphans = _by_uid(pods)
            continue
        jobs = window.jobs.of(group)
        known = {pod.view.uid for pod in pods} if orphans else ()
        for uid, revisions in orphans.items():
            if uid in known or _selected(jobs, revisions):
                pods += [copied(pod, previous=None) for pod in revisions]
        yield build_history(
            group.namespace,
            group.job,
            jobs,
            pods,
            (event for event in window.events.of(group) if event is not None),
            (call for call in window.refused.of(group) if call is not None),
            written_ns,
        )


def _selected(jobs: Iterable[Revision[JobView]], pods: Iterable[Revision[PodView]]) -> bool:
    """Whether one of a name's Jobs selects the pod in one of its states."""
    selectors = {r.view.uid: r.view.spec.selector for r in jobs}.values()
    return any(selector_matches(wanted, pod.view.labels) for wanted in selectors for pod in pods)


def _by_uid(revisions: Iterable[Revision[PodView]]) -> dict[str, list[Revision[PodView]]]:
    result: dict[str, list[Revision[PodView]]] = {}
    for revision in revisions:
        result.setdefault(revision.view.uid, []).append(revision)
    return result


def scalars(table: Any, rows: list[int], names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """The named columns of some rows, row by row."""
    part, empty = table.select(list(names)).take(rows), [None] * len(rows)
    cells = (empty if c.null_count == len(rows) else c.to_pylist() for c in part.columns)
    return zip(*cells, strict=True)


def structs(
    table: Any, rows: list[int], name: str, fields: tuple[str, ...]
) -> list[list[tuple[Any, ...]]]:
    """A column of lists of structs, for some rows: per row the entries as tuples of `fields`."""
    column = table.column(name).take(rows).combine_chunks()
    if hasattr(column, "chunks"):  # no rows: pyarrow keeps the chunks
        return [[] for _ in rows]
    ends = column.offsets.to_pylist()
    values = column.values
    entries = list(zip(*(values.field(field).to_pylist() for field in fields), strict=True))
    return [entries[ends[row] : ends[row + 1]] for row in range(len(rows))]


REVISION: Final = ("rv", "recv_ns", "seq", "type", "synthesized", "derived_from", "rv_after",
                   "rv_before", "actor", "actor_agent", "not_before_ns")  # fmt: skip
_OBJECT: Final = (
    "namespace", "name", "uid", "finalizers", "created_ns", "deleted_ns", "owner_kind",
    "owner_name", "owner_uid", "owner_api_version",
)  # fmt: skip
_OWNER: Final = ("kind", "name", "uid", "api_version", "controller", "block_owner_deletion")
_CONDITION: Final = (
    "type", "status", "reason", "message", "last_probe_ns", "last_transition_ns",
)  # fmt: skip
_CONTAINER: Final = ("name", "init", "restart_count", "state", "exit_code", "finished_ns")
_JOB: Final = ("generation", *job_status.NAMES)
_STATUS_ABSENT: Final = tuple(field.shape.absent for field in job_status.FIELDS)
_UNCOUNTED: Final = job_status.NAMES.index("uncounted_succeeded")
_POD: Final = (
    "deletion_grace_s", "phase", "node_name", "pod_ready", "pod_ready_since_ns", "restarts",
    "restarts_max",
)  # fmt: skip
_EVENT: Final = (
    "seq", "recv_ns", "type", "name", "uid", "rv", "involved_kind", "involved_uid", "involved_rv",
    "event_type", "reason", "message", "count", "component", "first_ns",
)  # fmt: skip


@lru_cache(256)
def _owner(kind: str | None, name: str | None, uid: str | None, api: str | None) -> OwnerRef | None:
    if uid is None:
        return None
    return OwnerRef(kind or "", name or "", uid, api or "", controller=True)


def _owner_ref(entry: tuple[Any, ...]) -> OwnerRef:
    kind, name, uid, api_version, controller, blocks = entry
    return OwnerRef(
        kind or "", name or "", uid or "", api_version or "", bool(controller), bool(blocks)
    )


@lru_cache(4096)
def _conditions(entries: tuple[tuple[Any, ...], ...]) -> tuple[Condition, ...]:
    return tuple(
        Condition(kind or "", status or "", reason or "", message or "", probe_ns, transition_ns)
        for kind, status, reason, message, probe_ns, transition_ns in entries
    )


def _containers(entries: list[tuple[Any, ...]]) -> tuple[ContainerStatus, ...]:
    return tuple(
        ContainerStatus(
            name or "",
            bool(init),
            restarts or 0,
            (exit_code or 0) if state == "terminated" else None,
            finished_ns if state == "terminated" else None,
        )
        for name, init, restarts, state, exit_code, finished_ns in entries
    )


def _jobs(held: Rows, rows: list[int]) -> Iterator[Revision[JobView]]:
    if not rows:
        return
    table = held.table
    conditions = structs(table, rows, "conditions", _CONDITION)
    cells = scalars(table, rows, (*REVISION, *_OBJECT, *_JOB))
    texts = zip(
        held.labels.take(rows),
        held.annotations.take(rows),
        held.job_specs.take(rows),
        strict=True,
    )
    for row, listed, (labels, notes, spec), (
        rv, recv_ns, seq, kind, synthesized, derived_from, after, before, user, agent, came,
        namespace, name, uid, finalizers, created_ns, deleted_ns,
        owner_kind, owner_name, owner_uid, owner_api,
        generation, *fields,
    ) in zip(rows, conditions, texts, cells, strict=True):  # fmt: skip
        values: list[Any] = [
            absent if value is None else tuple(value) if absent == () else value
            for absent, value in zip(_STATUS_ABSENT, fields, strict=True)
        ]
        listed_conditions = _conditions(tuple(listed)) if listed else ()
        values += (fields[_UNCOUNTED] is not None, listed_conditions)
        status = JobStatus(*values)
        view = JobView(
            namespace,
            name or "",
            uid,
            rv,
            generation or 0,
            labels,
            notes,
            _owner(owner_kind, owner_name, owner_uid, owner_api),
            tuple(finalizers or ()),
            created_ns or 0,
            deleted_ns,
            spec,
            status,
        )
        evidence = RowEvidence(held, row)
        gone = bool(synthesized) and derived_from is None
        by = None if user is None else Actor(user, agent or "")
        yield Revision(rv, recv_ns or 0, seq, kind, view, evidence, gone, by, after, before, came)


def _pods(held: Rows, rows: list[int]) -> Iterator[Revision[PodView]]:
    if not rows:
        return
    table = held.table
    details = _pod_details(held, rows)
    cells = scalars(table, rows, (*REVISION, *_OBJECT, *_POD))
    texts = zip(held.labels.take(rows), held.annotations.take(rows), strict=True)
    for row, (labels, notes), (
        rv, recv_ns, seq, kind, synthesized, derived_from, after, before, user, agent, came,
        namespace, name, uid, finalizers, created_ns, deleted_ns,
        owner_kind, owner_name, owner_uid, owner_api,
        grace_s, phase, node_name, ready, ready_since_ns, restarts, restarts_max,
    ) in zip(rows, texts, cells, strict=True):  # fmt: skip
        view = PodView(
            namespace,
            name or "",
            uid,
            rv,
            labels,
            notes,
            _owner(owner_kind, owner_name, owner_uid, owner_api),
            (),
            tuple(finalizers or ()),
            created_ns or 0,
            deleted_ns,
            grace_s or 0,
            phase or "",
            node_name or "",
            bool(ready),
            ready_since_ns if ready else None,
            restarts or 0,
            restarts_max or 0,
            finalizers is not None and JOB_TRACKING_FINALIZER in finalizers,
            completion_index(notes)
            if COMPLETION_INDEX_ANNOTATION in notes
            else UNKNOWN_COMPLETION_INDEX,
            *details.get(row, _NO_DETAILS),
        )
        evidence = RowEvidence(held, row)
        gone = bool(synthesized) and derived_from is None
        by = None if user is None else Actor(user, agent or "")
        yield Revision(rv, recv_ns or 0, seq, kind, view, evidence, gone, by, after, before, came)


_Details = tuple[tuple[Condition, ...], tuple[ContainerStatus, ...], frozenset[str], int]
_NO_DETAILS: Final[_Details] = ((), (), frozenset(), 0)


def _pod_details(held: Rows, rows: list[int]) -> dict[int, _Details]:
    """Conditions, container statuses, sidecar names and the sidecars' restarts, by row.

    Only a pod that has finished or is going can fail, and only restarts rank sidecars: of all other
    pods these are never read.
    """
    table = held.table
    wanted = [
        row
        for row, (phase, deleted_ns, restarts) in zip(
            rows, scalars(table, rows, ("phase", "deleted_ns", "restarts")), strict=True
        )
        if deleted_ns is not None or restarts or phase in ("Failed", "Succeeded")
    ]
    if not wanted:
        return {}
    result: dict[int, _Details] = {}
    for row, listed, stated, names in zip(
        wanted,
        structs(table, wanted, "conditions", _CONDITION),
        structs(table, wanted, "containers", _CONTAINER),
        held.sidecars.take(wanted),
        strict=True,
    ):
        containers = _containers(stated)
        restarts = sidecar_restarts_max(containers, names) if names else 0
        result[row] = (_conditions(tuple(listed)), containers, names, restarts)
    return result


def _sidecar_names(spec: str | None) -> frozenset[str]:
    if spec is None or '"initContainers"' not in spec:
        return frozenset()
    return _sidecars(spec)


_CALL: Final = ("recv_ns", "verb", "stream", "code", "message", "actor", "actor_agent")
_REFUSED: Final = 400


def _refused(table: Any, rows: list[int]) -> Iterator[RefusedCall | None]:
    """Requests that were refused; None for those that were not."""
    if not rows:
        return
    for recv_ns, verb, stream, code, message, user, agent in scalars(table, rows, _CALL):
        if code is None or code < _REFUSED:
            yield None
            continue
        by = None if user is None else Actor(user, agent or "")
        yield RefusedCall(recv_ns or 0, verb or "", stream, code, message or "", by)


def event_rows(table: Any, rows: list[int], about: str = "Job") -> Iterator[EventRow | None]:
    """Events about objects of a kind; None for what says nothing about one."""
    if not rows:
        return
    for (
        seq, recv_ns, kind, name, uid, rv, involved_kind, involved_uid, involved_rv,
        event_type, reason, message, count, component, first_ns,
    ) in scalars(table, rows, _EVENT):  # fmt: skip
        if involved_kind != about or kind == "DELETED":
            yield None
            continue
        yield EventRow(
            seq,
            recv_ns or 0,
            kind,
            name or "",
            uid,
            rv,
            involved_uid or "",
            involved_rv or 0,
            event_type or "",
            reason or "",
            message or "",
            count or 1,
            component or "",
            first_ns,
        )
