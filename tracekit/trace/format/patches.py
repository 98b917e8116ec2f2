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
from functools import lru_cache
from itertools import compress, count
from operator import itemgetter, ne
from typing import Any

from msgspec import Struct

from tracekit.base.numbers import whole_number
from tracekit.trace.format.seal import DamageError

#: Stands around the name of each hole. No JSON text has it: control characters are escaped there.
MARK = "\x01"
#: Columns of a row that its text repeats, by the names that their holes have.
FROM_COLUMNS = ("job", "namespace", "name", "uid", "rv")

_KEY_MARK = "\x02"
#: Stands for an escaped quote in a text that is cut at its quotes.
_QUOTE = "\x03"
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRINGS = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_SCALAR = re.compile("-?[0-9][-+.0-9eE]*+|true|false|null")
#: Managed fields have the uid of the owner inside of a key.
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_IN_KEY = re.compile(rf"{_QUOTE}({_UUID.pattern}){_QUOTE}")
_STEP = re.compile(rf"({_STRING})\s*+:|([{{}}\[\],{MARK}])", re.DOTALL)
_HOLES = re.compile(f"[{MARK}{_KEY_MARK}]")

#: Outlines of texts that are remembered: there are few hundred in a row group.
_REMEMBERED = 2048

Columns = Mapping[str, str | None]
#: A template's parts, with its holes at odd places, and what takes the values of these.
Parts = tuple[list[str], "Getter"]
#: Takes some items of a sequence or mapping.
Getter = Callable[[Any], tuple[Any, ...]]


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


@dataclass(slots=True)
class _Template:
    """How texts of one layout are written, by which of their values come from which column."""

    text: str
    #: What a reader fills it by.
    parts: Parts
    #: Places among the layout's values that columns fill.
    from_columns: frozenset[int]


class _Frame(Struct, frozen=True):
    """What stands outside of the strings of a text."""

    #: Itself without the numbers and literals in it, which are `scalars` as layouts have values.
    name: str
    scalars: tuple[str, ...]
    #: Takes the keys out of a text that is cut at its quotes.
    keys_of: Getter


class _Outline(Struct, frozen=True):
    """What a layout is apart from the slots of its values: the same in all row groups."""

    skeleton: str
    #: Takes the strings out of a text that is cut at its quotes.
    strings_of: Getter
    #: The places of strings, then of what stands outside of them, in the order of the text.
    placed: list[int]


@dataclass(slots=True)
class _Layout:
    """Texts that differ in nothing but their values.

    A value is a string as it stands between its quotes, or `MARK` and anything else. First come the
    strings, then what stands outside of them, then what stands in keys.
    """

    shape: _Shape
    #: Takes the strings out of a text that is cut at its quotes.
    strings_of: Getter
    #: The place of each value among those of the shape.
    places: list[int]
    #: The slot of each value, and what takes their state.
    slots: list[int]
    state_of: Getter
    templates: dict[tuple[str | None, ...], _Template]


class Splitter:
    """Takes texts apart, one after the other; `Joiner` must get the patches in the same order.

    A text is cut at its quotes, which costs a tenth of looking for each scalar. How it is to be
    read from there is found once for all texts that differ in nothing but their strings.
    """

    def __init__(self) -> None:
        self._layouts: dict[tuple[str, str, str], _Layout] = {}
        self._shapes: dict[tuple[str, str], _Shape] = {}
        self._slots: dict[tuple[str, str], int] = {}
        #: The value of each slot, as layouts have it.
        self._state: list[str | None] = []
        #: What a reader knows.
        self._known: dict[Any, str | None] = {}

    def split(self, stream: str, text: str, columns: Columns) -> Patch | None:
        """The patch of the text; None for one that would not come back as it is."""
        if MARK in text or _KEY_MARK in text or _QUOTE in text:
            return None
        cut = _cut(text)
        frame = _frame(MARK.join(cut[::2]))
        all_keys = MARK.join(frame.keys_of(cut))
        keys, *in_keys = _UUID_IN_KEY.split(all_keys)
        if in_keys:
            keys = _KEY_MARK.join([keys, *in_keys[1::2]])
            in_keys = [MARK + uuid for uuid in in_keys[::2]]
        layout = self._layouts.get((stream, frame.name, keys))
        if layout is None:
            layout = self._layout(stream, frame.name, keys)
            self._layouts[stream, frame.name, keys] = layout
        strings = layout.strings_of(cut)
        values = (*strings, *frame.scalars, *in_keys)
        if len(values) != len(layout.slots):  # not all that are in keys stand between quotes there
            values = (*strings, *frame.scalars, *(MARK + uuid for uuid in _UUID.findall(all_keys)))
            if len(values) != len(layout.slots):
                return None
        by_value = {value: name for name, value in columns.items() if value is not None}
        sources = tuple(map(by_value.get, strings))
        template = layout.templates.get(sources)
        if template is None:
            template = layout.templates[sources] = _template(layout, sources)
        changed = compress(count(), map(ne, values, layout.state_of(self._state)))
        slots = layout.slots
        changes = [(slots[at], values[at]) for at in changed if at not in template.from_columns]
        return self._patch(template, changes, text, columns)

    def _patch(
        self,
        template: _Template,
        changes: list[tuple[int, str]],
        text: str,
        columns: Columns,
    ) -> Patch | None:
        """The patch, if a reader gets the text by it; it has then become part of what is known."""
        changes.sort()
        slots = [slot for slot, _ in changes]
        values = [_written(value) for _, value in changes]
        known = self._known
        before = [known.get(slot) for slot in slots]
        known.update(columns)
        known.update(zip(slots, values, strict=True))
        if _filled(template.parts, known) != text:
            known.update(zip(slots, before, strict=True))
            return None
        for slot, value in changes:
            self._state[slot] = value
        return Patch(template.text, slots, values)

    def _layout(self, stream: str, frame: str, keys: str) -> _Layout:
        """How texts with this frame and these keys are to be read."""
        outline = _outline(frame, keys)
        shape = self._shape(stream, outline.skeleton)
        places = [*outline.placed, *range(len(outline.placed), len(shape.slots))]
        slots = [shape.slots[place] for place in places]
        self._state += [None] * (len(self._slots) - len(self._state))
        return _Layout(shape, outline.strings_of, places, slots, _getter(slots), {})

    def _shape(self, stream: str, skeleton: str) -> _Shape:
        known = self._shapes.get((stream, skeleton))
        if known is not None:
            return known
        paths = _paths(skeleton)
        leaves = len(paths)
        literals, marks = _holes(skeleton)
        in_keys = (f"{_KEY_MARK}{number}" for number in range(marks.count(_KEY_MARK)))
        seen = {MARK: 0, _KEY_MARK: leaves}
        places = []
        for mark in marks:
            places.append(seen[mark])
            seen[mark] += 1
        slots = [
            self._slots.setdefault((stream, path), len(self._slots)) for path in (*paths, *in_keys)
        ]
        shape = _Shape(literals, places, slots)
        self._shapes[stream, skeleton] = shape
        return shape


def _cut(text: str) -> list[str]:
    """A text cut at the quotes of its strings: what stands outside of them at even places."""
    if "\\\\" not in text:
        cut = text.replace('\\"', _QUOTE).split('"')
        if len(cut) % 2:
            return cut
    return _STRINGS.split(text)


@lru_cache(_REMEMBERED)
def _frame(outside: str) -> _Frame:
    name = _SCALAR.sub(_KEY_MARK, outside)
    scalars = tuple(MARK + scalar for scalar in _SCALAR.findall(outside))
    return _Frame(name, scalars, _keys_of(name))


@lru_cache(_REMEMBERED)
def _outline(frame: str, keys: str) -> _Outline:
    """The outline of texts with this frame and these keys."""
    places, written = {*_keys(frame)}, iter(keys.split(MARK))
    skeleton: list[str] = []
    strings: list[int] = []
    inside: list[int] = []
    outside: list[int] = []
    leaves = 0
    for number, piece in enumerate(frame.split(MARK)):
        at = 2 * number
        if number and at - 1 in places:
            key = next(written).replace(_KEY_MARK, f"{_QUOTE}{_KEY_MARK}{_QUOTE}")
            skeleton.append(f'"{key}"')
        elif number:
            skeleton.append(MARK)
            strings.append(at - 1)
            inside.append(leaves)
            leaves += 1
        found = piece.count(_KEY_MARK)
        skeleton.append(piece.replace(_KEY_MARK, MARK))
        outside += range(leaves, leaves + found)
        leaves += found
    whole = _UUID.sub(_KEY_MARK, "".join(skeleton).replace(_QUOTE, '\\"'))
    return _Outline(whole, _getter(strings), [*inside, *outside])


@lru_cache(_REMEMBERED)
def _holes(skeleton: str) -> tuple[list[str], list[str]]:
    """What stands between the holes of a skeleton, and the mark of each."""
    return _HOLES.split(skeleton), _HOLES.findall(skeleton)


@lru_cache(_REMEMBERED)
def _keys_of(name: str) -> Getter:
    return _getter(_keys(name))


def _keys(name: str) -> list[int]:
    """The places of the keys of objects: a colon comes after them."""
    after = name.split(MARK)[1:]
    return [2 * at + 1 for at, piece in enumerate(after) if piece.lstrip().startswith(":")]


def _written(value: str) -> str:
    """A value of a layout as it stands in the text."""
    if value.startswith(MARK):
        return value[1:]
    return '"' + value.replace(_QUOTE, '\\"') + '"'


def _getter(places: Sequence[Any]) -> Getter:
    """What takes these items of a sequence or mapping, always as a tuple."""
    if not places:
        return _nothing
    if len(places) == 1:
        only = places[0]
        return lambda items: (items[only],)
    return itemgetter(*places)


@lru_cache(_REMEMBERED)
def _paths(skeleton: str) -> tuple[str, ...]:
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


def _apart(paths: list[str]) -> tuple[str, ...]:
    """The paths, with a number where one is there already: a key may stand twice."""
    counts: Counter[str] = Counter()
    found = []
    for path in paths:
        counts[path] += 1
        found.append(path if counts[path] == 1 else f"{path}{_KEY_MARK}{counts[path]}")
    return tuple(found)


def _template(layout: _Layout, sources: tuple[str | None, ...]) -> _Template:
    shape = layout.shape
    by_place = dict(zip(layout.places, sources, strict=False))
    parts = [shape.literals[0]]
    for place, literal in zip(shape.places, shape.literals[1:], strict=True):
        source = by_place.get(place)
        if source is None:
            parts.append(f"{MARK}{shape.slots[place]}{MARK}{literal}")
        else:
            parts.append(f'"{MARK}{source}{MARK}"{literal}')
    text = "".join(parts)
    filled = frozenset(at for at, source in enumerate(sources) if source is not None)
    return _Template(text, split_text(text), filled)


def split_text(template: str) -> Parts:
    """A template ready to be filled; `DamageError` if it is none."""
    parts = template.split(MARK)
    if len(parts) % 2 == 0:
        raise DamageError("it has a template that is no template")
    names = [name if name in FROM_COLUMNS else _slot(name) for name in parts[1::2]]
    return parts, _getter(names)


def _filled(known: Parts, state: Mapping[Any, str | None]) -> str:
    literals, values_of = known
    parts = literals.copy()
    parts[1::2] = values_of(state)
    return "".join(parts)


def _nothing(_: Any) -> tuple[()]:
    return ()


def _slot(name: str) -> int:
    number = whole_number(name)
    if number is None:
        raise DamageError("it has a template with a hole that nothing fills")
    return number


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
            known = self._known[template] = split_text(text)
        state = self._state
        state["job"], state["namespace"], state["name"], state["uid"], state["rv"] = columns
        try:
            return _filled(known, state)
        except (KeyError, TypeError) as error:
            raise DamageError(
                "one of its rows builds on a value that no row before it gives"
            ) from error
