"""Which releases have which ungated behavior.

Keyed by behavior, not by version: patch releases carried many of them back, and some came and
went, so neither a chain of versions nor a "since" can say it. One entry per change: the branches
that got it by a patch, the minor from which every release has it, and the minor that lost it.

Upstream places are files of kubernetes/kubernetes with the function that changed.
"""

from __future__ import annotations

from typing import Final

from tracekit.versions.behavior_boundary import Shipped
from tracekit.versions.behaviors import Behavior
from tracekit.versions.cron_behavior_releases import CRON_SHIPPED
from tracekit.versions.job_behavior_releases import JOB_SHIPPED, STATUS_SHIPPED
from tracekit.versions.version import PATCH_MAX, KubeVersion

SHIPPED: Final[dict[Behavior, Shipped]] = {**JOB_SHIPPED, **STATUS_SHIPPED, **CRON_SHIPPED}


def behaviors_of(version: KubeVersion) -> frozenset[Behavior]:
    """Every behavior that a release has."""
    return frozenset(b for b in Behavior if SHIPPED[b].boundary.holds(version))


def releases_that_differ(minor: int) -> tuple[KubeVersion, ...]:
    """A release of each kind that a minor has, the newest first: the last before each backport."""
    first_patches = {
        patch
        for shipped in SHIPPED.values()
        for branch, patch in shipped.boundary.first_patch
        if branch == f"1.{minor}" and patch
    }
    newest = KubeVersion(1, minor, PATCH_MAX, text=f"v1.{minor}")
    before = (KubeVersion(1, minor, patch - 1) for patch in sorted(first_patches, reverse=True))
    return (newest, *before)
