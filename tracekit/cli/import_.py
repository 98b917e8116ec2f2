"""`tracekit import`: traces from what other recorders wrote."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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

from tracekit.cli.trace_options import parse_feature_gates, parse_flags, parse_version
from tracekit.errors import UsageError
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.watch import ImportResult, WatchImporter
from tracekit.trace.lock import TraceLock
from tracekit.trace.model import HEADER_NAME, TraceHeader
from tracekit.trace.writer import TraceWriter


@click.group("import")
def import_() -> None:
    """Make a trace from what another recorder wrote."""


@import_.command("watch")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("-o", "--output", required=True, metavar="TRACE", help="Directory to write.")
@click.option("--kubernetes-version", metavar="V", help="Version of the cluster, like v1.36.3.")
@click.option("--feature-gates", metavar="A=true,…", help="Gates that were set by hand.")
@click.option("--controller-flags", metavar="FLAGS", help="The controller manager's flags.")
@click.option("--force", is_flag=True, help="Replace the trace if it exists.")
def import_watch(
    *,
    files: tuple[str, ...],
    output: str,
    kubernetes_version: str | None,
    feature_gates: str | None,
    controller_flags: str | None,
    force: bool,
) -> None:
    """Import list and watch results, one JSON object a line.

    Several FILEs are taken as rotations of one log, in the order given; each may be plain, .gz or
    .zst, and - is standard input.
    """
    header = TraceHeader(
        kubernetes_version=parse_version(kubernetes_version),
        feature_gates=parse_feature_gates(feature_gates),
        controller_flags=parse_flags(controller_flags),
    )
    target = Path(output)
    check_output(target, force=force)
    result = _import(files, target, header)
    report(result, target)


def check_output(target: Path, *, force: bool) -> None:
    """Refuse to overwrite; even with --force only a trace is ever replaced."""
    if not target.exists():
        return
    if not (target / HEADER_NAME).is_file():
        raise UsageError(f"{target} exists and is not a trace: choose another name for the output")
    if not force:
        raise UsageError(f"{target} exists: choose another name, or add --force to replace it")


def _import(files: tuple[str, ...], target: Path, header: TraceHeader) -> ImportResult:
    """Write beside the target and rename, so that a trace under its name is always whole."""
    partial = target.with_name(f".{target.name}.importing")
    session = {"source": "import watch"}
    importer = WatchImporter(lambda: TraceWriter(partial, header, session=session))
    try:
        _discard(partial)
        with _progress(files) as advance:
            result = importer.run([LineSource(name, advance) for name in files])
        _replace(target, partial)
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written ({error.strerror or error}): make room, or choose "
            "another place for the output"
        ) from error
    finally:
        importer.abandon()
        shutil.rmtree(partial, ignore_errors=True)
    return result


def _discard(partial: Path) -> None:
    """Remove what an import that was killed left; refuse if it is still running."""
    if partial.exists():
        TraceLock(partial).release()
        shutil.rmtree(partial)


def _replace(target: Path, finished: Path) -> None:
    """Put the finished trace in the place of an older one, if there is one."""
    if not target.exists():
        finished.rename(target)
        return
    TraceLock(target).release()
    old = target.with_name(f".{target.name}.replaced")
    shutil.rmtree(old, ignore_errors=True)
    target.rename(old)
    finished.rename(target)
    shutil.rmtree(old)


@contextmanager
def _progress(files: tuple[str, ...]) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    sizes = [Path(name).stat().st_size for name in files if Path(name).is_file()]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(
            "Importing", total=sum(sizes) if len(sizes) == len(files) else None
        )
        yield lambda size: progress.advance(task, size)


def report(result: ImportResult, target: Path) -> None:
    """The closing lines on stderr: what was written, and all that looked wrong."""
    if result.unparsed:
        click.echo(
            f"tracekit: {result.unparsed} lines could not be read and are kept as they are "
            "(rows of type UNPARSED)",
            err=True,
        )
    if result.synthesized:
        click.echo(
            f"tracekit: {result.synthesized} objects were missing when their stream was listed "
            "again; their deletion is marked as synthesized",
            err=True,
        )
    for problem, count in result.problems.items():
        click.echo(f"tracekit: {problem}" + (f" ({count} times)" if count > 1 else ""), err=True)
    gaps = f", {result.gaps} gaps" if result.gaps else ""
    click.echo(
        f"Wrote {target}: {result.rows:,} rows of {len(result.streams)} streams{gaps}", err=True
    )
