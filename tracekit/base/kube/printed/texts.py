"""The face: lines of a text in, objects, Events and what was left out, out.

A text may have several tables and descriptions, and prose and prompts between them. Every line
below a head is a row, until an empty one or another beginning; a description goes on to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tracekit.base.kube.printed.described import BEGINS, described
from tracekit.base.kube.printed.model import LeftOut, Shown, ShownEvent
from tracekit.base.kube.printed.tables import Head, head_of, headless, row_of

_COMMAND = re.compile(r"\b(?:kubectl|oc|k)\s+(?:\S+\s+)*?(?:get|describe)\b")
_NAMESPACE = re.compile(r"(?:\s-n|\s--namespace)[= ]\s*([a-z0-9][a-z0-9-]*)")
#: After so many lines a description ends. A choice: it bounds what is held of one; kubectl's have
#: hundreds.
_LINES_MAX = 20_000

Item = Shown | ShownEvent | LeftOut


class Reading:
    """One text, read line by line; what a line completes comes out."""

    def __init__(self, namespace: str | None = None) -> None:
        """`namespace`: what was asked for, where neither the text nor its commands say it."""
        self._asked = self._namespace = namespace
        self._head: Head | None = None
        self._description: list[str] | None = None
        self._margin: int | None = None
        #: Counts tables: rows of one name in one of them are looks in order.
        self.table = 0

    def line(self, text: str) -> Iterator[Item]:
        """Take the next line."""
        text = text.rstrip("\r\n").expandtabs()
        if self._margin is None and text.strip():
            self._margin = len(text) - len(text.lstrip())
        if self._margin and not text[: self._margin].strip():
            text = text[self._margin :]
        head = head_of(text)
        if head is not None:
            yield from self.end()
            self._head = head
            self.table += 1
        elif BEGINS.match(text):
            yield from self.end()
            self._description = [text]
        elif self._description is not None and not _COMMAND.search(text):
            self._description.append(text)
            if len(self._description) > _LINES_MAX:
                yield from self.end()
        else:
            yield from self._other(text)

    def _other(self, text: str) -> Iterator[Item]:
        if not text.strip():
            self._head = None
        elif _COMMAND.search(text):
            yield from self.end()
            reported = _NAMESPACE.search(text)
            self._namespace = reported[1] if reported is not None else self._asked
        else:
            head = self._head or headless(text)
            if head is None:
                yield LeftOut("lines that are of no table or description")
            else:
                yield row_of(head, text, self._namespace)

    def end(self) -> Iterator[Item]:
        """What the last line completes."""
        self._head = None
        if self._description is not None:
            lines, self._description = self._description, None
            for item in described(lines):
                if not isinstance(item, LeftOut) and item.kind != "Node" and item.namespace is None:
                    item.namespace = self._namespace
                yield item


def read_text(lines: Iterable[str], namespace: str | None = None) -> Iterator[Item]:
    """All that a text says."""
    reading = Reading(namespace)
    for line in lines:
        yield from reading.line(line)
    yield from reading.end()


def is_printed(text: str) -> bool:
    """Whether a text that begins so has a table or a description of an object that is read."""
    description = False
    for line in text.splitlines():
        head = head_of(line.strip())
        if head is not None and head.what is not None:
            return True
        plain = line.strip()
        if headless(plain) is not None:
            return True
        if BEGINS.match(plain):
            description = True
        elif description and _OF_KIND.match(plain):
            return True
    return False


_OF_KIND = re.compile(
    r"(?:Pods Statuses|Concurrency Policy|Parallelism|Controlled By|Containers|"
    r"Non-terminated Pods):"
)
