"""`tracekit jobs`: the Jobs of a trace, one line each."""

from __future__ import annotations

import sys

import click

from tracekit.cli.sql import tell_problems
from tracekit.cli.trace_options import namespace_option
from tracekit.report.rows import FORMATS, write_rows
from tracekit.sql.session import Session

_SHORT = (
    "namespace", "job", "cronjob", "outcome", "reason", "created_at", "duration_s", "pods",
    "pods_failed", "retries",
)  # fmt: skip
_WIDE = (*_SHORT, "queue_s", "run_s", "backoff_s", "succeeded", "failed", "restarts", "message")
OUTCOMES = ("Complete", "Failed", "Running", "Pending", "Suspended", "Deleted")


@click.command()
@click.argument("traces", nargs=-1, required=True, metavar="TRACE…")
@namespace_option
@click.option(
    "--outcome",
    type=click.Choice(OUTCOMES, case_sensitive=False),
    help="Only Jobs that ended (or stood at the end) like this.",
)
@click.option("--cronjob", metavar="NAME", help="Only Jobs of this CronJob.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", *FORMATS[1:]]),
    default="table",
    help="How to print; all but table and wide have every column.",
)
def jobs(
    traces: tuple[str, ...],
    namespace: str | None,
    outcome: str | None,
    cronjob: str | None,
    output: str,
) -> None:
    """List the Jobs of a trace: outcome, reason, pods, retries.

    The columns are those of the view `jobs` in docs/sql.md; Jobs come in order of creation.
    """
    session = Session(traces)
    tell_problems(session, set())
    if namespace is not None:
        session.objects.check_namespace(namespace)
    if cronjob is not None:
        session.objects.check_cronjob(cronjob, namespace)
    columns = {"table": _SHORT, "wide": _WIDE}.get(output)
    chosen = ", ".join(columns) if columns else "*"
    if columns and len(session.sources) > 1:
        chosen = f"trace, {chosen}"
    rows = session.table(f"SELECT {chosen} FROM jobs ORDER BY created_at, namespace, job")  # noqa: S608
    rows = session.matching(rows, namespace=namespace, outcome=outcome, cronjob=cronjob)
    write_rows(rows, "table" if columns else output, sys.stdout)
