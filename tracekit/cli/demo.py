"""`tracekit demo`: a real trace that comes with the package, and a copy with a lie planted."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterable, Iterator
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

import click
import zstandard

from tracekit.base.errors import TracekitError, UsageError
from tracekit.check.diff.report import DiffReport
from tracekit.cli.messages import waiting
from tracekit.cli.units import HERE
from tracekit.judge.judged import Judge, resolve_era
from tracekit.report.replay import render_diff
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

#: The Job that the lie is about.
_NAMESPACE, _JOB = "t-fixed-completions", "three"


class DemoError(TracekitError):
    """What was judged is not what a sound installation says of it."""


@click.command()
@click.option(
    "-o",
    "--output",
    type=HERE,
    metavar="DIR",
    help="Keep the traces, as DIR/real and DIR/lie.  [default: remove them at the end]",
)
def demo(*, output: str | None) -> None:
    """Replay a real trace, then a copy of it with one lie planted.

    It needs no cluster, no network and no checkout. Exit 0 if nothing is said of the real trace and
    the lie is found; 2 if not.
    """
    if output is not None:
        _show(Path(output))
        click.echo(
            f"\nBoth are kept. Ask on, for example:\n"
            f"  tracekit explain {Path(output, 'lie')} {_NAMESPACE}/{_JOB}\n"
            f"  tracekit diagnose {Path(output, 'lie')}\n"
            f"  tracekit report {Path(output, 'lie')} -o lie.html"
        )
        return
    with TemporaryDirectory() as place, contextlib.chdir(place):
        _show(Path())
    click.echo("\n`tracekit demo -o DIR` keeps both traces, to be asked on.")


def _show(place: Path) -> None:
    real, lie = place / "real", place / "lie"
    for target in (real, lie):
        if target.exists():
            raise UsageError(f"{target} is there already: remove it, or name another place with -o")
    place.mkdir(parents=True, exist_ok=True)
    source = _trace()
    version = json.loads((source / "about.json").read_text(encoding="utf-8"))["gitVersion"]
    header = TraceHeader(kubernetes_version=version)
    with as_file(source / "watch.jsonl.zst") as log:
        import_files(ImportRequest((str(log),), real, header, "watch"))
        with TemporaryDirectory() as edited:
            false_log = Path(edited) / "watch.jsonl"
            with false_log.open("w", encoding="utf-8") as out:
                pod = _without_a_pod(_lines(log), out)
            import_files(ImportRequest((str(false_log),), lie, header, "watch"))

    click.echo(
        f"What a watch saw of a real Kubernetes {version}, while Jobs and CronJobs ran.\n"
        "Do the rules of the controllers lead to each write that they made?\n"
    )
    if _replayed(real).divergences:
        raise DemoError(_UNSOUND)
    click.echo(
        "\nThey do, field by field. Now a lie: one pod is taken out of the record,\n"
        f"{pod} of Job {_NAMESPACE}/{_JOB}, as if it had never been.\n"
    )
    found = _replayed(lie).divergences
    if not found or {(d.object.namespace, d.object.name) for d in found} != {(_NAMESPACE, _JOB)}:
        raise DemoError(_UNSOUND)
    click.echo(
        "\nThe lie was found, by its traces: the rules demand a pod that is not there, and\n"
        "the status counts one that nobody made. All of it is said of this one Job.\n"
        "By itself `tracekit replay --diff` exits 1 here."
    )


def _trace() -> Traversable:
    """The trace inside the package; in a checkout links to one of traces/, in a wheel files."""
    return files("tracekit.cli") / "demo_trace"


_UNSOUND = (
    "the demo was not judged as it must be, so do not trust this installation: install tracekit "
    "anew, and report it with what `tracekit --version` prints if that does not help"
)


def _replayed(trace: Path) -> DiffReport:
    """Judge and print, as `tracekit replay --diff` does."""
    click.echo(f"$ tracekit replay {trace} --diff")
    reader = TraceReader(trace)
    era = resolve_era(reader, None, None)
    with waiting(f"Judging {reader.rows:,} observations"):
        report = Judge(reader, era).report()
    render_diff(report, era, "table", sys.stdout)
    return report


def _lines(log: Path) -> Iterator[str]:
    with log.open("rb") as packed:
        yield from io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), "utf-8")


def _without_a_pod(lines: Iterable[str], out: TextIO) -> str:
    """Copy a watch log without the first pod that the Job created, and without the Events about it.

    Gives the pod's name.
    """
    victim = ""
    for line in lines:
        row = json.loads(line)
        resource, found = row["resource"], row["object"]
        meta = found.get("metadata", {})
        if resource == "pods" and meta.get("namespace") == _NAMESPACE:
            owners = [owner["name"] for owner in meta.get("ownerReferences", [])]
            victim = victim or (meta["name"] if _JOB in owners else "")
            if meta["name"] == victim:
                continue
        if resource == "events" and victim and victim in found.get("message", ""):
            continue
        out.write(line)
    return victim
