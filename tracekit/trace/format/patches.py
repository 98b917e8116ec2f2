"""Texts of objects as templates and the values that changed: what narrow segments keep of `raw`.

A text is split at its scalars: what stands between them is its template, and there are few of
those (a few hundred for a hundred thousand rows), because objects of one kind in one state differ
in values alone. Each hole of a template has a slot, one for each path in the objects of a stream,
and a row gives only those values that its slots did not have yet: most of an object is as it was in
the row before it. Some holes are filled from columns that the row has anyway.

Nothing is parsed into anything that could be written differently: a text is taken apart and put
together again, so it comes back byte for byte, whatever its spaces, order and escapes are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from msgspec import Struct

from tracekit.trace.format.seal import DamageError

#: Stands around the name of each hole. No JSON text has it: control characters are escaped there.
MARK = "\x01"
#: Columns of a row that its text repeats, by the names that their holes have.
FROM_COLUMNS = ("job", "namespace", "name", "uid", "rv")

_KEY_MARK = "\x02"
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_KEY_OR_VALUE = re.compile(
    rf"{_STRING}\s*+:|({_STRING}|-?[0-9][-+.0-9eE]*+|true|false|null)", re.DOTALL
)
#: Managed fields have the uid of the owner inside of a key.
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STEP = re.compile(rf"({_STRING})\s*+:|([{{}}\[\],{MARK}])", re.DOTALL)
_HOLES = re.compile(f"[{MARK}{_KEY_MARK}]")

Columns = Mapping[str, str | None]
#: A template's parts, with its holes at odd places, and what takes the values of these.
Parts = tuple[list[str], Callable[[Any], Any]]


class Patch(Struct, frozen=True):
    """One text as what a reader needs beside the rows before it."""

    template: str
    #: Slots whose values change with this row, ascending, and what they become.
    slots: list[int]
    values: list[str]


@dataclass(slots=True)
class _Shape:
    """What texts with one skeleton have in common."""

    #: Between the holes.
    literals: list[str]
    #: For each hole in the order of the text: its place among the values, then those in keys.
    places: list[int]
    #: The slot of each value, in the order of the values.
    slots: list[int]
    #: The template by which of the values come from which column.
    templates: dict[tuple[str | None, ...], str]


class Splitter:
    """Takes texts apart, one after the other; `Joiner` must get the patches in the same order."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, str], _Shape] = {}
        self._slots: dict[tuple[str, str], int] = {}
        self._state: dict[Any, str | None] = {}
        self._taken_apart: dict[str, Parts] = {}

    def split(self, stream: str, text: str, columns: Columns) -> Patch | None:
        """The patch of the text; None for one that would not come back as it is."""
        if MARK in text or _KEY_MARK in text:
            return None
        values: list[str] = []

        def hole(match: re.Match[str]) -> str:
            value: str | None = match[1]
            if value is None:
                return match[0]
            values.append(value)
            return MARK

        skeleton = _KEY_OR_VALUE.sub(hole, text)
        in_keys = _UUID.findall(skeleton)
        if in_keys:
            skeleton = _UUID.sub(_KEY_MARK, skeleton)
            values += in_keys
        shape = self._shapes.get((stream, skeleton)) or self._shape(stream, skeleton)
        if len(shape.slots) != len(values):
            return None
        known = {f'"{columns[name]}"': name for name in FROM_COLUMNS if columns[name] is not None}
        sources = tuple(map(known.get, values))
        template = shape.templates.get(sources) or _template(shape, sources)
        patch = self._patch(template, shape, values, sources)
        return patch if self._comes_back(patch, text, columns) else None

    def _patch(
        self, template: str, shape: _Shape, values: list[str], sources: tuple[str | None, ...]
    ) -> Patch:
        state = self._state
        changed = [
            (slot, value)
            for slot, value, source in zip(shape.slots, values, sources, strict=True)
            if source is None and state.get(slot) != value
        ]
        changed.sort()
        return Patch(template, [slot for slot, _ in changed], [value for _, value in changed])

    def _comes_back(self, patch: Patch, text: str, columns: Columns) -> bool:
        """Whether a reader gets the text; the patch has then become part of what it knows."""
        state = self._state
        before = {slot: state.get(slot) for slot in patch.slots}
        state.update(columns)
        state.update(zip(patch.slots, patch.values, strict=True))
        known = self._taken_apart.get(patch.template)
        if known is None:
            known = self._taken_apart[patch.template] = taken_apart(patch.template)
        if _filled(known, state) == text:
            return True
        state.update(before)
        return False

    def _shape(self, stream: str, skeleton: str) -> _Shape:
        paths = _paths(skeleton)
        leaves = len(paths)
        marks = _HOLES.findall(skeleton)
        paths += [f"{_KEY_MARK}{number}" for number in range(marks.count(_KEY_MARK))]
        seen = {MARK: 0, _KEY_MARK: leaves}
        places = []
        for mark in marks:
            places.append(seen[mark])
            seen[mark] += 1
        slots = [self._slots.setdefault((stream, path), len(self._slots)) for path in paths]
        shape = _Shape(_HOLES.split(skeleton), places, slots, {})
        self._shapes[stream, skeleton] = shape
        return shape


def _paths(skeleton: str) -> list[str]:
    """Where each value stands: keys and list positions from the outside in."""
    stack: list[str | int] = []
    found = []
    for key, mark in _STEP.findall(skeleton):
        if key:
            if stack:
                stack[-1] = key
        elif mark == MARK:
            found.append("/".join(map(str, stack)))
        elif mark in "{[":
            stack.append("" if mark == "{" else 0)
        elif mark == ",":
            last = stack[-1] if stack else None
            if type(last) is int:
                stack[-1] = last + 1
        elif stack:
            stack.pop()
    return _apart(found)


def _apart(paths: list[str]) -> list[str]:
    """The paths, with a number where one is there already: a key may stand twice."""
    counts: Counter[str] = Counter()
    found = []
    for path in paths:
        counts[path] += 1
        found.append(path if counts[path] == 1 else f"{path}{_KEY_MARK}{counts[path]}")
    return found


def _template(shape: _Shape, sources: tuple[str | None, ...]) -> str:
    parts = [shape.literals[0]]
    for place, literal in zip(shape.places, shape.literals[1:], strict=True):
        source = sources[place]
        if source is None:
            parts.append(f"{MARK}{shape.slots[place]}{MARK}{literal}")
        else:
            parts.append(f'"{MARK}{source}{MARK}"{literal}')
    template = "".join(parts)
    shape.templates[sources] = template
    return template


def taken_apart(template: str) -> Parts:
    """A template ready to be filled; `DamageError` if it is none."""
    parts = template.split(MARK)
    if len(parts) % 2 == 0:
        raise DamageError("it has a template that is no template")
    names = [name if name in FROM_COLUMNS else _slot(name) for name in parts[1::2]]
    if not names:
        return parts, _nothing
    if len(names) == 1:
        only = names[0]
        return parts, lambda state: (state[only],)
    return parts, itemgetter(*names)


def _filled(known: Parts, state: Mapping[Any, str | None]) -> str:
    literals, values_of = known
    parts = literals.copy()
    parts[1::2] = values_of(state)
    return "".join(parts)


def _nothing(_: Any) -> tuple[()]:
    return ()


def _slot(name: str) -> int:
    if not (name.isascii() and name.isdigit()):
        raise DamageError("it has a template with a hole that nothing fills")
    return int(name)


class Joiner:
    """Puts texts together again, one after the other, in the order in which they were split."""

    def __init__(self, templates: Sequence[str | None]) -> None:
        self._templates = templates
        self._known: list[Parts | None] = [None] * len(templates)
        self._state: dict[Any, str | None] = {}

    def change(self, slots: Sequence[int], values: Sequence[str]) -> None:
        """Take over what a row changes."""
        self._state.update(zip(slots, values, strict=True))

    def fill(self, template: int, columns: Sequence[str | None]) -> str:
        """The text of the row that was taken over last; `columns` as `FROM_COLUMNS` has them."""
        known = self._known[template]
        if known is None:
            text = self._templates[template]
            if text is None:
                raise DamageError("it has a row without a template")
            known = self._known[template] = taken_apart(text)
        state = self._state
        state["job"], state["namespace"], state["name"], state["uid"], state["rv"] = columns
        try:
            return _filled(known, state)
        except (KeyError, TypeError) as error:
            raise DamageError(
                "one of its rows builds on a value that no row before it gives"
            ) from error
