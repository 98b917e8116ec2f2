"""The texts of which an audit log is made: JSON in any layout, YAML, or rows of a CSV export."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from tracekit.trace.importers.containers import joined
from tracekit.trace.importers.documents import documents
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.yamls import is_yaml, yaml_documents

_HEAD_BYTES = 64 * 1024
_ROWS_LOOKED_AT = 50
#: A cell with an event: etcd takes 1.5 MiB, quotes are doubled, two bodies.
_CELL_BYTES_MAX = 64 * 1024 * 1024
#: What may stand between cells: a spreadsheet of a country with decimal commas writes semicolons.
_BETWEEN = (",", ";", "\t")
_NAMES = re.compile(rb"[\w@.\[\]()\"; \t-]+\r?")
_MARKS = ("auditID", "AuditId", "protoPayload")


def texts(
    source: LineSource, broken: Callable[[str], None], taken: Callable[[bytes], bool]
) -> Iterator[bytes | dict[str, Any]]:
    """Each document of a file: as text, or as what was read of it.

    `broken` is called with what of YAML is left out. Lines that `taken` says it took
    are not handed out (`documents`).
    """
    head = source.peek(_HEAD_BYTES)
    if is_yaml(head):
        yield from yaml_documents(source, broken)
    elif is_csv(head):
        yield from _rows(line.decode(errors="replace") for line in source.text_lines())
    else:
        for _, text in documents(joined(source.lines()), source.name, taken):
            yield text


def is_csv(head: bytes) -> bool:
    """Whether text begins as a CSV export in which audit events are.

    Only the names of columns may stand in its first line where what separates them is no comma.
    """
    first = head[: head.find(b"\n")] if b"\n" in head else b""
    if _sign(first.decode(errors="replace")) != "," and not _NAMES.fullmatch(first):
        return False
    if not first or b"{" in first or b"[" in first[:1] or b"\0" in first:
        return False
    rows = _rows(io.StringIO(head.decode(errors="replace")))
    try:
        return any(
            mark in name or (type(cell) is str and mark in cell and "{" in cell)
            for row in islice(rows, _ROWS_LOOKED_AT)
            for name, cell in row.items()
            for mark in _MARKS
        )
    except csv.Error:
        return False


def _sign(head: str) -> str:
    return max(_BETWEEN, key=head.count)


def _rows(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The rows by the names of their columns, without the zone that the portal adds to a name."""
    csv.field_size_limit(_CELL_BYTES_MAX)
    texts = (line if line.endswith("\n") else f"{line}\n" for line in lines)
    head = next(texts, "")
    sign = _sign(head)
    names = [n.partition(" [")[0].strip() for n in next(csv.reader([head], delimiter=sign), [])]
    reader = csv.reader(texts, delimiter=sign)
    for row in reader:
        if row:
            yield dict(zip(names, row, strict=False))
