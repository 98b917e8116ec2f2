"""`tracekit timeline`: what happened between two times, in order."""

from __future__ import annotations

import sys
from typing import Any

import click

from tracekit.cli.completion import complete_key, complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.messages import tell
from tracekit.cli.one_trace import first_of, session_of_one
from tracekit.cli.snapshot_input import look_option
from tracekit.cli.trace_options import (
    limit_option,
    namespace_option,
    output_option,
    range_options,
    range_within,
)
from tracekit.report.documents import write_document
from tracekit.report.table import counted
from tracekit.report.timeline import happening_document, write_timeline
from tracekit.sql.timeline import timeline_of


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.argument("key", metavar="[NS/NAME]", required=False, shell_complete=complete_key)
@range_options
@look_option
@namespace_option
@click.option("--troubles", is_flag=True, help="Only failures, refusals, warnings, missed runs.")
@limit_option
@output_option
def timeline(
    trace: str,
    key: str | None,
    *,
    namespace: str | None,
    troubles: bool,
    limit: int,
    output: str,
    **times: Any,
) -> None:
    """Tell what happened between two times, in order.

    Of all objects, or of one Job or CronJob with its Jobs and pods: what changed in them and who
    did it, phases of pods and how they ended, Events, refused requests, due times at which nothing
    was started, changes of leaders, and times that the recorder could not see. `--from 22:40 --to
    22:45` are times of the day (UTC) on which the record ends.
    """
    session, printed = session_of_one(trace)
    if namespace is not None:
        session.objects.check_namespace(namespace)
    wanted = session.objects.key(key, namespace) if key else None
    within = range_within(lambda: session.end_ns, **times)
    found = timeline_of(session, within, namespace=namespace, key=wanted)
    happenings = (each for each in found if each.is_trouble or not troubles)
    first, count = first_of(
        happenings, limit, lambda each: (each.at_ns, each.kind, each.namespace, each.name)
    )
    left_out = count - len(first)
    if output == "json":
        document = {
            "schema_version": 1,
            "trace": trace,
            "happenings": [happening_document(each) for each in first],
            "left_out": left_out,
        }
        write_document(document, sys.stdout)
    else:
        write_timeline(first, sys.stdout)
    if not count:
        tell(f"nothing happened {within}".rstrip() + ", as far as it was recorded")
    if left_out:
        tell(f"{counted(left_out, 'later line')} left out: say --from and --to, or --limit {count}")
    tell_problems(session, printed)
