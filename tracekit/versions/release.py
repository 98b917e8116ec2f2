"""What answers have to know of the release at hand: its bugs, and what advice says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.api_server import ApiRules
from tracekit.versions.constants import Constants, constants_of
from tracekit.versions.cronjob import CronJobEra, SuccessTime
from tracekit.versions.era import NEWEST, Era
from tracekit.versions.gates import Gate
from tracekit.versions.release_bugs import Bug, KnownBug, bugs_of
from tracekit.versions.version import Boundary

#: Upstream: pkg/features/kube_features.go, SidecarContainers (beta).
_NATIVE_SIDECARS: Final = Boundary("1.29")

#: Upstream: pkg/features/kube_features.go, JobMutableNodeSchedulingDirectives (beta).
_DIRECTIVES: Final = Boundary("1.23")
#: Upstream: pkg/registry/batch/job/strategy.go, validationOptionsForJob (#139281).
_NOT_STARTED_CAN_CHANGE: Final = Boundary("1.37", (("1.36", 2),))


class Release(Struct, frozen=True):
    """A release with its gates, as far as answers hang on it; by default the newest one."""

    bugs: Mapping[Bug, KnownBug] = field(default_factory=dict)
    constants: Constants = constants_of(NEWEST)
    #: The template of a Job may not carry the labels batch.kubernetes.io/… of another Job.
    prefixed_labels: bool = True
    #: An init container with restartPolicy Always runs beside the others.
    native_sidecars: bool = True
    #: CronJobs are looked at every 10 s, not by timers.
    polls_cronjobs: bool = False
    #: Scheduling directives of a suspended Job that never ran can be changed.
    changes_suspended: bool = True
    #: But not before its condition Suspended is set.
    changes_after_condition: bool = False

    #: It is said, and its CronJobs have a lastSuccessfulTime once a run has succeeded.
    tells_successes: bool = False
    #: A Job may have a backoffLimitPerIndex.
    limits_indexes: bool = True

    @classmethod
    def of(cls, era: Era, *, is_said: bool = True) -> Release:
        """That of an era; `is_said`: the release is not only a guess."""
        return cls(
            bugs_of(era, is_said=is_said),
            era.constants,
            ApiRules.of(era).prefixed_labels,
            _NATIVE_SIDECARS.holds(era.basis),
            not era.enabled(Gate.CronJobControllerV2),
            _DIRECTIVES.holds(era.basis),
            era.enabled(Gate.MutableSchedulingDirectivesForSuspendedJobs)
            and not _NOT_STARTED_CAN_CHANGE.holds(era.basis),
            is_said and CronJobEra.of(era).success_time is not SuccessTime.NEVER,
            era.enabled(Gate.JobBackoffLimitPerIndex),
        )

    @property
    def longest_backoff_s(self) -> int:
        """The longest time for which failed pods of a Job wait for their successors."""
        found = self.constants.pod_failure_backoff_ns_max or self.constants.queue_backoff_ns_max
        return found // NS_PER_S
