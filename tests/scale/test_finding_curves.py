"""The findings of one big Job: no pod is held against every other pod, no revision against all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.operations import growth
from tracekit.answers.findings import controllers
from tracekit.answers.findings.costliest import _backoff
from tracekit.answers.findings.duplicates import duplicates
from tracekit.answers.findings.living import Living
from tracekit.answers.trace_model import Job, Pod, State

_NO_VERDICTS: Any = SimpleNamespace(verdict=lambda *_: None)


def _state(rv: int, **row: Any) -> State:
    defaults = dict.fromkeys(controllers._FINGERPRINT)
    row = {
        **defaults,
        "type": "MODIFIED",
        "stream": "jobs",
        "recv_ns": rv * 10**9,
        "rv": rv,
        "namespace": "n",
        "name": f"o{rv}",
        "uid": f"u{rv}",
        "cronjob": None,
        "owner_uid": "job",
        "phase": "Running",
        "completion_index": None,
        **row,
    }
    return State(row, rv * 10**9, rv, rv, gone=row["type"] == "DELETED")


def _job(pods: list[Pod], parallelism: int) -> Job:
    spec = f'{{"parallelism": {parallelism}}}'
    job = Job([_state(1, type="ADDED", uid="job", spec=spec)])
    job.pods = pods
    return job


def _drawn_job(draw: Random) -> Job:
    pods = []
    for first_rv in range(10, 10 + draw.randrange(1, 9)):
        index = draw.choice([None, 0, 1])
        rvs = sorted({first_rv, *(draw.randrange(first_rv, 30) for _ in range(2))})
        states = [
            _state(
                rv,
                type="ADDED" if rv == first_rv else draw.choice(["MODIFIED", "DELETED"]),
                phase=draw.choice(["Pending", "Running", "Succeeded"]),
                deleted_ns=draw.choice([None, None, 1]),
                owner_uid=draw.choice(["job", "job", "other"]),
                completion_index=index,
                name=f"p{first_rv}",
            )
            for rv in rvs
        ]
        pods.append(Pod(states))
    return _job(pods, draw.randrange(1, 4))


@pytest.mark.parametrize("seed", range(60))
def test_as_many_live_beside_a_pod_as_comparing_all_finds(seed: int) -> None:
    job = _drawn_job(Random(seed))
    living = Living(job)
    for pod in job.pods:
        others = [
            other
            for other in job.pods
            if (pod.index is None or other.index == pod.index)
            and other.live_at(pod.first.rv, job.uid)
        ]
        assert living.count(pod) == len(others)


def _many_pods(rule: Any, count: int) -> Callable[[], object]:
    pods = [
        Pod([_state(10 + n, type="ADDED"), _state(10 + n + count, phase="Succeeded")])
        for n in range(count)
    ]
    job = _job(pods, count + 1)
    return lambda: list(rule(_NO_VERDICTS, job))


def test_pods_of_a_job_are_not_compared_with_each_other() -> None:
    assert growth(partial(_many_pods, duplicates), 50) < 1.3


def test_revisions_without_a_change_are_walked_once() -> None:
    def slow_loop(count: int) -> Callable[[], object]:
        # A write each minute without effect is no loop, and goes on.
        job = Job([_state(rv, recv_ns=rv * 60 * 10**9, uid="job") for rv in range(count)])
        return lambda: list(controllers._repeated(job))

    assert growth(slow_loop, 50) < 1.3


def test_a_retry_is_not_looked_for_among_all_pods() -> None:
    def failed_pods(count: int) -> Callable[[], object]:
        pods = [
            Pod([_state(10 + n, recv_ns=n * 10**9, type="ADDED"),
                 _state(10 + n + count, recv_ns=n * 10**9 + 1, phase="Failed")])
            for n in range(count)
        ]  # fmt: skip
        job = _job(pods, 1)
        return lambda: _backoff(job)

    assert growth(failed_pods, 50) < 1.3
