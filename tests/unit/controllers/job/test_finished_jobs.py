"""A Job that was finished by the last sync and is not finished in the cache yet.

Upstream: pkg/controller/job/job_controller.go:finishedJobExpectations, 1.34.
"""

from __future__ import annotations

import pytest

from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import NOW_NS, job, pods, rules
from tracekit.ports.actions import Outcome
from tracekit.ports.job.context import Choices, SyncClock
from tracekit.ports.job.memory import CacheRevisions, JobMemory, OwnWrites
from tracekit.ports.job.sync import sync_job


@pytest.mark.parametrize(
    ("version", "created"),
    [
        pytest.param("v1.33.0", 1, id="1.33 starts a pod for a completion that it counted already"),
        pytest.param("v1.34.4", 0, id="1.34 waits"),
        pytest.param("v1.36.3", 0, id="1.36 waits"),
    ],
)
def test_a_sync_before_the_terminal_status_is_seen(version: str, created: int) -> None:
    """1. the pod is counted, the Job complete; 2. the cache shows the pod's new state only."""
    bench = Bench.of(job(), rules(version), pods(1, "Succeeded"))
    bench.sync()
    assert bench.status.finished is not None

    bench.see_pods()
    bench.sync()
    assert len(bench.api.created) == created


def test_the_job_is_forgotten_when_its_terminal_status_is_seen() -> None:
    bench = Bench.of(job(), rules(), pods(1, "Succeeded"))
    bench.sync()
    assert bench.memory.finished_uids == {bench.job.uid}
    bench.see_status()
    bench.sync()
    assert bench.memory.finished_uids == frozenset()


def test_a_terminal_status_that_was_refused_is_not_awaited() -> None:
    bench = Bench.of(
        job(),
        rules(),
        pods(1, "Succeeded"),
        api=FakeApi(put_answers=[Outcome.OK, Outcome.CONFLICT]),
    )
    assert bench.sync().error
    assert bench.memory.finished_uids == frozenset()


def test_after_a_restart_of_the_controller_nothing_is_awaited() -> None:
    bench = Bench.of(job(), rules(), pods(1, "Succeeded"))
    bench.sync()
    bench.see_pods()
    bench.memory = type(bench.memory)()
    bench.sync()
    assert len(bench.api.created) == 1


@pytest.mark.parametrize(
    ("version", "written", "error"),
    [
        ("v1.35.6", {"jobs": 101, "pods": 101}, False),
        ("v1.36.3", {"jobs": 100, "pods": 90}, False),
        ("v1.36.3", {"jobs": 101}, True),
        ("v1.36.3", {"pods": 91}, True),
    ],
)
def test_a_sync_that_does_not_see_the_controllers_own_writes_is_refused(
    version: str, written: dict[str, int], *, error: bool
) -> None:
    memory, api = JobMemory(), FakeApi()
    memory.wrote_at("job-uid", **written)
    for _ in range(2):
        result = sync_job(
            job(),
            [],
            memory,
            api,
            clock=SyncClock(NOW_NS),
            rules=rules(version),
            choices=Choices(),
            read=CacheRevisions(jobs=100, pods=90),
        )
        assert result.error is error
        assert bool(api.log) is not error
    memory.wrote_at("the next job of that name", pods=95)
    assert memory.own_writes == OwnWrites("the next job of that name", 0, 95)
    memory.finished_seen("job-uid")
    assert not memory.copy().ensure_ready(CacheRevisions(100, 90))
    memory.forget_key()
    assert memory.ensure_ready(CacheRevisions(0, 0))
