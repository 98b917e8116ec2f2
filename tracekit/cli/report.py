"""`tracekit report`: one HTML file for a whole trace, one Job or one CronJob."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tracekit.base.errors import UsageError
from tracekit.cli.completion import complete_key, complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.executor_options import check_one, many_options
from tracekit.cli.many import ask_executor, of_that_time, tell_troubles
from tracekit.cli.messages import say_line, tell, waiting
from tracekit.cli.report_many import ReportQuestion, pages_of, write_pages
from tracekit.cli.report_serve import serve_report
from tracekit.cli.snapshot_input import as_trace, look_option
from tracekit.cli.sql import check_namespace
from tracekit.cli.targets import check_free, text_opened
from tracekit.cli.trace_options import (
    asked_rules,
    clock_option,
    namespace_option,
    range_options,
    range_within,
    rules_options,
)
from tracekit.cli.units import HERE
from tracekit.report.html.data import report_data
from tracekit.report.html.page import report_page
from tracekit.report.table import counted
from tracekit.sql.session import Session
from tracekit.trace.format.limits import are_lifted
from tracekit.trace.stores.stamps import named_traces


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.argument("key", required=False, metavar="[NS/NAME]", shell_complete=complete_key)
@click.option(
    "-o",
    "--output",
    type=HERE,
    metavar="FILE",
    help="File to write (-: stdout); of many traces the folder.  [default: report.html; reports]",
)
@click.option(
    "--serve",
    "serving",
    is_flag=True,
    help="Serve the page on this machine instead, for traces of any size, until Ctrl-C.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="With --serve: the port.  [default: any that is free]",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@look_option
@namespace_option
@range_options
@rules_options
@clock_option
@many_options
def report(
    trace: str,
    key: str | None,
    output: str | None,
    *,
    serving: bool,
    port: int | None,
    force: bool,
    namespace: str | None,
    processes: int | None,
    scheduler: str | None,
    parts: str | None,
    **options: Any,
) -> None:
    """Write a report on a trace, a Job or a CronJob as one HTML file.

    It needs no network and holds everything: what went wrong, a timeline of CronJobs, Jobs, pods
    and controller writes, the account of each Job, and what changed between its revisions. With
    --since, --from or --to it shows the Jobs that lived then, and what went wrong then; with -n
    those of one namespace.

    Of many traces (a folder of rotated ones, a pattern over directories or a bucket) each gets a
    page of its own, made on all cores or on the workers of --scheduler; of traces that a recorder
    rotated those of another time than --from to --to are not read, nor are those without the
    namespace of -n.

    --serve writes nothing: it prints the address of the same page on 127.0.0.1, which asks the
    trace for what it shows. The address has a secret, and nobody on another machine can ask.
    """
    _check_serving(serving=serving, port=port, output=output, force=force)
    times = {name: options[name] for name in ("since", "from_text", "to_text")}
    rules = asked_rules(options)
    traces = named_traces(as_trace(trace))
    if len(traces) > 1:
        if key is not None or serving:
            asked = key or "--serve"
            raise UsageError(f"{asked} needs one trace, and {trace} names {len(traces)}")
        found, within = of_that_time(traces, times)
        pages = pages_of(found, _folder(output))
        for page_file in pages.values():
            check_free(page_file, force=force)
        question = ReportQuestion(rules, within, namespace, are_lifted())
        documents = ask_executor(
            found, question, processes=processes, scheduler=scheduler, parts=parts
        )
        count, size = write_pages(documents, pages, force=force)
        tell_troubles(documents)
        if left_out := sum("left_out" in document for document in documents):
            tell(f"{counted(left_out, 'trace')} without namespace {namespace}: no page")
        say_line(f"Wrote {counted(count, 'report')} to {_folder(output)}: {size:,} bytes")
        return
    check_one(scheduler, parts)
    target = Path(output or "report.html")
    if output != "-" and not serving:
        check_free(target, force=force)
    session = Session(traces, rules=rules)
    printed = tell_problems(session, set())
    check_namespace(session, traces, namespace)
    within = range_within(session.end_ns, **times)
    if serving:
        serve_report(session, key, within, namespace, port=port or 0)
        return
    with waiting(f"Judging {traces[0]}"):
        page = report_page(report_data(session, key, within, namespace))
    tell_problems(session, printed)
    if output == "-":
        sys.stdout.write(page)
        return
    _write(target, page, force=force)


def _write(target: Path, page: str, *, force: bool) -> None:
    with text_opened(target, force=force) as file:
        file.write(page)
    say_line(f"Wrote {target}: {len(page.encode()):,} bytes")


def _check_serving(*, serving: bool, port: int | None, output: str | None, force: bool) -> None:
    if port is not None and not serving:
        raise UsageError("--port is the port of --serve: say --serve, too")
    if serving and (output is not None or force):
        raise UsageError("--serve writes no file: leave out -o and --force")


def _folder(output: str | None) -> Path:
    if output == "-":
        raise UsageError("the reports of many traces are many files: name a folder with -o")
    return Path(output or "reports")
