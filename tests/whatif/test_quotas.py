"""A quota that somebody raises while a Job waits for it: the record tells, though not what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.whatif.conftest import answers, by_name
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.model.simulate.draws import SeededDraws
from tracekit.model.simulate.run import simulate
from tracekit.model.simulate.workload import flags_of, read_workload, timing_of, world_of
from tracekit.model.simulate.world import SetPodQuota
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.era import Era

VERSION = "v1.22.2"
WORKLOAD = b"""
duration: 2m
kubernetesVersion: v1.22.2
jobs:
- {name: squeezed, namespace: shop, at: 1s, spec: {completions: 5, parallelism: 5}, pods: {run: 20s}}
faults:
  podQuota: {shop: 2}
"""


def recorded(target: Path, *raised_to: int) -> Path:
    """A record in which the quota is raised after six seconds."""
    plan = read_workload(WORKLOAD, "quota")
    world = world_of(plan)
    raised = [SetPodQuota(world.start_ns + 6 * NS_PER_S, "shop", pods) for pods in raised_to]
    world = replace(world, writes=[*world.writes, *raised])
    run = simulate(world, Era.resolve(VERSION), flags_of(plan), SeededDraws(1, timing_of(plan)))
    with TraceWriter(target, TraceHeader(kubernetes_version=VERSION)) as writer:
        for row in run.rows:
            writer.append(row.stream, row.type, row.recv_ns, row.obj)
    return target


@pytest.mark.parametrize(("raised_to", "ends_s"), [((), 60), ((5,), 30), ((3,), 45)])
def test_as_many_pods_are_let_live_as_the_record_shows(
    raised_to: tuple[int, ...], ends_s: int, tmp_path: Path
) -> None:
    trace = recorded(tmp_path / "trace", *raised_to)
    job = by_name(answers(trace, "--kubernetes-version", "v1.25.4"))["shop/squeezed"]
    assert job["recorded"]["pods"] == 5
    assert abs(job["recorded"]["finished_after_s"] - ends_s) < 8
    assert job["verdict"] not in ("uncalibrated", "unknowable"), job["why"]
    assert abs(job["baseline"]["finished_after_s"] - job["recorded"]["finished_after_s"]) <= 3
    assert job["target"]["pods"] == 5
