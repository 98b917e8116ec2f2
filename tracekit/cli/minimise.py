"""`tracekit minimise`: the smallest trace that still shows one divergence or finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from tracekit.base.durations import span
from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.cli.completion import complete_key, complete_trace
from tracekit.cli.messages import say, say_line, tell
from tracekit.cli.redact import redacted_copy
from tracekit.cli.trace_options import parse_flags, rules_options, tell_warnings
from tracekit.cli.units import DURATION, HERE_AS_PATH, NAMED_AS_PATH
from tracekit.judge.judged import Judge, resolve_era
from tracekit.minimise.limit import OutOfTimeError, TimeLimit
from tracekit.minimise.run import Minimised, minimise, write
from tracekit.minimise.showing import showing_of
from tracekit.minimise.target import Target, choose
from tracekit.record.redaction.redact import Redactor, parse_fields, read_key
from tracekit.report.table import counted
from tracekit.trace.reading.objects import objects_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.placing import check_absent, placed
from tracekit.versions.era import Era


@click.command("minimise")
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option(
    "-o", "--output", type=HERE_AS_PATH, metavar="OUT", required=True,
    help="New trace.",
)  # fmt: skip
@click.option(
    "--job",
    metavar="NS/NAME",
    help="What is wrong with this Job or CronJob.",
    shell_complete=complete_key,
)
@click.option("--finding", metavar="TK101", help="The first finding of this id.")
@click.option("--redact", metavar="FIELDS", help="Hash env, args, … (see docs), all, or strict.")
@click.option("--key-file", type=NAMED_AS_PATH, help="Key of --redact; random without it.")
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=5000,
    show_default=True,
    help="Give up looking for a smaller one after so many.",
)
@click.option(
    "--time-limit",
    type=DURATION,
    default="10m",
    show_default=True,
    help="Give up looking for a smaller one after this time.",
)
@rules_options
def minimise_command(
    *,
    trace: str,
    output: Path,
    job: str | None,
    finding: str | None,
    redact: str | None,
    key_file: Path | None,
    attempts: int,
    time_limit: float,
    kubernetes_version: str | None,
    feature_gates: str | None,
    process_zone: str | None,
    controller_flags: str | None,
    search_all: bool,
) -> int:
    """Make the smallest trace that still shows what is wrong.

    What is shown is the first divergence of the trace, else its worst finding; --job and --finding
    choose among them. Rows are left out for as long as the very same verdict remains and no other
    comes up: the end of the record, Jobs, pods, Events, revisions. The same trace gives the same
    bytes, with --redact if --key-file is given.
    """
    check_absent(output, "smaller trace")
    if key_file is not None and redact is None:
        raise UsageError("--key-file is the key of --redact; give --redact too.")
    redactor = None
    if redact is not None:
        redactor = Redactor(read_key(key_file), parse_fields(redact))
    reader = TraceReader(trace, controller_flags=parse_flags(controller_flags))
    era = resolve_era(reader, kubernetes_version, feature_gates, process_zone, search_all)
    tell_warnings(era)
    limit = TimeLimit(time_limit)

    def chosen(judge: Judge) -> Target:
        objects = objects_of(reader)
        key = objects.key(job) if job is not None else None
        return choose(showing_of(reader, judge), objects, key=key, rule=finding)

    judge = Judge(reader, era)
    with placed(output, "minimising") as place:
        try:
            with limit.counting():
                target = limit.run(lambda: chosen(judge))
                say(f"Looking for the smallest trace with {target.shown}")
                found = minimise(
                    reader, judge, target, attempts_max=attempts, limit=limit,
                    say=_progress(reader.rows),
                )  # fmt: skip
        except OutOfTimeError:
            raise UsageError(
                f"{_over(limit)} before any part of {trace} was found to show what is wrong: "
                "--time-limit with more may find one"
            ) from None
        rows = _write(found, era, place, redactor, output)
    for other in found.others:
        tell(f"it shows {other} too: one is not there without the other")
    if found.cut_short and limit.is_over:
        tell(f"{_over(limit)}: --time-limit with more may find a smaller one")
    elif found.cut_short:
        tell(
            f"{found.attempts:,} attempts are used up: --attempts with more may find a smaller one"
        )
    say_line(f"Wrote {output}: {counted(rows, 'row')} of {reader.rows:,}, {target.shown}")
    return 0


def _over(limit: TimeLimit) -> str:
    return f"the time limit of {span(limit.seconds * NS_PER_S)} was reached"


def _progress(total: int) -> Callable[[int, str], None]:
    def progress(rows: int, what: str) -> None:
        say(f"{rows:,} of {total:,} rows, without {what}")

    return progress


def _write(found: Minimised, era: Era, place: Path, redactor: Redactor | None, output: Path) -> int:
    """Write the trace, if it shows what it is to show."""
    plain = place if redactor is None else place.with_name("plain")
    rows = write(found, plain)
    if redactor is not None:
        redacted_copy(TraceReader(plain), place, redactor)
    smaller = TraceReader(place)
    shown = [s.place for s in showing_of(smaller, Judge(smaller, era)).everything]
    if found.target.place not in shown:
        raise UsageError(
            f"{output} would not show {found.target} any more once it is redacted: hash less "
            "with --redact"
        )
    return rows
