"""The pages of one list: what a watcher takes of each, and an end to them.

An API server's lists have an end: each page but the last goes on where the one before it ended,
with a token that says where. One that sends the same token again, or page after page without an
object, would be asked for ever, and as fast as it answers.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from tracekit.base.json_text import json_text
from tracekit.record.failures import BadFrame, failure

#: At 500 objects a page five million: etcd's own bound is far below that.
PAGES_MAX: Final = 10_000
#: A server looks on until a page has something in it; what stands before it may not.
EMPTY_PAGES_MAX: Final = 100


class Item(Struct, frozen=True):
    """One object of a list."""

    uid: str
    revision: str
    #: Its JSON text.
    raw: bytes


class Page(Struct, frozen=True):
    """What was answered."""

    #: The revision of the whole list; empty if the server did not say.
    revision: str
    #: What the next page is asked for with; empty at the end.
    token: str
    items: list[Item]


def page_of(answer: Any) -> Page:
    """A list as an API server answers it.

    Raises:
        BadFrame: It is none; nothing of it can be used.
    """
    metadata, items = answer.get("metadata"), answer.get("items")
    items = [] if items is None else items  # as Go writes an empty list
    if not isinstance(metadata, dict) or not isinstance(items, list):
        raise BadFrame("the answer is no list: it has no metadata, or items that are none")
    revision, token = metadata.get("resourceVersion"), metadata.get("continue")
    if not all(value is None or isinstance(value, str) for value in (revision, token)):
        raise BadFrame("the answer is no list: its resourceVersion or continue is no text")
    return Page(revision or "", token or "", [_item(item) for item in items])


def _item(item: Any) -> Item:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    names = metadata if isinstance(metadata, dict) else {}
    uid, revision = names.get("uid"), names.get("resourceVersion")
    if not (isinstance(uid, str) and isinstance(revision, str) and uid and revision):
        raise BadFrame("an item of the list is no object: it has no uid or no resourceVersion")
    return Item(uid, revision, json_text(item))


class Turning:
    """Turns the pages of one list."""

    def __init__(self) -> None:
        self._tokens: set[str] = set()
        self._empty = 0

    def after(self, page: Page) -> str:
        """The token for the next page; empty after the last.

        Raises:
            RequestFailed: The list has no end.
        """
        self._empty = 0 if page.items else self._empty + 1
        if page.token in self._tokens:
            raise failure(500, "the list has no end: the server sends a continue token again")
        if page.token and self._empty >= EMPTY_PAGES_MAX:
            raise failure(500, f"the list has no end: {EMPTY_PAGES_MAX} pages had no object")
        if len(self._tokens) >= PAGES_MAX:
            raise failure(500, f"the list has no end: it has more than {PAGES_MAX:,} pages")
        self._tokens.add(page.token)
        return page.token
