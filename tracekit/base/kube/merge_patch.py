"""JSON merge patches (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WHOLE = frozenset({str, int, bool, float, list})


def merge_patched(obj: Any, patch: Any) -> Any:
    """The object after the patch, which shares with both what neither changes; both stay as is."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(obj) if isinstance(obj, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif type(value) in _WHOLE:
            result[name] = value
        else:
            result[name] = merge_patched(result.get(name), value)
    return result
