"""JSON for stdout and files: one document, or one a line. No character in it moves a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

import orjson

from tracekit.foreign import for_json


def json_text(document: Any, *, indented: bool = False) -> str:
    """The document as JSON, without a line feed at its end."""
    option = orjson.OPT_INDENT_2 if indented else None
    return for_json(orjson.dumps(document, option=option).decode())


def write_document(document: Any, out: TextIO) -> None:
    """Write one document, indented."""
    out.write(json_text(document, indented=True) + "\n")


def write_lines(documents: Iterable[Any], out: TextIO) -> None:
    """Write one document a line."""
    out.writelines(json_text(document) + "\n" for document in documents)
