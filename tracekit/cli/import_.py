"""`tracekit import`: traces from what others wrote, when nobody was recording too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from tracekit.base.coverage import scope_of
from tracekit.base.time_input import looked_ns
from tracekit.cli import imports
from tracekit.cli.completion import complete_file, complete_gates, complete_version
from tracekit.cli.messages import say_line, tell
from tracekit.cli.trace_options import parse_feature_gates, parse_flags, parse_version
from tracekit.cli.units import HERE, NAMED, PROCESSES
from tracekit.judge.executors.processes import cores
from tracekit.judge.executors.work_ahead import Ahead
from tracekit.report.table import counted
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.importers.kinds import KINDS
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, check_output, import_files
from tracekit.trace.importers.watch import Mapped

_PROBLEMS_SHOWN = 20
_AUTO = "any"


class KindGroup(click.Group):
    """`import KIND FILE…`, and `import FILE…` for files that tell their kind themselves."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take `import FILE…` as `import any FILE…`."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [_AUTO, *args]
        return super().parse_args(ctx, args)


@click.group("import", cls=KindGroup)
def import_() -> None:
    """Make a trace from what others wrote: logs, snapshots, dumps.

    `tracekit import FILE…` recognises each file; `tracekit import KIND FILE…` says of which kind
    they are. FILE is a file, plain or .gz, .bz2, .xz, .zst, a directory with all below it, a URL of
    either (s3://, gs://, abfs://), or - for standard input. docs/rescue.md says which source proves
    what.
    """


def _command(name: str, about: str, kind: str | None, *, hidden: bool = False) -> None:
    @import_.command(name, help=about, hidden=hidden)
    @click.argument(
        "files", nargs=-1, required=True, type=NAMED, metavar="FILE…", shell_complete=complete_file
    )
    @click.option(
        "-o", "--output", type=HERE, required=True, metavar="TRACE", help="Directory to write."
    )
    @click.option(
        "--with",
        "others",
        multiple=True,
        type=NAMED,
        metavar="OTHER",
        help="Another source or trace of the same cluster and time, to be combined; repeatable.",
    )
    @click.option(
        "--kubernetes-version",
        metavar="V",
        help="Version of the cluster, like v1.36.3.",
        shell_complete=complete_version,
    )
    @click.option(
        "--feature-gates",
        metavar="A=true,…",
        help="Gates that were set by hand.",
        shell_complete=complete_gates,
    )
    @click.option("--controller-flags", metavar="FLAGS", help="The controller manager's flags.")
    @click.option(
        "--scope",
        metavar="all|NAMESPACE",
        help="What lists asked for that do not say it: what such a list does not hold is gone.  "
        "[default: what the list, its place or its objects say]",
    )
    @click.option(
        "--at",
        metavar="TIME",
        help="When what has no times was printed: now, 22:43, or RFC 3339.  [default: what its "
        "bundle says; of text for people when the file was written]",
    )
    @click.option("--force", is_flag=True, help="Replace the trace if it exists.")
    @click.option(
        "--processes",
        metavar="N",
        type=PROCESSES,
        help="Use so many processes for large watch logs; the trace is the same.  [default: the "
        "cores]",
    )
    def run(**options: Any) -> None:
        _import(kind, **options)


def _import(
    kind: str | None,
    *,
    files: tuple[str, ...],
    output: str,
    others: tuple[str, ...],
    kubernetes_version: str | None,
    feature_gates: str | None,
    controller_flags: str | None,
    scope: str | None,
    at: str | None,
    force: bool,
    processes: int | None,
) -> None:
    header = TraceHeader(
        kubernetes_version=parse_version(kubernetes_version),
        feature_gates=parse_feature_gates(feature_gates),
        controller_flags=parse_flags(controller_flags) or (),
    )
    target = Path(output)
    check_output(target, force=force)
    looked_at_ns = _looked_at(at, files)
    with _progress((*files, *others)) as advance, _mapped(processes or cores()) as mapped_in:
        asked = scope_of(scope)
        results = import_files(
            ImportRequest(
                files, target, header, kind, others, advance, mapped_in, asked, looked_at_ns
            )
        )
    report(results, target, recognised=kind is None)


def _looked_at(at: str | None, files: Sequence[str]) -> int | None:
    """When it was printed, Unix ns: of standard input now, if nobody says it."""
    now_ns = time.time_ns()
    if at is None:
        return now_ns if "-" in files else None
    return looked_ns(at, now_ns)


_WATCH_HELP = """Import list and watch results, one JSON object a line.

Several FILEs are taken as rotations of one log, in the order given; each may be plain, .gz, .bz2,
.xz or .zst, and - is standard input."""

_command(
    _AUTO,
    "Import files that tell their kind themselves; the same as `tracekit import FILE…`.",
    None,
    hidden=True,
)
for _kind in KINDS:
    _command(
        _kind.name,
        _WATCH_HELP if _kind.name == "watch" else f"Import {_kind.about}.",
        _kind.name,
    )


@contextmanager
def _mapped(processes: int) -> Iterator[Callable[[Path], Mapped]]:
    """What `map` does, in so many processes with this one, by the folder of its files."""
    if processes == 1:
        yield lambda _: map
        return
    first = partial(imports.take_effect_before, "tracekit.trace.importers.blocks")
    with Ahead(processes - 1, first) as ahead:
        yield ahead.mapped_in


@contextmanager
def _progress(files: tuple[str, ...]) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    sizes = [_size(Path(name)) for name in files]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(
            "Importing", total=sum(s for s in sizes if s) if None not in sizes else None
        )
        yield lambda size: progress.advance(task, size)


def _size(path: Path) -> int | None:
    """Bytes of a file, or of all below a directory; None where that is not known before."""
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        return sum(found.stat().st_size for found in path.rglob("*") if found.is_file())
    return None


def report(results: Sequence[ImportResult], target: Path, *, recognised: bool = False) -> None:
    """The closing lines on stderr: what was written, and all that looked wrong."""
    for result in results:
        _report(result, recognised=recognised)
    last = results[-1]
    gaps = sum(result.gaps for result in results)
    say_line(
        f"Wrote {target}: {counted(last.rows, 'row')} of {counted(len(last.streams), 'stream')}"
        + (f", {counted(gaps, 'gap')}" if gaps else "")
    )


def _report(result: ImportResult, *, recognised: bool) -> None:
    if recognised and result.kind != "combined":
        shapes = ", ".join(f"{count:,} of shape {name}" for name, count in result.shapes.items())
        tell(f"recognised as {result.kind}" + (f" ({shapes})" if shapes else ""))
    if result.unparsed:
        tell(
            f"{counted(result.unparsed, 'line')} could not be read, kept as text that nobody reads "
            "(UNPARSED)"
        )
    if result.synthesized:
        tell(
            f"{result.synthesized} objects were missing when their stream was listed "
            "again; their deletion is marked as synthesized"
        )
    if result.derived:
        tell(f"put together, marked as synthesized: {_counts(result.derived)}")
    if result.calls:
        tell(f"requests that made no state: {_counts(result.calls)}")
    for stream, reason in result.not_recorded.items():
        tell(f"{stream} are not recorded: {reason}")
    times = [f"{result.times}; what depends on times will be unknowable"] if result.times else []
    for remark in (*times, *result.remarks):
        tell(remark)
    _tell_problems(result)


def _tell_problems(result: ImportResult) -> None:
    problems = result.problems.most_common()
    for problem, count in problems[:_PROBLEMS_SHOWN]:
        tell(problem + (f" ({count} times)" if count > 1 else ""))
    if len(problems) > _PROBLEMS_SHOWN:
        tell(f"{len(problems) - _PROBLEMS_SHOWN} more problems are in the trace's report")


def _counts(counts: Any) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
