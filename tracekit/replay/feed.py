"""From the typed columns of a trace to the histories of its keys.

The groups of a trace come by namespace and Job, first the rows of a namespace that belong to no
Job. Scalars are converted a column at a time; nested columns only where something will be read from
them; JSON text (specs, labels, annotations) once per distinct text. The raw objects stay on disk.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tracekit.kube.decode import EMPTY, as_map, as_string_map
from tracekit.kube.selectors import selector_matches
from tracekit.kube.views import (
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
from tracekit.replay.history import EventRow, History, Manager, Revision, build_history

#: The columns that a replay of the Job controller reads.
COLUMNS: Final = (
    "seq", "stream", "type", "recv_ns", "rv", "namespace", "name", "uid", "generation",
    "generate_name", "created_ns", "deleted_ns", "deletion_grace_s", "finalizers", "owner_kind",
    "owner_name", "owner_uid", "owner_api_version", "labels", "annotations", "managers", "spec",
    "phase", "reason", "message", "start_ns", "conditions", "active", "ready", "succeeded",
    "failed", "terminating", "completion_ns", "completed_indexes", "failed_indexes",
    "uncounted_succeeded", "uncounted_failed", "node_name", "pod_ready", "pod_ready_since_ns",
    "containers", "restarts", "restarts_max", "involved_kind", "involved_uid", "involved_rv",
    "event_type", "count", "component", "synthesized",
)  # fmt: skip

_STATES = frozenset({"LIST", "ADDED", "MODIFIED", "DELETED"})


class Rows(Protocol):
    """A table as pyarrow has it."""

    num_rows: int

    def column(self, name: str) -> Any:
        """One column."""
        ...


class RowGroup(Protocol):
    """The rows of one Job, or of a namespace's rows of no Job."""

    @property
    def namespace(self) -> str | None:
        """The namespace; None for rows of none."""
        ...

    @property
    def job(self) -> str | None:
        """The Job's name; None for rows of none."""
        ...

    @property
    def rows(self) -> Any:
        """The rows, sorted by revision."""
        ...


@dataclass(slots=True)
class RowEvidence:
    """Looks things up in the row when they are asked for."""

    columns: _Columns
    row: int

    def managers(self) -> tuple[Manager, ...]:
        """The managedFields entries."""
        return tuple(
            Manager(
                entry["manager"] or "",
                entry["operation"] or "",
                entry["subresource"] or "",
                entry["time_ns"],
            )
            for entry in self.columns.nested("managers", self.row)
        )

    def pod_spec(self) -> Mapping[str, Any]:
        """The decoded spec of the pod, without its node name."""
        spec: Mapping[str, Any] = _decoded(self.columns.scalars("spec")[self.row])
        return spec

    def generate_name(self) -> str:
        """metadata.generateName."""
        return self.columns.scalars("generate_name")[self.row] or ""


class _Columns:
    """The columns of a group, converted when first asked for."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self._scalars: dict[str, list[Any]] = {}

    def scalars(self, name: str) -> list[Any]:
        """A column as a list."""
        found = self._scalars.get(name)
        if found is None:
            found = self._scalars[name] = self.rows.column(name).to_pylist()
        return found

    def nested(self, name: str, row: int) -> Sequence[Mapping[str, Any]]:
        """One cell of a nested column."""
        value: list[Mapping[str, Any]] | None = self.rows.column(name)[row].as_py()
        return value or ()


class _Decoder:
    """Decodes JSON text once per distinct text."""

    def __init__(self, build: Callable[[Any], Any], limit: int = 4096) -> None:
        self._build = build
        self._limit = limit
        self._known: dict[str, Any] = {}

    def __call__(self, text: str | None) -> Any:
        if text is None:
            return self._build(EMPTY)
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= self._limit:
                self._known.clear()
            found = self._known[text] = self._build(json.loads(text))
        return found


_decoded = _Decoder(as_map, 512)
_labels = _Decoder(as_string_map)
_job_spec = _Decoder(lambda value: job_spec_from_raw(as_map(value)))
_sidecars = _Decoder(lambda value: sidecars_of(as_map(value)), 512)


def histories(groups: Iterable[RowGroup]) -> Iterator[History]:
    """The history of every Job of the groups, which come sorted by namespace and Job.

    Pods without a controller are offered to every Job of their namespace whose selector they match.
    """
    namespace: str | None = None
    orphans: dict[str, list[Revision[PodView]]] = {}
    for group in groups:
        if group.namespace != namespace:
            namespace, orphans = group.namespace, {}
        if group.namespace is None:
            continue
        columns = _Columns(group.rows)
        if group.job is None:
            orphans = _by_uid(_pods(columns))
            continue
        jobs = list(_jobs(columns))
        pods = _by_uid(_pods(columns))
        for uid, revisions in orphans.items():
            if uid in pods or any(
                selector_matches(selector, revision.view.labels)
                for selector in _selectors(jobs)
                for revision in revisions
            ):
                pods.setdefault(uid, []).extend(_copy(revision) for revision in revisions)
        yield build_history(
            group.namespace,
            group.job,
            jobs,
            (revision for revisions in pods.values() for revision in revisions),
            _events(columns),
        )


def _selectors(jobs: Iterable[Revision[JobView]]) -> list[Mapping[str, Any] | None]:
    """The distinct selectors of a name's Jobs."""
    return list({r.view.uid: r.view.spec.selector for r in jobs}.values())


def _by_uid(revisions: Iterable[Revision[PodView]]) -> dict[str, list[Revision[PodView]]]:
    result: dict[str, list[Revision[PodView]]] = defaultdict(list)
    for revision in revisions:
        result[revision.view.uid].append(revision)
    return dict(result)


def _copy(revision: Revision[PodView]) -> Revision[PodView]:
    """A revision of its own for each history: histories link their revisions."""
    return Revision(
        revision.rv,
        revision.recv_ns,
        revision.seq,
        revision.type,
        revision.view,
        revision.evidence,
        revision.synthesized,
    )


def _rows_of(columns: _Columns, stream: str) -> list[int]:
    types = columns.scalars("type")
    return [
        row
        for row, name in enumerate(columns.scalars("stream"))
        if name == stream and types[row] in _STATES
    ]


def _jobs(columns: _Columns) -> Iterator[Revision[JobView]]:
    rows = _rows_of(columns, "jobs")
    if not rows:
        return
    col = columns.scalars
    rv, recv, seq, kind = col("rv"), col("recv_ns"), col("seq"), col("type")
    for row in rows:
        if rv[row] is None or col("uid")[row] is None:
            continue
        view = JobView(
            namespace=col("namespace")[row],
            name=col("name")[row],
            uid=col("uid")[row],
            rv=rv[row],
            generation=col("generation")[row] or 0,
            labels=_labels(col("labels")[row]),
            annotations=_labels(col("annotations")[row]),
            controller=_controller(columns, row),
            finalizers=tuple(col("finalizers")[row] or ()),
            created_ns=col("created_ns")[row] or 0,
            deleted_ns=col("deleted_ns")[row],
            spec=_spec(columns, row),
            status=_job_status(columns, row),
        )
        yield Revision(
            rv[row],
            recv[row] or 0,
            seq[row],
            kind[row],
            view,
            RowEvidence(columns, row),
            synthesized=bool(col("synthesized")[row]),
        )


def _spec(columns: _Columns, row: int) -> JobSpec:
    spec: JobSpec = _job_spec(columns.scalars("spec")[row])
    return spec


def _job_status(columns: _Columns, row: int) -> JobStatus:
    col = columns.scalars
    succeeded = col("uncounted_succeeded")[row]
    return JobStatus(
        active=col("active")[row] or 0,
        ready=col("ready")[row],
        succeeded=col("succeeded")[row] or 0,
        failed=col("failed")[row] or 0,
        terminating=col("terminating")[row],
        start_ns=col("start_ns")[row],
        completion_ns=col("completion_ns")[row],
        completed_indexes=col("completed_indexes")[row] or "",
        failed_indexes=col("failed_indexes")[row],
        uncounted_succeeded=tuple(succeeded or ()),
        uncounted_failed=tuple(col("uncounted_failed")[row] or ()),
        tracks_uncounted=succeeded is not None,
        conditions=_conditions(columns, row),
    )


def _conditions(columns: _Columns, row: int) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            entry["type"] or "",
            entry["status"] or "",
            entry["reason"] or "",
            entry["message"] or "",
            entry["last_probe_ns"],
            entry["last_transition_ns"],
        )
        for entry in columns.nested("conditions", row)
    )


def _containers(columns: _Columns, row: int) -> tuple[ContainerStatus, ...]:
    return tuple(
        ContainerStatus(
            entry["name"] or "",
            bool(entry["init"]),
            entry["restart_count"] or 0,
            (entry["exit_code"] or 0) if entry["state"] == "terminated" else None,
            entry["finished_ns"] if entry["state"] == "terminated" else None,
        )
        for entry in columns.nested("containers", row)
    )


def _controller(columns: _Columns, row: int) -> OwnerRef | None:
    uid = columns.scalars("owner_uid")[row]
    if uid is None:
        return None
    return OwnerRef(
        columns.scalars("owner_kind")[row] or "",
        columns.scalars("owner_name")[row] or "",
        uid,
        columns.scalars("owner_api_version")[row] or "",
        controller=True,
    )


def _pods(columns: _Columns) -> Iterator[Revision[PodView]]:
    rows = _rows_of(columns, "pods")
    if not rows:
        return
    col = columns.scalars
    rv, uid, recv, seq, kind = col("rv"), col("uid"), col("recv_ns"), col("seq"), col("type")
    phase, deleted, finalizers = col("phase"), col("deleted_ns"), col("finalizers")
    ready, ready_since = col("pod_ready"), col("pod_ready_since_ns")
    for row in rows:
        if rv[row] is None or uid[row] is None:
            continue
        annotations = _labels(col("annotations")[row])
        restarts = col("restarts")[row] or 0
        # Only a pod that has finished or is going can fail, so only its details are ever read.
        detailed = deleted[row] is not None or phase[row] in ("Failed", "Succeeded")
        held = tuple(finalizers[row] or ())
        view = PodView(
            namespace=col("namespace")[row],
            name=col("name")[row] or "",
            uid=uid[row],
            rv=rv[row],
            labels=_labels(col("labels")[row]),
            annotations=annotations,
            controller=_controller(columns, row),
            owners=(),
            finalizers=held,
            created_ns=col("created_ns")[row] or 0,
            deleted_ns=deleted[row],
            deletion_grace_s=col("deletion_grace_s")[row] or 0,
            phase=phase[row] or "",
            node_name=col("node_name")[row] or "",
            ready=bool(ready[row]),
            ready_since_ns=ready_since[row] if ready[row] else None,
            restarts=restarts,
            restarts_max=col("restarts_max")[row] or 0,
            has_tracking_finalizer=JOB_TRACKING_FINALIZER in held,
            completion_index=completion_index(annotations)
            if COMPLETION_INDEX_ANNOTATION in annotations
            else UNKNOWN_COMPLETION_INDEX,
            conditions=_conditions(columns, row) if detailed else (),
            containers=_containers(columns, row) if detailed else (),
            sidecars=_sidecar_names(columns, row) if detailed else frozenset(),
            sidecar_restarts_max=_sidecar_restarts_max(columns, row) if restarts else 0,
        )
        yield Revision(
            rv[row],
            recv[row] or 0,
            seq[row],
            kind[row],
            view,
            RowEvidence(columns, row),
            synthesized=bool(col("synthesized")[row]),
        )


def _sidecar_restarts_max(columns: _Columns, row: int) -> int:
    names = _sidecar_names(columns, row)
    return sidecar_restarts_max(_containers(columns, row), names) if names else 0


def _sidecar_names(columns: _Columns, row: int) -> frozenset[str]:
    text = columns.scalars("spec")[row]
    if text is None or '"initContainers"' not in text:
        return frozenset()
    names: frozenset[str] = _sidecars(text)
    return names


def _events(columns: _Columns) -> Iterator[EventRow]:
    col = columns.scalars
    for row in _rows_of(columns, "events"):
        if col("involved_kind")[row] != "Job" or col("type")[row] == "DELETED":
            continue
        yield EventRow(
            seq=col("seq")[row],
            recv_ns=col("recv_ns")[row] or 0,
            type=col("type")[row],
            name=col("name")[row] or "",
            uid=col("uid")[row] or "",
            rv=col("rv")[row] or 0,
            involved_uid=col("involved_uid")[row] or "",
            involved_rv=col("involved_rv")[row] or 0,
            event_type=col("event_type")[row] or "",
            reason=col("reason")[row] or "",
            message=col("message")[row] or "",
            count=col("count")[row] or 1,
            component=col("component")[row] or "",
        )
