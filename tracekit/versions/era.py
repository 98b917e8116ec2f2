"""An era: everything that one Kubernetes version with its gates decides, resolved once.

Controllers never see versions. They get an `Era` and read plain attributes of it:
`era.gates.JobSuccessPolicy`, `era.behaviors.completed_event`,
`era.constants.queue_backoff_ns_base`; or ask in words, `era.enabled(Gate.JobSuccessPolicy)`,
`Behavior.COMPLETED_EVENT in era`.

A version above the newest one known is read as that one, with a warning on the result; one below
the oldest is refused. Gates follow component-base: explicit settings first, then `AllAlpha` and
`AllBeta`, then the default of the stage; locked ones cannot be moved. With an emulation version
(`--emulated-version` upstream, 1.31 on) gates are those of that version while behaviors and
numbers stay those of the binary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from tracekit.base.errors import UnsupportedVersionError
from tracekit.base.suggest import misspelt
from tracekit.versions.behavior_releases import behaviors_of
from tracekit.versions.behaviors import Behavior, BehaviorFlags
from tracekit.versions.constants import Constants, constants_of
from tracekit.versions.gates import (
    DEPENDENCIES,
    GATE_BY_NAME,
    GATES,
    UNPORTED,
    Gate,
    GateFlags,
    Stage,
)
from tracekit.versions.version import PATCH_MAX, KubeVersion

OLDEST: Final = KubeVersion.parse("1.11.0")
NEWEST: Final = KubeVersion.parse("1.37.2")
ALL_ALPHA: Final = "AllAlpha"
ALL_BETA: Final = "AllBeta"


class Era(Struct, frozen=True):
    """One version with its gates; compare and hash it by what it decides, not by how it is said."""

    #: As asked for, distribution suffix included.
    version: KubeVersion
    #: The known release whose rules are used; differs from `version` only above the newest one.
    basis: KubeVersion
    constants: Constants
    enabled_gates: frozenset[Gate]
    held_behaviors: frozenset[Behavior]
    #: What the user should know about this choice, one sentence each.
    warnings: tuple[str, ...] = ()
    #: Where the controller manager runs, by the tz database: schedules without a zone are read so.
    process_zone: str = "UTC"
    #: Whether each Job is searched to its bound, also where most contradict these rules.
    search_all: bool = False
    #: Of a record that does not say its version: the others that its objects fit, newest first.
    also_fits: tuple[Era, ...] = ()

    @classmethod
    def resolve(
        cls,
        version: KubeVersion | str,
        gate_overrides: Mapping[str, bool] | None = None,
        *,
        emulation_version: KubeVersion | str | None = None,
    ) -> Era:
        """Look a version up; sentences of UnsupportedVersionError say what does not exist."""
        asked = KubeVersion.parse(version) if isinstance(version, str) else version
        basis, warnings = _nearest_known(asked)
        gates_at = basis
        if emulation_version is not None:
            emulated = (
                KubeVersion.parse(emulation_version)
                if isinstance(emulation_version, str)
                else emulation_version
            )
            gates_at, gates_warnings = _nearest_known(emulated)
            if gates_at > basis:
                raise UnsupportedVersionError(
                    f"{asked} cannot emulate {emulated}, which is newer; name an older version."
                )
            warnings = warnings or gates_warnings
        enabled = resolve_gates(gates_at, gate_overrides or {}, existing_in=basis)
        held = behaviors_of(basis)
        return cls(
            version=asked,
            basis=basis,
            constants=constants_of(basis),
            enabled_gates=enabled,
            held_behaviors=held,
            warnings=(
                *warnings,
                *(_unported(gate) for gate in UNPORTED if gate in enabled),
                *_of_others(gate_overrides or {}),
            ),
        )

    @property
    def gates(self) -> GateFlags:
        """Whether each gate is on, by its name."""
        return GateFlags(self.enabled_gates)

    @property
    def behaviors(self) -> BehaviorFlags:
        """Whether each behavior holds, by its name."""
        return BehaviorFlags(self.held_behaviors)

    def enabled(self, gate: Gate) -> bool:
        """Whether a gate is on."""
        return gate in self.enabled_gates

    def __contains__(self, behavior: object) -> bool:
        return behavior in self.held_behaviors

    def __iter__(self) -> Iterator[Behavior]:
        return (behavior for behavior in Behavior if behavior in self.held_behaviors)


def _of_others(overrides: Mapping[str, bool]) -> Iterator[str]:
    """A manager's flags name gates of all its controllers."""
    names = [
        n for n in sorted(overrides) if n not in GATE_BY_NAME and n not in (ALL_ALPHA, ALL_BETA)
    ]
    if names:
        yield (
            f"no rule of the Job, CronJob and TTL controllers reads feature gate "
            f"{', '.join(names)}: set or not, nothing here changes."
        )


def _unported(gate: Gate) -> str:
    return (
        f"feature gate {gate.value} is on, and what it adds ({UNPORTED[gate]}) is not ported: "
        "Jobs are judged as if it were off."
    )


def nearest_known(version: KubeVersion) -> KubeVersion:
    """The release whose rules are used for a version: itself, or the newest known branch."""
    return _nearest_known(version)[0]


def _nearest_known(version: KubeVersion) -> tuple[KubeVersion, tuple[str, ...]]:
    """The version itself, or the newest known branch with a sentence that says so."""
    branch = (version.major, version.minor)
    if branch < (OLDEST.major, OLDEST.minor):
        raise UnsupportedVersionError(
            f"Kubernetes {version} is older than v{OLDEST.branch}, the oldest version whose rules "
            f"are known; name v{OLDEST.branch} or newer with --kubernetes-version."
        )
    if branch > (NEWEST.major, NEWEST.minor):
        known = KubeVersion(NEWEST.major, NEWEST.minor, PATCH_MAX, text=f"v{NEWEST.branch}")
        warning = (
            f"Kubernetes {version} is newer than v{NEWEST.branch}, the newest version whose rules "
            f"are known; the rules of v{NEWEST.branch} are used."
        )
        return known, (warning,)
    return version, ()


def resolve_gates(
    version: KubeVersion, overrides: Mapping[str, bool], *, existing_in: KubeVersion | None = None
) -> frozenset[Gate]:
    """The gates that are on in a version with these settings.

    A removed gate keeps its last default. `existing_in` is the binary's version: what it no longer
    knows cannot be set, whatever it emulates.
    """
    binary = existing_in or version
    explicit: dict[Gate, bool] = {}
    for name in sorted(overrides):
        if name not in (ALL_ALPHA, ALL_BETA) and not _is_of_others(name):
            gate = _settable(name, version, binary, value=overrides[name])
            explicit[gate] = overrides[name]
    enabled = []
    for gate in Gate:
        spec = GATES[gate].at(version)
        if spec is None:
            continue
        value = spec.default
        if not spec.locked and not GATES[gate].is_removed(binary):
            if spec.stage is Stage.ALPHA:
                value = overrides.get(ALL_ALPHA, value)
            elif spec.stage is Stage.BETA:
                value = overrides.get(ALL_BETA, value)
            value = explicit.get(gate, value)
        if value:
            enabled.append(gate)
    _check_dependencies(enabled)
    return frozenset(enabled)


def _check_dependencies(enabled: Collection[Gate]) -> None:
    for gate, needed in DEPENDENCIES.items():
        if gate in enabled and needed not in enabled:
            raise UnsupportedVersionError(
                f"Feature gate {gate.value} is on and needs {needed.value}, which is off, so "
                f"that no component would start: set {needed.value}=true or {gate.value}=false."
            )


def _is_of_others(name: str) -> bool:
    """Whether it is no gate that the batch controllers read, nor meant to be one."""
    if name in GATE_BY_NAME:
        return False
    meant = misspelt(name, GATE_BY_NAME)
    if meant:
        raise UnsupportedVersionError(
            f"{name} is no feature gate of the batch controllers; did you mean {meant}?"
        )
    return True


def _settable(name: str, version: KubeVersion, binary: KubeVersion, *, value: bool) -> Gate:
    """The gate of that name, if this version lets it be set to this value."""
    gate = GATE_BY_NAME[name]
    history = GATES[gate]
    spec = history.at(version)
    if spec is None:
        first = history.specs[0].version.branch
        raise UnsupportedVersionError(
            f"Feature gate {name} does not exist in Kubernetes {version}; "
            f"it came with v{first}, so leave it out."
        )
    if history.removed is not None and history.is_removed(binary):
        state = "on" if history.specs[-1].default else "off"
        raise UnsupportedVersionError(
            f"Feature gate {name} was removed in v{history.removed.branch}, since when it is "
            f"always {state}; leave it out for Kubernetes {binary}."
        )
    if spec.locked and value != spec.default:
        state = "on" if spec.default else "off"
        raise UnsupportedVersionError(
            f"Feature gate {name} is locked {state} in Kubernetes {version} and cannot be set to "
            f"{str(value).lower()}; leave it out."
        )
    return gate
