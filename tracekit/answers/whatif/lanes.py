"""How the pods of one Job fared, by time, for whoever draws it: recorded, or in a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tracekit.base.kube.views import PodView
from tracekit.check.replay.history import History

#: As the report's page numbers them.
PENDING, SCHEDULED, RUNNING, READY, TERMINATING, SUCCEEDED, FAILED, UNKNOWN = range(8)
_ENDED: Final = {"Succeeded": SUCCEEDED, "Failed": FAILED}
#: Of one Job so many pods are drawn; the counts tell of all.
LANES_MAX: Final = 60


class Span(NamedTuple):
    """A phase of a pod, from one time to another."""

    phase: int
    from_ns: int
    until_ns: int


class PodLane(NamedTuple):
    """One pod's course."""

    name: str
    completion_index: int | None
    spans: tuple[Span, ...]
    ended: int | None  # SUCCEEDED, FAILED, or None: it was deleted, or still there at the end
    ended_ns: int | None
    exit_code: int | None
    reason: str


class PodState(NamedTuple):
    """A pod as somebody saw it."""

    at_ns: int
    type: str
    pod: PodView


def recorded_lanes(history: History, uid: str, end_ns: int) -> tuple[PodLane, ...]:
    """The pods that a Job controlled in a record."""
    states = [
        PodState(r.recv_ns, r.type, r.view)
        for r in history.pods
        if r.view.controller is not None and r.view.controller.uid == uid
    ]
    return lanes_of(states, end_ns)


def lanes_of(states: Iterable[PodState], end_ns: int) -> tuple[PodLane, ...]:
    """A lane for each pod, in the order in which they came; at most `LANES_MAX`."""
    by_uid: dict[str, list[PodState]] = {}
    for state in states:
        by_uid.setdefault(state.pod.uid, []).append(state)
    return tuple(_lane(rows, end_ns) for rows in list(by_uid.values())[:LANES_MAX])


def _lane(rows: Sequence[PodState], end_ns: int) -> PodLane:
    spans: list[Span] = []
    ended: PodState | None = None
    for place, row in enumerate(rows):
        if row.type == "DELETED" or ended is not None:
            break
        if row.pod.phase in _ENDED:
            ended = row
            break
        until_ns = rows[place + 1].at_ns if place + 1 < len(rows) else end_ns
        phase = _phase(row.pod)
        if spans and spans[-1].phase == phase:
            spans[-1] = spans[-1]._replace(until_ns=until_ns)
        else:
            spans.append(Span(phase, row.at_ns, until_ns))
    first, last = rows[0].pod, (ended or rows[-1]).pod
    codes = [c.exit_code for c in last.containers if c.exit_code is not None and not c.init]
    return PodLane(
        first.name,
        first.completion_index if first.completion_index >= 0 else None,
        tuple(spans),
        _ENDED[last.phase] if ended is not None else None,
        ended.at_ns if ended is not None else None,
        max(codes, default=None),
        "deleted" if ended is None and rows[-1].type == "DELETED" else "",
    )


def _phase(pod: PodView) -> int:
    if pod.deleted_ns is not None:
        return TERMINATING
    if pod.phase == "Running":
        return READY if pod.ready else RUNNING
    if pod.phase == "Unknown":
        return UNKNOWN
    return SCHEDULED if pod.node_name else PENDING
