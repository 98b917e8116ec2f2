"""What a Job that its deadline ended had done by then, as its status says."""

from __future__ import annotations

from typing import Final

from tracekit.answers.trace_model import Job, Pod


def _succeeded(job: Job) -> int:
    found = (job.end or job.last).row["succeeded"]
    return int(found) if found is not None else 0


def until_then(job: Job, pods: list[Pod]) -> str:
    """What is known of the pods of a Job that its deadline ended."""
    done = _succeeded(job)
    if done:
        wanted = job.spec.get("completions")
        of = f" of {wanted:,}" if isinstance(wanted, int) else ""
        return f"; {done:,}{of} succeeded by its status"
    return "" if pods or job.pods else "; no pod of it was seen: whether one ran is not known"


def was_done(job: Job) -> bool:
    """Whether all that it should do had succeeded, and it failed nonetheless."""
    wanted = job.spec.get("completions", 1)
    return isinstance(wanted, int) and 0 < wanted <= _succeeded(job)


#: What to do about a Job of which that is so.
DONE_LATE: Final = (
    "As many pods as it wants have succeeded: see by their logs whether anything is to be done "
    "again. That was counted when the deadline, which counts from startTime, had passed already, "
    "so the Job failed: raise activeDeadlineSeconds."
)
