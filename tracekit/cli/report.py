"""`tracekit report`: one HTML file for a whole trace, one Job or one CronJob."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tracekit.cli.completion import complete_key, complete_trace
from tracekit.cli.sql import tell_problems
from tracekit.cli.talk import say
from tracekit.cli.trace_options import (
    parse_feature_gates,
    parse_version,
    range_options,
    range_within,
    rules_options,
)
from tracekit.errors import UsageError
from tracekit.report.html.data import report_data
from tracekit.report.html.page import report_page
from tracekit.sql.session import Session


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.argument("key", required=False, metavar="[NS/NAME]", shell_complete=complete_key)
@click.option(
    "-o", "--output", default="report.html", metavar="FILE", help="File to write (-: stdout)."
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@range_options
@rules_options
def report(
    trace: str,
    key: str | None,
    output: str,
    force: bool,
    kubernetes_version: str | None,
    process_zone: str | None,
    feature_gates: str | None,
    **times: Any,
) -> None:
    """Write a report on a trace, or on one Job or CronJob of it, as one HTML file.

    It needs no network and holds everything: what went wrong, a timeline of CronJobs, Jobs, pods
    and controller writes, the account of each Job, and what changed between its revisions. With
    --since, --from or --to it shows the Jobs that lived then, and what went wrong then.
    """
    target = Path(output)
    if output != "-" and target.exists() and not force:
        raise UsageError(f"{target} exists: choose another name with -o, or add --force")
    session = Session(
        [trace],
        kubernetes_version=parse_version(kubernetes_version),
        feature_gates=parse_feature_gates(feature_gates),
        process_zone=process_zone,
    )
    told = tell_problems(session, set())
    page = report_page(report_data(session, key, range_within(session.end_ns, **times)))
    tell_problems(session, told)
    if output == "-":
        sys.stdout.write(page)
        return
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written ({error.strerror or error}): name another file with -o"
        ) from error
    say(f"Wrote {target}: {len(page.encode()):,} bytes")
