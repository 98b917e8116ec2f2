"""How the indexes ended for which a Job failed: by exit code, and by its podFailurePolicy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from tracekit.answers.endings import coded
from tracekit.answers.trace_model import Job, Pod
from tracekit.answers.words import counted, named
from tracekit.base.kube.decode import as_items
from tracekit.base.kube.views import Condition, ContainerStatus
from tracekit.ports.job.pod_failure_policy import match_pod_failure_policy

_SHOWN: Final = 3


def of_indexes(job: Job, pods: Sequence[Pod]) -> str:
    """What is added about failed pods of a Job with a limit for each index; else nothing."""
    limit = job.spec.get("backoffLimitPerIndex")
    failed: defaultdict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.index is not None and pod.exit is not None:
            failed[pod.index].append(pod)
    if not failed or not isinstance(limit, int):
        return ""
    shown = [_of_one(job, index, failed[index]) for index in sorted(failed)[:_SHOWN]]
    return f"; {'; '.join(shown)} (backoffLimitPerIndex {limit})"


def _of_one(job: Job, index: int, pods: Sequence[Pod]) -> str:
    codes = sorted({int(pod.exit["exit_code"] or 0) for pod in pods if pod.exit is not None})
    said = f"index {index}: {counted(len(pods), 'pod')}, exit code {named([*map(coded, codes)])}"
    rules = as_items((job.spec.get("podFailurePolicy") or {}).get("rules"))
    policy = (match_pod_failure_policy(rules, _as_failed(pod), fail_index=True) for pod in pods)
    if any(matched.action == "FailIndex" for matched in policy):
        said += ", not tried again by a FailIndex rule"
    return said


class _Failed(NamedTuple):
    """A pod as its Job's podFailurePolicy looks at it."""

    namespace: str
    name: str
    conditions: tuple[Condition, ...]
    containers: tuple[ContainerStatus, ...]


def _as_failed(pod: Pod) -> _Failed:
    row = pod.last.row
    conditions = (
        Condition(c["type"] or "", c["status"] or "", "", "", None, None)
        for c in row["conditions"] or ()
    )
    containers = (
        ContainerStatus(
            c["name"] or "", bool(c["init"]), 0,
            int(c["exit_code"] or 0) if c["state"] == "terminated" else None, None,
        )
        for c in row["containers"] or ()
    )  # fmt: skip
    return _Failed(pod.namespace, pod.name, tuple(conditions), tuple(containers))
