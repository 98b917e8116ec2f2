"""What the views say of a Job's status, written from its declared fields: a new one is in each.

A script names `{status fields}` (all), and of the counts `{counts}`, `{counts before}`,
`{counts shown}`, `{counts changed}`, `{counts documented}` and `{last counts documented}`.
"""

from __future__ import annotations

from functools import cache

from tracekit.base.kube.job_status import FIELDS, NAMES, Shape, StatusField

_LINES = ",\n         "
_COUNTS = tuple(field for field in FIELDS if field.shape in (Shape.COUNT, Shape.COUNT_OR_NONE))


@cache
def _texts() -> dict[str, str]:
    names = [field.name for field in _COUNTS]
    before = [f"lag({name}) OVER w AS old_{name}" for name in names]
    changed = [f"changed_number('{name}', old_{name}, {name}, first)" for name in names]
    return {
        "{status fields}": ", ".join(NAMES),
        "{counts}": ", ".join(names),
        "{counts before}": _LINES.join(before),
        "{counts shown}": ", ".join(_shown(field) for field in _COUNTS),
        "{counts changed}": _LINES.join(changed),
        "{counts documented}": "\n".join(_documented(field) for field in _COUNTS),
        "{last counts documented}": "\n".join(_documented(field, "last ") for field in _COUNTS),
    }


def _shown(field: StatusField) -> str:
    zero = field.shape is Shape.COUNT
    return f"coalesce({field.name}, 0) AS {field.name}" if zero else field.name


def _documented(field: StatusField, which: str = "") -> str:
    absent = "0 when absent" if field.shape is Shape.COUNT else "absent in the object"
    return f"--@ {field.name} | {which}`.status.{field.path}` | {absent}"


def with_status_columns(script: str) -> str:
    """A view's script with the fields of the status in their places."""
    for place, text in _texts().items():
        script = script.replace(place, text)
    return script
