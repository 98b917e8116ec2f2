"""Jobs in parts that can be run apart, for they lived at different times.

Jobs that live at the same time share a throttle and workers, so they are run together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tracekit.answers.whatif.answers import JobAnswer
from tracekit.base.kube.timestamps import NS_PER_S

#: So long after the end of a Job its process has nothing left to do for it.
_REST_NS: Final = 3 * NS_PER_S


def episodes(jobs: Sequence[JobAnswer], most: int) -> Iterator[list[JobAnswer]]:
    """The Jobs by the time at which they lived, in parts of no more than `most`."""
    part: list[JobAnswer] = []
    busy_until_ns = 0
    for job in sorted(jobs, key=lambda j: (j.job.created_ns, j.uid)):
        if part and (job.job.created_ns > busy_until_ns or len(part) >= most):
            yield part
            part = []
        part.append(job)
        lived_ns = int((job.recorded.finished_after_s or 0) * NS_PER_S)
        busy_until_ns = max(busy_until_ns, job.job.created_ns + lived_ns + _REST_NS)
    if part:
        yield part
