"""What texts of objects have in common apart from their values: found once, by what is outside.

A text is cut at its quotes, which costs a tenth of looking for each scalar. Then strings stand at
odd places, and what is around them at even ones; how texts are to be read from there is the same
for all that differ in nothing but their strings.
"""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct

from tracekit.base.remembered import Remembered
from tracekit.trace.format.patches import MARK

#: Stands for a value in a key, and for a number or literal outside of strings.
KEY_MARK = "\x02"
#: Stands for an escaped quote in a text that is cut at its quotes.
QUOTE = "\x03"

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
#: A string up to its end, or to that of the text: none is looked for again from within.
_STRINGS = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)("|\\?\Z)', re.DOTALL)
_SCALAR = re.compile("-?[0-9][-+.0-9eE]*+|true|false|null")
#: Managed fields have the uid of the owner inside of a key.
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
UUID_IN_KEY = re.compile(f"{QUOTE}({UUID.pattern}){QUOTE}")
_STEP = re.compile(rf"({_STRING})\s*+:|([{{}}\[\],{MARK}])", re.DOTALL)
_HOLES = re.compile(f"[{MARK}{KEY_MARK}]")

#: Characters of texts of which frames and outlines are remembered; they take up to thirty times as
#: much. A row group has some hundreds, of a few kilobytes each.
_REMEMBERED = 8 * 1024 * 1024


class Frame(Struct, frozen=True):
    """What stands outside of the strings of a text."""

    #: Itself without the numbers and literals in it, which are `scalars`.
    name: str
    scalars: tuple[str, ...]
    #: The places of the keys of objects in the text cut at its quotes.
    keys: tuple[int, ...]


class Outline(Struct, frozen=True):
    """How texts with one frame and the same keys are to be read."""

    #: Between the holes.
    literals: list[str]
    #: What each hole is filled with, in the order of the text: its place among the paths.
    holes: list[int]
    #: Where each value stands, from the outside in; last those that stand in keys.
    paths: tuple[str, ...]
    #: Where the strings are in the text cut at its quotes.
    strings: list[int]
    #: The place of each value among the paths: strings, what is outside of them, what is in keys.
    places: list[int]


def cut_carefully(text: str) -> str | None:
    """A text that a cut at its quotes cuts right; None for one whose last string does not end."""
    pieces = _STRINGS.split(text)
    if pieces[2::3] != ['"'] * (len(pieces) // 3):
        return None
    outside, strings = pieces[::3], pieces[1::3]
    cut = [piece for pair in zip(outside, strings, strict=False) for piece in pair]
    return '"'.join(piece.replace('\\"', QUOTE) for piece in [*cut, outside[-1]])


def written(value: str) -> str:
    """A value as it stands in the text: `MARK` and itself, or a string as it was cut."""
    if value.startswith(MARK):
        return value[1:]
    return '"' + value.replace(QUOTE, '\\"') + '"'


def frame_of(outside: str) -> Frame:
    """The frame of a text, by what is outside of its strings, with `MARK` between."""
    return _FRAMES.of(outside)


def _frame(outside: str) -> Frame:
    name = _SCALAR.sub(KEY_MARK, outside)
    scalars = tuple(MARK + scalar for scalar in _SCALAR.findall(outside))
    return Frame(name, scalars, _keys(name))


def _keys(frame: str) -> tuple[int, ...]:
    """The places of the keys of objects: a colon comes after them."""
    after = frame.split(MARK)[1:]
    return tuple(2 * at + 1 for at, piece in enumerate(after) if piece.lstrip().startswith(":"))


def outline_of(frame: str, keys: str) -> Outline:
    """The outline of texts by the names of their frame and keys."""
    return _OUTLINES.of(frame + QUOTE + MARK + keys)


def _named(name: str) -> Outline:
    """The outline of what a frame and keys are named, with `QUOTE` and `MARK` between.

    Outside of strings no quote is escaped.
    """
    frame, _, keys = name.partition(QUOTE + MARK)
    places, names = {*_keys(frame)}, iter(keys.split(MARK))
    skeleton: list[str] = []
    strings: list[int] = []
    inside: list[int] = []
    outside: list[int] = []
    leaves = 0
    for number, piece in enumerate(frame.split(MARK)):
        at = 2 * number
        if number and at - 1 in places:
            key = next(names).replace(KEY_MARK, f"{QUOTE}{KEY_MARK}{QUOTE}")
            skeleton.append(f'"{key}"')
        elif number:
            skeleton.append(MARK)
            strings.append(at - 1)
            inside.append(leaves)
            leaves += 1
        found = piece.count(KEY_MARK)
        skeleton.append(piece.replace(KEY_MARK, MARK))
        outside += range(leaves, leaves + found)
        leaves += found
    whole = UUID.sub(KEY_MARK, "".join(skeleton).replace(QUOTE, '\\"'))
    return _outline(whole, strings, [*inside, *outside])


def _outline(skeleton: str, strings: list[int], leaves: list[int]) -> Outline:
    """The outline of a text with holes; `leaves`: which of its holes each value fills."""
    paths = _paths(skeleton)
    marks = _HOLES.findall(skeleton)
    seen = {MARK: 0, KEY_MARK: len(paths)}
    holes = []
    for mark in marks:
        holes.append(seen[mark])
        seen[mark] += 1
    in_keys = [f"{KEY_MARK}{number}" for number in range(marks.count(KEY_MARK))]
    places = [*leaves, *range(len(paths), len(paths) + len(in_keys))]
    return Outline(_HOLES.split(skeleton), holes, (*paths, *in_keys), strings, places)


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
        found.append(path if counts[path] == 1 else f"{path}{KEY_MARK}{counts[path]}")
    return tuple(found)


_FRAMES = Remembered(_frame, _REMEMBERED)
_OUTLINES = Remembered(_named, _REMEMBERED)
