"""What is wrong with a document: more values than memory holds, half a character."""

from __future__ import annotations

import json

import orjson

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.limits import VALUES_MAX, has_more_values


def check_values(document: bytes | bytearray, name: str) -> None:
    """Refuse a JSON document that Python's objects would make gigabytes of.

    Raises:
        TraceFormatError: it has more than `VALUES_MAX`.
    """
    if has_more_values(document, VALUES_MAX):
        raise TraceFormatError(
            f"{name} has a JSON document of more than {VALUES_MAX:,} values: write its items one "
            "a line (`jq -c '.items[]'`)"
        )


def has_half_a_character(document: bytes) -> bool:
    r"""Whether an escaped half of a character (\ud83d alone) is all that is wrong with it."""
    try:
        orjson.loads(document)
    except orjson.JSONDecodeError as error:
        if "surrogate" in str(error):
            return _is_whole(document)
    return False


def _is_whole(document: bytes) -> bool:
    try:
        json.loads(document)
    except (ValueError, RecursionError):
        return False
    return True
