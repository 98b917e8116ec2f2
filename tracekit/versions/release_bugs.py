"""Bugs of releases by name: who is hit, where upstream discussed it, which releases mend it.

A bug is a behavior that a release lacks while it has what makes the lack hurt. Which releases those
are follows from the version table; nothing is told twice.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

from tracekit.versions.behavior_releases import SHIPPED
from tracekit.versions.behaviors import Behavior
from tracekit.versions.era import Era
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.version import KubeVersion


class Bug(Enum):
    """Bugs that a finding can name."""

    ACTIVE_TOLD_AS_0_IN_BACKOFF = "active-told-as-0-in-backoff"
    ORPHAN_NOT_TRIED_AGAIN = "orphan-not-tried-again"
    EXPECTATIONS_OUTLIVE_THE_JOB = "expectations-outlive-the-job"
    BACKOFF_OUTLIVES_THE_JOB = "backoff-outlives-the-job"
    DEADLINE_TIMER_LOST = "deadline-timer-lost"
    RESUMED_JOB_REFUSED = "resumed-job-refused"
    SUSPENDED_EMPTY_JOB_REFUSED = "suspended-empty-job-refused"
    OWN_WRITES_NOT_AWAITED = "own-writes-not-awaited"


class BugRow(Struct, frozen=True):
    """What is known of a bug."""

    thread: int  # of kubernetes/kubernetes
    who: str  # is hit
    mended_by: Behavior | Gate
    #: What a release must have for the bug to show.
    needs: tuple[Behavior | Gate, ...] = ()
    #: What helps without an upgrade.
    meanwhile: str = ""

    def in_release(self, era: Era) -> bool:
        """Whether a release with its gates has the bug."""
        return not _has(era, self.mended_by) and all(_has(era, need) for need in self.needs)

    def remedy(self, version: KubeVersion | None) -> str:
        """What to do: the patch release of that version's branch, else all that mend it.

        None: the release is not known, or only guessed from objects.
        """
        if isinstance(self.mended_by, Gate):
            return f"{_gate_remedy(self.mended_by, version)} {self.meanwhile}".rstrip()
        boundary = SHIPPED[self.mended_by].boundary
        mended = [release for release, ships in boundary.edges() if ships]
        if version is not None:
            own = [r for r in mended if KubeVersion.parse(r).branch == version.branch]
            mended = own or [r for r in mended if KubeVersion.parse(r) > version]
        names = ", ".join(release.removesuffix(".0") for release in mended)
        return f"Upgrade to {names} or later. {self.meanwhile}".rstrip()


def _has(era: Era, what: Behavior | Gate) -> bool:
    return era.enabled(what) if isinstance(what, Gate) else what in era


def _gate_remedy(gate: Gate, version: KubeVersion | None) -> str:
    history = GATES[gate]
    if version is not None and history.is_settable(version):
        return f"Turn the feature gate {gate.value} on."
    first = next(spec.version for spec in history.specs if spec.default)
    return f"Upgrade to {first.branch} or later."


BUGS: Final[dict[Bug, BugRow]] = {
    Bug.ACTIVE_TOLD_AS_0_IN_BACKOFF: BugRow(
        139428,
        "Jobs of which a pod failed while another is ready: each status is refused until the "
        "back-off is over",
        Behavior.ACTIVE_KEPT_DURING_CREATION_BACKOFF,
        (Behavior.READY_ABOVE_ACTIVE_REFUSED, Gate.JobManagedBy),
    ),
    Bug.ORPHAN_NOT_TRIED_AGAIN: BugRow(
        141346,
        "pods of a Job that was deleted, whose finalizer the API server did not take off at the "
        "first try: they stay",
        Behavior.ORPHAN_FINALIZER_RETRIED,
        (Behavior.ORPHANS_FOUND_BY_SELECTOR,),
    ),
    Bug.EXPECTATIONS_OUTLIVE_THE_JOB: BugRow(
        131917,
        "a Job that is created under the name of one that was just deleted: it gets no pod for up "
        "to 5 minutes",
        Behavior.DELETED_JOB_FORGETS_EXPECTATIONS,
        meanwhile="Let each Job have a name of its own (generateName), or wait until the old one "
        "and its pods are gone.",
    ),
    Bug.BACKOFF_OUTLIVES_THE_JOB: BugRow(
        132042,
        "a Job that is created under the name of one whose pods failed: it waits for that one's "
        "back-off",
        Behavior.DELETED_JOB_FORGETS_BACKOFF,
        (Behavior.BACKOFF_FROM_POD_FINISH_TIMES,),
    ),
    Bug.DEADLINE_TIMER_LOST: BugRow(
        107226,
        "Jobs with an activeDeadlineSeconds of which a pod fails: nothing wakes the controller at "
        "the deadline",
        Behavior.DEADLINE_TIMER_REARMED_ON_EVERY_SYNC,
    ),
    Bug.RESUMED_JOB_REFUSED: BugRow(
        134521,
        "Jobs that ran, were suspended and are resumed: each status is refused until they end",
        Behavior.RESUMED_START_TIME_ACCEPTED,
        (Behavior.STATUS_TRANSITIONS_VALIDATED, Gate.JobManagedBy),
    ),
    Bug.SUSPENDED_EMPTY_JOB_REFUSED: BugRow(
        132144,
        "suspended Jobs with completions 0: their end is refused for ever",
        Behavior.SUSPENDED_EMPTY_JOB_ENDS_WITHOUT_START,
        (Behavior.STATUS_TRANSITIONS_VALIDATED, Gate.JobManagedBy),
        "Resume the Job: then it ends.",
    ),
    Bug.OWN_WRITES_NOT_AWAITED: BugRow(
        130683,
        "Jobs whose controller acts before its caches show its own last writes",
        Gate.StaleControllerConsistencyJob,
    ),
}


class KnownBug(Struct, frozen=True):
    """A bug of the release at hand."""

    thread: int
    who: str
    remedy: str


def bugs_of(era: Era, *, is_said: bool = True) -> dict[Bug, KnownBug]:
    """The bugs of a release with its gates; `is_said`: the release is not only a guess."""
    version = era.version if is_said else None
    return {
        bug: KnownBug(row.thread, row.who, row.remedy(version))
        for bug, row in BUGS.items()
        if row.in_release(era)
    }
