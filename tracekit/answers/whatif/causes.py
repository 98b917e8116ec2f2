"""Which rows of the version table can be the cause of what becomes of Jobs, the plainest last.

Delta debugging lets go of rows from the front. So constants come first, since they mostly belong to
a behavior that says more, and gates last, since a KEP says most.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from tracekit.versions.api_server import ApiRules
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules
from tracekit.versions.rows import COMES_WITH, Row, differing_rows, with_rows
from tracekit.versions.status_validation import StatusValidation

_ORDER: Final = ("constant", "behavior", "gate")


def job_rows(recorded: Era, target: Era) -> tuple[Row, ...]:
    """The rows in which two eras differ and that Jobs can tell, in the order of the causes."""
    rows = [
        row
        for row in differing_rows(recorded, target)
        if not _is_part_of_a_behavior(row, recorded, target)
        and _touches(row, recorded, target, None)
    ]
    return tuple(sorted(rows, key=lambda row: _ORDER.index(row.kind)))


def _is_part_of_a_behavior(row: Row, recorded: Era, target: Era) -> bool:
    """Whether a row is a constant that goes with a behavior in which the two differ as well."""
    behavior = COMES_WITH.get(row.name) if row.kind == "constant" else None
    return behavior is not None and (
        getattr(recorded.behaviors, behavior) != getattr(target.behaviors, behavior)
    )


def rows_for(
    rows: Sequence[Row], recorded: Era, target: Era, fields: Collection[str]
) -> tuple[Row, ...]:
    """Those of the rows that a Job with these fields in its spec can tell."""
    return tuple(row for row in rows if _touches(row, recorded, target, fields))


def _touches(row: Row, recorded: Era, target: Era, fields: Collection[str] | None) -> bool:
    """Whether a row alone changes what a Job meets, set back in the target or brought forward."""
    pairs = ((target, recorded), (recorded, target))
    return any(
        _met(with_rows(era, other, (row,)), fields) != _met(era, fields) for era, other in pairs
    )


def _met(era: Era, fields: Collection[str] | None) -> tuple[Any, ...]:
    """All that a Job with these fields meets; None stands for every field."""
    api = ApiRules.of(era)
    dropped = tuple(name for name in api.dropped if fields is None or name in fields)
    return (
        JobRules.of(era),
        StatusValidation.of(era),
        era.constants,
        api.prefixed_labels,
        api.tracking_annotation,
        api.completion_mode,
        api.pod_replacement_policy,
        api.disruption_conditions,
        dropped,
    )
