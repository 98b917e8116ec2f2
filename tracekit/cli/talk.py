"""What commands say on stderr: one sentence each, whatever the names in it try to do."""

from __future__ import annotations

from collections.abc import Iterable

import click

from tracekit.errors import TracekitError
from tracekit.foreign import for_terminal


def tell(sentence: str) -> None:
    """Say the sentence, as from tracekit."""
    say(f"tracekit: {for_terminal(sentence)}")


def tell_error(error: TracekitError) -> None:
    """Say what is wrong."""
    say(f"tracekit: {for_terminal(str(error), lines=error.has_lines)}")


def tell_all(sentences: Iterable[str], told: set[str]) -> set[str]:
    """Say those that were not told before; gives all that are told now."""
    news = [sentence for sentence in dict.fromkeys(sentences) if sentence not in told]
    for sentence in news:
        tell(sentence)
    return told | set(news)


def say(text: str) -> None:
    """Say the text, of one or several lines."""
    click.echo(for_terminal(text, lines=True), err=True)
