"""What a command must remember of a damaged trace until it is done."""

from __future__ import annotations

import click

_DAMAGE = "tracekit.damage"


def note_damage() -> None:
    """Have the command exit with status 2 when it is done: its answer lacks a part of the trace."""
    click.get_current_context().meta[_DAMAGE] = True


def damage_noted(context: click.Context) -> bool:
    """Whether a command under the context noted damage."""
    return bool(context.meta.get(_DAMAGE))
