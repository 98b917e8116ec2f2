"""JSON for stdout and files: one document, or one a line. No character in it moves a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

import orjson

from tracekit.base.escaping import for_json


def json_text(document: Any, *, indented: bool = False) -> str:
    """The document as JSON, without a line feed at its end."""
    return for_json(plain_json(document, indented=indented))


def plain_json(document: Any, *, indented: bool = False) -> str:
    """The document as JSON; what is no JSON is text, and numbers have any length."""
    option = orjson.OPT_INDENT_2 if indented else 0
    try:
        return orjson.dumps(document, default=str, option=option).decode()
    except TypeError:  # a number of more than 64 bits, as an object of a trace may have
        separators = None if indented else (",", ":")
        return json.dumps(
            document, default=str, ensure_ascii=False, indent=2 if indented else None,
            separators=separators,
        )  # fmt: skip


def write_document(document: Any, out: TextIO) -> None:
    """Write one document, indented."""
    out.write(json_text(document, indented=True) + "\n")


def write_lines(documents: Iterable[Any], out: TextIO) -> None:
    """Write one document a line."""
    out.writelines(json_text(document) + "\n" for document in documents)
