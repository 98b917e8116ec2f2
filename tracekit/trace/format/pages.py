"""What the pages of a Parquet column chunk say they hold, read from their headers alone.

A footer may say anything about sizes; what a reader must allocate stands in front of each page.
pyarrow does not show it, so the few fields are read here: a page header is one struct
(`thrift.py`), its fields those of `PageHeader` in parquet.thrift.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from tracekit.trace.format import thrift
from tracekit.trace.format.seal import DamageError

_DICTIONARY_PAGE = 2
#: First as many bytes are read as nearly every header has, then as many as one may have.
_HEADER_BYTES = (128, 1 << 20)
_DEPTH_MAX = 8


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
        kind, number, at = thrift.field_at(data, at, number)
        if kind == thrift.STOP:
            return at
        here = (*path, number)
        if kind in thrift.INTEGERS:
            value, at = thrift.varint(data, at)
            fields[here] = thrift.signed(value)
        elif kind == thrift.STRUCT:
            at = _struct(data, at, here, fields)
        else:
            at = thrift.past(data, at, kind)
