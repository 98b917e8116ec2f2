"""What a pod is meant to do, read from its annotation `sim/plan` (JSON).

| key | meaning (times in seconds) |
|---|---|
| `bind` | from creation to binding; default 0.05 |
| `unschedulable` | true: never bound, PodScheduled=False instead |
| `start` | from binding to Running; default 0.05 |
| `ready` | from Running to Ready; default 0, that is with Running |
| `run` | from Running to the end; without it the pod runs until it is deleted |
| `exit` | exit code at the end; default 0. With restartPolicy OnFailure a code other than 0 restarts |
| `exits` | exit code by container name, where it differs from `exit` |
| `exitReason` | reason of a container that ends with a code other than 0; default Error |
| `waiting` | reason for which the containers wait before `start`, such as ImagePullBackOff; without `run` they never start |
| `failFirst` | the first n pods (of the index in an Indexed job, else of the job) end with `exit`, default 1, the others with 0 |
| `restarts` | times the containers fail and restart before the end, spread evenly over `run` |
| `condition` | type of a pod condition that a failing pod also gets, such as DisruptionTarget |
| `reason` | status.reason of a failing pod, such as Evicted |
| `grace` | from deletion to the end; default 0.3 |
| `termExit` | exit code after deletion; default 137, and 0 makes the pod succeed |
| `silent` | true: a deleted pod goes away without a last status, as when its node is lost |
| `say` | list of lines that its containers write when they start |
| `byOrdinal` | overrides for the n-th pod of the job, counted from 0 in order of creation |
| `byIndex` | overrides for a completion index |
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

ANNOTATION = "sim/plan"
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of one pod, overrides applied."""

    bind_seconds: float = 0.05
    unschedulable: bool = False
    start_seconds: float = 0.05
    ready_seconds: float = 0.0
    run_seconds: float | None = None
    exit_code: int = 0
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    exit_reason: str = "Error"
    waiting: str = ""
    restarts: int = 0
    condition: str = ""
    reason: str = ""
    grace_seconds: float = 0.3
    term_exit_code: int = 137
    silent: bool = False
    say: tuple[str, ...] = ()

    def exit_of(self, container: str) -> int:
        """Return the exit code of one container."""
        return self.exit_codes.get(container, self.exit_code)


def plan_of(annotations: Mapping[str, str], *, ordinal: int, attempt: int) -> Plan:
    """Return the plan of the `ordinal`-th pod of its job, the `attempt`-th of its index."""
    raw: dict[str, Any] = orjson.loads(annotations.get(ANNOTATION, "{}"))
    raw |= raw.get("byOrdinal", {}).get(str(ordinal), {})
    index = annotations.get(INDEX_ANNOTATION)
    if index is not None:
        raw |= raw.get("byIndex", {}).get(index, {})
    exit_code = int(raw.get("exit", 0))
    if "failFirst" in raw:
        failing = (ordinal if index is None else attempt) < int(raw["failFirst"])
        exit_code = (exit_code or 1) if failing else 0
    return Plan(
        bind_seconds=float(raw.get("bind", 0.05)),
        unschedulable=bool(raw.get("unschedulable", False)),
        start_seconds=float(raw.get("start", 0.05)),
        ready_seconds=float(raw.get("ready", 0)),
        run_seconds=None if raw.get("run") is None else float(raw["run"]),
        exit_code=exit_code,
        exit_codes=raw.get("exits", {}),
        exit_reason=str(raw.get("exitReason", "Error")),
        waiting=str(raw.get("waiting", "")),
        restarts=int(raw.get("restarts", 0)),
        condition=str(raw.get("condition", "")),
        reason=str(raw.get("reason", "")),
        grace_seconds=float(raw.get("grace", 0.3)),
        term_exit_code=int(raw.get("termExit", 137)),
        silent=bool(raw.get("silent", False)),
        say=tuple(map(str, raw.get("say", ()))),
    )
