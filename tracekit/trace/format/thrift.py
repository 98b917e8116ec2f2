"""Thrift's compact protocol, in which footers and page headers of Parquet files are written.

pyarrow shows only a part of them. Whoever writes a trace writes these: of what nobody writes
`DamageError` is raised, and `IndexError` where the bytes end too early.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from tracekit.trace.format.seal import DamageError

STOP, BYTE, DOUBLE, BINARY, LIST, STRUCT = 0, 3, 7, 8, 9, 12
INTEGERS = (4, 5, 6)
_BOOLEANS, _SET, _LONG_LIST = (1, 2), 10, 15
#: Nobody writes structs within structs within … of that many.
DEPTH_MAX = 16


def field_at(data: bytes, at: int, number: int) -> tuple[int, int, int]:
    """The kind and the number of a field after that one, and where its value begins."""
    head = data[at]
    kind, at = head & 15, at + 1
    if kind == STOP:
        return STOP, number, at
    if head >> 4:
        return kind, number + (head >> 4), at
    value, at = varint(data, at)
    return kind, signed(value), at


def list_at(data: bytes, at: int) -> tuple[int, int, int]:
    """How many values a list has, of which kind, and where they begin."""
    head = data[at]
    if head >> 4 < _LONG_LIST:
        return head >> 4, head & 15, at + 1
    count, at = varint(data, at + 1)
    return count, head & 15, at


def past(data: bytes, at: int, kind: int, depth: int = DEPTH_MAX) -> int:
    """Where what follows a value begins."""
    if kind in INTEGERS:
        return varint(data, at)[1]
    if kind in _BOOLEANS:
        return at
    if kind == BINARY:
        length, at = varint(data, at)
        return at + length
    if kind in (BYTE, DOUBLE):
        return at + (1 if kind == BYTE else 8)
    if not depth or kind not in (LIST, _SET, STRUCT):
        raise DamageError("it has a header that nobody writes")
    return _past_many(data, at, kind, depth - 1)


def _past_many(data: bytes, at: int, kind: int, depth: int) -> int:
    if kind != STRUCT:
        count, of, at = list_at(data, at)
        if of <= BYTE:  # booleans are a byte each, in a list
            return at + count
        for _ in range(count):
            at = past(data, at, of, depth)
        return at
    while True:
        of, _, at = field_at(data, at, 0)
        if of == STOP:
            return at
        at = past(data, at, of, depth)


def signed(value: int) -> int:
    """An integer from its zigzag form."""
    return value >> 1 ^ -(value & 1)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer of seven bits a byte, and where what follows begins."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at
        shift += 7
        if shift > 63:  # noqa: PLR2004 - no integer has more bits
            raise DamageError("it has a header that nobody writes")
