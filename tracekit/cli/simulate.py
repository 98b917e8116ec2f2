"""`tracekit simulate`: run the ported controllers in a model of a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracekit.base.errors import UsageError
from tracekit.base.plain_files import NoPlainFileError, read_bounded
from tracekit.cli.completion import complete_gates, complete_version
from tracekit.cli.messages import say, tell
from tracekit.cli.units import HERE, NAMED
from tracekit.model.simulate.draws import SeededDraws
from tracekit.model.simulate.manifests import manifests_of
from tracekit.model.simulate.run import Run, simulate
from tracekit.model.simulate.workload import (
    Workload,
    flags_of,
    read_workload,
    timing_of,
    world_of,
)
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.writing.placing import check_absent, placed
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.era import NEWEST, Era
from tracekit.versions.texts import parse_feature_gates, parse_version
from tracekit.versions.version import KubeVersion

_BYTES_MAX = 16 << 20


@click.command("simulate")
@click.option(
    "--workload",
    type=NAMED,
    metavar="FILE",
    required=True,
    help="What users do, how pods fare, what goes wrong (docs/simulate.md); - for standard input.",
)
@click.option(
    "-o", "--output", type=HERE, metavar="TRACE", required=True, help="The trace to write."
)
@click.option(
    "--kubernetes-version",
    metavar="V",
    help="Of the controllers.  [default: the file's, else the newest]",
    shell_complete=complete_version,
)
@click.option(
    "--feature-gates",
    metavar="A=true,…",
    help="Gates that differ from the defaults, over those of the file.",
    shell_complete=complete_gates,
)
@click.option(
    "--seed", type=int, metavar="N", help="Draws delays and names.  [default: the file's]"
)
def simulate_command(
    *,
    workload: str,
    output: str,
    kubernetes_version: str | None,
    feature_gates: str | None,
    seed: int | None,
) -> None:
    """Run the controllers of a version in a model of a cluster.

    Out comes a trace that every verb reads; it is marked as simulated. The same file, version and
    seed give the same trace. Plain Job and CronJob manifests are a workload, too.
    """
    plan = _plan(_content(workload), workload)
    world = world_of(plan)
    text = parse_version(kubernetes_version or plan.kubernetes_version)
    version = KubeVersion.parse(text) if text is not None else NEWEST
    gates = plan.feature_gates | parse_feature_gates(feature_gates)
    era = Era.resolve(version, gates)
    for warning in era.warnings:
        tell(warning)
    chosen = plan.seed if seed is None else seed
    header = TraceHeader(
        kubernetes_version=str(version),
        feature_gates=gates,
        controller_flags=flags_of(plan).written,
        scope={"namespaces": None, "selector": None, "simulated": True},
    )
    session = {"source": "simulate", "workload": Path(workload).name, "seed": chosen}
    place = Path(output)
    if not place.is_dir() or any(place.iterdir()):
        check_absent(place, "simulated trace")
    # The trace is opened first: a place that cannot be written is said before the work.
    with (
        placed(place, "simulating") as written,
        TraceWriter(written, header, session=session) as writer,
    ):
        run = simulate(world, era, flags_of(plan), SeededDraws(chosen, timing_of(plan)))
        for row in run.rows:
            writer.append(row.stream, row.type, row.recv_ns, row.obj)
    _tell(run, output, version)


def _plan(content: bytes, name: str) -> Workload:
    """The workload of a file, be it one or manifests."""
    found = manifests_of(content, name)
    if found is None:
        return read_workload(content, name)
    for remark in found.remarks:
        tell(remark)
    return found.workload


def _content(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(_BYTES_MAX)
    try:
        return read_bounded(name, bytes_max=_BYTES_MAX)
    except NoPlainFileError as error:
        raise UsageError(f"{name} {error}: it is too large for a workload file") from error
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from error


def _tell(run: Run, output: str, version: KubeVersion) -> None:
    jobs = {
        row.obj["metadata"]["uid"]
        for row in run.rows
        if row.stream == "jobs" and row.type in ("LIST", "ADDED")
    }
    say(f"{output}: {len(run.rows):,} observations of {len(jobs):,} Jobs under {version}")
    for failed in run.failed[:5]:
        what = type(failed.write).__name__
        tell(f"a {what} of the workload was refused: {failed.reply.message}")
    if len(run.failed) > 5:  # noqa: PLR2004 - as many as are shown
        tell(f"{len(run.failed) - 5} more were refused")
