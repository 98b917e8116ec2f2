"""Bringing headers of older formats up to the newest, one step at a time.

A format N+1 adds `N: header step` to `STEPS`, keeps all older steps, and adds a golden trace of
format N+1 to the tests. Rows need no steps so far: each segment says how it is stored, and the
columns that readers hand out are those of format 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tracekit.trace.format.model import FORMAT_VERSION

Step = Callable[[dict[str, Any]], dict[str, Any]]


def _as_it_is(document: dict[str, Any]) -> dict[str, Any]:
    return document


#: The format that a step starts from -> the step.
STEPS: Mapping[int, Step] = {1: _as_it_is}


def migrate_header(document: Mapping[str, Any]) -> dict[str, Any]:
    """The header document in the newest format."""
    result = dict(document)
    for version in range(int(document["format_version"]), FORMAT_VERSION):
        result = STEPS[version](result)
    result["format_version"] = FORMAT_VERSION
    return result
