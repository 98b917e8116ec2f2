"""How the indexes ended for which a Job failed: by exit code, and by its podFailurePolicy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tracekit.answers.endings import coded
from tracekit.answers.trace_model import Job, Pod
from tracekit.answers.words import counted, named

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
    rules = (job.spec.get("podFailurePolicy") or {}).get("rules") or ()
    if any(_ends_index(rule, codes[-1]) for rule in rules):
        said += ", not tried again by a FailIndex rule"
    return said


def _ends_index(rule: Mapping[str, Any], code: int) -> bool:
    wanted = rule.get("onExitCodes")
    if rule.get("action") != "FailIndex" or not isinstance(wanted, dict):
        return False
    listed = code in (wanted.get("values") or ())
    return listed if wanted.get("operator") == "In" else not listed
