"""The texts of which an audit log is made: JSON in any layout, YAML, or rows of a CSV export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tracekit.trace.importers.audit.columns import are_columns
from tracekit.trace.importers.audit.wrappers import MARKS
from tracekit.trace.importers.containers import joined
from tracekit.trace.importers.documents import documents
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.tables import first_rows, rows
from tracekit.trace.importers.yamls import is_yaml, yaml_documents

_HEAD_BYTES = 64 * 1024


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
        yield from rows(line.decode(errors="replace") for line in source.text_lines())
    else:
        for _, text in documents(joined(source.lines()), source.name, taken):
            yield text


def is_csv(head: bytes) -> bool:
    """Whether text begins as a CSV export in which audit events are."""
    return any(
        are_columns(row)
        or any(
            n in MARKS or any(m in cell and "{" in cell for m in MARKS) for n, cell in row.items()
        )
        for row in first_rows(head)
    )
