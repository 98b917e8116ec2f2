"""Numbers of the batch controllers that changed between releases, and those that never did.

Times are nanoseconds. A table row is one release boundary with the fields that it changed.

Upstream: the `var`/`const` blocks of pkg/controller/job/job_controller.go and backoff_utils.go,
pkg/controller/cronjob/*.go, client-go's default rate limiters, component config defaults.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.version import Boundary, KubeVersion

NS_PER_MS: Final = NS_PER_S // 1000

# What never changed: the ports read these, the table below prints them.

#: Creations and deletions that do not show within this time are not waited for any more.
EXPECTATIONS_TIMEOUT_NS: Final = 300 * NS_PER_S
#: Pods in the first batch of a slow start; each further batch has twice as many.
SLOW_START_BATCH_INITIAL: Final = 1
#: The polling CronJob controller rests so long after each pass.
CRON_POLL_PERIOD_NS: Final = 10 * NS_PER_S
#: Pad on every timer of the queue-based CronJob controller: skewed clocks must not wake too early.
CRON_TIMER_PAD_NS: Final = 100 * NS_PER_MS
#: More missed runs than this are an error (polling) or a warning (queue-based).
CRON_MISSED_RUNS_MAX: Final = 100


class Constants(Struct, frozen=True):
    """The numbers of one release; the defaults are those of the oldest one (1.11)."""

    #: Base and cap of the Job queue's per-key limiter: base * 2**failures.
    queue_backoff_ns_base: int = 10 * NS_PER_S
    queue_backoff_ns_max: int = 360 * NS_PER_S
    #: Base and cap of the delay before failed pods are replaced; None before it was one of its own.
    pod_failure_backoff_ns_base: int | None = None
    pod_failure_backoff_ns_max: int | None = None
    #: Pod events wait so long before they enqueue their Job; up to 1.30 only with JobReadyPods on.
    sync_batch_period_ns: int = 0
    #: Entries in both lists of status.uncountedTerminatedPods together; None: no such lists.
    uncounted_pods_max: int | None = None
    #: Pods that one sync creates or deletes; None: no bound.
    pods_per_sync_max: int | None = None
    slow_start_batch_initial: int = SLOW_START_BATCH_INITIAL
    expectations_timeout_ns: int = EXPECTATIONS_TIMEOUT_NS
    #: Workers of each batch controller, and its client's throttle.
    workers: int = 5
    client_qps: int = 20
    client_burst: int = 30
    cron_poll_period_ns: int = CRON_POLL_PERIOD_NS
    cron_missed_runs_max: int = CRON_MISSED_RUNS_MAX
    cron_timer_pad_ns: int = CRON_TIMER_PAD_NS
    #: client-go's default controller limiter, used by the CronJob and TTL controllers.
    default_backoff_ns_base: int = 5 * NS_PER_MS
    default_backoff_ns_max: int = 1000 * NS_PER_S
    default_bucket_qps: int = 10
    default_bucket_burst: int = 100


#: (from which release on, which fields, where upstream has it), oldest first.
CHANGES: Final[tuple[tuple[Boundary, dict[str, int], str], ...]] = (
    (
        Boundary("1.22"),
        {"uncounted_pods_max": 500, "pods_per_sync_max": 500},
        "pkg/controller/job/job_controller.go:MaxUncountedPods, MaxPodCreateDeletePerSync",
    ),
    (
        Boundary("1.23"),
        {"sync_batch_period_ns": 500 * NS_PER_MS},
        "pkg/controller/job/job_controller.go:podUpdateBatchPeriod",
    ),
    (
        Boundary("1.24"),
        {"sync_batch_period_ns": NS_PER_S},
        "pkg/controller/job/job_controller.go:podUpdateBatchPeriod",
    ),
    (
        Boundary("1.27"),
        {
            "pod_failure_backoff_ns_base": 10 * NS_PER_S,
            "pod_failure_backoff_ns_max": 360 * NS_PER_S,
        },
        "pkg/controller/job/job_controller.go:DefaultJobBackOff, MaxJobBackOff",
    ),
    (
        Boundary("1.28"),
        {
            "queue_backoff_ns_base": NS_PER_S,
            "queue_backoff_ns_max": 60 * NS_PER_S,
            "pod_failure_backoff_ns_max": 600 * NS_PER_S,
        },
        "pkg/controller/job/job_controller.go:DefaultJobApiBackOff, DefaultJobPodFailureBackOff",
    ),
)


def constants_of(version: KubeVersion) -> Constants:
    """The numbers that hold for a release."""
    constants = Constants()
    for boundary, values, _ in CHANGES:
        if boundary.holds(version):
            constants = replace(constants, **values)
    return constants
