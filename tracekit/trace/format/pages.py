"""What the pages of a Parquet column chunk say they hold, read from their headers alone.

A footer may say anything about sizes; what a reader must allocate stands in front of each page.
pyarrow does not show it, so the few fields are read here: a page header is one struct of Thrift's
compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md),
its fields those of `PageHeader` in parquet.thrift.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from tracekit.trace.format.seal import DamageError

_DICTIONARY_PAGE = 2
#: First as many bytes are read as nearly every header has, then as many as one may have.
_HEADER_BYTES = (128, 1 << 20)
_DEPTH_MAX = 8

#### Thrift's compact protocol ####

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = (
    0, 1, 2, 3, 7, 8, 12,
)  # fmt: skip
_INTEGERS = (4, 5, 6)


class Page(Struct, frozen=True):
    """One page of a column chunk."""

    is_dictionary: bool
    #: Bytes before and after decompression, as its header says them.
    packed: int
    unpacked: int
    values: int
    #: Parquet's number of the encoding of its values.
    encoding: int


def pages(descriptor: int, start: int, length: int) -> Iterator[Page]:
    """Go through the pages of a column chunk; `DamageError` where there is no header."""
    place, end = start, start + length
    while place < end:
        fields, size = _header(descriptor, place, end)
        packed, unpacked = fields.get((3,), -1), fields.get((2,), -1)
        if packed < 0 or unpacked < 0 or place + size + packed > end:
            raise DamageError("it has a page that cannot be")
        is_dictionary = fields.get((1,)) == _DICTIONARY_PAGE
        # The number of values and the encoding stand in the header of the page's own kind.
        kind = 7 if is_dictionary else 5 if (5, 1) in fields else 8
        yield Page(
            is_dictionary,
            packed,
            unpacked,
            max(0, fields.get((kind, 1), 0)),
            fields.get((kind, 2) if kind != 8 else (8, 4), -1),  # noqa: PLR2004 - field 4 of v2
        )
        place += size + packed


def _header(descriptor: int, place: int, end: int) -> tuple[dict[tuple[int, ...], int], int]:
    for most in _HEADER_BYTES:
        data = os.pread(descriptor, min(most, end - place), place)
        try:
            fields: dict[tuple[int, ...], int] = {}
            return fields, _struct(data, 0, (), fields)
        except IndexError:
            continue
    raise DamageError("it has a page without a header")


def _struct(data: bytes, at: int, path: tuple[int, ...], fields: dict[tuple[int, ...], int]) -> int:
    """Read a struct from `at` on; the integers in it by the numbers of their fields."""
    if len(path) > _DEPTH_MAX:
        raise DamageError("it has a page header that none is")
    number = 0
    while True:
        head = data[at]
        at += 1
        kind = head & 15
        if kind == _STOP:
            return at
        if head >> 4:
            number += head >> 4
        else:
            value, at = _varint(data, at)
            number = value >> 1 ^ -(value & 1)
        here = (*path, number)
        if kind in _INTEGERS:
            value, at = _varint(data, at)
            fields[here] = value >> 1 ^ -(value & 1)
        else:
            at = _skip(data, at, kind, here, fields)


def _skip(
    data: bytes, at: int, kind: int, path: tuple[int, ...], fields: dict[tuple[int, ...], int]
) -> int:
    """Go past a value that is no integer of its own."""
    if kind in (_TRUE, _FALSE):
        return at
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        if at + length > len(data):
            raise IndexError
        return at + length
    if kind == _STRUCT:
        return _struct(data, at, path, fields)
    # Lists, sets and maps: no header of a page has any.
    raise DamageError("it has a page header that none is")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at
        shift += 7
        if shift > 63:  # noqa: PLR2004 - no integer has more bits
            raise DamageError("it has a page header that none is")
