"""The types of the API's objects, and what of a value is of its type.

`api_schema.json` is made from the Go types by scripts/etcd_schema.py: numbers on the wire, JSON
names, and what is left out when empty. An API server refuses an object with a field of another
type, so a record that has one was not made by a server: such a field counts as absent, here and
nowhere else, and its truth stays in the row's own text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

_INT64: Final = 1 << 63


class Field(NamedTuple):
    """One field of a type."""

    name: str  # "" for what is inlined into its parent
    kind: str
    shape: str  # "", list or map
    omit_empty: bool
    pointer: bool
    omit_zero: bool  # a struct, too, is left out when it is empty (since Kubernetes 1.34)


@cache
def schema() -> dict[str, dict[int, Field]]:
    """The fields of each type by their numbers; a type is named like `batch.JobSpec`."""
    text = files("tracekit.base.kube").joinpath("api_schema.json").read_text("utf-8")
    return {
        name: {number: Field(*rest) for number, *rest in fields}
        for name, fields in json.loads(text).items()
    }


def as_type(name: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object without what is not of its type; the same object where all is.

    Fields that no version known here has are kept as they are.
    """
    kept = _struct(name, value)
    return kept if isinstance(kept, dict) else {}


_WRONG: Final = object()


def _whole(value: Any) -> bool:
    return type(value) is int and -_INT64 <= value < _INT64


_SCALARS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "s": lambda value: type(value) is str,
    "b": lambda value: type(value) is bool,
    "i": _whole,
    "time": lambda value: type(value) is str,
    "microtime": lambda value: type(value) is str,
    "quantity": lambda value: type(value) is str or _whole(value) or type(value) is float,
    "intorstring": lambda value: type(value) is str or _whole(value),
    "fields": lambda value: type(value) is dict,
}


@cache
def _fields(name: str) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for field in schema()[name].values():
        if field.name:
            found[field.name] = field
        else:
            found |= _fields(field.kind)
    return found


def _struct(name: str, value: Any) -> Any:
    if type(value) is not dict:
        return _WRONG
    fields = _fields(name)
    return _each(value, lambda key, item: _field(fields[key], item) if key in fields else item)


def _field(field: Field, value: Any) -> Any:
    if value is None and (field.shape == "list" or (not field.shape and field.kind in _SCALARS)):
        return None  # as Go writes a list or a time that is not set
    if field.shape == "list":
        if type(value) is not list:
            return _WRONG
        kept = [found for item in value if (found := _one(field.kind, item)) is not _WRONG]
        is_same = len(kept) == len(value) and all(map(_is, kept, value))
        return value if is_same else kept
    if field.shape == "map":
        if type(value) is not dict:
            return _WRONG
        return _each(value, lambda _, item: _one(field.kind, item))
    return _one(field.kind, value)


def _one(kind: str, value: Any) -> Any:
    is_scalar = _SCALARS.get(kind)
    if is_scalar is None:
        return _struct(kind, value)
    return value if is_scalar(value) else _WRONG


def _each(value: dict[str, Any], keep: Callable[[str, Any], Any]) -> dict[str, Any]:
    """The members that are kept; the same object where all are."""
    changed: dict[str, Any] | None = None
    for key, item in value.items():
        kept = keep(key, item)
        if kept is item:
            continue
        changed = dict(value) if changed is None else changed
        if kept is _WRONG:
            del changed[key]
        else:
            changed[key] = kept
    return value if changed is None else changed


def _is(one: Any, other: Any) -> bool:
    return one is other
