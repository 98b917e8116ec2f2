"""Users' writes that wait for something, or hit whatever is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.model.cluster.pod_life import PodLife
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.draws import SeededDraws
from tracekit.model.simulate.run import Row, simulate
from tracekit.model.simulate.world import (
    CreateObject,
    DeleteObject,
    DeletePodOf,
    PatchPodOf,
    SameLife,
    UserWrite,
    World,
)
from tracekit.versions.era import Era

START_NS = 1_700_000_000 * NS_PER_S
POD: dict[str, Any] = {"restartPolicy": "Never", "containers": [{"name": "main"}]}


def at(seconds: float) -> int:
    """A time of the run."""
    return START_NS + round(seconds * NS_PER_S)


def job(seconds: float = 0, **spec: Any) -> CreateObject:
    """The creation of shop/import."""
    meta = {"name": "import", "namespace": "shop"}
    body = {"metadata": meta, "spec": {"template": {"spec": POD}, **spec}}
    return CreateObject(at(seconds), "jobs", body)


def run(writes: Sequence[UserWrite], life: PodLife) -> list[Row]:
    """What a recorder sees of half a minute."""
    world = World(START_NS, at(30), writes, SameLife(life))
    return simulate(world, Era.resolve("v1.36.3"), ManagerFlags(), SeededDraws(1)).rows


def times(rows: Sequence[Row], stream: str, kind: str) -> list[float]:
    """When rows of a kind came, in seconds."""
    return [
        (row.recv_ns - START_NS) / NS_PER_S
        for row in rows
        if (row.stream, row.type) == (stream, kind)
    ]


def pods(rows: Sequence[Row]) -> dict[str, Row]:
    """The last row of each pod."""
    return {
        row.obj["metadata"]["name"]: row
        for row in rows
        if row.stream == "pods" and row.obj.get("spec")
    }


def test_a_deletion_waits_for_the_end_and_a_namesake_for_the_deletion() -> None:
    delete = DeleteObject(at(3), "jobs", "shop", "import", after_end_ns=NS_PER_S)
    rows = run([job(), delete, job(5)], PodLife(run_ns=8 * NS_PER_S))
    ended = next(
        row.recv_ns
        for row in rows
        if row.stream == "jobs" and row.obj.get("status", {}).get("completionTime")
    )
    [gone] = times(rows, "jobs", "DELETED")
    assert 1 <= gone - (ended - START_NS) / NS_PER_S < 1.5
    created = times(rows, "jobs", "ADDED")
    assert len(created) == 2
    assert 1.9 <= created[1] - gone < 2.5


def test_a_namesake_waits_for_a_deletion_that_is_about_to_be_made() -> None:
    """The Job has ended, its user has not deleted it yet, and the namesake's time has come."""
    life = PodLife(run_ns=8 * NS_PER_S)
    [ended] = [
        (row.recv_ns - START_NS) / NS_PER_S
        for row in run([job()], life)
        if row.stream == "jobs" and row.obj.get("status", {}).get("completionTime")
    ]
    delete = DeleteObject(at(3), "jobs", "shop", "import", after_end_ns=4 * NS_PER_S)
    rows = run([job(), delete, job(ended + 2)], life)
    [gone] = times(rows, "jobs", "DELETED")
    assert gone > ended + 3.9
    first, second = times(rows, "jobs", "ADDED")
    assert first < gone
    assert second - gone > ended + 2 - 3 - 0.1


def test_a_deletion_that_came_later_than_the_end_keeps_its_time() -> None:
    delete = DeleteObject(at(20), "jobs", "shop", "import", after_end_ns=NS_PER_S)
    [gone] = times(run([job(), delete], PodLife()), "jobs", "DELETED")
    assert 20 <= gone < 20.5


def test_a_drain_hits_what_runs_then() -> None:
    """The place in the row has no pod at that time: its node would have been drained all the same."""
    life = PodLife(run_ns=60 * NS_PER_S)
    for any_pod, deleted in ((True, 1), (False, 0)):
        drain = DeletePodOf(at(5), "shop", "import", ordinal=7, any_pod=any_pod)
        rows = run([job(), drain], life)
        assert len(times(rows, "pods", "DELETED")) == deleted


def test_a_pod_is_deleted_at_its_age_and_gone_when_it_has_been_cleaned_up() -> None:
    life = PodLife(
        run_ns=60 * NS_PER_S, deleted_ns=4 * NS_PER_S, grace_ns=NS_PER_S, gone_ns=3 * NS_PER_S
    )
    rows = run([job(backoffLimit=0)], life)
    created = times(rows, "pods", "ADDED")
    gone = times(rows, "pods", "DELETED")
    assert len(created) == 1
    assert 8 <= gone[0] - created[0] < 8.2


def test_a_user_takes_a_pod_away_from_its_job_by_its_labels() -> None:
    labels = {"batch.kubernetes.io/controller-uid": None, "controller-uid": None}
    patch = PatchPodOf(at(3), "shop", "import", 0, {"metadata": {"labels": labels}})
    rows = run([job(), patch], PodLife(run_ns=60 * NS_PER_S))
    last = pods(rows)
    assert len(last) == 2
    assert [bool(row.obj["metadata"].get("ownerReferences")) for row in last.values()] == [
        False,
        True,
    ]
