"""`tracekit compact`: a trace as small as it gets, in place or as a copy."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.base.errors import UsageError
from tracekit.base.escaping import for_terminal
from tracekit.cli.completion import complete_trace
from tracekit.cli.units import HERE_AS_PATH
from tracekit.judge.verdict_cache import keep_again, verdicts_key
from tracekit.report.table import counted
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.snapshot import open_snapshot
from tracekit.trace.stores.place import is_url, local_trace
from tracekit.trace.writing.whole import compact_copy, compact_in_place


@click.command("compact")
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option("-o", "--output", type=HERE_AS_PATH, metavar="OUT", help="New trace; TRACE stays.")
@click.option(
    "--wide", is_flag=True, help="Keep every column in the files, as format 1 does: quick to read."
)
def compact(trace: str, *, output: Path | None, wide: bool) -> None:
    """Make a trace small: nothing in it follows from the rest.

    A row then takes about a third of its bytes. Every object comes back byte for byte, and every
    answer stays the same; all of the trace gets checksums. A reader takes a little longer, and
    older releases of tracekit cannot read it (--wide makes one that they can).

    Without -o the trace is rewritten where it lies, file by file: it can be read meanwhile, and
    whatever interrupts it leaves every row readable. A trace that is being recorded is refused; its
    recorder compacts by itself.
    """
    if output is None and is_url(trace):
        raise UsageError("Only a trace on this machine can be rewritten: name a copy with -o.")
    place = local_trace(trace)
    verdicts = verdicts_key(open_snapshot(place))
    if output is None:
        done = compact_in_place(place, narrow=not wide)
    else:
        done = compact_copy(place, output, narrow=not wide)
    reader = TraceReader(done.trace)
    keep_again(verdicts, verdicts_key(reader.snapshot))  # the same rows have the same verdicts
    before, after = done.bytes_before, reader.size_bytes
    rows = reader.rows
    each = f", {before / rows:.1f} → {after / rows:.1f} bytes a row" if rows else ""
    kept = reader.kept_rows
    said = f"{done.trace}: {counted(rows, 'row')}, {before:,} → {after:,} bytes{each}"
    if kept:
        said += f"; {counted(kept, 'row')} kept as they came"
    click.echo(for_terminal(said), err=True)
