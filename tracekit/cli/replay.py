"""`tracekit replay`: run the ported controllers over a trace and judge what was observed."""

from __future__ import annotations

import sys
from typing import Any

import click

from tracekit.cli.baselines import baseline_option, read_baseline, tell_unused
from tracekit.cli.completion import complete_controllers, complete_key, complete_trace
from tracekit.cli.crew import crew_of, processes_option, tell_failures
from tracekit.cli.talk import tell_judging
from tracekit.cli.trace_options import (
    namespace_option,
    parse_version,
    range_options,
    range_within,
    rules_options,
    tell_warnings,
)
from tracekit.errors import UsageError
from tracekit.judging.judged import Asked, Judge, resolve_era
from tracekit.judging.kept import verdicts_key
from tracekit.report.ci import CI_FORMATS, write_ci
from tracekit.report.replay import render_actions, render_diff
from tracekit.trace.reading.reader import TraceReader


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option("--diff", is_flag=True, help="Judge each observed write; exit 1 on a divergence.")
@namespace_option
@click.option(
    "--job", metavar="NS/NAME", help="Only this Job or CronJob.", shell_complete=complete_key
)
@click.option(
    "--controller",
    "controllers",
    metavar="A,B",
    shell_complete=complete_controllers,
    help="Only these controllers.  [default: job,cronjob,ttl]",
)
@click.option(
    "--min-actions",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Exit 2 if fewer actions can be judged, for gates that must not pass on nothing.",
)
@range_options
@rules_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "jsonl", "junit", "sarif"]),
    default="table",
    help="How to print; junit and sarif with --diff only.",
)
@click.option(
    "--around-damage",
    is_flag=True,
    help="Judge what can be read of a damaged trace; the rest is a gap.",
)
@baseline_option
@processes_option
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
    process_zone: str | None,
    feature_gates: str | None,
    output: str,
    around_damage: bool,
    baseline: str | None,
    processes: int | None,
    exit_zero: bool,
    **times: Any,
) -> int:
    """Feed TRACE through the ported controllers.

    Without --diff the actions that the controllers take are printed. With it each write that was
    observed gets a verdict: exit 0 if the rules explain them all, 1 if not, 2 if it could not run.

    The trace is judged as a whole; -n, --job, --controller, --since, --from and --to choose what is
    shown of it.
    """
    if not diff and (output in CI_FORMATS or baseline):
        raise UsageError("-o junit, -o sarif and --baseline are about verdicts: add --diff")
    reader = TraceReader(trace, on_damage="skip" if around_damage else "raise")
    for problem in reader.problems:
        click.echo(f"tracekit: {problem}", err=True)
    era = resolve_era(reader, kubernetes_version, feature_gates, process_zone)
    tell_warnings(era)
    names = None if controllers is None else [name.strip() for name in controllers.split(",")]
    rules = (parse_version(kubernetes_version), feature_gates, process_zone)
    key = verdicts_key(reader.snapshot, *rules)
    tells = tell_judging if job or namespace else None
    with crew_of(processes, reader.rows) as crew:
        judge = Judge(reader, era, kept_as=key, before_judging=tells, crew=crew)
        within = range_within(judge.run_context.end_ns, **times)
        asked = Asked(namespace, job, names, within, min_actions)
        counts_only = diff and output in ("table", "json") and not baseline
        report = judge.tally(asked) if counts_only else judge.report(asked)
    tell_failures(judge.failures)
    if diff:
        if baseline:
            accepted = read_baseline(baseline)
            report.judgements = [
                j for j in report.judgements if not (j.divergent and accepted.accepts_judgement(j))
            ]
            tell_unused(accepted, baseline)
        if output in CI_FORMATS:
            write_ci(report.judgements, output, trace, sys.stdout)
        else:
            render_diff(report, era, output, sys.stdout)
        return 1 if report.divergences and not exit_zero else 0
    render_actions(report, era, output, sys.stdout)
    return 0
