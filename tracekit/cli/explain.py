"""`tracekit explain`: what happened to one Job or CronJob, and why, step by step."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from tracekit.api import Trace
from tracekit.base.errors import UsageError
from tracekit.cli.completion import complete_key, complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.messages import tell_all, tell_judging
from tracekit.cli.snapshot_input import as_trace, is_imported
from tracekit.cli.trace_options import (
    clock_option,
    namespace_option,
    parse_feature_gates,
    parse_flags,
    parse_version,
    range_options,
    rules_options,
)
from tracekit.report.documents import write_document
from tracekit.report.narrative import Narrative, clock, styled_lines
from tracekit.report.replay import judgement_document
from tracekit.report.table import write_line, write_parts

if TYPE_CHECKING:
    from tracekit.answers.cronlint.surprises import Surprise


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.argument("key", metavar="NS/NAME", shell_complete=complete_key)
@namespace_option
@click.option(
    "--at",
    metavar="TIME",
    help="Only what happened by then, like --to; of what `kubectl get` printed: when it did.",
)
@range_options
@rules_options
@clock_option
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Caches, rules and logged syncs, too.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print."
)
def explain(
    trace: str, key: str, *, namespace: str | None, at: str | None, output: str, **options: Any
) -> None:
    """Tell what happened to one Job or CronJob, step by step.

    TRACE may be a file that `tracekit import` reads, or - for standard input, as `diagnose` has it.
    Of what was printed for people it tells each look and Event, of the Job, its pods or its runs.
    The name alone will do where it is unique, and a pod's name stands for its Job, or for itself
    where the trace has Events of it alone; `job/NAME -n NS` works as well.

    First what came of it. Then for each sync of the controller that wrote something: what it had
    seen, what it did and what it waited for afterwards (back-off, deadline, expectations); with -v
    what its cache held and by which rule it decided, with which numbers, and the syncs without a
    write that an imported log of the controller manager has. Writes of others come with the
    evidence for it. For a CronJob: every tick, and why a Job was started for it or not. With
    --at or --to the account stops there, so that its end tells what was known and waited for at
    that time.
    """
    flags = parse_flags(options["controller_flags"])
    looked = at if is_imported(trace) else None
    place = as_trace(trace, at=looked, version=parse_version(options["kubernetes_version"]))
    opened = Trace(
        place,
        controller_flags=flags,
        clock_offset=options["clock_offset"],
        before_judging=tell_judging,
    )
    printed = tell_problems(opened, set())
    if at is not None and options["to_text"] is not None:
        raise UsageError("--at and --to both say where to stop: leave one out")
    narrative = opened.explain(
        key,
        namespace=namespace,
        since=options["since"],
        from_=options["from_text"],
        to=options["to_text"] if at is None else at,
        version=parse_version(options["kubernetes_version"]),
        feature_gates=parse_feature_gates(options["feature_gates"]),
        process_zone=options["process_zone"],
        search_all=options["search_all"],
    )
    if not printed:  # a file that breaks only when it is read; others are named already
        printed = tell_problems(opened, printed)
    tell_all(opened.warnings, printed)
    release = parse_version(options["kubernetes_version"])
    notes = schedule_notes(opened, narrative, release, options["process_zone"])
    if output == "json":
        write_document(narrative_document(narrative) | _noted(notes), sys.stdout)
    else:
        _render(narrative, verbose=options["verbose"])
        for note in notes:
            write_line(f"schedule {note.name}: {note.text}", sys.stdout, then=2)


def schedule_notes(
    trace: Trace, narrative: Narrative, version: str | None, zone: str | None
) -> list[Surprise]:
    """What `cron lint` says of a CronJob's schedule, from the end of the record on.

    No verdict rests on it.
    """
    if narrative.kind != "CronJob":
        return []
    from tracekit.answers.cronlint.linted import (  # noqa: PLC0415 - slow to import, and of no use to a Job
        COUNT,
        LONGEST_RUNS,
        Asked,
        entry_of,
        linted,
        notes_of,
    )
    from tracekit.base.cron import load_zone  # noqa: PLC0415 - with it
    from tracekit.versions.version import KubeVersion  # noqa: PLC0415 - with it

    relation = trace.sql(LONGEST_RUNS)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    row = next(
        (
            r
            for r in rows
            if (r["namespace"], r["cronjob"]) == (narrative.namespace, narrative.name)
        ),
        None,
    )
    release = version or trace.header.kubernetes_version
    if row is None or release is None:
        return []
    (end,) = trace.sql("SELECT epoch_ns(trace_end())").fetchall()[0]
    asked = Asked(KubeVersion.parse(release), load_zone(zone or "UTC"), end, COUNT)
    return list(notes_of(linted(entry_of(row), asked)))


def _noted(notes: list[Surprise]) -> dict[str, object]:
    if not notes:
        return {}
    return {"schedule_notes": [{"name": note.name, "text": note.text} for note in notes]}


def narrative_document(narrative: Narrative) -> dict[str, object]:
    """The account as JSON."""
    return {
        "schema_version": 1,
        "kind": narrative.kind,
        "namespace": narrative.namespace,
        "name": narrative.name,
        "steps": [
            {
                "time_ns": step.at_ns,
                "time": clock(step.at_ns).replace(" ", "T") + "Z",
                "resource_version": step.rv,
                "who": step.who,
                "what": step.what,
                "details": list(step.details),
                "verdict": step.verdict,
                "forced": step.forced,
            }
            for step in narrative.steps
        ],
        "divergences": [judgement_document(judgement) for judgement in narrative.divergences],
        "opening": narrative.opening or None,
        "findings": narrative.findings,
        "closing": narrative.closing or None,
    }


def _render(narrative: Narrative, *, verbose: bool) -> None:
    for line in styled_lines(narrative, verbose=verbose):
        write_parts(line.parts, sys.stdout, line.indent, line.goes_on)
