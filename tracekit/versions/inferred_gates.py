"""Feature gates that the objects of a record show to be set other than by default.

A record often knows its version but not its gates. Some gates leave marks that no default would:
status fields that are there or missing, finalizers, labels, names. Only marks of what was created
or written while the record ran may be given; a gate with marks of both settings is left alone,
for somebody changed it within the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tracekit.versions.detect import Fact
from tracekit.versions.era import Era
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.version_markers import RULES, Sign

#: What a sign says of a gate, in versions in which the gate can be set.
SHOWS: Final[dict[Sign, tuple[Gate, bool]]] = {
    Sign.COMPLETION_MODE: (Gate.IndexedJob, True),
    Sign.SUSPEND: (Gate.SuspendJob, True),
    Sign.UNCOUNTED_PODS: (Gate.JobTrackingWithFinalizers, True),
    Sign.UNTRACKED: (Gate.JobTrackingWithFinalizers, False),
    Sign.TRACKING_FINALIZER: (Gate.JobTrackingWithFinalizers, True),
    Sign.READY: (Gate.JobReadyPods, True),
    Sign.NO_READY: (Gate.JobReadyPods, False),
    Sign.POD_FAILURE_POLICY: (Gate.JobPodFailurePolicy, True),
    Sign.TERMINATING: (Gate.JobPodReplacementPolicy, True),
    Sign.NO_TERMINATING: (Gate.JobPodReplacementPolicy, False),
    Sign.BACKOFF_LIMIT_PER_INDEX: (Gate.JobBackoffLimitPerIndex, True),
    Sign.INDEX_LABEL: (Gate.PodIndexLabel, True),
    Sign.NO_INDEX_LABEL: (Gate.PodIndexLabel, False),
    Sign.SUCCESS_POLICY: (Gate.JobSuccessPolicy, True),
    Sign.COMPLETIONS_REACHED: (Gate.JobSuccessPolicy, True),
    Sign.COMPLETE_WITHOUT_REASON: (Gate.JobSuccessPolicy, False),
    Sign.MANAGED_BY: (Gate.JobManagedBy, True),
    Sign.SUSPENDED_WITH_START: (Gate.MutableSchedulingDirectivesForSuspendedJobs, False),
    Sign.SUSPENDED_WITHOUT_START: (Gate.MutableSchedulingDirectivesForSuspendedJobs, True),
    Sign.NAME_IN_SECONDS: (Gate.CronJobControllerV2, False),
    Sign.NAME_IN_MINUTES: (Gate.CronJobControllerV2, True),
    Sign.TIME_ZONE: (Gate.CronJobTimeZone, True),
    Sign.SCHEDULED_ANNOTATION: (Gate.CronJobsScheduledAnnotation, True),
    Sign.NO_SCHEDULED_ANNOTATION: (Gate.CronJobsScheduledAnnotation, False),
}
#: The kinds whose objects show these signs.
GATE_KINDS: Final = ("Job", "Pod", "CronJob")


class ShownGate(Struct, frozen=True):
    """One gate, its setting, and what shows it."""

    gate: Gate
    on: bool
    fact: Fact

    def describe(self) -> str:
        """One phrase for a warning."""
        state = "on" if self.on else "off"
        return f"{self.gate.value} {state} ({RULES[self.fact.sign].phrase}: {self.fact.where})"


def shown_gates(facts: Iterable[Fact], era: Era) -> tuple[ShownGate, ...]:
    """The gates that are shown to be set other than they are in an era, and could be."""
    seen: dict[Sign, Fact] = {}
    for fact in facts:
        if fact.sign in SHOWS:
            seen.setdefault(fact.sign, fact)
    settings: dict[Gate, set[bool]] = {}
    for sign in seen:
        gate, on = SHOWS[sign]
        settings.setdefault(gate, set()).add(on)
    found: dict[Gate, ShownGate] = {}
    for sign, fact in seen.items():
        gate, on = SHOWS[sign]
        history = GATES[gate]
        if (
            len(settings[gate]) == 1
            and on is not era.enabled(gate)
            and history.is_settable(era.basis)
        ):
            found.setdefault(gate, ShownGate(gate, on, fact))
    return tuple(found[gate] for gate in Gate if gate in found)
