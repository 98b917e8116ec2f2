"""`tracekit merge`: several recorders' traces of one cluster into one."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.base.errors import UsageError
from tracekit.cli.completion import complete_trace
from tracekit.cli.messages import say, say_line, tell
from tracekit.cli.units import HERE_AS_PATH
from tracekit.report.table import counted
from tracekit.trace.importers.merge import Merged, merge, merged_header
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.placing import check_absent, placed
from tracekit.trace.writing.writer import TraceWriter

_FEWEST = 2


@click.command("merge")
@click.argument("traces", metavar="TRACE…", nargs=-1, shell_complete=complete_trace)
@click.option(
    "-o", "--output", type=HERE_AS_PATH, metavar="OUT", required=True,
    help="New trace.",
)  # fmt: skip
def merge_command(*, traces: tuple[str, ...], output: Path) -> int:
    """Merge what several recorders of one cluster saw.

    The same revision is the same observation, and the earlier receipt counts. A gap remains only
    where all of them had one. Clocks that differ by more than a second are put right by what all
    received, and it is said.
    """
    if len(traces) < _FEWEST:
        raise UsageError("merge takes two traces or more: name what each recorder wrote")
    check_absent(output, "merged trace")
    readers = [TraceReader(trace) for trace in traces]
    header = merged_header(readers, traces)
    with (
        placed(output, "merging") as place,
        TraceWriter(place, header, session={"source": "merge"}) as writer,
    ):
        found = merge(readers, writer)
        writer.close(compact=True)
    _tell(found, traces)
    say_line(
        f"Wrote {output}: {counted(found.rows, 'row')}, {counted(found.gaps_left, 'gap')} left of "
        f"{found.gaps_before}"
    )
    return 0


def _tell(found: Merged, traces: tuple[str, ...]) -> None:
    for name, taken, shift_ns in zip(traces, found.taken, found.shifts_ns, strict=True):
        say(f"{name}: {taken:,} observations first, or only there")
        if shift_ns:
            tell(
                f"the clock of {name} is {abs(shift_ns) / 1e9:.1f} s "
                f"{'behind' if shift_ns > 0 else 'ahead of'} the first one's: its times are put "
                "right by that"
            )
    if found.unreported:
        tell(
            f"{counted(found.unreported, 'state')} stood in a list, and a recorder that was "
            "watching then had not been told: its watch may have been held back"
        )
