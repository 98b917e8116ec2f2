"""The one table of all verbs: headings, cells in columns two spaces apart, and nothing cut.

A pipe gets each row on one line, as wide as it is. On a terminal cells that do not fit go on below
themselves, and a table with too many columns for that becomes records, one cell a line.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO, TypeAlias, Union

from rich.cells import cell_len, set_cell_size

from tracekit.base.escaping import for_terminal

if TYPE_CHECKING:
    from rich.text import Text

#: Between two columns.
_GAP = "  "

Cell: TypeAlias = Union[str, "Text"]


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
    width = terminal_width(out)
    if width is None:
        lines = [[for_terminal(name) for name in headings]]
        lines += [[for_terminal(str(cell)) for cell in row] for row in rows]
        widths = [max(cell_len(row[place]) for row in lines) for place in range(len(headings))]
        out.writelines(_plain(line, widths, right) + "\n" for line in lines)
        return
    from tracekit.report import terminal  # noqa: PLC0415 - slow to import, and pipes need none

    console = terminal.console_of(out, width)
    terminal.write_table_to(headings, rows, console, right=right, fold=fold, below=below)


def table_width(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> int:
    """The columns that the table takes when nothing is folded."""
    lines = [headings, *rows]
    widths = [max(cell_len(str(row[place])) for row in lines) for place in range(len(headings))]
    return sum(widths) + len(_GAP) * (len(widths) - 1)


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
        return
    from tracekit.report import terminal  # noqa: PLC0415 - as above

    terminal.write_parts_to(parts, terminal.console_of(out, width), by, then)


def write_facts(facts: Iterable[tuple[str, str]], out: TextIO) -> None:
    """Write names and values, one below the other; a long value goes on below itself."""
    rows = [(for_terminal(name), for_terminal(value)) for name, value in facts]
    indent = max((cell_len(name) for name, _ in rows), default=0) + len(_GAP)
    width = terminal_width(out)
    if width is None:
        out.writelines(f"{set_cell_size(name, indent)}{value}\n" for name, value in rows)
        return
    from tracekit.report import terminal  # noqa: PLC0415 - as above

    terminal.write_facts_to(rows, indent, terminal.console_of(out, width))


def _plain(cells: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    parts = [
        " " * max(0, width - cell_len(cell)) + cell
        if place in right
        else set_cell_size(cell, width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(parts).rstrip()
