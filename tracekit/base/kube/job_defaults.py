"""What the API server adds to a new Job or pod, which who compares or rebuilds these has to know.

Upstream: pkg/apis/batch/v1/defaults.go (SetDefaults_Job), pkg/registry/batch/job/strategy.go
(generateSelector).
"""

from __future__ import annotations

from typing import Final

#: terminationGracePeriodSeconds of a pod that names none.
#: Upstream: k8s.io/api/core/v1 (DefaultTerminationGracePeriodSeconds).
TERMINATION_GRACE_S: Final = 30

#: Labels that it generates on the pod template, and on a Job that has none of its own.
GENERATED_LABELS: Final = frozenset(
    {
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    }
)


def default_backoff_limit(*, per_index: bool) -> int:
    """A Job with a limit for each index has none as a whole."""
    return 2**31 - 1 if per_index else 6
