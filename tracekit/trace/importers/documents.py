"""JSON documents out of lines: one a line, run together, in arrays, or spread over lines.

A document is an object that stands in no other: the brackets and commas of arrays around it are
passed over, so an array of a gigabyte is read element by element. Text that is none comes out as
its line. Most lines are told by their ends and the number of their braces; where that is not
enough, strings and brackets are followed one by one.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator

import orjson

from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.values import check_values

#: More than that, in one document, is not held in memory.
_DOCUMENT_BYTES_MAX = 256 * 1024 * 1024
#: A string begins at no escaped quote: of one that is cut off each would be looked at to the end.
_TOKENS = re.compile(rb'(?<!\\)"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]')
#: How a long object begins that is printed on many lines, and where an item of a list that is on
#: one may end; of these so many are tried, as some stand within items.
_PRINTED = re.compile(rb'\s*+\{\s*?\r?\n([ \t]++)"')
_SENT = re.compile(rb'\},\{"(?:apiVersion|kind|metadata)"')
_SENT_TRIED = 4
_BETWEEN = b" \t\r\n,[]\0\x1e"
_QUOTE, _BRACE, _OPEN = ord('"'), ord("{"), b"{["
_CLOSING = {ord("{"): b"}", ord("["): b"]"}

Document = tuple[int, bytes]


def documents(
    lines: Iterable[bytes], name: str, taken: Callable[[bytes], bool] | None = None
) -> Iterator[Document]:
    """Each document with the number of its first line; what is none is handed out as a line.

    `taken` is asked about each line that begins outside any document; one of which it says that it
    took it as a whole document is not handed out.

    Raises:
        TraceFormatError: A document is larger than memory should hold.
    """
    splitter = _Splitter(name)
    for number, line in enumerate(lines, 1):
        if taken is not None and splitter.is_between and taken(line):
            continue
        for document in splitter.take(number, line):
            check_values(document[1], name)
            yield document
    for document in splitter.rest():
        check_values(document[1], name)
        yield document


def split(text: bytes) -> list[bytes]:
    """The documents in one piece of text, and what is left between them."""
    return [found for _, found in documents(text.split(b"\n"), "text")]


class _Splitter:
    """Where in a document the text stands."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: list[bytes] = []
        self._bytes = 0
        self._number = 0
        #: The brackets that are open, while they are followed one by one.
        self._stack = bytearray()
        #: The indent and bracket that end a document that began with a bracket alone.
        self._end: bytes | None = None
        self._in_array = False

    @property
    def is_between(self) -> bool:
        """Whether neither a document nor an array is open."""
        return not self._held and not self._in_array

    def take(self, number: int, line: bytes) -> Iterator[Document]:
        """Take the next line; the documents that end in it."""
        if self._held:
            if self._is_broken(line):
                yield from self._damaged()
            elif self._end is not None:
                yield from self._printed(number, line)
                return
            else:
                yield from self._follow(number, line)
                return
        yield from self._fresh(number, line)

    def rest(self) -> Iterator[Document]:
        """What is left of a document that did not end."""
        held, number = self._held, self._number
        self._forget()
        if len(held) < 2:  # noqa: PLR2004 - there is nothing that it can have swallowed
            yield from ((number, text) for text in held)
            return
        # Either all of it is one document that was cut off, or one cut line swallowed whole ones.
        whole = [i for i, line in enumerate(held) if i and _is_whole(line.strip().rstrip(b","))]
        if not whole or not held[0].lstrip().startswith(b'{"'):
            yield number, b"\n".join(held)
            return
        yield number, held[0]
        for offset, line in enumerate(held[1:], 1):
            if line.strip(_BETWEEN):
                yield number + offset, line.strip().rstrip(b",")

    def _fresh(self, number: int, line: bytes) -> Iterator[Document]:
        """A line before which nothing is open."""
        bare = line.strip()
        if bare.startswith(BOM_UTF8):  # of a file that was put behind another
            bare = line = bare.removeprefix(BOM_UTF8)
        if bare[:1] == b"{":
            text = bare.rstrip(b",")
            if text == b"{":
                self._number = number
                self._end = line[: line.index(b"{")] + b"}"
                self._hold(line)
            elif not self._in_array and text == bare and _is_whole(text):
                yield number, text
            else:
                yield from self._follow(number, line)
            return
        inner = bare.lstrip(b"[], \t\0\x1e")
        if not inner:
            self._in_array = self._in_array or b"[" in bare
        elif inner[:1] == b"{" and len(inner) < len(bare):
            self._in_array = self._in_array or b"[" in bare
            yield from self._follow(number, inner)
        else:
            yield number, line

    def _printed(self, number: int, line: bytes) -> Iterator[Document]:
        """A line of a document that began with a bracket alone: its last stands as the first."""
        end = self._end
        assert end is not None  # noqa: S101 - the caller looked
        if not line.startswith(end):
            self._hold(line)
            return
        text = b"\n".join((*self._held, end)).strip()
        if text.count(b"{") == text.count(b"}"):
            yield self._number, text
            self._forget()
            yield from self._fresh(number, line[len(end) :].lstrip())
            return
        held, first = self._held, self._number
        self._forget()
        for offset, earlier in enumerate((*held, line)):  # braces in strings: follow each
            yield from self._follow(first + offset, earlier)

    def _follow(self, number: int, line: bytes) -> Iterator[Document]:
        """Follow the brackets of a line, outside its strings."""
        stack = self._stack
        start = 0
        for token in _TOKENS.finditer(line):
            sign = line[token.start()]
            if sign == _QUOTE:
                continue
            if not stack:
                if sign != _BRACE:
                    continue
                if line[start : token.start()].strip(_BETWEEN):
                    yield number, line[start : token.start()].strip()
                start, self._number = token.start(), number
                stack.append(sign)
            elif sign in _OPEN:
                stack.append(sign)
            else:
                stack.pop()
                if not stack:
                    held, first = self._held, self._number
                    self._held, self._bytes = [], 0
                    yield first, b"\n".join((*held, line[start : token.end()]))
                    start = token.end()
        if stack:
            self._hold(line[start:])
        elif line[start:].strip(_BETWEEN):
            yield number, line[start:].strip()

    def _is_broken(self, line: bytes) -> bool:
        """Whether no document can go on with this line: in an object a key follows, no object."""
        bare = line.lstrip()
        if not bare.startswith(b'{"') and bare.strip() != b"{":
            return False
        before = self._held[-1].rstrip()
        if self._end is not None and len(self._held) > 1:
            indent = self._end[:-1]
            inner = self._held[1]
            if line.startswith(indent + b"{") and inner[len(indent) :][:1] in (b" ", b"\t"):
                return True  # as far out as the document that is open
        in_object = self._stack[-1:] == b"{" or (self._end is not None and len(self._held) == 1)
        if before.endswith(b":"):
            return False
        return in_object or not before.endswith((b"[", b","))

    def _damaged(self) -> Iterator[Document]:
        held, number = self._held, self._number
        self._forget()
        yield number, b"\n".join(held)

    def _hold(self, line: bytes) -> None:
        self._held.append(line)
        self._bytes += len(line)
        if self._bytes > _DOCUMENT_BYTES_MAX:
            raise TraceFormatError(
                f"{self._name}: the JSON document that begins in line {self._number} has more than "
                f"{_DOCUMENT_BYTES_MAX >> 20} MiB: export it as JSON lines (jq -c '.items[]')"
            )

    def _forget(self) -> None:
        self._held, self._bytes, self._end = [], 0, None
        self._stack.clear()


def _is_whole(text: bytes) -> bool:
    """Whether a line is one object, as far as its braces tell."""
    return (
        text.startswith(b"{")
        and text.endswith(b"}")
        and text.count(b"{") == text.count(b"}")
        and b"}{" not in text
        and b"} {" not in text
    )


def begun(text: bytes) -> bytes | None:
    """The beginning of a long list, cut after a whole item and closed; None if it is none.

    What kubectl prints, and what a server sends, is told by a few places in it, in place of all its
    brackets: whether they are the right ones is told by reading the result.
    """
    printed = _PRINTED.match(text)
    if printed is not None and b"\n}" not in text:
        ends = [text.rfind(b"\n" + 2 * printed[1] + b"}") + 2 * len(printed[1]) + 2]
    elif text[:1] == b"{" and b"\n" not in text:
        ends = [found.start() + 1 for found in _SENT.finditer(text)][: -_SENT_TRIED - 1 : -1]
    else:
        return None
    for end in ends:
        found = text[:end] + b"]}"
        try:
            orjson.loads(found)
        except orjson.JSONDecodeError:
            continue
        return found
    return None


def closed(text: bytes, depth: int | None = None) -> bytes | None:
    """The beginning of a document made whole: cut after a value that ended, its brackets closed.

    With `depth`, after one within at most so many open brackets: with 2, after a whole item of a
    list. None if there is no such value.
    """
    stack = bytearray()
    found: tuple[int, bytes] | None = None
    for token in _TOKENS.finditer(text):
        sign = text[token.start()]
        if sign == _QUOTE:
            continue
        if sign in _OPEN:
            stack.append(sign)
        elif stack:
            stack.pop()
            if depth is None or len(stack) <= depth:
                found = token.end(), bytes(stack)
            if not stack:
                break
    if found is None:
        return None
    end, open_ = found
    return text[:end] + b"".join(_CLOSING[sign] for sign in reversed(open_))
