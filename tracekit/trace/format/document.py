"""The column tables of `docs/trace-format.md`, made from the schema so that they cannot drift.

`python -m tracekit.trace.format.document docs/trace-format.md` rewrites them in place.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tracekit.trace.format.schema import GROUPS

_BLOCK = re.compile(r"(<!-- columns: begin -->\n).*(<!-- columns: end -->\n)", re.DOTALL)


def type_name(kind: pa.DataType) -> str:
    """An Arrow type in words."""
    if pa.types.is_list(kind):
        return f"list of {type_name(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "struct of " + ", ".join(f"{f.name} {type_name(f.type)}" for f in kind)
    return str(kind)


def column_tables() -> str:
    """One Markdown table per group of columns."""
    return "".join(_tables())


def _tables() -> Iterator[str]:
    for title, columns in GROUPS.items():
        yield f"\n### {title}\n\n| column | type | what it is | null means |\n|---|---|---|---|\n"
        for column in columns:
            kind = type_name(column.type)
            yield f"| `{column.name}` | {kind} | {column.source} | {column.null} |\n"
    yield "\n"


def with_columns(text: str) -> str:
    """The document with its column tables as the schema has them."""
    return _BLOCK.sub(lambda match: match[1] + column_tables() + match[2], text)


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(with_columns(document.read_text("utf-8")), "utf-8")
