"""Workload files: a world written down in YAML, checked against types, turned into a `World`.

The types below are the format; `schema()` says it as JSON Schema (docs/workload.schema.json).
Times are seconds, as numbers or as text with a unit ("500ms", "3s", "2m", "1h").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.model.cluster.api_server import Refusal
from tracekit.model.cluster.decoding import misshapen, without_nulls
from tracekit.model.cluster.pod_life import PodLife, Slot
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.draws import Span, Timing
from tracekit.model.simulate.world import (
    CreateObject,
    DeleteObject,
    DeletePodOf,
    PatchObject,
    Restart,
    UserWrite,
    World,
)

Duration = int | float | str
#: A delay, or its least and its most.
Delay = Duration | tuple[Duration, Duration]

_UNITS: Final = {"ms": NS_PER_S // 1000, "s": NS_PER_S, "m": 60 * NS_PER_S, "h": 3600 * NS_PER_S}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
#: When a run begins, where the file does not say it.
START: Final = "2026-01-01T00:00:00Z"
_COPIES_MAX: Final = 1_000_000


class _Strict(
    msgspec.Struct, forbid_unknown_fields=True, rename="camel", omit_defaults=True, frozen=True
):
    """A part of the file; a name that it does not know is an error."""


class Pods(_Strict, frozen=True):
    """What becomes of the pods of a Job; `byOrdinal` and `byIndex` override it for some."""

    bind: Duration = 0.05
    unschedulable: bool = False
    start: Duration = 0.05
    never_starts: bool = False
    ready: Duration | None = 0
    run: Duration | None = 1
    exit: int = 0
    exits: dict[str, int] = {}
    exit_reason: str = "Error"
    fail_first: int = 0
    restarts: int = 0
    waiting: str = ""
    condition: str = ""
    reason: str = ""
    grace: Duration = 0.3
    term_exit: int = 137
    silent: bool = False
    by_ordinal: dict[str, dict[str, Any]] = {}
    by_index: dict[str, dict[str, Any]] = {}


class Object(_Strict, frozen=True):
    """A Job or a CronJob that a user creates, or `count` of them, `every` so often."""

    name: str
    spec: dict[str, Any]
    namespace: str = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    at: Duration = 1
    count: int = 1
    every: Duration = 0
    pods: Pods = Pods()


class Action(_Strict, frozen=True):
    """What a user does to an object later: a JSON merge patch, or a deletion."""

    at: Duration
    target: str  # jobs/NAMESPACE/NAME, cronjobs/…, namespaces/NAME, or pods/NAMESPACE/JOB
    patch: dict[str, Any] | None = None
    delete: bool = False
    propagation: Literal["Background", "Foreground", "Orphan"] = "Background"
    ordinal: int | None = None
    index: int | None = None
    grace: int | None = None


class Refuse(_Strict, frozen=True):
    """A time in which the API server refuses."""

    at: Duration
    until: Duration
    kind: Literal["pods", "jobs", "cronjobs"] = "pods"
    verb: Literal["create", "update", "delete"] = "create"
    namespace: str | None = None
    message: str = 'admission webhook "refuses.example.com" denied the request'


class RestartAt(_Strict, frozen=True):
    """The controller manager dies, and starts again after a while."""

    at: Duration
    down: Duration = 1


class Faults(_Strict, frozen=True):
    """What goes wrong."""

    refuse: list[Refuse] = []
    restarts: list[RestartAt] = []
    pod_quota: dict[str, int] = {}


class Controllers(_Strict, frozen=True):
    """Flags of kube-controller-manager."""

    kube_api_qps: int | None = None
    kube_api_burst: int | None = None
    concurrent_job_syncs: int | None = None
    concurrent_cron_job_syncs: int | None = None
    concurrent_ttl_syncs: int | None = None


class Timings(_Strict, frozen=True):
    """Delays of the control plane: one value, or [least, most]."""

    latency: Delay = ("2ms", "12ms")
    watch_lag: Delay = ("1ms", "20ms")
    handler_lag: Delay = (0, "2ms")
    collection: Delay = ("5ms", "120ms")
    record_lag: Delay = ("1ms", "15ms")


class Workload(_Strict, frozen=True):
    """A workload file."""

    duration: Duration
    start: str = START
    seed: int = 0
    kubernetes_version: str | None = None
    feature_gates: dict[str, bool] = {}
    controllers: Controllers = Controllers()
    timing: Timings = Timings()
    jobs: list[Object] = []
    cron_jobs: list[Object] = []
    actions: list[Action] = []
    faults: Faults = Faults()


def read_workload(content: bytes, name: str) -> Workload:
    """The workload of a file.

    Raises:
        UsageError: It is no YAML, or not of this form; the sentence names the place.
    """
    try:
        return msgspec.yaml.decode(content, type=Workload)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error} (docs/simulate.md has the fields)") from error
    except msgspec.DecodeError as error:
        line = " ".join(str(error).split())
        raise UsageError(f"{name} is not YAML: {line}") from error


def schema() -> dict[str, Any]:
    """The JSON Schema of workload files."""
    return msgspec.json.schema(Workload)


def world_of(workload: Workload) -> World:
    """The world that a workload describes."""
    start_ns = parse_rfc3339(workload.start)
    if start_ns is None:
        raise UsageError(
            f"start: {workload.start!r} is not a time: write it like 2026-11-22T00:00:00Z"
        )
    end_ns = start_ns + nanoseconds(workload.duration, "duration")

    def at(value: Duration, where: str) -> int:
        return start_ns + nanoseconds(value, where)

    lifetimes = PlannedLifetimes()
    writes: list[UserWrite] = []
    for kind, objects in (("jobs", workload.jobs), ("cronjobs", workload.cron_jobs)):
        for obj in objects:
            writes += _creations(kind, obj, at(obj.at, f"{kind} {obj.name}"), lifetimes)
    writes += [
        _action(action, at(action.at, f"action on {action.target}")) for action in workload.actions
    ]
    writes.sort(key=lambda write: write.at_ns)
    faults = workload.faults
    return World(
        start_ns,
        end_ns,
        tuple(writes),
        lifetimes,
        refusals=tuple(
            Refusal(
                refuse.kind,
                refuse.verb,
                refuse.namespace,
                at(refuse.at, "refuse"),
                at(refuse.until, "refuse"),
                refuse.message,
            )
            for refuse in faults.refuse
        ),
        pod_quota=faults.pod_quota,
        restarts=tuple(
            Restart(
                at(restart.at, "restarts"),
                at(restart.at, "restarts") + nanoseconds(restart.down, "restarts"),
            )
            for restart in faults.restarts
        ),
    )


def flags_of(workload: Workload) -> ManagerFlags:
    """The controller manager's flags."""
    given = workload.controllers
    return ManagerFlags(**{name: getattr(given, name) for name in given.__struct_fields__})


def timing_of(workload: Workload) -> Timing:
    """The delays of the control plane."""
    given = workload.timing
    spans: dict[str, Any] = {
        name: _span(getattr(given, name), f"timing.{name}") for name in given.__struct_fields__
    }
    return Timing(**spans)


def nanoseconds(value: Duration, where: str) -> int:
    """A duration of the file; `where` names its place in errors."""
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            raise UsageError(f"{where}: {value!r} is no duration: write it like 500ms, 3s or 2m")
        return round(float(match[1]) * _UNITS[match[2]])
    if isinstance(value, bool) or value < 0:
        raise UsageError(f"{where}: {value!r} is no duration: it must be 0 or more seconds")
    return round(value * NS_PER_S)


def _span(value: Delay, where: str) -> Span:
    pair = value if isinstance(value, tuple) else (value, value)
    least, most = (nanoseconds(part, where) for part in pair)
    if least > most:
        raise UsageError(f"{where}: the least delay is longer than the most")
    return least, most


def _creations(
    kind: str, obj: Object, first_ns: int, lifetimes: PlannedLifetimes
) -> Iterator[UserWrite]:
    if not 1 <= obj.count <= _COPIES_MAX:
        raise UsageError(f"{kind} {obj.name}: count must lie between 1 and {_COPIES_MAX:,}")
    every_ns = nanoseconds(obj.every, f"{kind} {obj.name}")
    for number in range(obj.count):
        name = obj.name if obj.count == 1 else f"{obj.name}-{number}"
        meta: dict[str, Any] = {"name": name, "namespace": obj.namespace}
        if obj.labels:
            meta["labels"] = dict(obj.labels)
        if obj.annotations:
            meta["annotations"] = dict(obj.annotations)
        lifetimes.plan(kind, obj.namespace, name, obj.pods)
        body = {"metadata": meta, "spec": _with_container(kind, obj.spec)}
        yield CreateObject(first_ns + number * every_ns, kind, body)


def _with_container(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec, with a template that says nothing else made runnable."""
    made: dict[str, Any] = without_nulls(dict(spec))
    if misshapen(kind, {"metadata": {}, "spec": made}):
        return made  # the server refuses it
    job = made if kind == "jobs" else made.setdefault("jobTemplate", {}).setdefault("spec", {})
    pod = job.setdefault("template", {}).setdefault("spec", {})
    pod.setdefault("restartPolicy", "Never")
    pod.setdefault("containers", [{"name": "main", "image": "busybox:1"}])
    return made


def _action(action: Action, at_ns: int) -> UserWrite:
    kind, *path = action.target.split("/")
    wanted = {"jobs": 2, "cronjobs": 2, "pods": 2, "namespaces": 1}
    if kind not in wanted or len(path) != wanted[kind] or not all(path):
        raise UsageError(
            f"target: {action.target!r} names nothing: write jobs/NAMESPACE/NAME, "
            "cronjobs/NAMESPACE/NAME, pods/NAMESPACE/JOB or namespaces/NAME"
        )
    namespace, name = ("", path[0]) if kind == "namespaces" else (path[0], path[1])
    if (action.patch is None) == (not action.delete):
        raise UsageError(f"action on {action.target}: say either patch or delete: true")
    if kind == "pods":
        if not action.delete:
            raise UsageError(f"action on {action.target}: pods can be deleted only")
        return DeletePodOf(at_ns, namespace, name, action.ordinal, action.index, action.grace)
    if action.patch is not None:
        return PatchObject(at_ns, kind, namespace, name, action.patch)
    return DeleteObject(at_ns, kind, namespace, name, action.propagation)


class PlannedLifetimes:
    """The lives that a workload file plans, by the object that a user created."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str, str], Pods] = {}

    def plan(self, kind: str, namespace: str, name: str, pods: Pods) -> None:
        """Say how the pods of a Job, or of a CronJob's Jobs, fare."""
        self._plans[kind, namespace, name] = pods

    def life_of(self, slot: Slot, pod: Mapping[str, Any]) -> PodLife:
        """The life of a pod that was just created."""
        del pod
        pods = self._plans.get(("jobs", slot.namespace, slot.job)) or self._plans.get(
            ("cronjobs", slot.namespace, slot.cron_job)
        )
        return PodLife() if pods is None else _life(_overridden(pods, slot), slot)


def _overridden(pods: Pods, slot: Slot) -> Pods:
    changes: Sequence[Mapping[str, Any]] = (
        pods.by_ordinal.get(str(slot.ordinal), {}),
        pods.by_index.get(str(slot.completion_index), {}),
    )
    if not any(changes):
        return pods
    plain = msgspec.to_builtins(pods)
    for change in changes:
        plain |= change
    try:
        return msgspec.convert(plain, Pods)
    except msgspec.ValidationError as error:
        raise UsageError(f"pods of {slot.namespace}/{slot.job}: {error}") from error


def _life(pods: Pods, slot: Slot) -> PodLife:
    exit_code = pods.exit
    if pods.fail_first:
        exit_code = (exit_code or 1) if slot.attempt < pods.fail_first else 0
    where = f"pods of {slot.namespace}/{slot.job}"
    return PodLife(
        bind_ns=None if pods.unschedulable else nanoseconds(pods.bind, where),
        start_ns=None if pods.never_starts else nanoseconds(pods.start, where),
        ready_ns=None if pods.ready is None else nanoseconds(pods.ready, where),
        run_ns=None if pods.run is None else nanoseconds(pods.run, where),
        exit_code=exit_code,
        exit_codes=pods.exits,
        exit_reason=pods.exit_reason,
        restarts=pods.restarts,
        waiting=pods.waiting,
        condition=pods.condition,
        reason=pods.reason,
        grace_ns=nanoseconds(pods.grace, where),
        term_exit_code=pods.term_exit,
        silent=pods.silent,
    )
