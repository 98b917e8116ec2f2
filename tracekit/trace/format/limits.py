"""How much of this machine a trace may take, whoever wrote it.

Compression makes small files large: a few hundred bytes of a column can stand for gigabytes. What a
row group comes to is counted before anything of it is decoded: from the headers of its pages, and
where a dictionary may repeat a long text from the lengths of its entries. The bounds are many times
what tracekit writes (a row group of real traces is 10 to 100 MiB decoded, 10 to 60 times its
bytes), and none is on how many rows a trace has. `tracekit --no-limits` lifts them, for a trace
that one trusts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracekit.trace.format.pages import pages
from tracekit.trace.format.parquet import parquet_file
from tracekit.trace.format.seal import DamageError, chunk_start

#: Bytes that one row group may be decoded to.
GROUP_BYTES_MAX = 256 << 20
#: Bytes of the object of one row. A server takes objects of 1.5 MiB unless it is told otherwise.
ROW_BYTES_MAX = 32 << 20
#: How many times its own bytes a row group may be decoded to, if that is more than a writer may put
#: into one: a full segment, one row more, and the columns of both.
RATIO_MAX = 1_000
RATIO_FROM_BYTES = 128 << 20
#: Values of one JSON document that comes in: as Python's objects each takes up to 100 bytes, of
#: which a document may have two (`{},`), and a real one has twenty and more.
VALUES_MAX = 16 << 20
#: How deep JSON may be nested. Jobs and pods have about 15 levels.
NESTING_MAX = 200
#: Why a row that came in is kept without columns.
TOO_DEEP = f"it is nested more than {NESTING_MAX} levels deep"
TOO_LARGE = f"it has more than {ROW_BYTES_MAX >> 20} MiB: no API server takes such an object"
#: What is kept of an object that is too large.
KEPT_OF_TOO_LARGE = 1 << 10

_BYTES_OF_A_VALUE = 8
#: Texts this short in sum are not looked at more closely.
_SURELY_SMALL = 16 << 20
#: Parquet's numbers of encodings whose values are no longer than their bytes: plain, dictionaries,
#: run lengths, deltas of numbers, lengths and bytes apart.
_ENCODINGS = frozenset({0, 2, 3, 4, 5, 6, 8, 9})
_OPENING = b"{["
_BEFORE_A_VALUE = (b",", b"[", b"{")
_NOT_OPENING = bytes(set(range(256)) - set(_OPENING))
_NOT_OPENING_LINES = bytes(set(range(256)) - set(_OPENING) - set(b"\n"))
_NOT_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))


class TooMuchError(DamageError):
    """It would take more than a trace may."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; if it is to be trusted, lift the limit with --no-limits")


class _Lifted:
    on = False


def are_lifted() -> bool:
    """Whether the user trusts the traces."""
    return _Lifted.on


@contextmanager
def lifted(on: bool = True) -> Iterator[None]:
    """Read without limits inside of the block."""
    before, _Lifted.on = _Lifted.on, on
    try:
        yield
    finally:
        _Lifted.on = before


def check_group(
    source: pa.NativeFile,
    descriptor: int,
    metadata: pq.FileMetaData,
    group: int,
    columns: Iterable[int],
) -> dict[str, pa.ChunkedArray]:
    """Raise if some leaf columns of a row group would be decoded to too much.

    What had to be read for that is returned by its column, as dictionaries.
    """
    if _Lifted.on:
        return {}
    chunks = metadata.row_group(group)
    packed = decoded = 0
    repeating: list[str] = []
    for number in columns:
        column = chunks.column(number)
        values = dictionary = 0
        for page in pages(descriptor, chunk_start(column), column.total_compressed_size):
            packed += page.packed
            decoded += page.unpacked
            if page.encoding not in _ENCODINGS:
                raise TooMuchError(
                    "it has an encoding that no writer of traces uses and that may stand for any "
                    "length"
                )
            if page.is_dictionary:
                dictionary += page.unpacked
            else:
                values += page.values
        decoded += values * _BYTES_OF_A_VALUE
        if values * dictionary > _SURELY_SMALL and column.physical_type == "BYTE_ARRAY":
            repeating.append(column.path_in_schema)
        _check(decoded, packed)
    if not repeating:
        return {}
    # Read as a dictionary a column takes no more than its pages, which are counted already.
    file = parquet_file(source, metadata=metadata, read_dictionary=repeating)
    texts = file.read_row_group(group, columns=repeating, use_threads=False)
    if not _fits(decoded + _text_bytes(texts, _most), packed):
        _check(decoded + _text_bytes(texts, _sum), packed)
    whole = (field.name for field in texts.schema if pa.types.is_dictionary(field.type))
    return {name: texts[name] for name in whole}


def _fits(decoded: int, packed: int) -> bool:
    return decoded <= min(GROUP_BYTES_MAX, max(RATIO_FROM_BYTES, RATIO_MAX * packed))


def _check(decoded: int, packed: int) -> None:
    if _fits(decoded, packed):
        return
    if decoded > GROUP_BYTES_MAX:
        raise TooMuchError(
            f"a row group of it would take more than {GROUP_BYTES_MAX >> 20} MiB of memory"
        )
    raise TooMuchError(
        f"a row group of it would be more than {RATIO_MAX:,} times as large as its bytes"
    )


def _text_bytes(table: pa.Table, of_texts: Callable[[pa.DictionaryArray], int]) -> int:
    """What the texts of some columns come to when each row has its own."""
    return sum(_array_bytes(chunk, of_texts) for column in table.columns for chunk in column.chunks)


def _array_bytes(array: pa.Array, of_texts: Callable[[pa.DictionaryArray], int]) -> int:
    kind = array.type
    if pa.types.is_list(kind):
        return _array_bytes(array.values, of_texts)
    if pa.types.is_struct(kind):
        return sum(_array_bytes(array.field(at), of_texts) for at in range(kind.num_fields))
    return of_texts(array) if pa.types.is_dictionary(kind) else int(array.nbytes)


def _most(array: pa.DictionaryArray) -> int:
    """If all rows had the longest: quickly told, and mostly little enough."""
    texts = array.dictionary.view(pa.binary()).to_pylist()
    return len(array) * max((len(text) for text in texts), default=0)


def _sum(array: pa.DictionaryArray) -> int:
    lengths = pc.binary_length(array.dictionary)
    return int(pc.sum(lengths.take(array.indices)).as_py() or 0)


def check_texts(table: pa.Table) -> None:
    """Raise if a row, or the nesting of a text that every row may have, is too much."""
    if _Lifted.on:
        return
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if name == "raw" and table.num_rows:
            longest = pc.max(pc.binary_length(column)).as_py() or 0
            if longest > ROW_BYTES_MAX:
                raise TooMuchError(f"a row of it has more than {ROW_BYTES_MAX >> 20} MiB")
        elif pa.types.is_dictionary(column.type):
            for chunk in column.chunks:
                for text in chunk.dictionary.to_pylist():
                    check_nesting(text)


def check_nesting(text: str | bytes) -> None:
    """Raise if a text of JSON may be nested too deep (brackets in strings count as well)."""
    if _Lifted.on:
        return
    if is_nested_deeper(text, NESTING_MAX):
        raise TooMuchError(f"an object of it is nested more than {NESTING_MAX} levels deep")


def has_more_values(text: bytes | bytearray, most: int) -> bool:
    """Whether a text of JSON may hold more than so many values (signs in strings count as well)."""
    return len(text) > most and sum(map(text.count, _BEFORE_A_VALUE)) > most


def may_be_nested_deeper(lines: bytes, levels: int) -> bool:
    """Whether a line has more brackets than so many levels take; most logs have none, at once."""
    opening = lines.translate(None, _NOT_OPENING_LINES).split(b"\n")
    return max(map(len, opening)) > levels


def is_nested_deeper(text: str | bytes, levels: int) -> bool:
    """Whether brackets stand in brackets more than so many times."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if len(data.translate(None, _NOT_OPENING)) <= levels:
        return False
    depth = 0
    for byte in data.translate(None, _NOT_BRACKETS):
        if byte in _OPENING:
            depth += 1
            if depth > levels:
                return True
        else:
            depth -= 1
    return False
