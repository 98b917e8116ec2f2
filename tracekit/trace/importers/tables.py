"""Tables as stores export them (CSV): rows by the names of their columns.

Where a store has taken an object apart, each field has a column, named by its path with dots.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import orjson

Row = dict[str, str]
Raw = dict[str, Any]

#: A cell with an event: etcd takes 1.5 MiB, quotes are doubled, two bodies.
_CELL_BYTES_MAX = 64 * 1024 * 1024
#: What may stand between cells: a spreadsheet of a country with decimal commas writes semicolons.
_BETWEEN = (",", ";", "\t")
_NAMES = re.compile(rb"[\w@.\[\]()\"; \t-]+\r?")
_ROWS_LOOKED_AT = 50
#: So many a table has at least.
_COLUMNS_MIN = 2
#: What stands in a cell for no value.
_NOTHING = (None, "", "-")
#: Of these each name is one, whatever dots are in it.
_MAPS = frozenset({"labels", "annotations"})


def rows(lines: Iterable[str]) -> Iterator[Row]:
    """The rows by the names of their columns, without the zone that Azure adds to one.

    A row that cannot be read has no cells.
    """
    csv.field_size_limit(_CELL_BYTES_MAX)
    texts = (line if line.endswith("\n") else f"{line}\n" for line in lines)
    head = next(texts, "")
    sign = _sign(head)
    names = [n.partition(" [")[0].strip() for n in next(_parsed([head], sign), [])]
    for row in _parsed(texts, sign):
        yield dict(zip(names, row, strict=False))


def _parsed(lines: Iterable[str], sign: str) -> Iterator[list[str]]:
    """The cells of each row, none of one that cannot be read; no empty lines."""
    reader = csv.reader(lines, delimiter=sign)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:  # a carriage return amid a line, or a cell without an end
            yield []
        else:
            if row:
                yield row


def first_rows(head: bytes) -> list[Row]:
    """The first rows of what may be a table, none if it begins as none.

    Only the names of columns may stand in its first line where what separates them is no comma.
    """
    first = head[: head.find(b"\n")] if b"\n" in head else b""
    if _sign(first.decode(errors="replace")) != "," and not _NAMES.fullmatch(first):
        return []
    if not first or b"{" in first or b"[" in first[:1] or b"\0" in first:
        return []
    found = rows(io.StringIO(head.decode(errors="replace")))
    return list(islice(found, _ROWS_LOOKED_AT))


def is_table(head: bytes) -> bool:
    """Whether text begins as a table whose rows have as many cells as there are names."""
    first = head[: head.find(b"\n")].decode(errors="replace") if b"\n" in head else ""
    names = next(_parsed([first], _sign(first)), [])
    found = first_rows(head)
    whole = found[:-1] or found  # the last may be cut
    return len(names) >= _COLUMNS_MIN and bool(whole) and all(len(r) == len(names) for r in whole)


def nested(row: Mapping[str, Any], prefix: str) -> Raw:
    """The object whose fields stand under dotted names behind a prefix; texts stay texts.

    A cell that is JSON as a whole is what it holds.
    """
    found: Raw = {}
    for name, value in row.items():
        if not str(name).startswith(prefix) or value in _NOTHING:
            continue
        path = str(name).removeprefix(prefix).split(".")
        for at, step in enumerate(path[:-1]):
            if step in _MAPS:
                path[at + 1 :] = [".".join(path[at + 1 :])]
                break
        place = found
        for step in path[:-1]:
            inner = place.setdefault(step, {})
            if type(inner) is not dict:
                break  # a cell has it whole
            place = inner
        else:
            place[path[-1]] = _whole(value)
    return found


def single(row: Mapping[str, Any]) -> Raw:
    """The fields of what Kibana is answered, which has an array of one value for each."""
    return {k: v[0] if type(v) is list and len(v) == 1 else v for k, v in row.items()}


def _whole(value: Any) -> Any:
    """What a cell holds: the JSON in it, or its text without the quotes that guard it."""
    if type(value) is not str:
        return value
    if value[0] in "{[":
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == "'" else value


def _sign(head: str) -> str:
    return max(_BETWEEN, key=head.count)
