"""What `cron next` and `cron lint` ask alike: zones, a start, a count, a release."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar
from zoneinfo import available_timezones

import click

from tracekit.base.cron import UnknownZoneError, Zone, load_zone
from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.suggest import hint
from tracekit.base.time_input import FIRST_NS, moment_ns
from tracekit.cli.completion import complete_version

_Command = TypeVar("_Command", bound=Callable[..., Any])


def schedule_options(*, count: int, most: int, what: str) -> Callable[[_Command], _Command]:
    """`--time-zone`, `--process-zone`, `--from`, `--count`: at most `most`, `what` they count."""
    options = (
        click.option("--time-zone", metavar="ZONE", help="Of a SPEC: the CronJob's spec.timeZone."),
        click.option(
            "--process-zone",
            "process_zone_name",
            metavar="ZONE",
            default="UTC",
            show_default=True,
            help="Zone of the kube-controller-manager process: used where nothing else names one.",
        ),
        click.option(
            "--from",
            "from_text",
            metavar="TIME",
            help="Only later times: 22:43, yesterday 14:00, -10m, or RFC 3339.  [default: now]",
        ),
        click.option(
            "--count", type=click.IntRange(1, most), default=count, show_default=True, help=what
        ),
    )

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def release_option(text: str) -> Callable[[_Command], _Command]:
    """`--kubernetes-version`: the release whose reading counts."""
    return click.option(
        "--kubernetes-version", metavar="V", shell_complete=complete_version, help=text
    )


def from_ns(text: str | None) -> int:
    """The instant that `--from` names, in ns; now without one."""
    now_ns = time.time_ns()
    if text is None:
        return now_ns
    at_ns = moment_ns(text, now_ns, not_before_ns=now_ns - now_ns % (86_400 * NS_PER_S))
    if at_ns <= FIRST_NS:
        raise UsageError(f"{text!r} is not after the beginning of the year 1: name a later time")
    return at_ns


def process_zone(name: str) -> Zone:
    """The zone that `--process-zone` names."""
    try:
        return load_zone(name)
    except UnknownZoneError as error:
        meant = hint(name, available_timezones(), "give a name of the tz database")
        raise UsageError(f"--process-zone: {error}{meant}") from None
