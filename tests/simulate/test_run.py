"""What a run makes of odd objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.model.cluster.pod_life import PodLife, Slot
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.draws import SeededDraws, Timing
from tracekit.model.simulate.run import simulate
from tracekit.model.simulate.world import CreateObject, DeleteObject, PatchObject, World
from tracekit.versions.era import Era

START_NS = 1_700_000_000 * NS_PER_S
INDEX = "batch.kubernetes.io/job-completion-index"


class Noting:
    """Lives that keep whom they were asked about."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []

    def life_of(self, slot: Slot, pod: Mapping[str, Any]) -> PodLife:
        """The usual life."""
        del pod
        self.slots.append(slot)
        return PodLife()


def _world(lives: Noting, pod: Mapping[str, Any], *patches: Mapping[str, Any]) -> World:
    writes = [
        CreateObject(START_NS, "pods", pod),
        *(PatchObject(START_NS + NS_PER_S, "pods", "shop", "one", patch) for patch in patches),
    ]
    return World(START_NS, START_NS + 10 * NS_PER_S, writes, lives)


def _pod(annotations: Mapping[str, str]) -> dict[str, Any]:
    meta = {"name": "one", "namespace": "shop", "annotations": annotations}
    return {"metadata": meta, "spec": {"containers": [{"name": "main"}]}}


@pytest.mark.parametrize(("text", "index"), [("3", 3), ("-3", None), ("x", None), ("", None)])
def test_an_index_is_what_the_controller_reads_of_it(text: str, index: int | None) -> None:
    lives = Noting()
    world = _world(lives, _pod({INDEX: text}))
    simulate(world, Era.resolve("v1.36.3"), ManagerFlags(), SeededDraws(1))
    assert [slot.completion_index for slot in lives.slots] == [index]


def test_users_patches_leave_what_they_were_given_as_it_was() -> None:
    """One world is run many times."""
    pod = _pod({"a": "1", "b": "2"})
    patch = {"metadata": {"annotations": {"a": None, "c": "3"}}}
    for _ in range(2):
        run = simulate(
            _world(Noting(), pod, patch), Era.resolve("v1.36.3"), ManagerFlags(), SeededDraws(1)
        )
        shown = [
            r.obj["metadata"]["annotations"]
            for r in run.rows
            if r.stream == "pods" and r.type in ("ADDED", "MODIFIED")
        ]
        assert shown[0] == {"a": "1", "b": "2"}
        assert shown[-1] == {"b": "2", "c": "3"}
    assert pod == _pod({"a": "1", "b": "2"})
    assert patch == {"metadata": {"annotations": {"a": None, "c": "3"}}}


@pytest.mark.parametrize(("early_ms", "code"), [(1, 0), (500, 137)])
def test_what_was_under_way_when_a_pod_was_deleted_takes_effect(early_ms: int, code: int) -> None:
    """The kubelet learns of a deletion as informers do; an end that comes before is the pod's own."""
    draws = SeededDraws(1, Timing(late_kubelets=True))
    life = PodLife()
    assert life.bind_ns is not None
    assert life.start_ns is not None
    assert life.run_ns is not None
    ends_ns = START_NS + life.bind_ns + life.start_ns + life.run_ns
    world = _world(Noting(), _pod({}))
    deletion = DeleteObject(ends_ns - early_ms * 1_000_000, "pods", "shop", "one")
    world = replace(world, writes=[*world.writes, deletion])
    run = simulate(world, Era.resolve("v1.36.3"), ManagerFlags(), draws)
    rows = [row for row in run.rows if row.stream == "pods" and "metadata" in row.obj]
    last = rows[-1]
    assert last.type == "DELETED"
    ended = last.obj["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == code


def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    pod = _pod({})
    pod["metadata"]["finalizers"] = ["example.com/held"]
    world = _world(Noting(), pod)
    assert PodLife().bind_ns is not None
    deletion = DeleteObject(START_NS + (PodLife().bind_ns or 0) - 1_000, "pods", "shop", "one")
    world = replace(world, writes=[*world.writes, deletion])
    run = simulate(world, Era.resolve("v1.36.3"), ManagerFlags(), SeededDraws(1))
    pods = [row.obj for row in run.rows if row.stream == "pods" and "spec" in row.obj]
    assert len(pods) > 1
    assert not any("nodeName" in pod["spec"] for pod in pods)
