"""A field that is not as it should be."""

from __future__ import annotations

from typing import Any, NamedTuple


class FieldDifference(NamedTuple):
    """One field that is not as it should be; a missing side is None."""

    path: str
    expected: Any
    observed: Any
