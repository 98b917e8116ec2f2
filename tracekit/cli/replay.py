"""`tracekit replay`: run the ported controllers over a trace and judge what was observed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace as replace_era

import click

from tracekit.cli.trace_options import parse_feature_gates, parse_version
from tracekit.diff.trace import ACTIONS, DiffReport, diff_groups
from tracekit.diff.verdict import Judgement
from tracekit.eras.cronjob import CronJobEra
from tracekit.eras.era import Era
from tracekit.eras.gates import GATE_BY_NAME
from tracekit.eras.job import JobRules
from tracekit.errors import UsageError
from tracekit.replay.cron_runner import CronRunner
from tracekit.replay.feed import COLUMNS
from tracekit.replay.observed_cronjob import judge_cron_jobs
from tracekit.replay.observed_ttl import judge_ttl
from tracekit.report.replay import render_actions, render_diff
from tracekit.trace.cron_rows import cron_rows
from tracekit.trace.detected import detected_gates, detected_version
from tracekit.trace.reader import TraceReader
from tracekit.trace.surroundings import surroundings_of


@click.command()
@click.argument("trace", metavar="TRACE")
@click.option("--diff", is_flag=True, help="Judge each observed write; exit 1 on a divergence.")
@click.option("-n", "--namespace", metavar="NS", help="Only this namespace.")
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
    if era.warning:
        click.echo(f"tracekit: {era.warning}", err=True)
    wanted = _controllers(controllers)
    report = run_diff(reader, era, namespace=namespace, job=job, controllers=wanted)
    if diff:
        render_diff(report, era, output, sys.stdout)
        return 1 if report.divergences and not exit_zero else 0
    render_actions(report, era, output, sys.stdout)
    return 0


def resolve_era(
    reader: TraceReader, kubernetes_version: str | None, feature_gates: str | None
) -> Era:
    """The era of a trace: what the command line says, else what the trace says or shows."""
    named = parse_version(kubernetes_version)
    recorded = reader.header.kubernetes_version
    gates = {
        name: value
        for name, value in reader.header.feature_gates.items()
        if name in GATE_BY_NAME  # gates of other controllers change nothing here
    }
    gates |= parse_feature_gates(feature_gates)
    version = named or recorded
    if version is None:
        era = _detected_era(reader, gates)
    else:
        era = Era.resolve(version, gates)
        if named is not None and recorded is not None and named != recorded:
            return era  # what if: the objects show the gates of another version
    shown = [gate for gate in detected_gates(reader, era) if gate.gate.value not in gates]
    if not shown:
        return era
    warning = (
        f"the objects of the trace show feature gates {', '.join(g.describe() for g in shown)}: "
        "taken as such, --feature-gates sets them otherwise."
    )
    return replace_era(
        Era.resolve(era.basis, {**gates, **{g.gate.value: g.on for g in shown}}),
        version=era.version,
        warning=f"{era.warning} Also, {warning}" if era.warning else warning,
    )


def _detected_era(reader: TraceReader, gates: dict[str, bool]) -> Era:
    """The era of a trace that does not say its version."""
    found = detected_version(reader)
    if not found.evidence:
        raise UsageError(
            "the trace does not say which Kubernetes version it is from, nor do its objects: name "
            "it with --kubernetes-version v1.36.3"
        )
    return replace_era(
        Era.resolve(found.best, gates),
        warning="the trace does not say which Kubernetes version it is from; its objects fit "
        f"{found.describe()}; the rules of {found.best} are used, "
        "--kubernetes-version names another.",
    )


def _controllers(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in ACTIONS:
            raise UsageError(f"{name!r} is no controller: name some of {', '.join(ACTIONS)}")
    return names


def run_diff(
    reader: TraceReader,
    era: Era,
    *,
    namespace: str | None = None,
    job: str | None = None,
    controllers: Sequence[str] = tuple(ACTIONS),
) -> DiffReport:
    """Judge a trace, or a part of it."""
    name = None
    if job is not None:
        space, slash, name = job.partition("/")
        if not slash or not space or not name:
            raise UsageError(f"{job!r} is no Job: write it like NAMESPACE/NAME")
        if namespace is not None and namespace != space:
            raise UsageError(f"--job {job} is not in the namespace {namespace}: leave out -n")
        namespace = space
    groups = reader.groups(COLUMNS, namespace=namespace)
    if name is not None:
        groups = (group for group in groups if group.job in (None, name))
    if "job" not in controllers:
        groups = iter(())
    report = diff_groups(
        groups, JobRules.of(era), surroundings_of(reader), observations=reader.rows
    )
    report.add(
        judgement
        for judgement in _other_controllers(reader, era, controllers)
        if (namespace is None or judgement.object.namespace == namespace)
        and (name is None or name in (judgement.object.name, judgement.subject))
    )
    if job is not None and report.keys == 0 and not report.judgements:
        raise UsageError(f"the trace has no Job {job}: `tracekit info` lists what it has")
    return report


def _other_controllers(
    reader: TraceReader, era: Era, controllers: Sequence[str]
) -> Iterator[Judgement]:
    """The judgements of the CronJob and the TTL controller."""
    if not {"cronjob", "ttl"} & set(controllers):
        return
    rows, around = cron_rows(reader)
    rules = CronJobEra.of(era)
    if "cronjob" in controllers:
        yield from judge_cron_jobs(rows, CronRunner(rules), around)
    if "ttl" in controllers:
        yield from judge_ttl(rows, rules, around)
