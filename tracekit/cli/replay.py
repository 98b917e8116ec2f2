"""`tracekit replay`: run the ported controllers over a trace and judge what was observed."""

from __future__ import annotations

import sys

import click

from tracekit.cli.trace_options import namespace_option, tell_warnings
from tracekit.diff.trace import ACTIONS
from tracekit.errors import UsageError
from tracekit.report.replay import render_actions, render_diff
from tracekit.trace.judged import resolve_era, run_diff
from tracekit.trace.reader import TraceReader


@click.command()
@click.argument("trace", metavar="TRACE")
@click.option("--diff", is_flag=True, help="Judge each observed write; exit 1 on a divergence.")
@namespace_option
@click.option("--job", metavar="NS/NAME", help="Only this Job.")
@click.option(
    "--controller",
    "controllers",
    metavar="A,B",
    default=",".join(ACTIONS),
    show_default=True,
    help="Only these controllers.",
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
@click.option("--exit-zero", is_flag=True, help="Exit 0 although there are divergences.")
def replay(
    trace: str,
    *,
    diff: bool,
    namespace: str | None,
    job: str | None,
    controllers: str,
    kubernetes_version: str | None,
    feature_gates: str | None,
    output: str,
    exit_zero: bool,
) -> int:
    """Feed TRACE through the ported controllers.

    Without --diff the actions that the controllers take are printed. With it each write that was
    observed gets a verdict: exit 0 if the rules explain them all, 1 if not, 2 if it could not run.
    """
    reader = TraceReader(trace)
    era = resolve_era(reader, kubernetes_version, feature_gates)
    tell_warnings(era)
    wanted = _controllers(controllers)
    report = run_diff(reader, era, namespace=namespace, job=job, controllers=wanted)
    if diff:
        render_diff(report, era, output, sys.stdout)
        return 1 if report.divergences and not exit_zero else 0
    render_actions(report, era, output, sys.stdout)
    return 0


def _controllers(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in ACTIONS:
            raise UsageError(f"{name!r} is no controller: name some of {', '.join(ACTIONS)}")
    return names
