"""Writing narrow segments (`narrow.py`) as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import asdict

from tracekit.trace.format.model import FORMAT_VERSION, LOG_DIR
from tracekit.trace.format.narrow import (
    ARRIVAL,
    BY_ARRIVAL,
    OWN_FIELDS,
    narrow_names,
    narrowed,
    stream_starts,
)
from tracekit.trace.format.opening import new_file
from tracekit.trace.format.schema import FILE_ORDER, SCHEMA, STRING
from tracekit.trace.format.seal import SEAL_KEY, DamageError, seal_file, unsealed
from tracekit.trace.format.segments import (
    FORMAT_KEY,
    Segment,
    put_in_place,
    rows_a_group,
    segment_name,
    sorted_order,
    temporary_path,
)

#: JSON about the rows of a narrow segment (`About`).
NARROW_KEY = b"tracekit.narrow"

#: zstd's level by column, the lowest that packs about as well as 19, which takes thrice the time
#: of all others of this together.
_LEVELS = {
    "seq": 16,
    "name": 13,
    "uid": 13,
    "template": 12,
    "values": 16,
    "raw": 16,
    "raw_bytes": 16,
}
_LEVEL = 15
#: A page boundary makes the compressor forget what was before it.
_PAGE_BYTES = 16 * 1024 * 1024
_DICTIONARIES = (
    "part",
    "stream",
    "type",
    "namespace",
    "job",
    *("kind", "owner_kind", "involved_kind", "created_ns"),
    *("template", "slots"),
    *("actor", "actor_agent", "verb"),
)
_DELTAS = tuple(ARRIVAL + name for name in BY_ARRIVAL)
_STATISTICS = (
    *("seq", "stream", "type", "namespace", "job", "name", "uid"),
    *_DELTAS,
)


class About(Struct, frozen=True):
    """What a narrow segment says of its rows."""

    #: Bytes of their texts.
    raw_bytes: int
    #: Rows whose text, or some of whose columns, are kept as they came.
    kept_rows: int
    #: The first position of each stream; empty if the positions do not follow and are stored.
    streams: Mapping[str, int]


def about_rows(metadata: Mapping[bytes, bytes]) -> About | None:
    """What the key-value metadata of a segment tell; None if it is no narrow one."""
    if NARROW_KEY not in metadata:
        return None
    found = json.loads(metadata[NARROW_KEY])
    members = found if isinstance(found, dict) else {}
    raw_bytes, kept, streams = (members.get(n) for n in ("raw_bytes", "kept_rows", "streams"))
    numbers = [raw_bytes, kept, *(streams.values() if isinstance(streams, dict) else [None])]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise DamageError("what it says of its rows cannot be")
    return About(*(members[name] for name in About.__struct_fields__))


def write_narrow_segment(
    trace: Path,
    table: pa.Table,
    *,
    first: int,
    last: int,
    identity: str | None = None,
    derivation: bytes | None = None,
) -> Segment:
    """Sort the rows, write them narrow under a temporary name, put the file in place durably.

    `table` has all columns, in any order of rows; `identity` is what the seals of the trace name,
    `derivation` by what the columns of its states were filled: not by what readers will fill them
    by, or unknown, all columns are compared with that.
    """
    if table.num_rows != last - first + 1:
        raise AssertionError((table.num_rows, first, last))
    final = trace / LOG_DIR / segment_name(first, last)
    starts = stream_starts(table)
    names = narrow_names(table, positions=starts is None)
    raw_bytes = table["raw"].nbytes
    group_rows = rows_a_group(table.num_rows, raw_bytes)
    order = sorted_order(table, FILE_ORDER)
    bounds = range(0, table.num_rows, group_rows)
    groups = [
        narrowed(table.take(order.slice(start, group_rows)), names, part, derivation=derivation)
        for part, start in enumerate(bounds)
    ]
    about = About(raw_bytes, sum(group.kept_rows for group in groups), starts or {})
    temporary = temporary_path(final)
    _write(temporary, [group.table for group in groups], about)
    seal_file(temporary, identity)
    put_in_place(temporary, final)
    return Segment(first, last, final)


def _write(path: Path, tables: list[pa.Table], about: About) -> None:
    schema = tables[0].schema
    leaves = {
        field.name: f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
        for field in schema
    }
    dictionaries = [leaf for name, leaf in leaves.items() if name in _DICTIONARIES]
    deltas = {leaf: "DELTA_BINARY_PACKED" for leaf in leaves.values() if leaf in _DELTAS}
    with (
        new_file(path) as file,
        pq.ParquetWriter(
            file,
            schema,
            version="2.6",
            compression="zstd",
            compression_level={leaf: _LEVELS.get(name, _LEVEL) for name, leaf in leaves.items()},
            use_dictionary=dictionaries,
            column_encoding=deltas,
            write_statistics=[name for name in leaves if name in _STATISTICS],
            data_page_size=_PAGE_BYTES,
            dictionary_pagesize_limit=_PAGE_BYTES,
            store_schema=False,
        ) as writer,
    ):
        for table in tables:
            writer.write_table(table, row_group_size=max(1, table.num_rows))
        writer.add_key_value_metadata(
            {
                FORMAT_KEY: str(FORMAT_VERSION).encode(),
                NARROW_KEY: json.dumps(asdict(about), sort_keys=True).encode(),
                SEAL_KEY: unsealed(len(tables)),
            }
        )


#: The types of all columns that a narrow segment may have.
NARROW_SCHEMA = pa.schema(
    [
        *SCHEMA,
        *(pa.field(ARRIVAL + name, SCHEMA.field(name).type) for name in BY_ARRIVAL),
        *(
            pa.field(field.name, STRING if pa.types.is_dictionary(field.type) else field.type)
            for field in OWN_FIELDS
        ),
    ]
)
