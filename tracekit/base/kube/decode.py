"""Parts of decoded JSON by the type that they should have; a wrong type counts as absent.

A record may hold anything: what an API server would never store must not stop a replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.base.kube.timestamps import parse_rfc3339

EMPTY: Mapping[str, Any] = {}


def as_text(value: Any) -> str:
    """A string, or the empty one."""
    return value if isinstance(value, str) else ""


def as_int(value: Any) -> int | None:
    """An integer; true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_time(value: Any) -> int | None:
    """A timestamp in nanoseconds."""
    return parse_rfc3339(value) if isinstance(value, str) else None


def as_map(value: Any) -> Mapping[str, Any]:
    """An object, or the empty one."""
    return value if isinstance(value, dict) else EMPTY


def as_string_map(value: Any) -> Mapping[str, str]:
    """An object of strings, such as labels; entries of another type are left out."""
    entries = as_map(value)
    if all(isinstance(entry, str) for entry in entries.values()):
        return entries
    return {key: entry for key, entry in entries.items() if isinstance(entry, str)}


def as_list(value: Any) -> list[Any]:
    """An array, or the empty one."""
    return value if isinstance(value, list) else []


def as_items(value: Any) -> tuple[Mapping[str, Any], ...]:
    """The objects of an array."""
    return tuple(item for item in as_list(value) if isinstance(item, dict))


def as_strings(value: Any) -> tuple[str, ...]:
    """The strings of an array."""
    return tuple(item for item in as_list(value) if isinstance(item, str))
