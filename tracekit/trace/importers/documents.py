"""JSON documents out of lines: one a line, in an array, or spread over lines as people print them.

Printed documents are told by their outermost brackets, which stand alone at the same indent; so an
array of a gigabyte is read element by element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracekit.errors import TraceFormatError

_DOCUMENT_BYTES_MAX = 256 * 1024 * 1024
_OPEN = {b"{": b"}", b"[": b"]"}


def documents(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Each document with the number of its first line; what is none is handed out as a line."""
    held: list[bytes] = []
    held_bytes = first = 0
    indent = end = b""
    in_array = False
    for number, line in enumerate(lines, 1):
        text = line.rstrip()
        if held:
            held.append(line)
            held_bytes += len(line)
            if held_bytes > _DOCUMENT_BYTES_MAX:
                raise TraceFormatError(
                    f"{name}: the JSON document that begins in line {first} has more than "
                    f"{_DOCUMENT_BYTES_MAX >> 20} MiB: export it as JSON lines (jq -c)"
                )
            if text.rstrip(b",") == indent + end:
                yield first, b"\n".join(held).rstrip().rstrip(b",")
                held, held_bytes = [], 0
            continue
        bare = text.lstrip()
        if not bare:
            continue
        if bare == b"[" and not in_array and text == bare:
            in_array = True
        elif in_array and bare == b"]":
            in_array = False
        elif bare in _OPEN:
            indent, end, first = text[: len(text) - 1], _OPEN[bare], number
            held, held_bytes = [line], len(line)
        elif in_array:
            yield number, bare.rstrip(b",")
        else:
            yield number, line
    if held:
        yield first, b"\n".join(held)
