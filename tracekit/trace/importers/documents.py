"""JSON documents out of lines: one a line, in an array, or spread over lines as people print them.

Printed documents are told by their outermost brackets, which stand alone at the same indent; so an
array of a gigabyte is read element by element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracekit.errors import TraceFormatError

_DOCUMENT_BYTES_MAX = 256 * 1024 * 1024
_CLOSING = {b"{": b"}", b"[": b"]"}


class _Printed:
    """A document that is spread over lines, while they come."""

    def __init__(self, first: bytes, number: int) -> None:
        bare = first.strip()
        self.number = number
        self._end = first.rstrip()[: -len(bare)] + _CLOSING[bare]
        self._lines = [first]
        self._bytes = len(first)

    def take(self, line: bytes, name: str) -> bool:
        """Take the next line; whether it was the last one."""
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes > _DOCUMENT_BYTES_MAX:
            raise TraceFormatError(
                f"{name}: the JSON document that begins in line {self.number} has more than "
                f"{_DOCUMENT_BYTES_MAX >> 20} MiB: export it as JSON lines (jq -c)"
            )
        return line.rstrip().rstrip(b",") == self._end

    @property
    def text(self) -> bytes:
        """All of it so far."""
        return b"\n".join(self._lines).rstrip().rstrip(b",")


def documents(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Each document with the number of its first line; what is none is handed out as a line."""
    printed: _Printed | None = None
    in_array = False
    for number, line in enumerate(lines, 1):
        if printed is not None:
            if printed.take(line, name):
                yield printed.number, printed.text
                printed = None
            continue
        bare = line.strip()
        if bare == b"[" and not in_array and line[:1] == b"[":
            in_array = True
        elif bare in _CLOSING:
            printed = _Printed(line, number)
        elif bare and not (in_array and bare == b"]"):
            yield number, bare.rstrip(b",") if in_array else line
    if printed is not None:
        yield printed.number, printed.text
