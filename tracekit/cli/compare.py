"""`tracekit compare`: two Jobs side by side."""

from __future__ import annotations

import sys

import click

from tracekit.cli.completion import complete_key, complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.one_trace import session_of_one
from tracekit.cli.snapshot_input import look_option
from tracekit.cli.trace_options import namespace_option, output_option
from tracekit.report.compared import compared_document, write_compared
from tracekit.report.documents import write_document
from tracekit.sql.compared import compared, compared_runs


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.argument("first", metavar="JOB", shell_complete=complete_key)
@click.argument("second", metavar="[JOB]", required=False, shell_complete=complete_key)
@look_option
@namespace_option
@output_option
def compare(
    trace: str, first: str, second: str | None, *, namespace: str | None, output: str
) -> None:
    """Set two Jobs side by side: spec, course and outcome.

    With a CronJob alone: its last run that completed, and its last in trouble. What came of each,
    how long each part of its way took (due, created, first pod, node, running, ended, condition),
    what differs of spec, labels and annotations, and their pods. A row that differs is marked with
    ≠, a time where one is a second and twice as long.
    """
    session, printed = session_of_one(trace)
    key = session.objects.key(first, namespace)
    if second is None:
        found = compared_runs(session, key)
    else:
        found = compared(session, key, session.objects.key(second, namespace))
    if output == "json":
        write_document({"trace": trace, **compared_document(found)}, sys.stdout)
    else:
        write_compared(found, sys.stdout)
    tell_problems(session, printed)
