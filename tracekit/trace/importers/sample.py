"""What a file begins with, read once for all kinds that may claim it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import orjson

from tracekit.trace.importers.containers import joined
from tracekit.trace.importers.documents import begun, closed, documents
from tracekit.trace.importers.yamls import blocks_in, is_yaml

#: What of a file is looked at to tell its kind, and of one that it does not tell.
SAMPLE_BYTES = 256 * 1024
DEEP_BYTES = 8 * 1024 * 1024

#: What a ZIP archive begins with; its files may lie in it as they are.
ZIP_MAGIC = b"PK\x03\x04"
#: Databases have more zeros than that.
_TEXT_TO_ZEROS = 20

_ISO = re.compile(
    rb"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s(.*)$",
    re.DOTALL,
)
_TS = re.compile(rb"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?)\s(.*)$", re.DOTALL)
#: What stands before JSON in a line: klog's head, what `kubectl -v=9` says of an answer, a stream
#: of events over HTTP.
_KLOG_HEAD = re.compile(
    rb"^(?:[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s+\d+ [\w./-]+:\d+\] (?:Response Body: )?"
    rb"|data: )(?=\{)"
)
#: What is left of a line that CRI keeps whole, without its stamp.
_CRI_HEAD = re.compile(rb"^std(?:out|err) F (?=[{IWEF])")
_FIELD = re.compile(
    rb"^(?:- |  )?(apiVersion|kind|auditID|protoPayload):[ \t]*([^\s#]*)", re.MULTILINE
)


class Sample:
    """The beginning of a file, as bytes and as the documents in it."""

    def __init__(self, head: bytes, *, whole: bool) -> None:
        self.head = head
        #: Whether the file ends with it.
        self.whole = whole

    @property
    def is_text(self) -> bool:
        """Whether it can be text at all: a log that a crash cut has zeros, but not many."""
        if self.head.startswith(ZIP_MAGIC):
            return False
        begin = self.head[:4096].lstrip(b"\0")
        return begin.count(0) * _TEXT_TO_ZEROS <= len(begin)

    @cached_property
    def is_yaml(self) -> bool:
        """Whether it begins as YAML."""
        return is_yaml(self.head)

    @cached_property
    def texts(self) -> list[bytes]:
        """The documents in it; of one that goes on behind it what is whole."""
        if self._one is not None:
            return [self.head.strip()]
        if self._begun is not None:
            return [self._begun]
        return self._texts(self._lines)

    @cached_property
    def values(self) -> list[dict[str, Any]]:
        """The objects in it, without the stamps that may stand before lines."""
        if self._one is not None:
            return [self._one]
        lines = [] if self._begun else self.head.split(b"\n")
        lines = [without_klog_head(unstamped(line)[1]) for line in lines]
        texts = self.texts if self._begun or lines == self._lines else self._texts(lines)
        found = map(_json, texts)
        return [value for value in found if isinstance(value, dict)]

    @cached_property
    def fields(self) -> dict[str, set[str]]:
        """Of YAML in it the values of some fields of its documents and their items."""
        found: dict[str, set[str]] = {}
        text = b"\n".join((self.head if self.is_yaml else b"", *blocks_in(self.head)))
        for name, value in _FIELD.findall(text):
            found.setdefault(name.decode(), set()).add(value.strip(b"'\"").decode(errors="replace"))
        return found

    @cached_property
    def _one(self) -> dict[str, Any] | None:
        """The object that it is as a whole, as most files of a bundle are one."""
        if not self.whole or self.head.lstrip()[:1] != b"{":
            return None
        found = _json(self.head)
        return found if isinstance(found, dict) else None

    @cached_property
    def _begun(self) -> bytes | None:
        """The list that it begins and does not end, as far as its whole items go."""
        return None if self.whole or not self.is_text else begun(self.head)

    @cached_property
    def _lines(self) -> list[bytes]:
        """The lines, those put together that a container runtime took apart."""
        return list(joined(self.head.split(b"\n")))

    def _texts(self, lines: Iterable[bytes]) -> list[bytes]:
        if not self.is_text:
            return []
        found = [text for _, text in documents(lines, "sample")]
        if found and not self.whole:
            text = closed(found.pop())
            found += [] if text is None else [text]
        return found


def unstamped(line: bytes) -> tuple[bytes | None, bytes]:
    """The stamp of `ts` (moreutils) before a line, if there is one, and the line without it."""
    found = _ISO.match(line) or _TS.match(line)
    return (None, line) if found is None else (found.group(1), found.group(2))


def without_klog_head(line: bytes) -> bytes:
    """What a line of klog, or of a container's log on its node, says that is JSON."""
    return _KLOG_HEAD.sub(b"", _CRI_HEAD.sub(b"", line, count=1), count=1)


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
