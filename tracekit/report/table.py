"""The one table of all verbs: headings, cells in columns two spaces apart, and nothing cut.

A pipe gets each row on one line, as wide as it is. On a terminal cells that do not fit go on below
themselves, and a table with too many columns for that becomes records, one cell a line.
"""

from __future__ import annotations

import shutil
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
_GAP = "  "
#: Sentences get a column of their own from that width on.
_SENTENCE = 40
#: A column that has to fold is at least so wide.
_NARROWEST = 10

Cell = str | Text


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2,445 rows`: a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def terminal_width(out: TextIO) -> int | None:
    """The columns of the terminal; None for a pipe or a file, which have no width."""
    return shutil.get_terminal_size().columns if out.isatty() else None


def write_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    out: TextIO,
    *,
    right: Collection[int] = (),
    fold: Collection[int] | None = None,
    below: int | None = None,
) -> None:
    """Write the rows below the headings.

    Args:
        headings: One for each column.
        rows: Cells of any text, which is made safe here; a Text's styles are for terminals.
        out: A terminal's width is kept; anything else gets each row on one line.
        right: Columns of numbers, by index, which are set flush right.
        fold: Columns that may go on below themselves; None: all that are not `right`.
        below: The last column, of sentences: where a terminal has too little room for them beside
            the others, each stands below its row.
    """
    lines = [[Text(for_terminal(name), style="bold") for name in headings]]
    lines += [[_safe(cell) for cell in row] for row in rows]
    widths = [max(cell_len(row[place].plain) for row in lines) for place in range(len(headings))]
    width = terminal_width(out)
    if width is None:
        out.writelines(_plain(line, widths, right) + "\n" for line in lines)
        return
    console = _console(out, width)
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


def _safe(cell: Cell) -> Text:
    """The cell with nothing in it that a terminal would obey."""
    if isinstance(cell, str):
        return Text(for_terminal(cell))
    safe = for_terminal(cell.plain)
    return cell if safe == cell.plain else Text(safe, style=cell.style)


def table_width(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> int:
    """The columns that the table takes when nothing is folded."""
    lines = [headings, *rows]
    widths = [max(cell_len(str(row[place])) for row in lines) for place in range(len(headings))]
    return sum(widths) + len(_GAP) * (len(widths) - 1)


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


def write_line(text: str, out: TextIO, *, style: str = "", by: int = 0, then: int = 0) -> None:
    """Write one sentence; on a terminal it goes on below itself, as `write_indented` has it."""
    write_parts([(text, style)], out, by, then)


def write_parts(
    parts: Sequence[tuple[str, str]], out: TextIO, by: int = 0, then: int | None = None
) -> None:
    """Write the same of parts, each with a style for terminals."""
    width = terminal_width(out)
    if width is None:
        text = "".join(text for text, _ in parts)
        out.write((" " * by + for_terminal(text)).rstrip() + "\n")
    else:
        write_indented(Text.assemble(*parts), _console(out, width), by, then)


def write_facts(facts: Iterable[tuple[str, str]], out: TextIO) -> None:
    """Write names and values, one below the other; a long value goes on below itself."""
    rows = [(for_terminal(name), for_terminal(value)) for name, value in facts]
    indent = max((cell_len(name) for name, _ in rows), default=0) + len(_GAP)
    width = terminal_width(out)
    if width is None:
        out.writelines(f"{set_cell_size(name, indent)}{value}\n" for name, value in rows)
        return
    console = _console(out, width)
    for name, value in rows:
        parts = Text(value).wrap(console, max(_NARROWEST, width - indent)) or [Text("")]
        head = Text.assemble((set_cell_size(name, indent), "bold"))
        for part in parts:
            console.print(head + part, no_wrap=True, overflow="ignore", crop=False)
            head = Text(" " * indent)


def _console(out: TextIO, width: int) -> Console:
    from rich.console import Console  # noqa: PLC0415 - slow to import, and pipes need none

    # Both of them, or rich takes a dumb terminal for one of 80 columns.
    return Console(file=out, highlight=False, width=width, height=25)


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


def _plain(cells: Sequence[Text], widths: Sequence[int], right: Collection[int]) -> str:
    parts = [
        " " * max(0, width - cell_len(cell.plain)) + cell.plain
        if place in right
        else set_cell_size(cell.plain, width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(parts).rstrip()


def _write_records(
    headings: Sequence[str], rows: Sequence[Sequence[Text]], console: Console
) -> None:
    for number, row in enumerate(rows):
        if number:
            console.print()
        facts = ((name, cell.plain) for name, cell in zip(headings, row, strict=True))
        write_facts(facts, console.file)  # type: ignore[arg-type]
