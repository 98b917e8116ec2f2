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
        return f"{self.gate.value} {state} ({self.fact.sign.rule.phrase}: {self.fact.where})"


def shown_gates(facts: Iterable[Fact], era: Era) -> tuple[ShownGate, ...]:
    """The gates that are shown to be set other than they are in an era, and could be."""
    seen: dict[tuple[Gate, bool], Fact] = {}
    for fact in facts:
        if fact.sign.rule.shows is not None:
            seen.setdefault(fact.sign.rule.shows, fact)
    found = {
        gate: ShownGate(gate, on, fact)
        for (gate, on), fact in seen.items()
        if (gate, not on) not in seen
        and on is not era.enabled(gate)
        and GATES[gate].is_settable(era.basis)
    }
    return tuple(found[gate] for gate in Gate if gate in found)
