"""YAML out of files: the documents between `---` one by one, of bounded size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from tracekit.base import plain_yaml
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.source import LineSource

Raw = dict[str, Any]

_DOCUMENT_BYTES_MAX = 64 * 1024 * 1024
_ITEMS_MAX = plain_yaml.ITEMS_MAX
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
    try:
        return plain_yaml.load(text, items_max=_ITEMS_MAX)
    except plain_yaml.TooManyValuesError as error:
        raise _too_many(name, error) from error


def _too_many(name: str, error: plain_yaml.TooManyValuesError) -> TraceFormatError:
    return TraceFormatError(f"{name} has {error}: ask kubectl for -o json, which is read faster")


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
            error = plain_yaml.TooManyValuesError(_ITEMS_MAX, by_aliases=False)
            raise _too_many(source.name, error)
        if size > _DOCUMENT_BYTES_MAX:
            raise TraceFormatError(
                f"{source.name} is YAML of more than {_DOCUMENT_BYTES_MAX >> 20} MiB: ask kubectl "
                "for -o json, which is read faster"
            )
    if any(text.strip() for text in held):
        yield first, b"\n".join(held)
