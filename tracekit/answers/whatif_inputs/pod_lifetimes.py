"""What became of one pod, read off its revisions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.kube.views import PodView
from tracekit.check.replay.history import Revision
from tracekit.model.cluster.draws import Draws
from tracekit.model.cluster.pod_life import PodLife, Slot

_KILLED: Final = 137


class SeenLife(Struct, frozen=True):
    """A life as far as the record shows it."""

    slot: Slot
    life: PodLife
    #: It was cut off after running (or waiting) so long, and nobody saw how it would have gone on.
    cut_off_ns: int | None = None
    #: A deletion stopped it, and the record shows how.
    stopped: bool = False
    #: Somebody else than a controller deleted it, at this age, with this grace period.
    deleted_ns: int | None = None
    deleted_grace_s: int | None = None

    def with_deletion(self) -> SeenLife:
        """With its deletion as a part of the life: it comes when the pod is so old."""
        life = replace(self.life, deleted_ns=self.deleted_ns, deleted_grace_s=self.deleted_grace_s)
        return replace(self, life=life)


#: A container that failed so often in a row is taken to fail again.
_FAILS_AGAIN: Final = 2
#: Two runs of one container may differ by this part.
_ALIKE_PART: Final = 4


def goes_on_ns(found: SeenLife) -> int | None:
    """How long a life that was cut off may be taken to go on as it was; None: that is open.

    A container that was started again once may succeed when it has run as long as the first time;
    no two runs are of the same length.
    """
    restarts = found.life.restarts_at_ns
    if not 0 < sum(count for _, count in found.life.exits) < _FAILS_AGAIN:
        return None
    surely_ns = restarts[0] - restarts[0] // _ALIKE_PART
    return max(0, restarts[-1] + surely_ns - (found.cut_off_ns or 0))


def lasted_longer(other: SeenLife, found: SeenLife) -> bool:
    """Whether a life that was seen to its end shows how one that was cut off may go on.

    Of a pod whose containers had failed by then, only one tells whose had failed as often, each
    time after about as long.
    """
    cut_off_ns = found.cut_off_ns or 0
    if found.life.start_ns is not None:
        failed = [ended for ended in other.life.exits if ended[0] <= cut_off_ns]
        before = found.life.exits
        alike = len(failed) == len(before) and all(
            abs(left - right) <= right // _ALIKE_PART and count == as_often
            for (left, count), (right, as_often) in zip(failed, before, strict=True)
        )
        return alike and (other.life.run_ns or 0) > cut_off_ns
    if other.life.start_ns is None:
        return False
    if found.life.bind_ns is not None:
        return other.life.start_ns > cut_off_ns
    return (other.life.bind_ns or 0) > cut_off_ns


def succeeded(seen: SeenLife) -> bool:
    """Whether a life that was seen to its end was a success."""
    return not (seen.life.exit_code or any(seen.life.exit_codes.values()))


#: Lives whose lengths differ by more than this factor are not alike.
_ALIKE: Final = 2


def fared_alike(group: Sequence[SeenLife]) -> bool:
    """Whether lives were all successes or all failures, and of about one length.

    Jobs that share nothing but a template may be given other work by other means. Where fewer than
    two are known, or they do not fare alike, one tells nothing of another.
    """
    jobs = {life.slot.job_uid for life in group}
    ways = {succeeded(life) for life in group}
    runs = [life.life.run_ns or 0 for life in group]
    return len(jobs) > 1 and len(ways) == 1 and max(runs) <= _ALIKE * min(runs)


def scheduled_anew(lifetimes: Sequence[SeenLife], draws: Draws) -> list[SeenLife]:
    """The lives with delays of the scheduler that are drawn from those that were seen.

    How soon a pod is bound hangs on what the scheduler did just then, not on the pod. Only a delay
    of about the same length takes the place of another: a pod that waited for a node waits again.
    """
    seen = sorted(life.life.bind_ns for life in lifetimes if life.life.bind_ns is not None)

    def anew(life: SeenLife) -> SeenLife:
        own_ns = life.life.bind_ns
        if own_ns is None:
            return life
        first = bisect_left(seen, own_ns // _ALIKE)
        beyond = bisect_right(seen, own_ns * _ALIKE)
        bind_ns = seen[first + draws.pick(beyond - first)]
        return replace(life, life=replace(life.life, bind_ns=bind_ns))

    return [anew(life) for life in lifetimes]


def ran_anew(lifetimes: Sequence[SeenLife], draws: Draws) -> list[SeenLife]:
    """The lives with runs of their containers that are as long as other runs of the same pod's.

    A container that does the same again takes a few milliseconds more or less, and kubelets tell of
    its end sooner or later. Runs that differ by more, or a back-off lies between, are of their own.
    """
    return [_ran_anew(life, draws) for life in lifetimes]


def _ran_anew(seen: SeenLife, draws: Draws) -> SeenLife:
    restarts, end_ns = seen.life.restarts_at_ns, seen.life.run_ns
    if not restarts or end_ns is None:
        return seen
    runs = [right - left for left, right in pairwise((0, *restarts, end_ns))]
    ends: list[int] = []
    for own_ns in runs:
        alike = [ns for ns in runs if abs(ns - own_ns) <= own_ns // _ALIKE_PART]
        ends.append((ends[-1] if ends else 0) + alike[draws.pick(len(alike))])
    life = replace(seen.life, restarts_at_ns=tuple(ends[:-1]), run_ns=ends[-1])
    return replace(seen, life=life)


def deleted_by_others(seen: SeenLife, age_ns: int, grace_s: int | None) -> SeenLife:
    """A life that somebody else than a controller ended."""
    return replace(seen, deleted_ns=age_ns, deleted_grace_s=grace_s)


def seen_life(slot: Slot, revisions: Sequence[Revision[PodView]]) -> SeenLife:
    """The life of the pod whose revisions these are; the first one is its creation."""
    first = revisions[0]
    bound = _first(revisions, lambda pod: bool(pod.node_name))
    started = _first(revisions, lambda pod: pod.phase not in ("", "Pending"))
    deleted = _first(revisions, lambda pod: pod.deleted_ns is not None)
    ended = _first(revisions, lambda pod: pod.terminal)
    gone = revisions[-1] if revisions[-1].type == "DELETED" else None
    stopped = deleted or gone
    killed = stopped is not None and (ended is None or ended.rv >= stopped.rv)
    last = ended or revisions[-1]
    born_ns = first.recv_ns
    bound_ns = bound.recv_ns if bound is not None else born_ns
    if started is not None and (not killed or stopped is None or started.rv < stopped.rv):
        started_ns: int | None = max(started.recv_ns, bound_ns)
    else:
        started_ns = None
    run_ns = None
    if ended is not None and not killed and started_ns is not None:
        run_ns = max(0, ended.recv_ns - started_ns)
    seen_stop = False
    restarts = _restarts(revisions, started_ns, stopped if killed else None)
    life = PodLife(
        bind_ns=bound_ns - born_ns if bound is not None else None,
        start_ns=None if started_ns is None else started_ns - bound_ns,
        ready_ns=_ready_ns(revisions, started_ns),
        run_ns=run_ns,
        restarts_at_ns=tuple(at_ns for at_ns, _ in restarts),
        restart_counts=tuple(more for _, more in restarts),
        condition=disruption(last.view),
    )
    if not killed:
        life = _with_ending(life, last.view)
    elif stopped is not None:
        life, seen_stop = _with_death(life, revisions, stopped)
    if run_ns is not None:
        return SeenLife(slot, life)
    until_ns = (stopped if killed and stopped is not None else revisions[-1]).recv_ns
    since_ns = started_ns if started_ns is not None else bound_ns
    return SeenLife(slot, life, max(0, until_ns - since_ns), seen_stop and started_ns is not None)


def _first(
    revisions: Sequence[Revision[PodView]], holds: Callable[[PodView], bool]
) -> Revision[PodView] | None:
    return next((revision for revision in revisions if holds(revision.view)), None)


#: `restartCount` is an int32.
_RESTARTS_MAX: Final = 2**31 - 1


def _restarts(
    revisions: Sequence[Revision[PodView]],
    started_ns: int | None,
    stopped: Revision[PodView] | None,
) -> list[tuple[int, int]]:
    """When containers were started again, from the first start, and how many more times by then.

    None after the deletion. One revision may show any number: a record that was made by somebody
    else can name 2,147,483,647, and a list with each of them took 17 GB.
    """
    found: list[tuple[int, int]] = []
    count = 0
    for revision in revisions:
        if started_ns is None or (stopped is not None and revision.rv >= stopped.rv):
            break
        more = min(revision.view.restarts, _RESTARTS_MAX) - count
        if more > 0:
            found.append((max(0, revision.recv_ns - started_ns), more))
            count += more
    return found


def _ready_ns(revisions: Sequence[Revision[PodView]], started_ns: int | None) -> int | None:
    ready = _first(revisions, lambda pod: pod.ready)
    if ready is None or started_ns is None:
        return None
    return max(0, ready.recv_ns - started_ns)


def disruption(pod: PodView) -> str:
    """The condition that says that the control plane ended the pod."""
    return next(
        (c.type for c in pod.conditions if c.type == "DisruptionTarget" and c.status == "True"), ""
    )


def _with_ending(life: PodLife, pod: PodView) -> PodLife:
    """With the exit codes with which the pod ended by itself."""
    codes = {c.name: c.exit_code for c in pod.containers if c.exit_code is not None and not c.init}
    if pod.phase == "Failed" and not any(codes.values()):
        return replace(life, exit_codes=dict.fromkeys(codes, 1), exit_code=1)
    return replace(life, exit_codes=codes, exit_code=max(codes.values(), default=0))


def _with_death(
    life: PodLife, revisions: Sequence[Revision[PodView]], stopped: Revision[PodView]
) -> tuple[PodLife, bool]:
    """With how long a pod took to stop once it was deleted, and with what; whether it shows."""
    for revision in revisions:
        pod = revision.view
        shortened = revision is not stopped and pod.deletion_grace_s == 0
        if revision.rv < stopped.rv or not (
            pod.terminal or revision.type == "DELETED" or shortened
        ):
            continue
        codes = [c.exit_code for c in pod.containers if c.exit_code is not None]
        succeeded = pod.phase == "Succeeded"
        gone = next((r for r in revisions if r.rv >= revision.rv and _asked_for(r)), revision)
        life = replace(
            life,
            grace_ns=max(0, revision.recv_ns - stopped.recv_ns),
            gone_ns=max(0, gone.recv_ns - revision.recv_ns),
            term_exit_code=0 if succeeded else max(codes, default=0) or _KILLED,
            silent=not pod.terminal,
        )
        return life, True
    return life, False


def _asked_for(revision: Revision[PodView]) -> bool:
    """Whether the kubelet has asked for the end of a pod that has stopped."""
    return revision.type == "DELETED" or revision.view.deletion_grace_s == 0
