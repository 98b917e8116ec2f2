"""Tables, facts and sentences on a terminal: what does not fit goes on below itself.

Apart from `table.py`: rich takes long to import, and pipes need none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from tracekit.base.escaping import for_terminal

if TYPE_CHECKING:
    from rich.console import Console

#: A line of a pipe is as long as its sentence.
NO_WIDTH = 1 << 16
#: Between two columns, as in a pipe.
_GAP = "  "
#: Sentences get a column of their own from that width on.
_SENTENCE = 40
#: A column that has to fold is at least so wide.
_NARROWEST = 10


def console_of(out: TextIO, width: int) -> Console:
    """A console of that width."""
    from rich.console import Console  # noqa: PLC0415 - slow to import, and documents need none

    # Both of them, or rich takes a dumb terminal for one of 80 columns.
    return Console(file=out, highlight=False, width=width, height=25)


def write_table_to(
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    console: Console,
    *,
    right: Collection[int],
    fold: Collection[int] | None,
    below: int | None,
) -> None:
    """As `table.write_table`: folded to a terminal, or as records where that is too narrow."""
    lines = [[Text(for_terminal(name), style="bold") for name in headings]]
    lines += [[_safe(cell) for cell in row] for row in rows]
    widths = [max(cell_len(row[place].plain) for row in lines) for place in range(len(headings))]
    width = console.width
    if below is not None and sum(widths[:-1]) + len(_GAP) * below + _SENTENCE > width:
        _write_with_sentences(lines, widths, console, right)
        return
    folded = [place for place in range(len(widths)) if place not in right]
    fitting = _fitting(widths, folded if fold is None else sorted(fold), width)
    if fitting is None:
        _write_records(headings, lines[1:], console)
        return
    for line in lines:
        for part in _folded(line, fitting, console):
            console.print(
                _joined(part, fitting, right), no_wrap=True, overflow="ignore", crop=False
            )


def _write_with_sentences(
    lines: Sequence[Sequence[Text]], widths: Sequence[int], console: Console, right: Collection[int]
) -> None:
    """Each row with its last cell below it, indented."""
    fitting = _fitting(widths[:-1], range(len(widths) - 1), console.width) or widths[:-1]
    for number, line in enumerate(lines):
        for part in _folded(line[:-1], fitting, console):
            console.print(
                _joined(part, fitting, right), no_wrap=True, overflow="ignore", crop=False
            )
        if number and line[-1].plain:
            write_indented(line[-1], console, by=4)


def _safe(cell: str | Text) -> Text:
    """The cell with nothing in it that a terminal would obey."""
    if isinstance(cell, str):
        return Text(for_terminal(cell))
    safe = for_terminal(cell.plain)
    return cell if safe == cell.plain else Text(safe, style=cell.style)


def write_indented(text: Text, console: Console, by: int = 2, then: int | None = None) -> None:
    """Write a paragraph: on a terminal it goes on below itself, indented by `then`, else `by`."""
    text = _safe(text)
    goes_on = by if then is None else then
    if console.width < NO_WIDTH:
        width = max(_NARROWEST, console.width - max(by, goes_on))
        parts = list(text.wrap(console, width)) or [text]
    else:
        parts = [text]
    for number, part in enumerate(parts):
        part.rstrip()
        room = Text(" " * (goes_on if number else by))
        console.print(room + part, no_wrap=True, overflow="ignore", crop=False)


def write_parts_to(
    parts: Sequence[tuple[str, str]], console: Console, by: int, then: int | None
) -> None:
    """Write a paragraph of parts, each with its style."""
    write_indented(Text.assemble(*parts), console, by, then)


def write_facts_to(rows: Sequence[tuple[str, str]], indent: int, console: Console) -> None:
    """Write names and values that are safe, the values from a column on."""
    for name, value in rows:
        parts = Text(value).wrap(console, max(_NARROWEST, console.width - indent)) or [Text("")]
        head = Text.assemble((set_cell_size(name, indent), "bold"))
        for part in parts:
            console.print(head + part, no_wrap=True, overflow="ignore", crop=False)
            head = Text(" " * indent)


def _fitting(widths: Sequence[int], fold: Sequence[int], width: int) -> list[int] | None:
    """The widths with which a row fits, the widest columns made narrower; None if none do."""
    found = list(widths)
    over = sum(found) + len(_GAP) * (len(found) - 1) - width
    while over > 0:
        widest = max(fold, key=lambda place: found[place], default=None)
        if widest is None or found[widest] <= _NARROWEST:
            return None
        found[widest] -= 1
        over -= 1
    return found


def _folded(line: Sequence[Text], widths: Sequence[int], console: Console) -> list[list[Text]]:
    """The lines that a row takes: each cell goes on below itself."""
    cells = [
        list(cell.wrap(console, width, overflow="fold")) if cell_len(cell.plain) > width else [cell]
        for cell, width in zip(line, widths, strict=True)
    ]
    return [list(part) for part in zip_longest(*cells, fillvalue=Text(""))]


def _joined(cells: Sequence[Text], widths: Sequence[int], right: Collection[int]) -> Text:
    found = Text()
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        room = " " * max(0, width - cell_len(cell.plain))
        found += Text(room) + cell if place in right else cell + Text(room)
        found += Text(_GAP)
    found.rstrip()
    return found


def _write_records(
    headings: Sequence[str], rows: Sequence[Sequence[Text]], console: Console
) -> None:
    names = [for_terminal(name) for name in headings]
    indent = max((cell_len(name) for name in names), default=0) + len(_GAP)
    for number, row in enumerate(rows):
        if number:
            console.print()
        facts = [(name, cell.plain) for name, cell in zip(names, row, strict=True)]
        write_facts_to(facts, indent, console)
