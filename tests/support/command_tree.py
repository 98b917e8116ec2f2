"""The command line's tree: each command that runs something, by the words that call it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tracekit.cli.main import cli


def commands(verb: str = "") -> Iterator[tuple[str, click.Command]]:
    """All of them, or a verb and what is below it: `trace merge` and its command."""
    root = click.Context(cli, info_name="tracekit")
    names = [verb] if verb else cli.list_commands(root)
    for name in names:
        yield from _below(root, cli, name, name)


def _below(
    parent: click.Context, group: click.Group, name: str, words: str
) -> Iterator[tuple[str, click.Command]]:
    command = group.get_command(parent, name)
    assert command is not None
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command, parent=parent, info_name=name)
    for inner in command.list_commands(context):
        yield from _below(context, command, inner, f"{words} {inner}")


def options() -> Iterator[tuple[str, click.Option]]:
    """Every option of every command, with the words of its command."""
    for words, command in commands():
        for option in command.params:
            if isinstance(option, click.Option):
                yield words, option
