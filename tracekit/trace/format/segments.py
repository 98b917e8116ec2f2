"""The files under `log/`: names, which of them count, and how one is put in place.

A segment is named by the positions of its first and last row. A segment whose range lies inside a
larger one's is ignored, so that compaction can put the merged file in place first and delete the
covered ones afterwards. Files under a temporary name never count.
"""

from __future__ import annotations

import inspect
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.header import sync_directory, sync_file
from tracekit.trace.format.model import LOG_DIR, SEGMENT_SUFFIX, SEQ_DIGITS, WIDE_VERSION
from tracekit.trace.format.opening import names_inside, new_file
from tracekit.trace.format.schema import COLUMNS, FILE_ORDER, SCHEMA, SORT_KEYS, STRING, Storage
from tracekit.trace.format.seal import SEAL_KEY, seal_file, unsealed
from tracekit.trace.format.texts import texts_of

#: A row group is what a reader that wants one job must at least decode; it ends at either.
ROW_GROUP_ROWS = 16_384
ROW_GROUP_RAW_BYTES = 20 * 1024 * 1024
#: A segment is full when either is reached.
SEGMENT_ROWS = 65_536
SEGMENT_RAW_BYTES = 32 * 1024 * 1024

#: The revisions of an object lie side by side, and a page boundary makes the compressor forget the
#: one before: large ones, but a writer's memory holds one twice.
_PAGE_BYTES = 4 * 1024 * 1024
_DICTIONARY_BYTES = 16 * 1024 * 1024
#: Rows whose raw text is brought into order at a time.
_ROWS_AT_ONCE = 1024
TEMPORARY_PREFIX = ".tmp-"
FORMAT_KEY = b"tracekit.format_version"
#: The `DERIVATION` by which the columns of all states in a wide segment were filled.
DERIVED_KEY = b"tracekit.derived"

_NAME = re.compile(rf"(\d{{{SEQ_DIGITS}}})-(\d{{{SEQ_DIGITS}}}){re.escape(SEGMENT_SUFFIX)}")
_TAKES_BLOOM = "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters


class Segment(Struct, frozen=True, order=True):
    """One file of rows `first` to `last`, both included."""

    first: int
    last: int
    path: Path

    @property
    def rows(self) -> int:
        """How many rows the name promises."""
        return self.last - self.first + 1


def segment_name(first: int, last: int) -> str:
    """The file name of a segment."""
    return f"{first:0{SEQ_DIGITS}d}-{last:0{SEQ_DIGITS}d}{SEGMENT_SUFFIX}"


def all_segments(trace: Path) -> list[Segment]:
    """Every segment file there is, covered ones too, by first row and then the largest first."""
    try:
        names = names_inside(trace, LOG_DIR)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return named_segments(names, trace / LOG_DIR)


def named_segments(names: Iterable[str], log: Path) -> list[Segment]:
    """Those of the names in a log directory that are segments', in the same order."""
    found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None and int(match[1]) <= int(match[2]):
            found.append(Segment(int(match[1]), int(match[2]), log / name))
    return sorted(found, key=lambda segment: (segment.first, -segment.last))


def live_segments(trace: Path) -> list[Segment]:
    """The segments that count, in order of their rows."""
    live, _ = split_covered(all_segments(trace))
    return live


def split_covered(segments: Iterable[Segment]) -> tuple[list[Segment], list[Segment]]:
    """Sorted segments, parted into those that count and those inside a larger one."""
    live: list[Segment] = []
    covered: list[Segment] = []
    for segment in segments:
        if live and segment.last <= live[-1].last:
            covered.append(segment)
        elif live and segment.first <= live[-1].last:
            raise TraceFormatError(
                f"{segment.path} and {live[-1].path.name} overlap without one holding the other; "
                "files of two traces were mixed: take the one out that does not belong"
            )
        else:
            live.append(segment)
    return live, covered


def missing_ranges(segments: Iterable[Segment]) -> list[tuple[int, int]]:
    """Rows that no segment holds although later ones are there: files were lost."""
    missing = []
    expected = 0
    for segment in segments:
        if segment.first > expected:
            missing.append((expected, segment.first - 1))
        expected = segment.last + 1
    return missing


def _writer_options() -> dict[str, Any]:
    names = {storage: [] for storage in Storage}  # type: dict[Storage, list[str]]
    for column in COLUMNS:
        names[column.storage].append(column.name)
    dictionary = [
        leaf
        for name in names[Storage.DICTIONARY]
        for leaf, kind in _leaves(name)
        if not pa.types.is_boolean(kind)
    ]
    options: dict[str, Any] = {
        "version": "2.6",
        "compression": "zstd",
        "use_dictionary": dictionary,
        "column_encoding": dict.fromkeys(names[Storage.DELTA], "DELTA_BINARY_PACKED"),
        "write_statistics": [column.name for column in COLUMNS if column.stats],
        "data_page_size": _PAGE_BYTES,
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "store_schema": False,
    }
    if _TAKES_BLOOM:
        options["bloom_filter_options"] = {"uid": {"ndv": 2048, "fpp": 0.05}}
    return options


def _leaves(name: str) -> Iterator[tuple[str, pa.DataType]]:
    """The Parquet leaf columns of a column (a list of structs has several)."""
    kind = SCHEMA.field(name).type
    if not pa.types.is_list(kind):
        yield name, kind
    elif not pa.types.is_struct(kind.value_type):
        yield f"{name}.list.element", kind.value_type
    else:
        for field in kind.value_type:
            yield f"{name}.list.element.{field.name}", field.type


@contextmanager
def _open_writer(
    path: Path, schema: pa.Schema, level: int, *, groups: int, derivation: bytes | None
) -> Iterator[pq.ParquetWriter]:
    with (
        new_file(path) as file,
        pq.ParquetWriter(file, schema, compression_level=level, **_writer_options()) as writer,
    ):
        yield writer
        metadata = {FORMAT_KEY: str(WIDE_VERSION).encode(), SEAL_KEY: unsealed(groups)}
        if derivation is not None:
            metadata[DERIVED_KEY] = derivation
        writer.add_key_value_metadata(metadata)


def sorted_order(table: pa.Table, by: Sequence[str] = SORT_KEYS) -> pa.Array:
    """Row numbers of the table in the order of some columns, nulls first."""
    keys = pa.table(
        {
            # Kubernetes has no empty names and no negative revisions: these come before all.
            key: pc.fill_null(table[key], "" if table.schema.field(key).type == pa.string() else -1)
            for key in by
        }
    )
    return pc.sort_indices(keys, sort_keys=[(key, "ascending") for key in by])


def write_segment(
    trace: Path,
    table: pa.Table,
    *,
    first: int,
    last: int,
    level: int,
    identity: str | None = None,
    derivation: bytes | None = None,
) -> Segment:
    """Sort the rows, write them under a temporary name, and put the file in place durably.

    `identity` is what the seals of the trace name (`seal.py`), None for its first; `derivation`
    that of the columns of its states, None if it is not known.
    """
    if table.num_rows != last - first + 1:
        raise AssertionError((table.num_rows, first, last))
    log = trace / LOG_DIR
    name = segment_name(first, last)
    temporary = temporary_path(log / name)
    # The raw text is most of a segment: it is never copied whole.
    raw = table["raw"]
    raw_at = table.schema.get_field_index("raw")
    table = table.set_column(raw_at, "raw", pa.nulls(len(raw), STRING))
    table = table.combine_chunks()
    order = sorted_order(table, FILE_ORDER)
    group_rows = rows_a_group(len(raw), raw.nbytes)
    starts = range(0, table.num_rows, group_rows)
    raw_texts = _Texts(raw)
    groups = len(starts)
    with _open_writer(
        temporary, table.schema, level, groups=groups, derivation=derivation
    ) as writer:
        for start in starts:
            rows = order.slice(start, group_rows)
            part = own_dictionaries(table.take(rows))
            texts = [
                raw_texts.at(rows.slice(at, _ROWS_AT_ONCE).to_pylist())
                for at in range(0, len(rows), _ROWS_AT_ONCE)
            ]
            part = part.set_column(raw_at, "raw", pa.chunked_array(texts, STRING))
            writer.write_table(part, row_group_size=group_rows)
    seal_file(temporary, identity)
    put_in_place(temporary, log / name)
    return Segment(first, last, log / name)


def rows_a_group(rows: int, raw_bytes: int) -> int:
    """Rows of each row group of a segment, the last of which may have fewer."""
    groups = max(1, -(-rows // ROW_GROUP_ROWS), -(-raw_bytes // ROW_GROUP_RAW_BYTES))
    return -(-rows // groups)


class _Texts:
    """The texts of a column in many chunks, by row.

    Arrow's own `take` would first make one array of all chunks.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._firsts: list[int] = []
        self._chunks: list[tuple[memoryview, memoryview, list[bool] | None]] = []
        rows = 0
        for chunk in column.chunks:
            _, offsets, texts = chunk.buffers()
            valid = chunk.is_valid().to_pylist() if chunk.null_count else None
            places = memoryview(offsets or bytes(4)).cast("i")[chunk.offset :]
            self._firsts.append(rows)
            self._chunks.append((places, memoryview(texts or b""), valid))
            rows += len(chunk)

    def at(self, rows: Sequence[int]) -> pa.Array:
        """The texts of some rows."""
        found = []
        valid = []
        for row in rows:
            number = bisect_right(self._firsts, row) - 1
            places, texts, are_valid = self._chunks[number]
            at = row - self._firsts[number]
            found.append(texts[places[at] : places[at + 1]])
            valid.append(are_valid is None or are_valid[at])
        return texts_of(found, valid)


def own_dictionaries(table: pa.Table) -> pa.Table:
    """Cut dictionaries down to the values in use: each row group stores its own whole."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            whole = table.column(position).combine_chunks()
            used = whole.indices.unique().drop_null()
            column = pa.DictionaryArray.from_arrays(
                pc.index_in(whole.indices, value_set=used), whole.dictionary.take(used)
            )
            table = table.set_column(position, field, column)
    return table


def temporary_path(final: Path) -> Path:
    """Where a segment is written first; no two processes have the same."""
    return final.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{final.name}")


def put_in_place(temporary: Path, final: Path) -> None:
    """Make a finished temporary file a segment that survives a power cut."""
    with temporary.open("rb+") as file:
        sync_file(file.fileno())
    temporary.replace(final)
    sync_directory(final.parent)


def remove_temporaries(trace: Path) -> None:
    """Delete what a writer that was killed left unfinished; only the lock's holder may."""
    for folder in (trace, trace / LOG_DIR):
        for path in folder.glob(f"{TEMPORARY_PREFIX}*"):
            path.unlink(missing_ok=True)
