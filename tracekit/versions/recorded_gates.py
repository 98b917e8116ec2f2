"""The feature gates that a trace brings, reconciled with a version: none of them stops a replay.

A recorder reads the effective state of every gate off /metrics, locked ones included; an import
names what somebody remembers. What a version leaves no choice about is dropped where it agrees and
said where it does not. For a what-if replay as another version only the settings that differ from
the recorded version's defaults are the cluster's own: the others were nobody's choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from tracekit.versions.era import ALL_ALPHA, ALL_BETA
from tracekit.versions.gates import DEPENDENCIES, GATE_BY_NAME, GATES, Gate
from tracekit.versions.version import KubeVersion


class ReconciledGates(Struct, frozen=True):
    """What of a trace's gates applies to a version."""

    #: Gate name to setting; `Era.resolve` takes all of them.
    settings: dict[str, bool]
    #: One sentence for each gate that contradicts the version.
    warnings: tuple[str, ...]


def reconcile_gates(
    recorded: Mapping[str, bool], version: KubeVersion, *, recorded_at: KubeVersion | None = None
) -> ReconciledGates:
    """Which of a trace's gates hold for `version`, when the trace was recorded at `recorded_at`.

    Gates of other controllers change nothing here and are left out.
    """
    settings: dict[str, bool] = {}
    warnings: list[str] = []
    what_if = recorded_at is not None and recorded_at != version
    for name, on in sorted(recorded.items()):
        if name in (ALL_ALPHA, ALL_BETA):
            settings[name] = on
        gate = GATE_BY_NAME.get(name)
        if gate is None:
            continue
        if what_if and recorded_at is not None and on is GATES[gate].default_at(recorded_at):
            continue
        if GATES[gate].is_settable(version):
            settings[name] = on
        elif on is not GATES[gate].default_at(version):
            warnings.append(_contradiction(gate, version, on=on))
    _complete(settings, recorded, version)
    warnings += _impossible(settings, version)
    return ReconciledGates(settings, tuple(warnings))


def _complete(
    settings: dict[str, bool], recorded: Mapping[str, bool], version: KubeVersion
) -> None:
    """What must have been set beside these, for the control plane to have run at all."""
    for gate, needed in DEPENDENCIES.items():
        if not (GATES[gate].is_settable(version) and GATES[needed].is_settable(version)):
            continue
        if settings.get(gate.value) and needed.value not in recorded:
            settings[needed.value] = True
        elif settings.get(needed.value) is False and gate.value not in recorded:
            settings[gate.value] = False


def _impossible(settings: dict[str, bool], version: KubeVersion) -> Iterator[str]:
    """A gate that is on without the one that it needs is taken to be off."""
    for gate, needed in DEPENDENCIES.items():
        if settings.get(gate.value) and settings.get(needed.value) is False:
            settings[gate.value] = False
            yield (
                f"the trace says that feature gate {gate.value} is on and {needed.value}, which "
                f"it needs, off; no component of Kubernetes {version} starts so: {gate.value} is "
                "taken to be off."
            )


def _contradiction(gate: Gate, version: KubeVersion, *, on: bool) -> str:
    said = "on" if on else "off"
    fixed = "off" if on else "on"
    return (
        f"the trace says that feature gate {gate.value} is {said}, which Kubernetes {version} "
        f"does not allow ({GATES[gate].why_fixed(version)}, so {fixed}): that setting is ignored."
    )
