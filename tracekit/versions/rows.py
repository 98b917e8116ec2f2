"""Rows of the version table one by one: in which do two eras differ, and an era with some set back.

A row is a gate, a behavior or a constant. An era with rows set back to another's is no release that
ever shipped; it answers the question which row makes a difference.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tracekit.versions.behavior_releases import SHIPPED
from tracekit.versions.behaviors import Behavior
from tracekit.versions.constants import CHANGES
from tracekit.versions.era import Era
from tracekit.versions.gates import GATE_BY_NAME, GATES, Gate
from tracekit.versions.references import REFERENCES
from tracekit.versions.table import KINDS, differences


class Row(NamedTuple):
    """One row of the version table."""

    kind: str  # gate, behavior or constant
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class RowText(Struct, frozen=True):
    """What there is to say about a row."""

    about: str
    upstream: str  # path and function
    reference: str  # the KEP or the pull request; empty where it is not known
    left: str
    right: str
    keeps_old: str  # what keeps the old behaviour; empty if nothing does


#: Constants that one behavior reads and nothing else: they go with it.
COMES_WITH: Final = {
    "pod_failure_backoff_ns_base": "backoff_from_pod_finish_times",
    "pod_failure_backoff_ns_max": "backoff_from_pod_finish_times",
}


def differing_rows(left: Era, right: Era) -> tuple[Row, ...]:
    """The rows in which two eras differ: gates first, then behaviors, then constants."""
    return tuple(Row(found.kind, found.name) for found in differences(left, right))


def with_rows(era: Era, other: Era, rows: Collection[Row]) -> Era:
    """`era`, but these rows as in `other`."""
    names = {kind: {row.name for row in rows if row.kind == kind} for kind in KINDS}
    names["constant"] |= {
        constant for constant, behavior in COMES_WITH.items() if behavior in names["behavior"]
    }
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
        enabled_gates=enabled,
        held_behaviors=behaviors,
        constants=replace(era.constants, **constants),
    )


def describe_row(row: Row, left: Era, right: Era) -> RowText:
    """A row in which two eras differ in words, and what makes the target keep the old behaviour.

    Raises:
        KeyError: They do not differ in it.
    """
    found = {Row(one.kind, one.name): one for one in differences(left, right)}[row]
    about, keeps = found.about, ""
    if row.kind == "gate":
        gate = GATE_BY_NAME[row.name]
        upstream = "pkg/features/kube_features.go"
        if GATES[gate].is_settable(right.basis):
            keeps = f"--feature-gates={row.name}={str(left.enabled(gate)).lower()}"
    elif row.kind == "behavior":
        upstream = SHIPPED[Behavior[row.name.upper()]].upstream
    else:
        about = row.name.replace("_", " ")
        upstream = next(
            (
                where
                for boundary, values, where in reversed(CHANGES)
                if row.name in values
                and boundary.holds(left.version) != boundary.holds(right.version)
            ),
            "",
        )
    reference = REFERENCES.get((row.kind, row.name), "")
    return RowText(about, upstream, reference, found.left, found.right, keeps)
