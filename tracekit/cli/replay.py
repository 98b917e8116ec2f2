"""`tracekit replay`: run the ported controllers over a trace and judge what was observed."""

from __future__ import annotations

import sys

import click

from tracekit.cli.completion import complete_key
from tracekit.cli.trace_options import namespace_option, tell_warnings
from tracekit.report.replay import render_actions, render_diff
from tracekit.trace.judged import Asked, Judge, resolve_era
from tracekit.trace.reader import TraceReader


@click.command()
@click.argument("trace", metavar="TRACE")
@click.option("--diff", is_flag=True, help="Judge each observed write; exit 1 on a divergence.")
@namespace_option
@click.option(
    "--job", metavar="NS/NAME", help="Only this Job or CronJob.", shell_complete=complete_key
)
@click.option(
    "--controller",
    "controllers",
    metavar="A,B",
    help="Only these controllers.  [default: job,cronjob,ttl]",
)
@click.option(
    "--min-actions",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Exit 2 if fewer actions can be judged, for gates that must not pass on nothing.",
)
@click.option("--kubernetes-version", metavar="V", help="Replay as this version, like v1.36.3.")
@click.option("--feature-gates", metavar="A=true,…", help="Gates that differ from the defaults.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "jsonl"]),
    default="table",
    help="How to print.",
)
@click.option(
    "--around-damage",
    is_flag=True,
    help="Judge what can be read of a damaged trace; the rest is a gap.",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 although there are divergences.")
def replay(
    trace: str,
    *,
    diff: bool,
    namespace: str | None,
    job: str | None,
    controllers: str | None,
    min_actions: int,
    kubernetes_version: str | None,
    feature_gates: str | None,
    output: str,
    around_damage: bool,
    exit_zero: bool,
) -> int:
    """Feed TRACE through the ported controllers.

    Without --diff the actions that the controllers take are printed. With it each write that was
    observed gets a verdict: exit 0 if the rules explain them all, 1 if not, 2 if it could not run.

    The trace is judged as a whole; -n, --job and --controller choose what is shown of it.
    """
    reader = TraceReader(trace, on_damage="skip" if around_damage else "raise")
    for problem in reader.problems:
        click.echo(f"tracekit: {problem}", err=True)
    era = resolve_era(reader, kubernetes_version, feature_gates)
    tell_warnings(era)
    names = None if controllers is None else [name.strip() for name in controllers.split(",")]
    report = Judge(reader, era).report(Asked(namespace, job, names, min_actions))
    if diff:
        render_diff(report, era, output, sys.stdout)
        return 1 if report.divergences and not exit_zero else 0
    render_actions(report, era, output, sys.stdout)
    return 0
