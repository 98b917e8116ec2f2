"""How many values a document may hold that is taken apart in memory."""

from __future__ import annotations

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
