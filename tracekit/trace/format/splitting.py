"""Taking the texts of a row group apart, all at once: what `patches.py` puts together again.

All texts are cut at their quotes and their pieces numbered by Arrow; from there on it is arrays of
numbers. Texts with one layout differ in nothing but their values, so these are a matrix, and a
value that its slot has already is one that is equal to the one before it in that slot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.trace.format.limits import NESTING_MAX, is_nested_deeper
from tracekit.trace.format.outlines import (
    KEY_MARK,
    QUOTE,
    UUID,
    UUID_IN_KEY,
    Frame,
    Outline,
    cut_carefully,
    frame_of,
    outline_of,
    written,
)
from tracekit.trace.format.patches import FROM_COLUMNS, MARK, Joiner
from tracekit.trace.format.seal import DamageError

_BACKSLASH = ord("\\")
#: Slots up to this number are sorted by counting.
_FEW_SLOTS = 1 << 16
#: How often texts that would not come back are left out: others build on what those change.
_TRIES = 3

Ints = NDArray[np.int32]
Rows = NDArray[np.intp]
Texts = Sequence[str | None]


class Patches(Struct, frozen=True):
    """The texts of a row group as what a reader needs; null where a text would not come back."""

    templates: pa.DictionaryArray
    #: For each row the slots whose values change with it, ascending.
    slots: pa.ListArray
    #: What they become: the k-th value of all belongs to the k-th change by slot and then by row.
    values: pa.ListArray


def split_texts(streams: Texts, raws: pa.StringArray, columns: Sequence[Texts]) -> Patches:
    """The patches of texts; `columns` are those of `FROM_COLUMNS`, in that order."""
    texts = raws.to_pylist()
    refused: set[int] = set()
    for _ in range(_TRIES):
        rows, pieces = _cut(raws, refused)
        if not rows:
            break
        splitter = _Splitter(pieces, [streams[row] for row in rows])
        changes = splitter.changes([[column[row] for row in rows] for column in columns])
        failed = changes.failed(rows, texts, columns)
        if not failed:
            return changes.patches(rows, len(raws))
        refused |= failed
    return _none(len(raws))


def _cut(raws: pa.StringArray, refused: Collection[int]) -> tuple[list[int], pa.ListArray]:
    """The rows whose texts can be cut at their quotes, and the pieces of each of these texts."""
    rows = [row for row in pc.indices_nonzero(_unmarked(raws)).to_pylist() if row not in refused]
    texts = raws if len(rows) == len(raws) else raws.take(pa.array(rows, pa.int64()))
    prepared = pc.replace_substring(texts, '\\"', QUOTE)
    pieces = pc.split_pattern(prepared, '"')
    unpaired = pc.equal(pc.bit_wise_and(pc.list_value_length(pieces), 1), 0)
    if _has(texts, lambda held: ((held[:-1] == _BACKSLASH) & (held[1:] == _BACKSLASH)).any()):
        unpaired = pc.or_(unpaired, pc.match_substring(texts, "\\\\"))
    careful = pc.indices_nonzero(unpaired).to_pylist()
    if not careful:
        return rows, pieces
    found = prepared.to_pylist()
    for at in careful:
        found[at] = cut_carefully(texts[at].as_py())
    rows = [row for row, text in zip(rows, found, strict=True) if text is not None]
    whole = pa.array([text for text in found if text is not None], pa.string())
    return rows, pc.split_pattern(whole, '"')


def _unmarked(raws: pa.StringArray) -> pa.BooleanArray:
    """Which rows have a text without a mark in it."""
    there = pc.is_valid(raws)
    marks = (MARK, KEY_MARK, QUOTE)
    if not _has(raws, lambda held: (held <= max(map(ord, marks))).any()):
        return there
    marked = reduce(pc.or_, (pc.match_substring(raws, mark) for mark in marks))
    return pc.and_(there, pc.fill_null(pc.invert(marked), fill_value=False))


def _has(texts: pa.StringArray, look: Callable[[NDArray[np.uint8]], np.bool_]) -> bool:
    """Whether there is something in the bytes of texts, for which Arrow would look slower."""
    data = texts.buffers()[2]
    return data is not None and bool(look(np.frombuffer(data, np.uint8)))


class _Outside(NamedTuple):
    """What stands outside of the strings of a text."""

    frame: Frame
    #: The codes of its numbers and literals.
    scalars: tuple[int, ...]


class _Keys(NamedTuple):
    """The keys of a text."""

    #: Themselves without the UUIDs that stand between quotes in them.
    name: str
    #: The codes of these UUIDs, and of the keys.
    quoted: tuple[int, ...]
    codes: list[int]


class _Layout(NamedTuple):
    """Texts that differ in nothing but their values, and where they are."""

    outline: Outline
    #: The slot of each path.
    slots: list[int]
    rows: list[int]


class _Part(NamedTuple):
    """The values of a layout's texts that columns do not tell."""

    rows: Rows
    #: The slot of each column of the matrix.
    slots: Ints
    #: Codes of values, a row each text; and which of them a reader needs.
    codes: Ints
    needed: NDArray[np.bool_]


class _Words:
    """The pieces of texts as numbers, and values that are no pieces as further ones."""

    def __init__(self, pieces: pa.ListArray) -> None:
        numbered = pieces.values.dictionary_encode()
        #: Where the pieces of each text begin, and at last where all end.
        self.starts = _ints(pieces.offsets)
        self.codes = _ints(numbered.indices)
        self.words: list[str] = numbered.dictionary.to_pylist()
        self._pieces = numbered.dictionary
        self._code_of: dict[str, int] = {}

    def code(self, value: str) -> int:
        """The code of a value that begins with `MARK`, which no piece does."""
        code = self._code_of.setdefault(value, len(self.words))
        if code == len(self.words):
            self.words.append(value)
        return code

    def known(self, texts: Texts) -> Ints:
        """The codes of texts as far as they are pieces, -1 for others."""
        found = pc.index_in(pa.array(texts, pa.string()), self._pieces, skip_nulls=True)
        return _ints(pc.fill_null(found, -1))

    def named(self) -> tuple[list[str], dict[int, tuple[int, ...]]]:
        """The pieces as keys are named: without the UUIDs that stand between quotes in them.

        Then the codes of these UUIDs, by that of the piece.
        """
        named = pc.replace_substring_regex(self._pieces, UUID_IN_KEY.pattern, KEY_MARK).to_pylist()
        pairs = zip(self.words, named, strict=False)
        differing = [code for code, (word, name) in enumerate(pairs) if word != name]
        return named, {
            code: tuple(self.code(MARK + uuid) for uuid in UUID_IN_KEY.findall(self.words[code]))
            for code in differing
        }


class _Splitter:
    """The texts of one row group."""

    def __init__(self, pieces: pa.ListArray, streams: Texts) -> None:
        self._words = _Words(pieces)
        self._streams = streams
        self._slots: dict[tuple[str | None, str], int] = {}
        self._outsides = self._all_outsides()
        self._keys = self._all_keys()
        #: The template of each text, None: it cannot be templated apart.
        self._templates: list[str | None] = [None] * len(pieces)

    def changes(self, columns: Sequence[Texts]) -> _Changes:
        """All that the texts change, `columns` being those of these texts."""
        known = [self._words.known(column) for column in columns]
        parts = [self._part(layout, known) for layout in self._layouts()]
        return _Changes(self._words.words, self._templates, parts)

    def _all_outsides(self) -> list[_Outside]:
        codes, words = self._words.codes, self._words.words
        known: dict[bytes, _Outside] = {}
        found = []
        for begin, end in pairwise(self._words.starts.tolist()):
            pieces = codes[begin:end:2]
            signature = pieces.tobytes()
            outside = known.get(signature)
            if outside is None:
                frame = frame_of(MARK.join([words[code] for code in pieces.tolist()]))
                scalars = tuple(map(self._words.code, frame.scalars))
                outside = known[signature] = _Outside(frame, scalars)
            found.append(outside)
        return found

    def _all_keys(self) -> list[_Keys]:
        rows_of: dict[str, list[int]] = {}
        for row, outside in enumerate(self._outsides):
            rows_of.setdefault(outside.frame.name, []).append(row)
        named, uuids = self._words.named()
        found: list[Any] = [None] * len(self._outsides)
        known: dict[bytes, _Keys] = {}
        for rows in rows_of.values():
            codes = self._picked(np.array(rows, np.intp), self._outsides[rows[0]].frame.keys)
            for row, pieces in zip(rows, codes, strict=True):
                signature = pieces.tobytes()
                keys = known.get(signature)
                if keys is None:
                    its_codes = pieces.tolist()
                    name = MARK.join([named[code] for code in its_codes])
                    quoted = [uuids[code] for code in its_codes if code in uuids]
                    keys = known[signature] = _Keys(name, (*chain(*quoted),), its_codes)
                found[row] = keys
        return found

    def _picked(self, rows: Rows, places: Sequence[int]) -> Ints:
        """The codes at some places of some texts."""
        starts = self._words.starts[rows]
        codes: Ints = self._words.codes[starts[:, None] + np.array(places, np.int32)[None, :]]
        return codes

    def _layouts(self) -> list[_Layout]:
        layouts: dict[tuple[str | None, str, str], _Layout] = {}
        rows = zip(self._streams, self._outsides, self._keys, strict=True)
        for row, (stream, outside, keys) in enumerate(rows):
            name = stream, outside.frame.name, keys.name
            layout = layouts.get(name)
            if layout is None:
                outline = outline_of(outside.frame.name, keys.name)
                slots = [
                    self._slots.setdefault((stream, path), len(self._slots))
                    for path in outline.paths
                ]
                layout = layouts[name] = _Layout(outline, slots, [])
            layout.rows.append(row)
        return list(layouts.values())

    def _part(self, layout: _Layout, columns: Sequence[Ints]) -> _Part:
        outline = layout.outline
        room = len(outline.places) - len(outline.strings)
        whole, others = [], []
        for row in layout.rows:
            scalars = self._outsides[row].scalars
            values = (*scalars, *self._in_keys(row, room - len(scalars)))
            if len(values) == room:
                whole.append(row)
                others.append(values)
        rows = np.array(whole, np.intp)
        strings = self._picked(rows, outline.strings)
        sources = np.zeros(strings.shape, np.int8)
        for number, column in enumerate(columns, 1):
            sources[strings == column[rows][:, None]] = number
        self._name_templates(layout, rows, sources)
        codes = np.hstack([strings, np.array(others, np.int32).reshape(len(rows), room)])
        needed = np.ones(codes.shape, np.bool_)
        needed[:, : strings.shape[1]] = sources == 0
        slots = np.array([layout.slots[place] for place in outline.places], np.int32)
        return _Part(rows, slots, codes, needed)

    def _in_keys(self, row: int, room: int) -> tuple[int, ...]:
        """The codes of the UUIDs in the keys of a text: those between quotes, or all."""
        keys = self._keys[row]
        if len(keys.quoted) == room:
            return keys.quoted
        uuids = UUID.findall(MARK.join([self._words.words[code] for code in keys.codes]))
        return tuple(self._words.code(MARK + uuid) for uuid in uuids)

    def _name_templates(self, layout: _Layout, rows: Rows, sources: NDArray[np.int8]) -> None:
        """Tell the template of each text, by which of its strings come from which column."""
        known: dict[bytes, str | None] = {}
        for row, line in zip(rows.tolist(), sources, strict=True):
            signature = bytes(line)
            if signature not in known:
                known[signature] = _template(layout, line.tolist())
            self._templates[row] = known[signature]


def _template(layout: _Layout, sources: Sequence[int]) -> str | None:
    """How texts of a layout are written; None if no reader takes it."""
    outline = layout.outline
    columns = {
        place: FROM_COLUMNS[source - 1]
        for place, source in zip(outline.places, sources, strict=False)
        if source
    }
    parts = [outline.literals[0]]
    for hole, literal in zip(outline.holes, outline.literals[1:], strict=True):
        column = columns.get(hole)
        if column is None:
            parts.append(f"{MARK}{layout.slots[hole]}{MARK}{literal}")
        else:
            parts.append(f'"{MARK}{column}{MARK}"{literal}')
    text = "".join(parts)
    return None if is_nested_deeper(text, NESTING_MAX) else text


class _Changes:
    """The values that texts change, by slot and then by text."""

    def __init__(
        self, words: Sequence[str], templates: Sequence[str | None], parts: Sequence[_Part]
    ) -> None:
        self._templates = templates
        templated = np.array([template is not None for template in templates])
        rows, slots, codes = _by_slot(parts, templated)
        changed = np.ones(len(slots), np.bool_)
        changed[1:] = (slots[1:] != slots[:-1]) | (codes[1:] != codes[:-1])
        self._rows, self._slots = rows[changed], slots[changed]
        used, places = np.unique(codes[changed], return_inverse=True)
        #: What stands in a text for each value, and which one each change gives.
        self._written = [written(words[code]) for code in used.tolist()]
        self._values = places
        self._by_row = np.argsort(self._rows, kind="stable")
        counts = np.bincount(self._rows, minlength=len(templates))
        self._ends = np.cumsum(counts)

    def failed(self, rows: Sequence[int], texts: Texts, columns: Sequence[Texts]) -> set[int]:
        """The rows of those texts that a reader would not get."""
        names = list(dict.fromkeys(self._templates))
        number_of = {name: number for number, name in enumerate(names)}
        joiner = Joiner(names)
        slots = self._slots[self._by_row].tolist()
        values = [self._written[place] for place in self._values[self._by_row].tolist()]
        failed = set()
        begin = 0
        for row, template, end in zip(rows, self._templates, self._ends.tolist(), strict=True):
            joiner.change(slots[begin:end], values[begin:end])
            begin = end
            try:
                found = joiner.fill(number_of[template], [column[row] for column in columns])
            except DamageError:
                found = None
            if found != texts[row]:
                failed.add(row)
        return failed

    def patches(self, rows: Sequence[int], whole: int) -> Patches:
        """The patches of so many rows, of which these have texts that were taken apart."""
        lengths = np.zeros(whole, np.int64)
        lengths[rows] = np.diff(self._ends, prepend=0)
        there = np.zeros(whole, np.bool_)
        there[rows] = True
        templates: list[str | None] = [None] * whole
        for row, template in zip(rows, self._templates, strict=True):
            templates[row] = template
        slots = _array(pa.int32(), self._slots[self._by_row].astype(np.int32))
        values = pa.array(self._written, pa.string()).take(_array(pa.int64(), self._values))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Patches(
            _numbered(templates), _lists(slots, offsets, there), _lists(values, offsets, there)
        )


def _by_slot(parts: Iterable[_Part], templated: NDArray[np.bool_]) -> tuple[Rows, Ints, Ints]:
    """The row, slot and code of each value that a reader needs, by slot and then by row."""
    parts = [part._replace(needed=part.needed & templated[part.rows][:, None]) for part in parts]
    counts = np.zeros(len(templated), np.int64)
    for part in parts:
        counts[part.rows] = part.needed.sum(1)
    starts = np.cumsum(counts) - counts
    slots, codes = np.empty(counts.sum(), np.int32), np.empty(counts.sum(), np.int32)
    for part in parts:
        at = (starts[part.rows][:, None] + part.needed.cumsum(1) - 1)[part.needed]
        slots[at] = np.broadcast_to(part.slots, part.codes.shape)[part.needed]
        codes[at] = part.codes[part.needed]
    few = not len(slots) or slots.max() < _FEW_SLOTS
    order = np.argsort(slots.astype(np.uint16) if few else slots, kind="stable")
    return np.repeat(np.arange(len(templated)), counts)[order], slots[order], codes[order]


#### Arrow without numpy in it: pyarrow is imported before numpy may be ####


def _ints(array: pa.Array) -> Ints:
    """An array of 32-bit numbers without nulls."""
    found = np.frombuffer(array.buffers()[1], np.int32)
    return found[array.offset : array.offset + len(array)]


def _array(kind: pa.DataType, values: NDArray[Any]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _lists(values: pa.Array, offsets: NDArray[Any], there: NDArray[np.bool_]) -> pa.ListArray:
    buffers = [
        pa.py_buffer(np.packbits(there, bitorder="little")),
        pa.py_buffer(offsets.astype(np.int32)),
    ]
    kind = pa.list_(pa.field("element", values.type))
    return pa.Array.from_buffers(kind, len(there), buffers, children=[values])


def _numbered(texts: Texts) -> pa.DictionaryArray:
    codes: dict[str, int] = {}
    numbers = [None if text is None else codes.setdefault(text, len(codes)) for text in texts]
    return pa.DictionaryArray.from_arrays(
        pa.array(numbers, pa.int32()), pa.array(list(codes), pa.string())
    )


def _none(rows: int) -> Patches:
    nothing = pa.nulls(rows, pa.list_(pa.field("element", pa.int32())))
    values = pa.nulls(rows, pa.list_(pa.field("element", pa.string())))
    return Patches(_numbered([None] * rows), nothing, values)
