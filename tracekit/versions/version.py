"""Kubernetes versions: parsing what `/version` and file names say, ordering, and patch boundaries.

Distributions append their own suffix (`v1.29.6-gke.1254000`, `v1.27.4+k3s1`, `v1.24.10-eks-48e6`);
upstream appends `-alpha.N`, `-beta.N`, `-rc.N`. Neither changes what a release does as far as the
tables here can tell, so only (major, minor, patch) orders versions; the text is kept for reports.
A `Boundary` says from which release on something holds when patch releases carried it back: the
first patch of each branch that got it, and the minor from which every release has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Final

from msgspec import Struct

from tracekit.base.errors import UnsupportedVersionError

_VERSION: Final = re.compile(
    r"^\s*v?(?P<major>0|[1-9]\d{0,3})\.(?P<minor>0|[1-9]\d{0,5})\+?"
    r"(?:\.(?P<patch>0|[1-9]\d{0,8})(?P<suffix>[-+][0-9A-Za-z.+~_-]+)?)?\s*$",
    re.ASCII,
)
#: The patch number of "the last release of this branch, whichever it is".
PATCH_MAX: Final = 999_999_999


@total_ordering
@dataclass(frozen=True, slots=True)
class KubeVersion:
    """One Kubernetes release; equal and ordered by its three numbers."""

    major: int
    minor: int
    patch: int
    #: What was parsed, suffix included; no part of equality, so that lookups ignore it.
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> KubeVersion:
        """Read `v1.29.6-gke.1254000` and its like; `1.29` means the first release, 1.29.0."""
        match = _VERSION.match(text)
        if match is None:
            raise UnsupportedVersionError(
                f"{text!r} is no Kubernetes version; write it like v1.29.6 or v1.29.6-gke.1254000."
            )
        return cls(
            int(match["major"]), int(match["minor"]), int(match["patch"] or 0), text=text.strip()
        )

    @property
    def triple(self) -> tuple[int, int, int]:
        """The three numbers that order releases."""
        return (self.major, self.minor, self.patch)

    @property
    def branch(self) -> str:
        """The release branch, as in `1.29`."""
        return f"{self.major}.{self.minor}"

    @property
    def suffix(self) -> str:
        """What stands behind the three numbers: a distribution's or a pre-release's mark."""
        match = _VERSION.match(self.text)
        return (match["suffix"] or "") if match else ""

    def __lt__(self, other: KubeVersion) -> bool:
        return self.triple < other.triple

    def __str__(self) -> str:
        text = self.text or f"{self.major}.{self.minor}.{self.patch}"
        return text if text.startswith("v") else f"v{text}"


def branch_key(branch: str) -> tuple[int, int]:
    """`"1.29"` as numbers, so that branches compare as numbers and not as text."""
    major, minor = branch.split(".")
    return (int(major), int(minor))


class Boundary(Struct, frozen=True):
    """Which releases have something: `onward` and later minors, and backports from a patch on.

    `gone` is the first minor that lacks it again, for behavior that upstream withdrew.
    """

    onward: str | None
    #: branch -> first patch on it; a branch below `onward` that is not named never got it.
    first_patch: tuple[tuple[str, int], ...] = ()
    gone: str | None = None

    def holds(self, version: KubeVersion) -> bool:
        """Whether `version` has it."""
        branch = (version.major, version.minor)
        if self.gone is not None and branch >= branch_key(self.gone):
            return False
        for name, patch in self.first_patch:
            if branch_key(name) == branch:
                return version.patch >= patch
        return self.onward is not None and branch >= branch_key(self.onward)

    def edges(self) -> tuple[tuple[str, bool], ...]:
        """Every release at which it appears (True) or disappears (False), oldest first."""
        found = [((*branch_key(name), patch), True) for name, patch in self.first_patch]
        listed = {branch_key(name) for name, _ in self.first_patch}
        if self.onward is not None and branch_key(self.onward) not in listed:
            found.append(((*branch_key(self.onward), 0), True))
        if self.gone is not None:
            found.append(((*branch_key(self.gone), 0), False))
        return tuple((".".join(map(str, triple)), on) for triple, on in sorted(found))

    def describe(self) -> str:
        """One phrase: `1.29+, 1.28.4+, 1.27.8+` or `1.21 - 1.27`."""
        if self.onward is not None and self.gone is not None:
            major, minor = branch_key(self.gone)
            last = f"{major}.{minor - 1}"
            whole = self.onward if self.onward == last else f"{self.onward} - {last}"
            parts = [whole]
        elif self.onward is not None:
            patches = dict(self.first_patch)
            at = patches.get(self.onward)
            parts = [f"{self.onward}.{at}+" if at else f"{self.onward}+"]
        else:
            parts = []
        parts += [
            f"{name}.{patch}+ of {name}" for name, patch in self.first_patch if name != self.onward
        ]
        return ", ".join(parts)
