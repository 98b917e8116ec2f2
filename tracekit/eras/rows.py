"""Rows of the version table one by one: in which do two eras differ, and an era with some set back.

A row is a gate, a behavior or a constant. An era with rows set back to another's is no release that
ever shipped; it answers the question which row makes a difference.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from tracekit.eras.behavior_releases import SHIPPED
from tracekit.eras.behaviors import Behavior, flags_of
from tracekit.eras.constants import CHANGES, Constants
from tracekit.eras.era import Era, GateFlags
from tracekit.eras.gates import GATE_BY_NAME, GATES, Gate
from tracekit.eras.references import REFERENCES
from tracekit.eras.table import format_value, gate_state


class Row(NamedTuple):
    """One row of the version table."""

    kind: str  # gate, behavior or constant
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class RowText:
    """What there is to say about a row."""

    about: str
    upstream: str  # path and function
    reference: str  # the KEP or the pull request; empty where it is not known
    left: str
    right: str
    keeps_old: str  # what keeps the old behaviour; empty if nothing does


def differing_rows(left: Era, right: Era) -> tuple[Row, ...]:
    """The rows in which two eras differ: gates first, then behaviors, then constants."""
    gates = [Row("gate", g.value) for g in Gate if left.enabled(g) != right.enabled(g)]
    behaviors = [Row("behavior", b.name.lower()) for b in Behavior if (b in left) != (b in right)]
    constants = [
        Row("constant", field.name)
        for field in fields(Constants)
        if getattr(left.constants, field.name) != getattr(right.constants, field.name)
    ]
    return (*gates, *behaviors, *constants)


def with_rows(era: Era, other: Era, rows: Collection[Row]) -> Era:
    """`era`, but these rows as in `other`."""
    names = {kind: {row.name for row in rows if row.kind == kind} for kind in _KINDS}
    gates = {name: getattr(other.gates, name) for name in names["gate"]}
    behaviors = frozenset(
        behavior
        for behavior in Behavior
        if behavior in (other if behavior.name.lower() in names["behavior"] else era)
    )
    constants = {name: getattr(other.constants, name) for name in names["constant"]}
    enabled = frozenset(
        gate for gate in Gate if (other if gate.value in names["gate"] else era).enabled(gate)
    )
    return replace(
        era,
        gates=GateFlags(**{**_flags(era.gates), **gates}),
        enabled_gates=enabled,
        behaviors=flags_of(behaviors),
        held_behaviors=behaviors,
        constants=replace(era.constants, **constants),
    )


_KINDS = ("gate", "behavior", "constant")


def _flags(gates: GateFlags) -> dict[str, bool]:
    return {field.name: getattr(gates, field.name) for field in fields(GateFlags)}


def describe_row(row: Row, left: Era, right: Era) -> RowText:
    """A row in words, and what makes the target keep the old behaviour."""
    reference = REFERENCES.get((row.kind, row.name), "")
    if row.kind == "gate":
        gate = GATE_BY_NAME[row.name]
        history = GATES[gate]
        keeps = ""
        if history.is_settable(right.basis):
            keeps = f"--feature-gates={row.name}={str(left.enabled(gate)).lower()}"
        return RowText(
            history.about,
            "pkg/features/kube_features.go",
            reference,
            gate_state(left, gate),
            gate_state(right, gate),
            keeps,
        )
    if row.kind == "behavior":
        behavior = Behavior[row.name.upper()]
        shipped = SHIPPED[behavior]
        return RowText(
            shipped.about,
            shipped.upstream,
            reference,
            "yes" if behavior in left else "no",
            "yes" if behavior in right else "no",
            "",
        )
    return RowText(
        row.name.replace("_", " "),
        next((where for _, values, where in CHANGES if row.name in values), ""),
        reference,
        format_value(row.name, getattr(left.constants, row.name)),
        format_value(row.name, getattr(right.constants, row.name)),
        "",
    )
