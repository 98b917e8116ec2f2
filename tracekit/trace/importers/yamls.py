"""YAML out of files: the documents between `---` one by one, of bounded size.

An alias stands for what its anchor holds, so few bytes can name more nodes than memory holds: what
all aliases stand for is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from tracekit.base.errors import TraceFormatError
from tracekit.base.plain_yaml import PlainLoader
from tracekit.trace.importers.source import LineSource

Raw = dict[str, Any]

_DOCUMENT_BYTES_MAX = 64 * 1024 * 1024
_NODES_MAX = 20_000_000
#: Lines and items of a document: `kubectl` needs thirty bytes for each and a bomb two, of which the
#: parser makes several hundred.
_ITEMS_MAX = 3_000_000
_BEFORE_AN_ITEM = (b"\n", b",", b"[", b"{")
_NESTING_MAX = 200
_COMMENT = re.compile(rb"\A(?:[ \t]*(?:#[^\n]*)?\r?\n|---[ \t]*(?:#[^\n]*)?\r?\n|%YAML[^\n]*\n)*")
_KEY = re.compile(rb"\A(?:- )?['\"]?[A-Za-z_][\w./-]*['\"]?:(?:[ \t\r\n]|\Z)")


def is_yaml(sample: bytes) -> bool:
    """Whether text begins as a YAML mapping, or as a list of them, after comments and `---`."""
    match = _COMMENT.match(sample)
    rest = sample[match.end() if match is not None else 0 :]
    return b"\0" not in sample[:4096] and _KEY.match(rest) is not None


def yaml_documents(source: LineSource, broken: Callable[[str], None]) -> Iterator[Raw]:
    """Each mapping of a file; `broken` is called with where a document cannot be read.

    Raises:
        TraceFormatError: A document is larger than memory should hold.
    """
    for number, text in _pieces(source):
        try:
            found = load(text, source.name)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            broken(f"line {number + (mark.line if mark is not None else 0)}")
            continue
        for document in found if isinstance(found, list) else [found]:
            if isinstance(document, dict):
                yield document
            elif document is not None:
                broken(f"line {number}")


def load(text: bytes, name: str) -> Any:
    """One document, as JSON's values.

    Raises:
        TraceFormatError: It holds more values than memory should.
    """
    if len(text) > _ITEMS_MAX and sum(map(text.count, _BEFORE_AN_ITEM)) > _ITEMS_MAX:
        raise _too_many(name)
    loader: Any = PlainLoader(text)
    try:
        found = loader.get_single_data()
    except RecursionError as error:
        raise yaml.YAMLError from error
    finally:
        loader.dispose()
    if b"*" in text and _size(found, {}, 0) > _NODES_MAX:
        raise TraceFormatError(
            f"{name} has YAML aliases that stand for more than {_NODES_MAX:,} values: ask kubectl "
            "for -o json"
        )
    return found


def _too_many(name: str) -> TraceFormatError:
    return TraceFormatError(
        f"{name} has a YAML document of more than {_ITEMS_MAX:,} values: ask kubectl for -o json, "
        "which is read faster"
    )


def _pieces(source: LineSource) -> Iterator[tuple[int, bytes]]:
    """The text between `---`, with the number of its first line."""
    held: list[bytes] = []
    size = 0
    first = 1
    for number, line in enumerate(source.text_lines(), 1):
        if line[:3] == b"---" and line[3:4] in (b"", b" ", b"\r", b"\t"):
            if any(text.strip() for text in held):
                yield first, b"\n".join(held)
            held, size, first = [line[3:]], 0, number
            continue
        held.append(line)
        size += len(line) + 1
        if len(held) > _ITEMS_MAX:  # before memory holds them all
            raise _too_many(source.name)
        if size > _DOCUMENT_BYTES_MAX:
            raise TraceFormatError(
                f"{source.name} is YAML of more than {_DOCUMENT_BYTES_MAX >> 20} MiB: ask kubectl "
                "for -o json, which is read faster"
            )
    if any(text.strip() for text in held):
        yield first, b"\n".join(held)


def _size(value: Any, known: dict[int, int], depth: int) -> int:
    """How many values a document has once every alias is written out."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) in known:
        return known[id(value)]
    if depth > _NESTING_MAX:
        return _NODES_MAX + 1
    known[id(value)] = _NODES_MAX + 1  # what holds itself has no end
    inner = value.values() if isinstance(value, dict) else value
    known[id(value)] = 1 + sum(_size(item, known, depth + 1) for item in inner)
    return known[id(value)]
