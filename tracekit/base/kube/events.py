"""What client-go's Event broadcaster does, and the words and reasons it posts Events with.

Upstream: client-go tools/record/events_cache.go (EventAggregatorByReasonMessageFunc,
defaultSpamBurst, defaultSpamQPS) and event.go (maxQueuedEvents, DropIfChannelFull).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tracekit.base.kube.timestamps import NS_PER_S

#: Begins the message of an Event that stands for several which differ in their message only.
COMBINED: Final = "(combined from similar events): "
#: So many Events wait at most to be posted; what comes while so many do is dropped.
MAX_QUEUED: Final = 1000
#: So many Events of one object pass the spam filter at once; what it keeps back is counted.
SPAM_BURST: Final = 25
#: The spam filter lets one more Event of an object pass in so long, after a burst.
SPAM_REFILL_NS: Final = 300 * NS_PER_S
#: Events about calls that were refused: their messages end in the server's words (Upstream:
#: pkg/controller/controller_utils.go).
REFUSED_CALLS: Final = ("FailedCreate", "FailedDelete")

#: Kinds of those who make Jobs, or pods of batch work, beside CronJobs: they have Events of what
#: the API server refused them.
MAKERS: Final = (
    "JobSet", "ScaledJob", "TrainJob", "RayJob", "Workflow", "PipelineRun", "TaskRun",
    "SparkApplication", "EphemeralRunner",
)  # fmt: skip


#: Its Events tell of pods that it cannot count. Upstream: pkg/controller/disruption.
PDB: Final = "PodDisruptionBudget"


@dataclass(slots=True)
class SpamBucket:
    """What the spam filter still lets pass of one object; a full bucket is that of a new one."""

    at_ns: int
    tokens_ns: int = SPAM_BURST * SPAM_REFILL_NS  # in units of the time that earns one

    def left_at(self, now_ns: int) -> int:
        """How many Events may pass now."""
        earned_ns = self.tokens_ns + now_ns - self.at_ns
        self.tokens_ns = min(earned_ns, SPAM_BURST * SPAM_REFILL_NS)
        self.at_ns = now_ns
        return self.tokens_ns // SPAM_REFILL_NS

    def spend(self, events: int) -> None:
        """Let so many pass."""
        self.tokens_ns = max(0, self.tokens_ns - events * SPAM_REFILL_NS)
