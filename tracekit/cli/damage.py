"""What a command says of a trace that lacks something, and remembers of it until it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracekit.cli.messages import tell_all

if TYPE_CHECKING:
    from tracekit.api import Trace
    from tracekit.sql.session import Session

_DAMAGE = "tracekit.damage"


def note_damage() -> None:
    """Have the command exit with status 2 when it is done: its answer lacks a part of the trace."""
    click.get_current_context().meta[_DAMAGE] = True


def damage_noted(context: click.Context) -> bool:
    """Whether a command under the context noted damage."""
    return bool(context.meta.get(_DAMAGE))


def tell_problems(source: Session | Trace, printed: set[str]) -> set[str]:
    """Say on stderr what is left out of the answers, and by which rules, each thing once.

    A trace that is damaged makes the exit status 2, whatever could be answered.
    """
    if source.is_damaged:
        note_damage()
    return tell_all([*source.problems, *source.warnings], printed)
