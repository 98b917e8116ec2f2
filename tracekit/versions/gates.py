"""The upstream feature gates that the batch controllers consult, with their history.

Gates that only the API server reads (ElasticIndexedJob and its like) are not here: what they let a
user write stands in the objects.

As in component-base: a gate has a list of (version, default, stage, locked); the entry with the
highest version that is not above the running (or emulated) one counts. Two things are added:
patch versions, because release branches did flip a default (JobTrackingWithFinalizers in 1.23),
and the minor in which the gate was deleted, from which on setting it is refused as unknown.

Every row is compared with the source of releases by `python -m tests.e2e.upstream --gates V`.

Upstream: pkg/features/kube_features.go and staging/src/k8s.io/component-base/featuregate;
AtomicFIFO stands in client-go's features/known_features.go.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

from tracekit.versions.version import KubeVersion


class Gate(Enum):
    """Gate names as upstream writes them, in alphabetical order."""

    AtomicFIFO = "AtomicFIFO"
    CronJobControllerV2 = "CronJobControllerV2"
    CronJobTimeZone = "CronJobTimeZone"
    CronJobsScheduledAnnotation = "CronJobsScheduledAnnotation"
    GenericWorkload = "GenericWorkload"
    IndexedJob = "IndexedJob"
    JobBackoffLimitPerIndex = "JobBackoffLimitPerIndex"
    JobManagedBy = "JobManagedBy"
    JobPodFailurePolicy = "JobPodFailurePolicy"
    JobPodReplacementPolicy = "JobPodReplacementPolicy"
    JobReadyPods = "JobReadyPods"
    JobSuccessPolicy = "JobSuccessPolicy"
    JobTrackingWithFinalizers = "JobTrackingWithFinalizers"
    MutableSchedulingDirectivesForSuspendedJobs = "MutableSchedulingDirectivesForSuspendedJobs"
    PodDisruptionConditions = "PodDisruptionConditions"
    PodIndexLabel = "PodIndexLabel"
    StaleControllerConsistencyJob = "StaleControllerConsistencyJob"
    SuspendJob = "SuspendJob"
    TTLAfterFinished = "TTLAfterFinished"
    WorkloadWithJob = "WorkloadWithJob"


class Stage(Enum):
    """Maturity of a gate in one version."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "GA"


class GateSpec(Struct, frozen=True):
    """State of a gate from one version on."""

    version: KubeVersion
    default: bool
    stage: Stage
    #: A locked gate cannot be set to anything but its default.
    locked: bool


class GateHistory(Struct, frozen=True):
    """All states of one gate, oldest first."""

    specs: tuple[GateSpec, ...]
    #: First minor without the gate; what it guarded is then as the last spec says, for good.
    removed: KubeVersion | None
    #: What it switches, in a few words.
    about: str

    def at(self, version: KubeVersion) -> GateSpec | None:
        """The spec in force, or None before the gate existed."""
        current = None
        for spec in self.specs:
            if spec.version <= version:
                current = spec
        return current

    def default_at(self, version: KubeVersion) -> bool:
        """What holds in a version when nobody sets the gate."""
        spec = self.at(version)
        return spec is not None and spec.default

    def is_removed(self, version: KubeVersion) -> bool:
        """Whether the version no longer knows the gate."""
        return self.removed is not None and version >= self.removed

    def is_settable(self, version: KubeVersion) -> bool:
        """Whether the version has the gate and lets it be set either way."""
        spec = self.at(version)
        return spec is not None and not spec.locked and not self.is_removed(version)

    def why_fixed(self, version: KubeVersion) -> str:
        """Why a gate that is not settable is not: `it is locked`."""
        if self.is_removed(version) and self.removed is not None:
            return f"it was removed in v{self.removed.branch}"
        return (
            "it is locked" if self.at(version) else f"it came with v{self.specs[0].version.branch}"
        )


def _history(*stages: str, about: str, removed: str | None = None) -> GateHistory:
    """Read `"1.28 alpha off"`, `"1.33 GA on locked"`."""
    specs = []
    for text in stages:
        version, stage, default, *locked = text.split()
        specs.append(
            GateSpec(KubeVersion.parse(version), default == "on", Stage(stage), bool(locked))
        )
    return GateHistory(tuple(specs), KubeVersion.parse(removed) if removed else None, about)


GATES: Final[dict[Gate, GateHistory]] = {
    Gate.AtomicFIFO: _history(
        "1.36 beta on",
        about="client-go applies a watch batch to the store in one step, which lets a "
        "controller know up to which revision its cache has got",
    ),
    Gate.CronJobControllerV2: _history(
        "1.20 alpha off",
        "1.21 beta on",
        "1.22 GA on locked",
        removed="1.23",
        about="the queue-based CronJob controller instead of the polling one",
    ),
    Gate.CronJobTimeZone: _history(
        "1.24 alpha off",
        "1.25 beta on",
        "1.27 GA on locked",
        removed="1.29",
        about="spec.timeZone of CronJobs",
    ),
    Gate.CronJobsScheduledAnnotation: _history(
        "1.28 beta on",
        "1.32 GA on locked",
        removed="1.35",
        about="annotation batch.kubernetes.io/cronjob-scheduled-timestamp on the Jobs of CronJobs",
    ),
    Gate.GenericWorkload: _history(
        "1.35 alpha off",
        "1.37 beta off",
        about="the Workload API, which WorkloadWithJob needs; no rule here reads it",
    ),
    Gate.IndexedJob: _history(
        "1.21 alpha off",
        "1.22 beta on",
        "1.24 GA on locked",
        removed="1.26",
        about="completionMode Indexed",
    ),
    Gate.JobBackoffLimitPerIndex: _history(
        "1.28 alpha off",
        "1.29 beta on",
        "1.33 GA on locked",
        removed="1.37",
        about="backoffLimitPerIndex and maxFailedIndexes",
    ),
    Gate.JobManagedBy: _history(
        "1.30 alpha off",
        "1.32 beta on",
        "1.35 GA on locked",
        about="spec.managedBy: Jobs that another controller looks after",
    ),
    Gate.JobPodFailurePolicy: _history(
        "1.25 alpha off",
        "1.26 beta on",
        "1.31 GA on locked",
        removed="1.33",
        about="spec.podFailurePolicy",
    ),
    Gate.JobPodReplacementPolicy: _history(
        "1.28 alpha off",
        "1.29 beta on",
        "1.34 GA on locked",
        removed="1.37",
        about="spec.podReplacementPolicy and status.terminating",
    ),
    Gate.JobReadyPods: _history(
        "1.23 alpha off",
        "1.24 beta on",
        "1.29 GA on locked",
        removed="1.31",
        about="status.ready",
    ),
    Gate.JobSuccessPolicy: _history(
        "1.30 alpha off",
        "1.31 beta on",
        "1.33 GA on locked",
        removed="1.37",
        about="spec.successPolicy, and the reason CompletionsReached",
    ),
    Gate.JobTrackingWithFinalizers: _history(
        "1.22 alpha off",
        "1.23.0 beta on",
        # Pulled back on the 1.23 branch and before 1.24.0 for a counting bug, mended in 1.25.
        "1.23.7 beta off",
        "1.24 beta off",
        "1.25 beta on",
        "1.26 GA on locked",
        removed="1.29",
        about="pods are counted by removing a finalizer instead of by listing them",
    ),
    Gate.MutableSchedulingDirectivesForSuspendedJobs: _history(
        "1.35 alpha off",
        "1.36 beta on",
        about="startTime is cleared on suspension, so that scheduling directives may change",
    ),
    Gate.PodDisruptionConditions: _history(
        "1.25 alpha off",
        "1.26 beta on",
        "1.31 GA on locked",
        removed="1.34",
        about="condition DisruptionTarget on pods that the control plane disrupts",
    ),
    Gate.PodIndexLabel: _history(
        "1.28 beta on",
        "1.32 GA on locked",
        removed="1.35",
        about="label batch.kubernetes.io/job-completion-index on the pods of Indexed Jobs",
    ),
    Gate.StaleControllerConsistencyJob: _history(
        "1.36 beta on",
        about="a sync is refused until the informer has seen the controller's own last writes",
    ),
    Gate.SuspendJob: _history(
        "1.21 alpha off",
        "1.22 beta on",
        "1.24 GA on locked",
        removed="1.26",
        about="spec.suspend of Jobs",
    ),
    Gate.TTLAfterFinished: _history(
        "1.12 alpha off",
        "1.21 beta on",
        "1.23 GA on locked",
        removed="1.25",
        about="the controller that deletes finished Jobs after ttlSecondsAfterFinished",
    ),
    Gate.WorkloadWithJob: _history(
        "1.36 alpha off",
        about="Workload and PodGroup objects for gang-scheduled Jobs",
    ),
}

#: Gates whose part of the controllers is not ported: on, they change what no rule here knows of.
UNPORTED: Final[dict[Gate, str]] = {
    Gate.WorkloadWithJob: "Workload and PodGroup objects, and schedulingGroup in pods",
}

#: Gates that can be on only together with others, from 1.36 on: a component that is started
#: otherwise refuses to run. Upstream: defaultKubernetesFeatureGateDependencies.
DEPENDENCIES: Final[dict[Gate, Gate]] = {
    Gate.StaleControllerConsistencyJob: Gate.AtomicFIFO,
    Gate.WorkloadWithJob: Gate.GenericWorkload,
}

GATE_BY_NAME: Final[dict[str, Gate]] = {gate.value: gate for gate in Gate}


class GateFlags:
    """Whether each gate is on, by its name: `flags.JobReadyPods`."""

    __slots__ = ("_on",)

    def __init__(self, on: frozenset[Gate]) -> None:
        self._on = on

    def __getattr__(self, name: str) -> bool:
        if name not in GATE_BY_NAME:
            raise AttributeError(f"there is no feature gate {name}")
        return GATE_BY_NAME[name] in self._on
