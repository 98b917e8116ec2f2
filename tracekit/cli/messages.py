"""What commands say on stderr: one sentence each, whatever the names in it try to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from tracekit.base.errors import TracekitError
from tracekit.base.escaping import for_terminal

#: They take longer to judge than somebody waits without asking why.
_MANY_ROWS = 20_000


def tell(sentence: str) -> None:
    """Say the sentence, as from tracekit."""
    say(f"tracekit: {for_terminal(sentence)}")


def tell_judging(rows: int) -> None:
    """Say that a question about a part takes the whole, where that takes more than a moment."""
    if rows >= _MANY_ROWS:
        tell(
            f"all {rows:,} observations are judged first, for a verdict depends on the whole "
            "trace; this machine keeps what comes of it, so the next question takes no time"
        )


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on the terminal of stderr that work goes on, until it is done; nothing elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, and pipes need none
    from rich.text import Text  # noqa: PLC0415 - with it

    with Console(stderr=True).status(Text(for_terminal(what))):
        yield


def tell_error(error: TracekitError) -> None:
    """Say what is wrong."""
    say(f"tracekit: {for_terminal(str(error), lines=error.has_lines)}")


def tell_all(sentences: Iterable[str], printed: set[str]) -> set[str]:
    """Say those that were not told before; gives all that are told now."""
    news = [sentence for sentence in dict.fromkeys(sentences) if sentence not in printed]
    for sentence in news:
        tell(sentence)
    return printed | set(news)


def say_line(text: str) -> None:
    """Say the text, which names files: no line feed of theirs makes a line."""
    click.echo(for_terminal(text), err=True)


def say(text: str) -> None:
    """Say the text, of one or several lines."""
    click.echo(for_terminal(text, lines=True), err=True)
