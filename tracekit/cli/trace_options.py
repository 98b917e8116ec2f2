"""Options that several verbs take alike: what they ask of a trace, how they print."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tracekit.cli.completion import complete_namespace
from tracekit.cli.talk import tell_all
from tracekit.eras.era import Era
from tracekit.eras.texts import parse_feature_gates, parse_version
from tracekit.errors import UsageError
from tracekit.kube.timestamps import parse_rfc3339

__all__ = [
    "namespace_option",
    "output_option",
    "parse_feature_gates",
    "parse_flags",
    "parse_from",
    "parse_version",
    "tell_warnings",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def namespace_option(command: _Command) -> _Command:
    """`-n/--namespace`, completed from the trace that is named before."""
    option = click.option(
        "-n",
        "--namespace",
        metavar="NS",
        help="Only this namespace.",
        shell_complete=complete_namespace,
    )
    return option(command)


def output_option(command: _Command) -> _Command:
    """`-o/--output` of the verbs that print a table or one JSON document."""
    option = click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How to print.",
    )
    return option(command)


def parse_flags(text: str | None) -> tuple[str, ...]:
    """A command line as a shell would split it."""
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        raise UsageError(
            f"the controller flags cannot be split into words ({error}): check the quotes"
        ) from error


def parse_from(text: str | None) -> int:
    """The instant that `--from` names, in ns; now without one."""
    if text is None:
        return time.time_ns()
    from_ns = parse_rfc3339(text)
    if from_ns is None:
        raise UsageError(
            f"--from {text!r} is no RFC 3339 time; write it like 2025-03-30T00:00:00Z."
        )
    return from_ns


def tell_warnings(era: Era) -> None:
    """Say on stderr what there is to know about the rules that were chosen."""
    tell_all(era.warnings, set())
