"""A Job that was finished by the last sync and is not finished in the cache yet.

Upstream: pkg/controller/job/job_controller.go:finishedJobExpectations, 1.34.
"""

from __future__ import annotations

import pytest

from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import job, pods, rules
from tracekit.controllers.actions import Outcome


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
