"""Bringing headers and rows of older formats up to the newest, one step at a time.

There is only format 1 so far. A format N+1 adds `N: (header step, table step)` to `STEPS`, keeps
all older steps, and adds a golden trace of format N+1 to the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tracekit.trace.format.model import FORMAT_VERSION

if TYPE_CHECKING:
    import pyarrow as pa


class Step(NamedTuple):
    """How to get from one format to the next."""

    header: Callable[[dict[str, Any]], dict[str, Any]]
    table: Callable[[pa.Table], pa.Table]


#: The format that a step starts from -> the step.
STEPS: Mapping[int, Step] = {}


def migrate_header(document: Mapping[str, Any]) -> dict[str, Any]:
    """The header document in the newest format."""
    result = dict(document)
    for version in range(int(document["format_version"]), FORMAT_VERSION):
        result = STEPS[version].header(result)
    result["format_version"] = FORMAT_VERSION
    return result


def migrate_table(table: pa.Table, version: int) -> pa.Table:
    """Rows of a segment of that format in the newest format's columns."""
    for step in range(version, FORMAT_VERSION):
        table = STEPS[step].table(table)
    return table
