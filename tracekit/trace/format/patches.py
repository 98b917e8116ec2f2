"""Texts of objects as templates and the values that changed: what narrow segments keep of `raw`.

A text is split at its scalars: what stands between them is its template, and there are few of
those (a few hundred for a hundred thousand rows), because objects of one kind in one state differ
in values alone. Each hole of a template has a slot, one for each path in the objects of a stream,
and a row gives only those values that its slots did not have yet: most of an object is as it was in
the row before it. Some holes are filled from columns that the row has anyway.

Nothing is parsed into anything that could be written differently: a text is taken apart
(`splitting.py`) and put together again, so it comes back byte for byte, whatever its spaces, order
and escapes are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tracekit.base.numbers import whole_number
from tracekit.trace.format.seal import DamageError

#: Stands around the name of each hole. No JSON text has it: control characters are escaped there.
MARK = "\x01"
#: Columns of a row that its text repeats, by the names that their holes have.
FROM_COLUMNS = ("job", "namespace", "name", "uid", "rv")

#: Takes some items of a sequence or mapping.
Getter = Callable[[Any], tuple[Any, ...]]
#: A template's parts, with its holes at odd places, and what takes the values of these.
Parts = tuple[list[str], Getter]


def _getter(places: Sequence[Any]) -> Getter:
    """What takes these items of a sequence or mapping, always as a tuple."""
    if not places:
        return _nothing
    if len(places) == 1:
        only = places[0]
        return lambda items: (items[only],)
    return itemgetter(*places)


def split_text(template: str) -> Parts:
    """A template ready to be filled; `DamageError` if it is none."""
    parts = template.split(MARK)
    if len(parts) % 2 == 0:
        raise DamageError("it has a template that is no template")
    names = [name if name in FROM_COLUMNS else _slot(name) for name in parts[1::2]]
    return parts, _getter(names)


def _filled(known: Parts, state: Mapping[Any, str | None]) -> str:
    literals, values_of = known
    parts = literals.copy()
    parts[1::2] = values_of(state)
    return "".join(parts)


def _nothing(_: Any) -> tuple[()]:
    return ()


def _slot(name: str) -> int:
    number = whole_number(name)
    if number is None:
        raise DamageError("it has a template with a hole that nothing fills")
    return number


class Joiner:
    """Puts texts together again, one after the other, in the order in which they were split."""

    def __init__(self, templates: Sequence[str | None]) -> None:
        self._templates = templates
        self._known: list[Parts | None] = [None] * len(templates)
        self._state: dict[Any, str | None] = {}

    def change(self, slots: Sequence[int], values: Sequence[str]) -> None:
        """Take over what a row changes."""
        self._state.update(zip(slots, values, strict=True))

    def fill(self, template: int, columns: Sequence[str | None]) -> str:
        """The text of the row that was taken over last; `columns` as `FROM_COLUMNS` has them."""
        known = self._known[template]
        if known is None:
            text = self._templates[template]
            if text is None:
                raise DamageError("it has a row without a template")
            known = self._known[template] = split_text(text)
        state = self._state
        state["job"], state["namespace"], state["name"], state["uid"], state["rv"] = columns
        try:
            return _filled(known, state)
        except (KeyError, TypeError) as error:
            raise DamageError(
                "one of its rows builds on a value that no row before it gives"
            ) from error
