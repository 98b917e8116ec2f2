"""What a finding cost: Jobs and runs that came to nothing, what was late, the time of pods."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct


class Loss(Enum):
    """What a kind of finding about a Job is the cause of."""

    FAILED = "the Job failed"
    HELD = "the Job has not ended"
    LATE = "the Job came, or ended, late"


#: What a rule declares; one without any counts the objects that it is about.
FAILS: Final = frozenset({Loss.FAILED})
HOLDS: Final = frozenset({Loss.HELD})
FAILS_OR_HOLDS: Final = FAILS | HOLDS
DELAYS: Final = frozenset({Loss.LATE})


def magnitude_of(hit: int) -> int:
    """How large a number is: 1 to 3, 4 to 9, 10 to 31, …; 0 for nothing.

    Two steps a power of ten: the decimal digits of its square.
    """
    return len(str(hit * hit)) if hit else 0


class Harm(Struct, frozen=True):
    """What was lost by one cause; findings are ranked by it.

    Each Job counts once, as failed before unfinished. Pod time is in seconds on a node.
    """

    failed_jobs: int = 0  # the condition Failed
    unfinished_jobs: int = 0  # neither ended nor gone at the last look
    missed_runs: int = 0  # due times without a Job, and runs that were replaced
    late: int = 0  # Jobs or runs that came, or ended, later than they had to
    lost_pod_s: float = 0.0  # pods that failed, were deleted before their end, or of a failed Job
    objects: int = 0  # objects that are wrong, left behind or lost, and none of the above

    def __add__(self, other: Harm) -> Harm:
        """Both together."""
        return Harm(
            self.failed_jobs + other.failed_jobs,
            self.unfinished_jobs + other.unfinished_jobs,
            self.missed_runs + other.missed_runs,
            self.late + other.late,
            self.lost_pod_s + other.lost_pod_s,
            self.objects + other.objects,
        )

    @property
    def magnitude(self) -> int:
        """How large the number of all that was hit is."""
        hit = self.failed_jobs + self.unfinished_jobs + self.missed_runs + self.late + self.objects
        return magnitude_of(hit)

    @property
    def weight(self) -> tuple[float, ...]:
        """What is worse is greater: what came to nothing, what was late, pod time, other objects.

        Runs and Jobs weigh the same: each is work that somebody asked for and did not get.
        """
        nothing = self.failed_jobs + self.unfinished_jobs + self.missed_runs
        return (nothing, self.late, self.lost_pod_s, self.objects)


NO_HARM = Harm()
