"""Narrow segments: what is kept of a row when everything that follows from the rest is left out.

A narrow segment has the columns by which rows are found, those that no object tells, and the texts
as patches (`patches.py`); the typed columns follow from the texts (`derived.py`). Whoever writes
one compares all of it with the rows it was made of: a text that would not come back byte for byte
is kept as it came (`raw`), and columns that do not follow are kept too (`columns`).

What compresses better in another order than that of the rows stands in that order. Receive times
and revisions rise with arrival (`arrival_recv_ns`, `arrival_rv`): the k-th one is that of the row
with the k-th lowest `seq` of the row group. The values of all patches of a row group are stored
slot by slot: the k-th one belongs to the k-th change, counted by slot and then by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.trace.format.derived import DERIVATION, derived_columns, follow
from tracekit.trace.format.limits import (
    GROUP_BYTES_MAX,
    TooMuchError,
    are_lifted,
    check_nesting,
)
from tracekit.trace.format.patches import Joiner
from tracekit.trace.format.rows import MEMORY_SCHEMA
from tracekit.trace.format.schema import INT, NAMES, SCHEMA, STRING
from tracekit.trace.format.seal import DamageError

#: Columns that every narrow segment has under their own names.
FOUND_BY = ("seq", "stream", "type", "synthesized", "namespace", "job", "name", "uid")
#: Columns that are stored in order of arrival, under `ARRIVAL` and their names.
BY_ARRIVAL = ("recv_ns", "rv")
ARRIVAL = "arrival_"
#: Columns that no object tells; a segment has those that some row of it fills.
NOT_IN_OBJECTS = (
    *("derived_from", "rv_after", "rv_before", "not_before_ns", "actor", "actor_agent", "verb"),
    *("code", "raw_bytes"),
    *("gap_last_rv", "gap_next_rv", "gap_from_ns", "gap_until_ns", "gap_reason"),
)
#: Columns that follow from the rest, and are stored all the same: they are next to nothing, and
#: some readers take all rows for them.
ALSO_STORED = ("kind", "owner_kind", "involved_kind", "created_ns")
#: Columns that follow from the rest.
DERIVED = tuple(
    name
    for name in NAMES
    if name not in {*FOUND_BY, *BY_ARRIVAL, *ALSO_STORED, *NOT_IN_OBJECTS, "raw", "stream_pos"}
)

_TEXT = pa.dictionary(pa.int32(), STRING)
_SLOTS = pa.list_(pa.field("element", pa.int32()))
_VALUES = pa.list_(pa.field("element", STRING))
#: The columns that only narrow segments have.
OWN_FIELDS = (
    pa.field("part", pa.int32()),
    pa.field("template", _TEXT),
    pa.field("slots", _SLOTS),
    pa.field("values", _VALUES),
    pa.field("columns", STRING),
)
_PATCH = ("template", "slots", "values")
_FILL = ("job", "namespace", "name", "uid")


class Narrowed(Struct, frozen=True):
    """The rows of a row group as a narrow segment has them."""

    table: pa.Table
    #: Rows whose text, or some of whose columns, are kept as they came.
    kept_rows: int


def narrow_names(table: pa.Table, *, positions: bool) -> list[str]:
    """The columns of `NAMES` that a segment of these rows stores itself."""
    optional = [name for name in NOT_IN_OBJECTS if table[name].null_count < table.num_rows]
    return [*FOUND_BY, *BY_ARRIVAL, *ALSO_STORED, *optional, *(["stream_pos"] if positions else [])]


#### Writing ####


def narrowed(
    table: pa.Table, names: Sequence[str], part: int, *, derivation: bytes | None = None
) -> Narrowed:
    """The rows of row group `part`, sorted as they are to lie, in the columns of `narrow_names`.

    `derivation`: by what the columns of the states among them were filled, if that is known.
    """
    # With numpy, a tenth of a second that those who read do without.
    from tracekit.trace.format.splitting import split_texts  # noqa: PLC0415

    streams = table["stream"].to_pylist()
    raws = table["raw"].combine_chunks()
    patches = split_texts(streams, raws, _fillings(table))
    texts = pc.if_else(pc.is_valid(patches.templates), pa.scalar(None, STRING), raws)
    columns = _kept_columns(table, raws, derivation)
    arrays: dict[str, Any] = {name: table[name] for name in names if name not in BY_ARRIVAL}
    for name in BY_ARRIVAL:
        arrays[ARRIVAL + name] = _by_arrival(table[name], table["seq"])
    arrays["part"] = pa.repeat(pa.scalar(part, pa.int32()), table.num_rows)
    arrays["template"], arrays["slots"] = patches.templates, patches.slots
    arrays["values"] = patches.values
    arrays["columns"] = columns
    arrays["raw"] = texts
    kept = pc.sum(pc.or_(pc.is_valid(texts), pc.is_valid(columns))).as_py()
    return Narrowed(_table(arrays), kept or 0)


def _table(arrays: Mapping[str, Any]) -> pa.Table:
    """`pa.table`, which would import pandas where it is there."""
    return pa.Table.from_arrays(list(arrays.values()), names=list(arrays))


def _fillings(table: pa.Table) -> list[list[str | None]]:
    """What rows fill the holes of their templates with, in the order of `FROM_COLUMNS`."""
    revisions = pc.cast(table["rv"], STRING).to_pylist()
    return [*(table[name].to_pylist() for name in _FILL), revisions]


def _kept_columns(table: pa.Table, raws: pa.StringArray, derivation: bytes | None) -> pa.Array:
    """For each row the columns that do not follow from its text, as JSON; mostly there are none."""
    kept: list[str | None] = [None] * table.num_rows
    places: Sequence[int] = range(table.num_rows)
    if derivation == DERIVATION:
        others = pc.indices_nonzero(pc.invert(follow(table["type"], raws)))
        table, raws, places = table.take(others), raws.take(others), others.to_pylist()
    for row, columns in _differing(table, raws).items():
        kept[places[row]] = orjson.dumps(columns).decode()
    return pa.array(kept, STRING)


def _differing(table: pa.Table, raws: pa.StringArray) -> dict[int, dict[str, Any]]:
    """The columns that do not follow from the texts of rows, by the number of the row."""
    differing: dict[int, dict[str, Any]] = {}
    if not table.num_rows:
        return differing
    streams, types = table["stream"].to_pylist(), table["type"].to_pylist()
    found = derived_columns(streams, types, raws.to_pylist(), DERIVED)
    for name in DERIVED:
        stored, follows = _plain(table[name]), _plain(pa.chunked_array([found[name]]))
        if stored.equals(follows):
            continue
        pairs = zip(stored.to_pylist(), follows.to_pylist(), strict=True)
        for row, (value, other) in enumerate(pairs):
            if value != other:
                differing.setdefault(row, {})[name] = value
    return differing


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, texts as texts."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(STRING)
    return column.combine_chunks()


def _by_arrival(column: pa.ChunkedArray, seq: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.take(pc.sort_indices(seq))


#### Reading ####


def stored_names(columns: Sequence[str], present: frozenset[str]) -> list[str]:
    """What of a narrow segment's own columns the wanted ones take."""
    wanted = {name if name not in BY_ARRIVAL else ARRIVAL + name for name in columns}
    if any(name in columns for name in BY_ARRIVAL):
        wanted.add("seq")
    if takes_texts(columns):
        wanted |= {*_FILL, "seq", "stream", "type", ARRIVAL + "rv", *_PATCH, "raw"}
    if any(name in columns for name in DERIVED):
        wanted.add("columns")
    return sorted(wanted & present)


def takes_texts(columns: Sequence[str]) -> bool:
    """Whether some of the columns follow from the texts."""
    return any(name == "raw" or name in DERIVED for name in columns)


def found_columns(table: pa.Table) -> pa.Table:
    """The columns of `NAMES` that a row group stores itself, all but the texts."""
    arrays: dict[str, Any] = {}
    for name in BY_ARRIVAL:
        if ARRIVAL + name in table.schema.names:
            arrays[name] = _in_place(table[ARRIVAL + name], table["seq"])
    for name in table.schema.names:
        if name in NAMES and name != "raw":
            arrays[name] = table[name]
    return _table(arrays)


def widened(
    table: pa.Table, found: pa.Table, columns: Sequence[str], wanted: pa.ChunkedArray | None
) -> pa.Table:
    """The wanted columns of a row group out of its stored ones and `found_columns` of these.

    `wanted` tells which rows are, None: all of them; the others are left out. Columns that the
    segment does not store are left out. `DamageError` if a text cannot be put together.
    """
    rows = found if wanted is None else found.filter(wanted)
    arrays = _columns(rows)
    if takes_texts(columns):
        raws = _texts(table, rows, wanted)
        derived = [name for name in DERIVED if name in columns]
        if derived:
            streams, types = arrays["stream"].to_pylist(), arrays["type"].to_pylist()
            kept = table["columns"] if wanted is None else table["columns"].filter(wanted)
            following = derived_columns(streams, types, raws, derived)
            _put_kept(following, kept)
            arrays |= following
        if "raw" in columns:
            arrays["raw"] = pa.array(raws, STRING)
    return _table({name: arrays[name] for name in columns if name in arrays})


def _columns(table: pa.Table) -> dict[str, Any]:
    return dict(zip(table.schema.names, table.columns, strict=True))


def _in_place(column: pa.ChunkedArray, seq: pa.ChunkedArray) -> pa.ChunkedArray:
    """The opposite of `_by_arrival`."""
    return column.take(pc.sort_indices(pc.sort_indices(seq)))


def _texts(table: pa.Table, rows: pa.Table, wanted: pa.ChunkedArray | None) -> list[str | None]:
    """The texts of the wanted rows; `rows` are what was found of these."""
    numbers = None if wanted is None else pc.indices_nonzero(wanted)
    places = range(table.num_rows) if numbers is None else numbers.to_pylist()
    kept = table["raw"] if numbers is None else table["raw"].take(numbers)
    templates = table["template"].combine_chunks()
    picked = templates.indices if numbers is None else templates.indices.take(numbers)
    dictionary = templates.dictionary.to_pylist()
    for template in dictionary:
        check_nesting(template)
    joiner = Joiner(dictionary)
    ends, slots, values = _changes(table, places[-1] + 1 if places else 0)
    texts: list[str | None] = []
    begin = size = 0
    for place, template, raw, columns in zip(
        places,
        picked.to_pylist(),
        kept.to_pylist(),
        zip(*_fillings(rows), strict=True),
        strict=True,
    ):
        # With what the rows between have changed: of a slot the last value counts.
        end = ends[place]
        joiner.change(slots[begin:end], values[begin:end])
        begin = end
        if template is None:
            texts.append(raw)
            continue
        text = joiner.fill(template, columns)
        size += len(text)
        if size > GROUP_BYTES_MAX and not are_lifted():
            raise TooMuchError(
                f"a row group of it would take more than {GROUP_BYTES_MAX >> 20} MiB of memory"
            )
        texts.append(text)
    return texts


def _changes(table: pa.Table, until: int) -> tuple[list[int], list[int], list[str]]:
    """What the first rows change: slots, and values back from the order of the slots.

    Those of all these rows are in one list; first, for each row, where its own end there.
    """
    slots = table["slots"].combine_chunks()
    flat_slots, flat_values = slots.flatten(), table["values"].combine_chunks().flatten()
    if len(flat_slots) != len(flat_values) or flat_slots.null_count or flat_values.null_count:
        raise DamageError("its slots and their values do not fit together")
    order = pc.sort_indices(pc.sort_indices(flat_slots))
    lengths = pc.fill_null(pc.list_value_length(slots.slice(0, until)), 0)
    ends = pc.cumulative_sum(lengths).to_pylist()
    last = ends[-1] if ends else 0
    values = flat_values.take(order.slice(0, last))
    return ends, flat_slots.slice(0, last).to_pylist(), values.to_pylist()


def _put_kept(found: dict[str, pa.Array], kept: pa.ChunkedArray) -> None:
    """Put the columns that do not follow from the texts in the place of those that do."""
    if kept.null_count == len(kept):
        return
    changed: dict[str, dict[int, Any]] = {}
    for row, text in enumerate(kept.to_pylist()):
        for name, value in _kept_of(text).items():
            if name in found:
                changed.setdefault(name, {})[row] = value
    for name, values in changed.items():
        whole = found[name]
        if pa.types.is_dictionary(whole.type):
            whole = whole.cast(STRING)
        rows = whole.to_pylist()
        for row, value in values.items():
            rows[row] = value
        array = pa.array(rows, SCHEMA.field(name).type)
        kind = MEMORY_SCHEMA.field(name).type
        found[name] = array.dictionary_encode() if pa.types.is_dictionary(kind) else array


def _kept_of(text: str | None) -> Mapping[str, Any]:
    if text is None:
        return {}
    kept = orjson.loads(text)
    if not isinstance(kept, dict):
        raise DamageError("it has columns that are no columns")
    return kept


#### Positions in a stream ####


def stream_starts(table: pa.Table) -> dict[str, int] | None:
    """The first position of each stream, if all others follow from the order of arrival."""
    following: dict[str, int] = {}
    starts: dict[str, int] = {}
    rows = table.select(["stream", "stream_pos"]).take(pc.sort_indices(table["seq"]))
    streams, positions = rows["stream"].to_pylist(), rows["stream_pos"].to_pylist()
    for stream, position in zip(streams, positions, strict=True):
        if stream is None and position is None:
            continue
        if stream is None or position is None or following.get(stream, position) != position:
            return None
        starts.setdefault(stream, position)
        following[stream] = position + 1
    return starts


def stream_positions(
    groups: Sequence[pa.Table], starts: Mapping[str, int]
) -> list[pa.ChunkedArray]:
    """The positions of the rows of all row groups, from their columns `seq` and `stream`."""
    whole = pa.concat_tables([group.select(["seq", "stream"]) for group in groups])
    order = pc.sort_indices(whole["seq"])
    following = dict(starts)
    positions: list[int | None] = []
    for stream in whole["stream"].take(order).to_pylist():
        position = following.get(stream)
        positions.append(position)
        if position is not None:
            following[stream] = position + 1
    column = pa.chunked_array([pa.array(positions, INT)]).take(pc.sort_indices(order))
    found = []
    start = 0
    for group in groups:
        found.append(column.slice(start, group.num_rows))
        start += group.num_rows
    return found
