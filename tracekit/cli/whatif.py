"""`tracekit whatif`: what another version, gates or settings would have done with recorded Jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from tracekit.cli.completion import complete_gates, complete_key, complete_trace, complete_version
from tracekit.cli.talk import say
from tracekit.cli.trace_options import namespace_option, tell_warnings
from tracekit.errors import UsageError
from tracekit.judging.judged import resolve_era
from tracekit.judging.whatif import Running, Selected, Settings, Target, answer_all, target_era
from tracekit.process.manager import ManagerFlags
from tracekit.report.html.page import whatif_page
from tracekit.report.html.whatif import whatif_data
from tracekit.report.whatif import fails, render, render_cron_why, render_why
from tracekit.trace.reading.reader import TraceReader
from tracekit.whatif.answers import Answers
from tracekit.whatif.changes import parse_settings
from tracekit.whatif.cron_changes import parse_cron_settings

_Command = TypeVar("_Command", bound=Callable[..., Any])
DRAWS_MAX = 100
FAIL_ON = ("outcome", "pods", "timing", "fields")


#: What is asked about.
_TARGET = (
    click.option(
        "--feature-gates",
        metavar="A=true,…",
        shell_complete=complete_gates,
        help="Gates of the target that differ from its defaults.",
    ),
    click.option(
        "--set",
        "settings",
        metavar="spec.F=V",
        multiple=True,
        help="A field of every Job's spec: spec.backoffLimit=3; null takes it away.",
    ),
    click.option(
        "--set-cron",
        "cron_settings",
        metavar="spec.F=V",
        multiple=True,
        help="A field of every CronJob's spec: spec.concurrencyPolicy=Forbid; null takes it away.",
    ),
    click.option(
        "--kube-api-qps",
        metavar="N",
        type=click.IntRange(min=1),
        help="The target's flag; its burst is one and a half times that.",
    ),
    click.option(
        "--concurrent-job-syncs",
        metavar="N",
        type=click.IntRange(min=1),
        help="The target's flag.",
    ),
    click.option(
        "--draws",
        metavar="N",
        type=click.IntRange(1, DRAWS_MAX),
        default=1,
        show_default=True,
        help="Runs of the model, each with other delays.",
    ),
)
#: Of which record and which Jobs, and how the answer is told.
_OTHERS = (
    click.option(
        "--from-version",
        metavar="V",
        shell_complete=complete_version,
        help="The version of the record, where the trace does not say it.",
    ),
    click.option(
        "--from-feature-gates",
        metavar="A=true,…",
        shell_complete=complete_gates,
        help="Gates of the record that differ from its defaults.",
    ),
    namespace_option,
    click.option("-l", "--selector", metavar="SEL", help="Only Jobs with these labels."),
    click.option(
        "--job",
        metavar="NS/NAME",
        shell_complete=complete_key,
        help="Only this Job, or the Jobs of this CronJob.",
    ),
    click.option(
        "--why",
        metavar="NS/NAME",
        shell_complete=complete_key,
        help="One Job's two courses, and where and why they part.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "wide", "json", "markdown"]),
        default="table",
        show_default=True,
        help="How to print; wide names every Job that differs.",
    ),
    click.option(
        "--report",
        metavar="FILE",
        help="Write the answer as one HTML file, too: causes, and both courses of each Job.",
    ),
    click.option("--force", is_flag=True, help="Replace the file of --report if it exists."),
    click.option(
        "--fail-on",
        type=click.Choice(FAIL_ON),
        help="Exit 1 if a Job differs so badly or worse.",
    ),
)


def _options(command: _Command) -> _Command:
    """The options that `whatif` and `upgrade` share."""
    for option in reversed((*_TARGET, *_OTHERS)):
        command = option(command)
    return command


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option(
    "--kubernetes-version",
    "versions",
    metavar="V",
    multiple=True,
    shell_complete=complete_version,
    help="The version that is asked about; several make a matrix.  [default: the record's]",
)
@_options
def whatif(trace: str, versions: tuple[str, ...], **options: Any) -> int:
    """Say what other rules would have done with the Jobs of TRACE.

    Each step that explains an observed write is taken once more by the other rules, in the same
    circumstances. A Job where no step moves other pods is decided by that, and proved. Where a step
    does, its consequence is told as far as it can be derived, and else called uncalibrated.

    Exit 0; 1 with --fail-on if a Job differs so badly or worse; 2 if it could not run.
    """
    return run(trace, versions, **options)


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option(
    "--to",
    "versions",
    metavar="V",
    multiple=True,
    required=True,
    shell_complete=complete_version,
    help="The version to upgrade to; several make a matrix.",
)
@_options
def upgrade(trace: str, versions: tuple[str, ...], **options: Any) -> int:
    """Say what an upgrade would have done to the Jobs of TRACE: `whatif` with --to."""
    return run(trace, versions, **options)


def run(
    trace: str,
    versions: Sequence[str],
    *,
    feature_gates: str | None,
    settings: Sequence[str],
    cron_settings: Sequence[str],
    kube_api_qps: int | None,
    concurrent_job_syncs: int | None,
    draws: int,
    from_version: str | None,
    from_feature_gates: str | None,
    namespace: str | None,
    selector: str | None,
    job: str | None,
    why: str | None,
    output: str,
    report: str | None,
    force: bool,
    fail_on: str | None,
) -> int:
    """Answer and print; the exit status."""
    changes = Settings(parse_settings(settings), parse_cron_settings(cron_settings))
    flags = None
    if kube_api_qps is not None or concurrent_job_syncs is not None:
        burst = kube_api_qps * 3 // 2 if kube_api_qps is not None else None
        flags = ManagerFlags(kube_api_qps, burst, concurrent_job_syncs)
    if not versions and feature_gates is None and changes == Settings() and flags is None:
        raise UsageError(
            "name what is to be otherwise: --kubernetes-version v1.36.3, --feature-gates, --set, "
            "--set-cron, --kube-api-qps or --concurrent-job-syncs"
        )
    target_file = _report_file(report, force=force)
    reader = TraceReader(trace)
    for problem in reader.problems:
        say(f"tracekit: {problem}")
    recorded = resolve_era(reader, from_version, from_feature_gates)
    tell_warnings(recorded)
    targets = []
    for version in versions or (None,):
        target = target_era(reader, recorded, Target(version, feature_gates))
        tell_warnings(target)
        targets.append(target)
    asked = Selected(namespace, why or job, selector)
    running = Running(target_flags=flags, draws=draws, lanes=target_file is not None)
    answers = answer_all(reader, recorded, targets, asked, changes, running)
    if why is not None:
        _tell_why(answers)
    else:
        render(answers, output, sys.stdout)
    if target_file is not None:
        _write_report(target_file, answers, trace)
    return 1 if fail_on is not None and fails(answers, fail_on) else 0


def _report_file(name: str | None, *, force: bool) -> Path | None:
    """Where the report goes; asked before the long work."""
    if name is None:
        return None
    target = Path(name)
    if target.exists() and not force:
        raise UsageError(f"{target} exists: choose another name with --report, or add --force")
    return target


def _write_report(target: Path, answers: Sequence[Answers], trace: str) -> None:
    page = whatif_page(whatif_data(answers, trace))
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written ({error.strerror or error}): name another file with "
            "--report"
        ) from error
    say(f"Wrote {target}: {len(page.encode()):,} bytes")


def _tell_why(answers: Sequence[Answers]) -> None:
    for one in answers:
        # A CronJob is asked about by its own name; its Jobs each by theirs.
        for cron_job in one.cron_jobs:
            render_cron_why(cron_job, one, sys.stdout)
            click.echo()
        for answer in one.jobs if not one.cron_jobs else ():
            render_why(answer, one, sys.stdout)
            click.echo()
