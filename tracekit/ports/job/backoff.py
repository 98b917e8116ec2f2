"""How long a Job waits before it replaces failed pods.

From 1.27 on the delay follows from the finish times of the pods: 10 s after the first failure since
the last success, doubled per further failure, at most 10 min. With backoffLimitPerIndex each index
has a delay of its own, counted by the annotations of its last failed pod.

Upstream: pkg/controller/job/backoff_utils.go, from v1.27 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import (
    INDEX_FAILURE_COUNT_ANNOTATION,
    INDEX_IGNORED_FAILURE_COUNT_ANNOTATION,
    ContainerStatus,
    PodView,
    failure_count,
)


class BackoffRecord(NamedTuple):
    """Failures of one key since its last success."""

    failures_after_last_success: int = 0
    last_failure_ns: int | None = None  # None exactly when the count is 0


NO_FAILURES = BackoffRecord()


def finish_time_ns(pod: PodView, *, sidecars: bool = True) -> int:
    """When the pod finished, by the best evidence that its status holds.

    The latest container end if all ended (`sidecars`: theirs as well); else the moment Ready became
    False; else the deletion time less the grace period; else the creation time.
    """
    from_containers = _finish_time_from_containers(pod, sidecars=sidecars)
    if from_containers is not None:
        return from_containers
    for condition in pod.conditions:
        if condition.type == "Ready":
            if condition.status == "False" and condition.last_transition_ns is not None:
                return condition.last_transition_ns
            break
    if pod.deleted_ns is not None:
        return pod.deleted_ns - pod.deletion_grace_s * NS_PER_S
    return pod.created_ns


def finish_time_of_containers_ns(pod: PodView, now_ns: int) -> int:
    """When the pod finished, up to 1.27.4: the latest end of a container, or `now_ns`.

    So a pod that was deleted before its containers ended fails in the moment of each sync that
    looks at it, until one of them has stored its record.
    """
    regular = [container for container in pod.containers if not container.init]
    if any(container.exit_code is None for container in regular):
        return now_ns
    ends = [container.finished_ns for container in regular if container.finished_ns is not None]
    return max(ends, default=now_ns)


def _finish_time_from_containers(pod: PodView, *, sidecars: bool) -> int | None:
    """The latest end; the regular containers first, then the sidecars, as upstream goes."""
    regular = _latest_end_ns(None, [c for c in pod.containers if not c.init])
    if not sidecars:
        return regular
    return _latest_end_ns(regular, [c for c in pod.containers if c.name in pod.sidecars and c.init])


def _latest_end_ns(latest: int | None, containers: Sequence[ContainerStatus]) -> int | None:
    for container in containers:
        if container.exit_code is None or container.finished_ns is None:
            return None
        if latest is None or container.finished_ns > latest:
            latest = container.finished_ns
    return latest


def new_backoff_record(
    stored: BackoffRecord, succeeded_ns: Sequence[int], failed_ns: Sequence[int]
) -> BackoffRecord:
    """The record after pods that this sync counts for the first time, by their finish times."""
    failed_at = sorted(failed_ns)
    if not succeeded_ns:
        if not failed_at:
            return stored
        return BackoffRecord(stored.failures_after_last_success + len(failed_at), failed_at[-1])
    last_success_ns = max(succeeded_ns)
    after = [at for at in failed_at if at > last_success_ns]
    return BackoffRecord(len(after), after[-1]) if after else NO_FAILURES


def backoff_end_ns(record: BackoffRecord, *, base_ns: int, limit_ns: int) -> int | None:
    """When pods may be created again; None if there is nothing to wait for."""
    if record.failures_after_last_success == 0 or record.last_failure_ns is None:
        return None
    doublings = record.failures_after_last_success - 1
    delay_ns = limit_ns if doublings > 40 else min(base_ns << doublings, limit_ns)  # noqa: PLR2004 - no huge shifts
    return record.last_failure_ns + delay_ns


def index_backoff_end_ns(
    pod: PodView | None, *, base_ns: int, limit_ns: int, sidecars: bool = True
) -> int | None:
    """When the index of this failed pod may get its next pod; None for an index without one."""
    if pod is None:
        return None
    finished_ns = finish_time_ns(pod, sidecars=sidecars)
    record = BackoffRecord(absolute_failure_count(pod) + 1, finished_ns)
    return backoff_end_ns(record, base_ns=base_ns, limit_ns=limit_ns)


def index_failure_count(pod: PodView) -> int:
    """Failures of the pod's index that count, before this pod's own."""
    return failure_count(pod.annotations, INDEX_FAILURE_COUNT_ANNOTATION)


def absolute_failure_count(pod: PodView) -> int:
    """Failures of the pod's index, ignored ones included, before this pod's own."""
    return index_failure_count(pod) + failure_count(
        pod.annotations, INDEX_IGNORED_FAILURE_COUNT_ANNOTATION
    )
