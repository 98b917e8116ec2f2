"""How the Job controller of each version counts pods that it tracks with finalizers.

Tracking came with 1.22, and until 1.28 nearly every minor changed it, with backports. Plain
attributes, resolved once; what each means stands with the behavior of the same name in
`behavior_releases`. Defaults are those of the newest version.
"""

from __future__ import annotations

from msgspec import Struct

from tracekit.versions.behaviors import flags_named
from tracekit.versions.era import Era


class TrackingRules(Struct, frozen=True):
    """What a sync with tracking finalizers does in one version."""

    finalizer_removals_expected: bool
    uncounted_pods_leave_their_list_one_by_one: bool
    ending_waits_for_expectations: bool
    failed_pod_is_not_counted_as_success: bool
    completed_indexes_cut_to_completions: bool
    every_succeeded_index_written: bool
    ending_waits_for_all_pods: bool
    terminating_alone_is_written: bool

    @classmethod
    def of(cls, era: Era) -> TrackingRules:
        """The rules of a version."""
        return cls(**flags_named(cls, era.behaviors))
