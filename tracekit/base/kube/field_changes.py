"""What differs between two revisions of an object, field by field, and who owns a field. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

#: What the server writes at every change, and what is told by the change itself.
_SERVERS_OWN: Final = frozenset(
    {"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "selfLink"}
)
#: What names an item of a list, as the API's schemas have it, the first that all items have.
_KEYS: Final = ("name", "type", "uid", "containerPort", "mountPath", "key", "devicePath")
#: Deeper than any object of the API.
_DEEPEST: Final = 64


class FieldChange(Struct, frozen=True):
    """One field that differs: its path as kubectl explain has it, and its values.

    A side that is missing is None, as null is: the API means the same by both.
    """

    path: str
    old: Any
    new: Any


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """The fields that differ, in order of their paths; those that the server keeps are left out.

    Raises:
        RecursionError: An object is nested deeper than any of the API.
    """
    return sorted(_differing("", _cleaned(before), _cleaned(after), 0), key=lambda c: c.path)


def _cleaned(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        return dict(document)
    kept = {name: value for name, value in metadata.items() if name not in _SERVERS_OWN}
    return {**document, "metadata": kept}


def _differing(path: str, old: Any, new: Any, depth: int) -> Iterator[FieldChange]:
    if depth > _DEEPEST:
        raise RecursionError
    if old == new:
        return
    sides = [side for side in (old, new) if side is not None]
    if any(sides) and all(isinstance(side, Mapping) for side in sides):
        yield from _of_maps(path, old or {}, new or {}, depth)
        return
    key = _key_of(old, new)
    if key is not None:
        before, after = ({str(item[key]): item for item in side or ()} for side in (old, new))
        for name in dict.fromkeys((*before, *after)):
            inner = f"{path}[{key}={name}]"
            if name in before and name in after:
                yield from _differing(inner, before[name], after[name], depth + 1)
            else:
                yield FieldChange(inner, before.get(name), after.get(name))
        return
    yield FieldChange(path, old, new)


def _of_maps(
    path: str, old: Mapping[str, Any], new: Mapping[str, Any], depth: int
) -> Iterator[FieldChange]:
    for name in dict.fromkeys((*old, *new)):
        step = f".{name}" if name.replace("_", "").replace("-", "").isalnum() else f"[{name!r}]"
        yield from _differing(f"{path}{step}", old.get(name), new.get(name), depth + 1)


def _key_of(old: Any, new: Any) -> str | None:
    """By what the items of two lists are told apart; None where nothing tells them apart."""
    lists = [side for side in (old, new) if side]
    if not lists or not all(isinstance(side, list) for side in lists):
        return None
    items = [item for side in lists for item in side]
    if not all(isinstance(item, Mapping) for item in items):
        return None
    for key in _KEYS:
        if all(isinstance(item.get(key), str | int) for item in items) and all(
            len({str(item[key]) for item in side}) == len(side) for side in lists
        ):
            return key
    return None


def shown(value: Any, most: int) -> str:
    """A value in one line, of at most so many characters; `-` for one that is not there."""
    if value is None:
        return "-"
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return text if len(text) <= most else f"{text[: most - 1]}…"


#### managedFields ####


class Manager(Struct, frozen=True):
    """One entry of managedFields: who, when (RFC 3339, whole seconds), which fields."""

    name: str
    operation: str
    time: str
    subresource: str
    fields: Mapping[str, Any]

    @property
    def identity(self) -> tuple[str, str, str]:
        """What the server keeps one entry for."""
        return (self.name, self.operation, self.subresource)


def managers(document: Mapping[str, Any]) -> list[Manager]:
    """The entries of an object; what is no entry of the API is left out."""
    metadata = document.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    return [
        Manager(
            str(entry.get("manager") or ""),
            str(entry.get("operation") or ""),
            str(entry.get("time") or ""),
            str(entry.get("subresource") or ""),
            entry["fieldsV1"] if isinstance(entry.get("fieldsV1"), Mapping) else {},
        )
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping)
    ]


def writers(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Manager]:
    """The entries that are new in `after`, or newer, or own other fields, than in `before`.

    Times have whole seconds: a second write by one manager within a second that sets no other field
    changes no entry, and then nobody is named.
    """
    known = {entry.identity: entry for entry in managers(before)}
    found = []
    for entry in managers(after):
        old = known.get(entry.identity)
        # What another takes over leaves an entry with fewer fields and its old time.
        if old is None or entry.time != old.time or _has_more(entry.fields, old.fields):
            found.append(entry)
    return found


def _has_more(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    return not set(_leaves(new, 0)) <= set(_leaves(old, 0))


def owners(fields: Sequence[FieldChange], after: Mapping[str, Any]) -> list[Manager]:
    """The one entry that owns every changed field which still has a value; else none.

    Who changes a value by an update takes it from all others, so that one owner alone wrote it.
    """
    if not any(field.new is not None for field in fields):
        return []
    found = None
    owned = {m.identity: [c.path for c in set_fields(m, after)] for m in managers(after)}
    for field in fields:
        if field.new is None:
            continue
        own = [who for who, paths in owned.items() if any(_within(field.path, p) for p in paths)]
        if len(own) != 1 or found not in (None, own[0]):
            return []
        found = own[0]
    return [entry for entry in managers(after) if entry.identity == found]


def _within(path: str, whole: str) -> bool:
    return path == whole or path.startswith((f"{whole}.", f"{whole}["))


def set_fields(entry: Manager, document: Mapping[str, Any]) -> list[FieldChange]:
    """The fields that an entry owns, with their values now; what they were before is not known."""
    found = []
    for steps in _leaves(entry.fields, 0):
        path, value = _value(steps, document)
        found.append(FieldChange(path, None, value))
    return sorted(found, key=lambda change: change.path)


def _leaves(fields: Mapping[str, Any], depth: int) -> Iterator[tuple[str, ...]]:
    if depth > _DEEPEST:
        raise RecursionError
    for step, inner in fields.items():
        deeper = inner if isinstance(inner, Mapping) else {}
        below = {name: more for name, more in deeper.items() if name != "."}
        if step == ".":
            continue
        if not below:
            yield (step,)
        for rest in _leaves(below, depth + 1):
            yield (step, *rest)


def _value(steps: Sequence[str], document: Any) -> tuple[str, Any]:
    """The path that steps of fieldsV1 name, and the value that is there."""
    path, value = "", document
    for step in steps:
        kind, _, name = step.partition(":")
        if kind == "f":
            path += f".{name}"
            value = value.get(name) if isinstance(value, Mapping) else None
            continue
        keys = _parsed(name)
        if kind == "k" and isinstance(keys, Mapping):
            path += "[" + ",".join(f"{key}={text}" for key, text in keys.items()) + "]"
            items = value if isinstance(value, list) else []
            value = next(
                (i for i in items if isinstance(i, Mapping) and keys.items() <= i.items()), None
            )
        else:  # an item of a set, which is its own value
            path += f"[{name}]"
            value = keys
    return path, value


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
