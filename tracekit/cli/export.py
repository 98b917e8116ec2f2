"""`tracekit export`: a trace for Perfetto, Chrome, OpenTelemetry, or as rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import click

from tracekit.base.errors import UsageError
from tracekit.cli.completion import complete_trace
from tracekit.cli.damage import tell_problems
from tracekit.cli.messages import say_line
from tracekit.cli.targets import check_free, opened, text_opened
from tracekit.cli.trace_options import namespace_option, range_options, range_within
from tracekit.cli.units import HERE
from tracekit.report.export.happenings import Happenings, happenings
from tracekit.report.export.text import write_chrome, write_csv, write_jsonl, write_otlp
from tracekit.report.table import counted
from tracekit.sql.session import Session

_TEXT: dict[str, Callable[[Happenings, TextIO], None]] = {
    "chrome": write_chrome,
    "otlp": write_otlp,
    "jsonl": write_jsonl,
    "csv": write_csv,
}


@click.command()
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["perfetto", *_TEXT]),
    required=True,
    help="perfetto: https://ui.perfetto.dev; chrome: trace event JSON; otlp: OpenTelemetry JSON.",
)
@namespace_option
@range_options
@click.option(
    "-o",
    "--output",
    type=HERE,
    default="-",
    metavar="FILE",
    help="File to write (default: stdout).",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def export(
    trace: str, *, kind: str, namespace: str | None, output: str, force: bool, **times: Any
) -> None:
    """Write a trace in the format of another tool.

    Jobs and pods become spans (tracks in Perfetto), pod phases spans inside them, controller writes
    and Events become instants; arrows lead from a pod's creation to the pod, and from a failed pod
    to the creation of its successor. jsonl and csv have all of it as rows in order of time. With
    --since, --from or --to the Jobs that lived then are written, each whole.
    """
    target = None if output == "-" else Path(output)
    if target is not None:
        check_free(target, force=force)
    if target is None and kind == "perfetto" and sys.stdout.isatty():
        raise UsageError("a Perfetto trace is not for a terminal: name a file with -o")
    session = Session([trace])
    printed = tell_problems(session, set())
    if namespace is not None:
        session.objects.check_namespace(namespace)
    found = happenings(session, namespace=namespace, times=range_within(session.end_ns, **times))
    tell_problems(session, printed)
    _write(found, kind, target, force=force)
    if target is not None:
        size = target.stat().st_size
        say_line(f"Wrote {target}: {counted(len(found.jobs), 'Job')}, {size:,} bytes")


def _write(found: Happenings, kind: str, target: Path | None, *, force: bool) -> None:
    if kind == "perfetto":
        from tracekit.report.export.perfetto import write_perfetto  # noqa: PLC0415 - slow to import

        if target is None:
            write_perfetto(found, sys.stdout.buffer)
            return
        with opened(target, force=force) as binary:
            write_perfetto(found, binary)
        return
    if target is None:
        _TEXT[kind](found, sys.stdout)
        return
    with text_opened(target, force=force) as text:
        _TEXT[kind](found, text)
