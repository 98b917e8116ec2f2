"""`tracekit whatif`: what another version, gates or settings would have done with recorded Jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from tracekit.answers.whatif.answers import Answers
from tracekit.base.errors import UsageError
from tracekit.base.time_input import ALWAYS
from tracekit.cli.completion import complete_gates, complete_key, complete_trace, complete_version
from tracekit.cli.executor_options import check_one, many_options
from tracekit.cli.many import ask_executor, of_that_time, tell_troubles
from tracekit.cli.messages import say, say_line
from tracekit.cli.targets import check_free, text_opened
from tracekit.cli.trace_options import namespace_option, range_options, range_within, tell_warnings
from tracekit.cli.units import HERE
from tracekit.cli.whatif_many import OUTPUTS, WhatIfQuestion, fails_somewhere, write_many
from tracekit.judge.run_context import end_of
from tracekit.report.html.page import whatif_page
from tracekit.report.html.whatif import whatif_data
from tracekit.report.whatif import fails, render, render_cron_why, render_why
from tracekit.trace.format.limits import are_lifted
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.stamps import named_traces

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
        type=click.Choice(["table", "wide", "json", "jsonl", "markdown"]),
        default="table",
        show_default=True,
        help="How to print; wide names every Job that differs, jsonl has a line for each trace.",
    ),
    click.option(
        "--report",
        type=HERE,
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
@click.argument("traces", metavar="TRACE…", nargs=-1, required=True, shell_complete=complete_trace)
@click.option(
    "--kubernetes-version",
    "versions",
    metavar="V",
    multiple=True,
    shell_complete=complete_version,
    help="The version that is asked about; several make a matrix.  [default: the record's]",
)
@range_options
@_options
@many_options
def whatif(traces: tuple[str, ...], **options: Any) -> int:
    """Say what other rules would have done with the Jobs of TRACE.

    Each step that explains an observed write is taken once more by the other rules, in the same
    circumstances. A Job where no step moves other pods is decided by that, and proved. Where a step
    does, its consequence is told as far as it can be derived, and else called uncalibrated.

    --since, --from and --to ask about the Jobs that were there then and had not ended before; the
    others are run beside them.

    Several traces (a folder of rotated ones, a pattern over directories or a bucket) are asked one
    by one, on all cores or on the workers of --scheduler; those that cannot be read are named, and
    the exit status is 2.

    Exit 0; 1 with --fail-on if a Job differs so badly or worse; 2 if it could not run.
    """
    return run(traces, **options)


@click.command()
@click.argument("traces", metavar="TRACE…", nargs=-1, required=True, shell_complete=complete_trace)
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
@many_options
def upgrade(traces: tuple[str, ...], **options: Any) -> int:
    """Say what an upgrade would have done to the Jobs of TRACE."""
    return run(traces, **options)


def run(
    words: Sequence[str],
    *,
    job: str | None,
    why: str | None,
    output: str,
    report: str | None,
    force: bool,
    fail_on: str | None,
    processes: int | None,
    scheduler: str | None,
    parts: str | None,
    since: float | None = None,
    from_text: str | None = None,
    to_text: str | None = None,
    **asked: Any,
) -> int:
    """Answer and print; the exit status."""
    times: dict[str, Any] = {"since": since, "from_text": from_text, "to_text": to_text}
    question = WhatIfQuestion(**asked, within=ALWAYS, no_limits=are_lifted())
    question.check()
    if why is not None and output != "table":
        raise UsageError(f"--why tells two courses as text: leave out -o {output}, or ask --job")
    if why is not None and job is not None:
        raise UsageError("--why and --job both name a Job: leave one out")
    target_file = _report_file(report, force=force)
    traces = [named for word in words for named in named_traces(word)]
    if len(traces) > 1 or output == "jsonl":
        if why is not None or job is not None or report is not None:
            raise UsageError(
                "several traces are asked without --job, --why and --report: name one trace, or "
                "leave these out"
            )
        if output not in OUTPUTS:
            raise UsageError(f"several traces are printed with -o {', '.join(OUTPUTS)}")
        traces, within = of_that_time(traces, times)
        question = replace(question, within=within)
        documents = ask_executor(
            traces, question, processes=processes, scheduler=scheduler, parts=parts
        )
        tell_troubles(documents)
        write_many(documents, output, sys.stdout)
        return 1 if fail_on is not None and fails_somewhere(documents, fail_on) else 0
    check_one(scheduler, parts)
    reader = TraceReader(traces[0])
    for problem in reader.problems:
        say(f"tracekit: {problem}")
    question = replace(question, within=range_within(lambda: end_of(reader.streams()), **times))
    lanes = target_file is not None
    answers = question.answers(reader, tell_warnings, job=job if why is None else why, lanes=lanes)
    if why is not None:
        _tell_why(answers)
    else:
        render(answers, output, sys.stdout)
    if target_file is not None:
        _write_report(target_file, answers, traces[0], force=force)
    return 1 if fail_on is not None and fails(answers, fail_on) else 0


def _report_file(name: str | None, *, force: bool) -> Path | None:
    """Where the report goes; asked before the long work."""
    if name is None:
        return None
    target = Path(name)
    check_free(target, force=force, option="--report")
    return target


def _write_report(target: Path, answers: Sequence[Answers], trace: str, *, force: bool) -> None:
    page = whatif_page(whatif_data(answers, trace))
    with text_opened(target, force=force, instead="another file with --report") as file:
        file.write(page)
    say_line(f"Wrote {target}: {len(page.encode()):,} bytes")


def _tell_why(answers: Sequence[Answers]) -> None:
    for one in answers:
        # A CronJob is asked about by its own name; its Jobs each by theirs.
        for cron_job in one.cron_jobs:
            render_cron_why(cron_job, one, sys.stdout)
            click.echo()
        for answer in one.jobs if not one.cron_jobs else ():
            render_why(answer, one, sys.stdout)
            click.echo()
