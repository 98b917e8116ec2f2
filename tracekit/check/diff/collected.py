"""What is said of deletions that the garbage collector makes: their owner is gone, or goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tracekit.check.verdict import Judgement

JOB_GONE: Final = "its Job is gone: the garbage collector deletes the pod"
JOB_GOES: Final = "its Job is being deleted: the garbage collector deletes the pod"
CRONJOB_GONE: Final = "its CronJob is gone: the garbage collector deletes the Job"
CRONJOB_GOES: Final = "its CronJob is being deleted: the garbage collector deletes the Job"
_COLLECTED: Final = frozenset({JOB_GONE, JOB_GOES, CRONJOB_GONE, CRONJOB_GOES})


def is_collected(judgement: Judgement) -> bool:
    """Whether the garbage collector did it."""
    return judgement.why in _COLLECTED
