"""`tracekit whatif`: what another version, gates or settings would have done with recorded Jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from tracekit.cli.completion import complete_gates, complete_key, complete_trace, complete_version
from tracekit.cli.talk import say
from tracekit.cli.trace_options import namespace_option, tell_warnings
from tracekit.errors import UsageError
from tracekit.judging.judged import resolve_era
from tracekit.judging.whatif import Running, Selected, Target, answer_all, target_era
from tracekit.process.manager import ManagerFlags
from tracekit.report.whatif import fails, render, render_why
from tracekit.trace.reading.reader import TraceReader
from tracekit.whatif.answers import Answers
from tracekit.whatif.changes import parse_settings

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
    fail_on: str | None,
) -> int:
    """Answer and print; the exit status."""
    changes = parse_settings(settings)
    flags = None
    if kube_api_qps is not None or concurrent_job_syncs is not None:
        burst = kube_api_qps * 3 // 2 if kube_api_qps is not None else None
        flags = ManagerFlags(kube_api_qps, burst, concurrent_job_syncs)
    if not versions and feature_gates is None and not changes and flags is None:
        raise UsageError(
            "name what is to be otherwise: --kubernetes-version v1.36.3, --feature-gates, --set, "
            "--kube-api-qps or --concurrent-job-syncs"
        )
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
    running = Running(target_flags=flags, draws=draws)
    answers = answer_all(reader, recorded, targets, asked, changes, running)
    if why is not None:
        _tell_why(answers)
    else:
        render(answers, output, sys.stdout)
    return 1 if fail_on is not None and fails(answers, fail_on) else 0


def _tell_why(answers: Sequence[Answers]) -> None:
    for one in answers:
        for answer in one.jobs:
            render_why(answer, one, sys.stdout)
            click.echo()
