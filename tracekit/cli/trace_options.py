"""Options that several verbs take alike: what they ask of a trace, how they print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from tracekit.base.time_input import TimeRange, is_relative, time_range
from tracekit.cli.completion import complete_gates, complete_namespace, complete_version
from tracekit.cli.messages import tell_all
from tracekit.cli.units import DURATION
from tracekit.versions.era import Era
from tracekit.versions.overrides import AskedRules
from tracekit.versions.texts import (
    parse_clock_offset,
    parse_controller_flags,
    parse_feature_gates,
    parse_version,
)

__all__ = [
    "RULES",
    "absolute",
    "asked_rules",
    "clock_offset_ns",
    "clock_option",
    "limit_option",
    "namespace_option",
    "output_option",
    "parse_feature_gates",
    "parse_flags",
    "parse_version",
    "range_options",
    "range_within",
    "rules_options",
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


def limit_option(command: _Command) -> _Command:
    """`--limit`: how many rows are printed at most, of verbs whose answers may be long."""
    option = click.option(
        "--limit",
        metavar="N",
        type=click.IntRange(min=1),
        default=1000,
        show_default=True,
        help="Print so many at most; how many more there are is said.",
    )
    return option(command)


def parse_flags(text: str | None) -> tuple[str, ...] | None:
    """A command line as a shell would split it; None: it was not given."""
    return None if text is None else parse_controller_flags(text)


def rules_options(command: _Command) -> _Command:
    """By which rules verdicts are: version, gates, the process's zone and flags."""
    version = click.option(
        "--kubernetes-version",
        metavar="V",
        shell_complete=complete_version,
        help="Judge by the rules of this version, like v1.36.3.",
    )
    gates = click.option(
        "--feature-gates",
        metavar="A=true,…",
        shell_complete=complete_gates,
        help="Gates that differ from that version's defaults.",
    )
    zone = click.option(
        "--process-zone",
        metavar="ZONE",
        help="Time zone of the controller manager, for schedules without one.  [default: UTC]",
    )
    flags = click.option(
        "--controller-flags",
        metavar="FLAGS",
        help="The controller manager's flags, in place of those that the trace has; --kube-api-qps "
        "and --kube-api-burst decide what counts as late.",
    )
    whole = click.option(
        "--search-all",
        is_flag=True,
        help="Search each Job to its bound, also where most contradict these rules.",
    )
    return version(gates(zone(flags(whole(command)))))


#: What `rules_options` and `clock_option` add.
RULES = (
    "kubernetes_version", "feature_gates", "process_zone", "controller_flags", "clock_offset",
    "search_all",
)  # fmt: skip


def asked_rules(options: Mapping[str, Any]) -> AskedRules:
    """What the options of `rules_options` say, and `--clock-offset` where the verb has it."""
    return AskedRules.of(
        parse_version(options["kubernetes_version"]),
        parse_feature_gates(options["feature_gates"]),
        options["process_zone"],
        parse_flags(options["controller_flags"]),
        clock_offset_ns(options),
        search_all=options["search_all"],
    )


def clock_option(command: _Command) -> _Command:
    """`--clock-offset`: how far the recorder's clock was ahead, where the user knows it."""
    option = click.option(
        "--clock-offset",
        type=float,
        metavar="SECONDS",
        help="The recorder's clock was so far ahead of the controller manager's, in place of what "
        "the trace tells (tracekit info); below 0: behind.",
    )
    return option(command)


def clock_offset_ns(options: Mapping[str, Any]) -> int | None:
    """What `--clock-offset` says, in ns; None: it was not given."""
    said = options.get("clock_offset")
    return None if said is None else parse_clock_offset(said)


def range_options(command: _Command) -> _Command:
    """`--since`, `--from` and `--to`: which time of a trace is asked for."""
    options = (
        click.option(
            "--since", type=DURATION, metavar="2h", help="Only the end of the trace, so long."
        ),
        click.option(
            "--from",
            "from_text",
            metavar="TIME",
            help="Only from then on: 22:43, yesterday 14:00, -10m, or RFC 3339.",
        ),
        click.option(
            "--to", "to_text", metavar="TIME", help="Only until then, written like --from."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def range_within(
    end: int | Callable[[], int], since: float | None, from_text: str | None, to_text: str | None
) -> TimeRange:
    """The range that those options name, in a trace whose last row is of that time, in ns."""
    return time_range(end, since=since, from_=from_text, to=to_text)


def absolute(times: Mapping[str, Any]) -> TimeRange | None:
    """The time that is asked for; None where it counts from the end of a trace."""
    relative = is_relative(times["from_text"]) or is_relative(times["to_text"])
    if times.get("since") is not None or relative:
        return None
    return time_range(0, from_=times["from_text"], to=times["to_text"])


def tell_warnings(era: Era) -> None:
    """Say on stderr what there is to know about the rules that were chosen."""
    tell_all(era.warnings, set())
