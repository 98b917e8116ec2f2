"""The version table as rows: what changed in which release, and what differs between two.

Everything is read from the gate, behavior and constant tables; nothing is told twice.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tracekit.versions.behavior_releases import SHIPPED
from tracekit.versions.behaviors import Behavior
from tracekit.versions.constants import CHANGES, Constants, constants_of
from tracekit.versions.era import NEWEST, Era
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.version import KubeVersion

#: What a row of the table can be, in the order in which they are told.
KINDS: Final = ("gate", "behavior", "constant")


class Change(Struct, frozen=True):
    """One thing that one release changed."""

    #: First release with it, as in `v1.28.0`.
    version: str
    kind: str  # "gate", "behavior" or "constant"
    name: str
    #: What happened: `beta, on by default`, `ships`, `withdrawn`, `10 s -> 1 s`.
    change: str
    about: str
    upstream: str
    #: False when the patch number was taken from release notes and not from the source.
    certain: bool


class Difference(Struct, frozen=True):
    """One thing in which two eras differ."""

    kind: str
    name: str
    left: str
    right: str
    about: str


def all_changes() -> list[Change]:
    """Every change of every known release, oldest first."""
    changes = [*_gate_changes(), *_behavior_changes(), *_constant_changes()]
    return sorted(
        changes, key=lambda c: (KubeVersion.parse(c.version), KINDS.index(c.kind), c.name)
    )


def _gate_changes() -> list[Change]:
    found = []
    for gate in Gate:
        history = GATES[gate]
        for spec in history.specs:
            state = "on" if spec.default else "off"
            text = f"{spec.stage.value}, {state} by default" + (", locked" if spec.locked else "")
            found.append(
                Change(
                    _canonical(spec.version),
                    "gate",
                    gate.value,
                    text,
                    history.about,
                    "pkg/features/kube_features.go",
                    certain=gate is not Gate.JobTrackingWithFinalizers or not spec.version.patch,
                )
            )
        if history.removed is not None and history.removed.triple[:2] <= NEWEST.triple[:2]:
            found.append(
                Change(
                    _canonical(history.removed),
                    "gate",
                    gate.value,
                    "gate removed",
                    history.about,
                    "pkg/features/kube_features.go",
                    certain=True,
                )
            )
    return found


def _behavior_changes() -> list[Change]:
    found = []
    for behavior in Behavior:
        shipped = SHIPPED[behavior]
        for release, ships in shipped.boundary.edges():
            version = KubeVersion.parse(release)
            if (version.major, version.minor) > (NEWEST.major, NEWEST.minor):
                continue
            found.append(
                Change(
                    _canonical(version),
                    "behavior",
                    behavior.name.lower(),
                    "ships" if ships else "withdrawn",
                    shipped.about,
                    shipped.upstream,
                    certain=shipped.patch_is_certain,
                )
            )
    return found


def _constant_changes() -> list[Change]:
    found = []
    for boundary, values, upstream in CHANGES:
        for release, _ in boundary.edges():
            version = KubeVersion.parse(release)
            before = constants_of(_just_before(version))
            for name, value in values.items():
                text = f"{format_value(name, getattr(before, name))} -> {format_value(name, value)}"
                found.append(
                    Change(
                        _canonical(version),
                        "constant",
                        name,
                        text,
                        "",
                        upstream,
                        certain=not boundary.first_patch,
                    )
                )
    return found


def _just_before(version: KubeVersion) -> KubeVersion:
    """The release below one, on its own branch or at the start of the branch before."""
    if version.patch:
        return KubeVersion(version.major, version.minor, version.patch - 1)
    return KubeVersion(version.major, version.minor - 1, 0)


def _canonical(version: KubeVersion) -> str:
    return f"v{version.major}.{version.minor}.{version.patch}"


def format_value(name: str, value: int | None) -> str:
    """A constant for readers: durations in their largest whole unit."""
    if value is None:
        return "none"
    if "_ns" not in name:
        return str(value)
    for unit, size in (("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)):
        if value % size == 0 and value >= size:
            return f"{value // size} {unit}"
    return f"{value} ns"


def gate_state(era: Era, gate: Gate) -> str:
    """A gate in one era: `on (beta)`, `off (not there yet)`, `on (GA, gate removed)`."""
    history = GATES[gate]
    state = "on" if era.enabled(gate) else "off"
    spec = history.at(era.basis)
    if spec is None:
        return f"{state} (not there yet)"
    removed = history.removed is not None and era.basis >= history.removed
    return f"{state} ({spec.stage.value}{', gate removed' if removed else ''})"


def differences(left: Era, right: Era) -> list[Difference]:
    """What two eras do differently; a gate's mere promotion to a later stage is none."""
    found = [
        Difference(
            "gate", gate.value, gate_state(left, gate), gate_state(right, gate), GATES[gate].about
        )
        for gate in Gate
        if left.enabled(gate) != right.enabled(gate)
    ]
    found += [
        Difference(
            "behavior",
            behavior.name.lower(),
            "yes" if behavior in left else "no",
            "yes" if behavior in right else "no",
            SHIPPED[behavior].about,
        )
        for behavior in Behavior
        if (behavior in left) != (behavior in right)
    ]
    found += [
        Difference(
            "constant",
            name,
            format_value(name, getattr(left.constants, name)),
            format_value(name, getattr(right.constants, name)),
            "",
        )
        for name in Constants.__struct_fields__
        if getattr(left.constants, name) != getattr(right.constants, name)
    ]
    return found
