"""A record that was blind for a time: what the gap hides is not told, all else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.whatif.conftest import answers, by_name
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.model.simulate.draws import SeededDraws
from tracekit.model.simulate.run import STREAMS, Row, simulate
from tracekit.model.simulate.workload import flags_of, read_workload, timing_of, world_of
from tracekit.trace.format.model import Gap, TraceHeader
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.era import Era

VERSION = "v1.27.4"
BLIND_S = (30, 70)
WORKLOAD = b"""
duration: 3m
kubernetesVersion: v1.27.4
jobs:
- {name: before, namespace: shop, at: 1s, spec: {}, pods: {run: 3s}}
- {name: across, namespace: shop, at: 5s, spec: {backoffLimit: 6}, pods: {run: 35s, failFirst: 1}}
- {name: within, namespace: shop, at: 40s, spec: {}, pods: {run: 3s}}
- {name: later, namespace: shop, at: 90s, spec: {}, pods: {run: 3s}}
"""


def _before(rows: list[Row], at_ns: int, stream: str) -> dict[str, Row]:
    """The objects of a stream as a list at that time shows them, by uid."""
    there: dict[str, Row] = {}
    for row in rows:
        if row.stream != stream or row.type in ("LIST_BEGIN", "LIST_END") or row.recv_ns > at_ns:
            continue
        there.pop(row.obj["metadata"]["uid"], None)
        if row.type != "DELETED":
            there[row.obj["metadata"]["uid"]] = row
    return there


@pytest.fixture(scope="module")
def gapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated record whose watches of Jobs and pods were away for a time."""
    plan = read_workload(WORKLOAD, "gap")
    world = world_of(plan)
    run = simulate(world, Era.resolve(VERSION), flags_of(plan), SeededDraws(1, timing_of(plan)))
    rows = list(run.rows)
    from_ns, until_ns = (world.start_ns + second * NS_PER_S for second in BLIND_S)
    target: Path = tmp_path_factory.mktemp("gaps") / "trace"

    def revision(at_ns: int) -> int:
        seen = [row.obj.get("metadata", {}) for row in rows if row.recv_ns <= at_ns]
        return max(int(meta.get("resourceVersion", 0)) for meta in seen)

    with TraceWriter(target, TraceHeader(kubernetes_version=VERSION)) as writer:
        for row in rows:
            if row.recv_ns <= from_ns:
                writer.append(row.stream, row.type, row.recv_ns, row.obj)
        for stream in STREAMS:
            gap = Gap(stream, "cut", revision(from_ns), revision(until_ns), from_ns, until_ns)
            writer.gap(gap)
            head = {"resourceVersion": str(revision(until_ns))}
            writer.append(stream, "LIST_BEGIN", until_ns, head)
            for row in _before(rows, until_ns, stream).values():
                writer.append(stream, "LIST", until_ns, row.obj)
            writer.append(stream, "LIST_END", until_ns, head)
        for row in rows:
            if row.recv_ns > until_ns:
                writer.append(row.stream, row.type, row.recv_ns, row.obj)
    return target


@pytest.mark.parametrize("version", ["v1.36.3", "v1.20.15"])
def test_only_what_a_gap_hides_is_not_told(gapped: Path, version: str) -> None:
    jobs: dict[str, Any] = by_name(answers(gapped, "--kubernetes-version", version))
    for name in ("shop/before", "shop/later"):
        assert jobs[name]["target"]["ended"] == "Complete", jobs[name]
    for name in ("shop/across", "shop/within"):
        assert (jobs[name]["verdict"], "target" in jobs[name]) == ("unknowable", False), jobs[name]
        assert jobs[name]["why"]
