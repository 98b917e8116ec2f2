"""What is wrong with a command line, in one sentence, with what was probably meant."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from tracekit.base.suggest import closest
from tracekit.cli import imports

_QUOTED = re.compile(r"^'(?P<value>.*)' is not one of ", re.DOTALL)


def sentence(error: click.ClickException) -> str:
    """The error of click as one sentence that says what to do."""
    if isinstance(error, click.NoSuchOption):
        return _no_option(error)
    if isinstance(error, click.MissingParameter):
        return f"{_name(error)} is missing: {_added(error)}"
    if isinstance(error, click.BadParameter):
        choice = isinstance(getattr(error.param, "type", None), click.Choice)
        return f"{_name(error)}: {_no_choice(error) if choice else _clause(error.message)}"
    text = _clause(error.message)
    return f"{text}: {_help(error)}" if isinstance(error, click.UsageError) else text


class VerbGroup(click.Group):
    """A group that says which verb was meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; one that is none gets the verbs that were meant."""
        name = args[0] if args else ""
        if args and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise no_verb(name, self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)


class Verb(NamedTuple):
    """Where a verb lies, as "module:attribute", and the first paragraph of its help."""

    place: str
    about: str


class LazyGroup(VerbGroup):
    """A group whose verbs are imported on first use, and not to be listed."""

    def __init__(
        self,
        *args: Any,
        verbs: Mapping[str, Verb],
        sections: Mapping[str, Mapping[str, Verb]] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.verbs = verbs
        #: How its help lists them: headings with their verbs.
        self.sections = sections or {"Commands": verbs}
        self.is_listing = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every verb, in the order of the table."""
        del ctx
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that holds the verb."""
        del ctx
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        if self.is_listing:
            return click.Command(cmd_name, help=verb.about)
        module_name, attribute = verb.place.split(":")
        with imports.of_a_verb():
            command: click.Command = getattr(importlib.import_module(module_name), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs, each with the whole first paragraph of its help."""
        del ctx
        widest = max(map(len, self.verbs))
        for heading, verbs in self.sections.items():
            with formatter.section(heading):
                rows = [(name.ljust(widest), verb.about) for name, verb in verbs.items()]
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The verbs that begin so."""
        with self._only_listed():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _only_listed(self) -> Iterator[None]:
        self.is_listing = True
        try:
            yield
        finally:
            self.is_listing = False


def no_verb(name: str, verbs: list[str], context: click.Context) -> click.UsageError:
    """The error for a verb that is none."""
    meant = closest(name, verbs)
    hint = f"did you mean {meant}?" if meant else f"`{context.command_path} --help` lists them"
    return Unsaid(f'unknown command "{name}" for "{context.command_path}"; {hint}')


class Unsaid(click.UsageError):
    """A usage error whose message is the whole sentence."""


def _no_option(error: click.NoSuchOption) -> str:
    options = [
        name
        for param in (error.ctx.command.params if error.ctx else ())
        if isinstance(param, click.Option)
        for name in param.opts
    ]
    meant = closest(error.option_name, options)
    hint = f"did you mean {meant}?" if meant else _help(error)
    path = error.ctx.command_path if error.ctx else "tracekit"
    return f"{path} has no option {error.option_name}; {hint}"


def _no_choice(error: click.BadParameter) -> str:
    assert error.param is not None  # noqa: S101 - its type was asked for
    choices = [str(choice) for choice in error.param.type.choices]  # type: ignore[attr-defined]
    found = _QUOTED.match(error.message)
    value = found["value"] if found else ""
    meant = closest(value, choices)
    hint = f"did you mean {meant}?" if meant else f"it is one of {', '.join(choices)}"
    return f"there is no {value!r}; {hint}"


def _added(error: click.MissingParameter) -> str:
    if not isinstance(error.param, click.Option) or error.ctx is None:
        return _help(error)
    return f"add {_name(error)} {error.param.make_metavar(error.ctx)}"


def _name(error: click.BadParameter) -> str:
    """The parameter as one writes it: its longest option, or the word of the usage."""
    param: Any = error.param
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return str(param.make_metavar(error.ctx)).strip("[]") if param is not None else "a value"


def _help(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else "tracekit"
    usage = error.ctx.get_usage().removeprefix("Usage: ") if error.ctx else path
    return f"write {' '.join(usage.split())} (`{path} --help` tells more)"


def _clause(message: str) -> str:
    text = " ".join(message.split()).rstrip(".")
    return text[:1].lower() + text[1:]
