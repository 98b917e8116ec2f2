"""YAML out of files: the documents between `---` one by one, of bounded size.

People append one output of `kubectl get -o yaml` to another, without `---` between, and keep YAML
in an issue or a terminal's text: between prompts, prose and fences, indented or quoted. So a
document also begins where the key comes again with which one began, and a text that is no YAML as
a whole is looked through for blocks that are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import yaml

from tracekit.base import plain_yaml
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.documents import split
from tracekit.trace.importers.source import LineSource

Raw = dict[str, Any]

_DOCUMENT_BYTES_MAX = 64 * 1024 * 1024
_ITEMS_MAX = plain_yaml.ITEMS_MAX
_COMMENT = re.compile(rb"\A(?:[ \t]*(?:#[^\n]*)?\r?\n|---[ \t]*(?:#[^\n]*)?\r?\n|%YAML[^\n]*\n)*")
_KEY = re.compile(rb"(?:- )?['\"]?[A-Za-z_][\w./-]*['\"]?:(?:[ \t\r\n]|\Z)")
#: A line of JSON, alone or behind its name: no key of YAML stands beside it at the margin.
_JSON_LINE = re.compile(rb"^(?:[\w.-]+:[ \t]*\{[ \t]*\"|[{\[][ \t\r]*(?:\"|\{|$))", re.MULTILINE)
_TOP_KEY = re.compile(rb"([A-Za-z_][\w./-]*):(?=[ \t\r]|\Z)")
#: What kubectl's YAML begins with, behind what a text has before each line of it.
_BLOCK = re.compile(rb"^([ \t>]*)apiVersion:[ \t]+[\w./'\"-]+[ \t\r]*$")
_ANY_BLOCK = re.compile(rb"^[ \t>]*apiVersion:[ \t]", re.MULTILINE)
#: What a line of a block's document may begin with; the fields of an object begin in lower case.
_IN_BLOCK = re.compile(rb"[ \t]+\S|- |-[\r]?\Z|#|[a-z]\w*:(?:[ \t\r]|\Z)")
#: No manifest has it, every object of a server does.
_UID = re.compile(rb"^[ \t]+uid:[ \t]", re.MULTILINE)


def is_yaml(sample: bytes) -> bool:
    """Whether text is YAML, or has a server's objects as YAML in it.

    It begins as a mapping or as a list of them, after comments and `---`, or blocks of it do.
    """
    if b"\0" in sample[:4096]:
        return False
    if _begins(sample):
        return _JSON_LINE.search(sample) is None
    return sample.lstrip()[:1] not in (b"{", b"[") and any(map(_UID.search, blocks_in(sample)))


def _begins(text: bytes) -> bool:
    """Whether text begins as a mapping or a list of them, at the margin."""
    match = _COMMENT.match(text)
    return _KEY.match(text, match.end() if match is not None else 0) is not None


def blocks_in(text: bytes) -> list[bytes]:
    """The blocks of YAML between other lines of a text, without what stands before their lines."""
    if _ANY_BLOCK.search(text) is None:
        return []
    return [block for _, block, is_yaml_ in _blocks(text) if is_yaml_]


def yaml_documents(source: LineSource, broken: Callable[[str], None]) -> Iterator[Raw]:
    """Each mapping of a file, of JSON between them, too.

    `broken` is called with what of it is left out, as the rest of a sentence.

    Raises:
        TraceFormatError: A document is larger than memory should hold.
    """
    for number, text in _pieces(source):
        try:
            found = load(text, source.name)
            error_line = 0
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            found, error_line = None, number + (mark.line if mark is not None else 0)
        if (error_line or not _begins(text)) and blocks_in(text):
            yield from _between_lines(number, text, source.name, broken)
        elif error_line:
            broken(f"is no YAML at line {error_line}")
        else:
            yield from _mappings(found, number, broken)


class BlocksBetween:
    """Blocks of YAML in a file of JSON: people put outputs of both behind each other."""

    def __init__(self, name: str, broken: Callable[[str], None]) -> None:
        self._name, self._broken = name, broken
        self._held: list[bytes] = []
        self._bytes = 0
        self._ready: list[bytes] = []

    def take(self, line: bytes) -> bool:
        """Whether a line outside any document of JSON is one of YAML, or `---` between two."""
        is_end = line[:3] == b"---" and not line[3:].strip()
        begin = _BLOCK.match(line)
        begins = begin is not None and not begin.group(1)
        if begins or is_end or (self._held and _within(line, b"") is None):
            self._close()
        if is_end or not (begins or self._held):
            return is_end
        self._held.append(line)
        self._bytes += len(line)
        if self._bytes > _DOCUMENT_BYTES_MAX:
            raise _too_long(self._name)
        return True

    def documents(self, *, end: bool = False) -> Iterator[Raw]:
        """The mappings of the blocks that ended; at the `end` of the file that of the last, too."""
        if end:
            self._close()
        ready, self._ready = self._ready, []
        for block in ready:
            try:
                found = load(block, self._name)
            except yaml.YAMLError:
                found = None
            if isinstance(found, dict):
                yield found
            else:
                self._broken("has a block of YAML that cannot be read")

    def _close(self) -> None:
        if self._held:
            self._ready.append(b"\n".join(self._held))
        self._held, self._bytes = [], 0


def _mappings(found: Any, number: int, broken: Callable[[str], None]) -> Iterator[Raw]:
    for document in found if isinstance(found, list) else [found]:
        if isinstance(document, dict):
            yield document
        elif document is not None:
            broken(f"is no YAML at line {number}")


def _between_lines(
    number: int, text: bytes, name: str, broken: Callable[[str], None]
) -> Iterator[Raw]:
    """The mappings of a text that is no YAML as a whole, which begins in that line of its file."""
    for first, block, is_yaml_ in _blocks(text):
        if is_yaml_:
            try:
                yield from _mappings(load(block, name), number + first, broken)
            except yaml.YAMLError as error:
                mark = getattr(error, "problem_mark", None)
                line = number + first + (mark.line if mark is not None else 0)
                broken(f"is no YAML at line {line}")
            continue
        for piece in split(block):
            try:
                found = orjson.loads(piece)
            except orjson.JSONDecodeError:
                found = None
            if isinstance(found, dict):
                yield found
            else:
                for _ in filter(bytes.strip, piece.split(b"\n")):
                    broken("has lines around its documents")


def _blocks(text: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """A text cut into blocks of YAML and what is between them, each with its first line's number.

    What stands before each line of a block (white space, `>`) is taken off.
    """
    prefix: bytes | None = None
    held: list[bytes] = []
    first = 0
    for number, line in enumerate(text.split(b"\n")):
        begin = _BLOCK.match(line)
        inner = None if prefix is None else _within(line, prefix)
        begins = begin is not None and (inner is None or not inner[:1].isspace())
        if begins or (prefix is not None and inner is None):
            if held:
                yield first, b"\n".join(held), prefix is not None
            held, first = [], number
            prefix = begin.group(1) if begin is not None and begins else None
        held.append(line if prefix is None else line[len(prefix) :])
    if held:
        yield first, b"\n".join(held), prefix is not None


def _within(line: bytes, prefix: bytes) -> bytes | None:
    """A line of a block without what stands before it; None if the block has ended."""
    if line.strip() in (b"", prefix.strip()):
        return b""
    inner = line[len(prefix) :]
    return inner if line.startswith(prefix) and _IN_BLOCK.match(inner) is not None else None


def load(text: bytes, name: str) -> Any:
    """One document, as JSON's values.

    Raises:
        TraceFormatError: It holds more values than memory should.
    """
    try:
        return plain_yaml.load(text, items_max=_ITEMS_MAX)
    except plain_yaml.TooManyValuesError as error:
        raise _too_many(name, error) from error


def _too_many(name: str, error: plain_yaml.TooManyValuesError) -> TraceFormatError:
    return TraceFormatError(f"{name} has {error}: ask kubectl for -o json, which is read faster")


def _too_long(name: str) -> TraceFormatError:
    return TraceFormatError(
        f"{name} is YAML of more than {_DOCUMENT_BYTES_MAX >> 20} MiB: ask kubectl for -o json, "
        "which is read faster"
    )


def _pieces(source: LineSource) -> Iterator[tuple[int, bytes]]:
    """The text of each document, with the number of its first line.

    Another begins behind `---`, and where the key with which it began comes again, or a second
    version or kind: of a key that is there twice the loader would keep the last and say nothing.
    """
    held: list[bytes] = []
    keys: dict[bytes, int] = {}
    size = 0
    first = 1
    for number, line in enumerate(source.text_lines(), 1):
        if line[:3] == b"---" and line[3:4] in (b"", b" ", b"\r", b"\t"):
            if any(text.strip() for text in held):
                yield first, b"\n".join(held)
            held, size, first = [line[3:]], 0, number
            keys.clear()
            continue
        key = _TOP_KEY.match(line)
        if key is not None:
            name = key.group(1)
            if name in keys and (name in (b"apiVersion", b"kind") or keys[name] == 0):
                yield first, b"\n".join(held)
                held, size, first = [], 0, number
                keys.clear()
            keys.setdefault(name, len(keys))
        held.append(line)
        size += len(line) + 1
        if len(held) > _ITEMS_MAX:  # before memory holds them all
            error = plain_yaml.TooManyValuesError(_ITEMS_MAX, by_aliases=False)
            raise _too_many(source.name, error)
        if size > _DOCUMENT_BYTES_MAX:
            raise _too_long(source.name)
    if any(text.strip() for text in held):
        yield first, b"\n".join(held)
