"""`tracekit replay`: run the ported controllers over a trace and judge what was observed."""

from __future__ import annotations

import sys
from typing import Any

import click
from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.base.escaping import for_terminal
from tracekit.cli.baselines import baseline_option, read_baseline, tell_unused
from tracekit.cli.completion import complete_controllers, complete_key, complete_trace
from tracekit.cli.executor_options import executor_of, executor_options, parts_of, tell_failures
from tracekit.cli.many import ask_executor, of_that_time, tell_troubles
from tracekit.cli.messages import tell, tell_judging, waiting
from tracekit.cli.replay_many import OUTPUTS, ReplayQuestion, lacks_states, write_many
from tracekit.cli.trace_options import (
    RULES,
    asked_rules,
    clock_option,
    namespace_option,
    range_options,
    range_within,
    rules_options,
    tell_warnings,
)
from tracekit.judge.executors.inline import Inline
from tracekit.judge.judged import Asked, Judge, check_controllers, open_under, resolve_era
from tracekit.judge.verdict_cache import verdicts_key
from tracekit.judge.verdict_table import load_verdicts
from tracekit.report.ci import CI_FORMATS, write_ci
from tracekit.report.replay import exit_status, render_actions, render_diff
from tracekit.trace.format.limits import are_lifted
from tracekit.trace.stores.stamps import named_traces
from tracekit.versions.overrides import AskedRules

NOT_JUDGED = (
    "the record contradicts the rules as a whole and was not judged; the summary says what does "
    "not fit"
)


@click.command()
@click.argument("traces", nargs=-1, required=True, metavar="TRACE…", shell_complete=complete_trace)
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
@clock_option
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
@executor_options
@click.option("--exit-zero", is_flag=True, help="Exit 0 although there are divergences.")
def replay(traces: tuple[str, ...], **values: Any) -> int:
    """Feed TRACE through the ported controllers.

    Without --diff the actions that the controllers take are printed. With it each write that was
    observed gets a verdict: exit 0 if the rules explain them all, 1 if not, 2 if it could not run,
    or if the record contradicts the rules as a whole and nothing could be judged.

    TRACE is the directory of a trace, a folder of rotated ones, a URL (s3://, gs://, abfs://,
    https://) or a pattern over either. Several are judged one by one, on all cores or on the
    workers of --scheduler, and --diff prints what was found of each; those that cannot be read are
    named, and the exit status is 2.

    The trace is judged as a whole; -n, --job, --controller, --since, --from and --to choose what is
    shown of it.
    """
    times = {name: values.pop(name) for name in ("since", "from_text", "to_text")}
    rules = asked_rules({name: values.pop(name) for name in RULES})
    options = _Options(**values, times=times, rules=rules)
    if not options.diff and (options.output in CI_FORMATS or options.baseline):
        raise UsageError("-o junit, -o sarif and --baseline are about verdicts: add --diff")
    found = [named for word in traces for named in named_traces(word)]
    return _one(found[0], options) if len(found) == 1 else _many(found, options)


class _Options(Struct, frozen=True, kw_only=True):
    """The command line, parsed."""

    diff: bool
    namespace: str | None
    job: str | None
    controllers: str | None
    min_actions: int
    rules: AskedRules
    output: str
    around_damage: bool
    baseline: str | None
    processes: int | None
    scheduler: str | None
    parts: str | None
    exit_zero: bool
    times: dict[str, Any]

    @property
    def named_controllers(self) -> list[str] | None:
        """The controllers that are asked for; None: all."""
        if self.controllers is None:
            return None
        return [name.strip() for name in self.controllers.split(",")]


def _one(trace: str, options: _Options) -> int:
    """Replay one trace."""
    reader = open_under(options.rules, trace, around_damage=options.around_damage)
    for problem in reader.problems:
        tell(problem)
    key = verdicts_key(reader.snapshot, *options.rules.era)
    tells = tell_judging if options.job or options.namespace else None
    place = parts_of(options.parts, options.scheduler)
    with executor_of(options.processes, options.scheduler, reader.rows) as others:
        # Who judges a trace as a whole keeps no parts.
        executor = others or (None if place is None else Inline())
        if options.parts is not None and load_verdicts(key) is not None:
            tell(f"this machine has the verdicts already: nothing new for {options.parts}")
        if executor is not None and load_verdicts(key) is None:
            from tracekit.judge.partitioned import ready  # noqa: PLC0415 - slow to import

            executor.begin(ready)  # it takes longer than to see by which rules to judge
        era = resolve_era(reader, *options.rules.era)
        tell_warnings(era)
        judge = Judge(
            reader, era, kept_as=key, before_judging=tells, executor=executor, parts=place
        )
        within = range_within(lambda: judge.run_context.end_ns, **options.times)
        names = options.named_controllers
        asked = Asked(options.namespace, options.job, names, within, options.min_actions)
        counts_only = options.diff and options.output in ("table", "json") and not options.baseline
        with waiting(f"Judging {reader.rows:,} observations"):
            report = judge.tally(asked) if counts_only else judge.report(asked)
    tell_failures(judge.failures)
    if not options.diff:
        render_actions(report, era, options.output, sys.stdout)
        return 0
    if options.baseline:
        accepted = read_baseline(options.baseline)
        report.judgements = [
            j for j in report.judgements if not (j.divergent and accepted.accepts_judgement(j))
        ]
        tell_unused(accepted, options.baseline)
    if options.output in CI_FORMATS:
        write_ci(report.judgements, options.output, trace, sys.stdout, report.misfit)
    else:
        render_diff(report, era, options.output, sys.stdout)
    divergent, misfit = bool(report.divergences), bool(report.misfit)
    lacks = "" if report.decided or divergent or misfit else lacks_states(reader)
    if lacks:
        tell(lacks)
        return 2
    if misfit and not divergent:
        tell(NOT_JUDGED)
    return exit_status(divergent=divergent, misfit=misfit, exit_zero=options.exit_zero)


def _many(traces: list[str], options: _Options) -> int:
    """Judge several traces, each as a task."""
    asked_of_one = (options.job, options.baseline, options.min_actions)
    if not options.diff or any(asked_of_one):
        raise UsageError(
            "several traces are judged with --diff, and neither --job, --baseline nor "
            "--min-actions: name one trace, or leave these out"
        )
    if options.output not in OUTPUTS:
        raise UsageError(f"several traces are printed with -o {', '.join(OUTPUTS)}")
    traces, within = of_that_time(traces, options.times)
    names = options.named_controllers
    question = ReplayQuestion(
        options.rules,
        options.namespace,
        None if names is None else check_controllers(names),
        within,
        options.around_damage,
        are_lifted(),
    )
    documents = ask_executor(
        traces,
        question,
        processes=options.processes,
        scheduler=options.scheduler,
        parts=options.parts,
    )
    tell_troubles(documents)
    write_many(documents, options.output, sys.stdout)
    divergent = any(document.get("divergences") for document in documents)
    not_judged = [d for d in documents if d.get("misfit") and not d["divergences"]]
    for document in not_judged:
        tell(f"{for_terminal(document['trace'])}: {NOT_JUDGED}")
    lacking = [document for document in documents if "lacks" in document]
    for document in lacking:
        tell(f"{for_terminal(document['trace'])}: {document['lacks']}")
    if lacking and not divergent:
        return 2
    return exit_status(divergent=divergent, misfit=bool(not_judged), exit_zero=options.exit_zero)
