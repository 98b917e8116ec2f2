"""The failure of a Job (TK401, TK407, TK410) as a consequence of an index that always fails."""

from __future__ import annotations

from msgspec.structs import replace

from tracekit.answers.findings.job_failures import EXITED, POLICY, SAME_EXIT
from tracekit.answers.model import Case
from tracekit.answers.trace_model import Job


def by_index(job: Job, failed: Case, index: Case | None) -> Case:
    """The failure, beneath the case of indexes that always fail where their pods failed the Job."""
    if index is None or failed.rule not in (EXITED, SAME_EXIT, POLICY):
        return failed
    named = set(failed.evidence.get("pods") or ())
    bad = {pod.name for pod in job.pods if pod.index in index.evidence["indexes"]}
    if not named or not named <= bad:
        return failed
    return replace(failed, cause=index.rule, todo=index.todo)
