"""Seed 000, the Job controller at 1.16 and TTL-after-finished: one test per mechanism."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cron_world import at as clock_time
from tests.support.cron_world import era as cron_era
from tests.support.cron_world import job as finished_job
from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import (
    LONG_AGO_NS,
    NOW_NS,
    at,
    condition,
    container,
    job,
    pod,
    pods,
    rules,
)
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.kube.views import JobView
from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer
from tracekit.ports.job.context import DONE, SyncResult
from tracekit.ports.job.memory import JobMemory, PodExpectations
from tracekit.ports.job.ranking import rank_active_pods
from tracekit.ports.job.worker import process_next_work_item
from tracekit.ports.ttl.controller import DeleteExpiredJob, TtlResult, job_seen, process
from tracekit.ports.workqueue.rate_limiters import job_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.era import Era

VERSION = "v1.16.4"
RULES = rules(VERSION)
PLAIN: dict[str, Any] = {"finalizer": False}


def bench(view: JobView, given: list | None = None, **fields: Any) -> Bench:
    return Bench.of(view, RULES, given or [], **fields)


def endings(done: Bench) -> list[tuple[str, str]]:
    return [(found.type, found.reason) for found in done.status.conditions]


def test_a_finished_job_is_skipped() -> None:
    """Seed 000, syncJob step 2: a Job whose Complete or Failed is True is left alone."""
    done = bench(job(parallelism=2, status={"conditions": [condition("Complete")]}))
    assert not done.sync().error
    assert done.api.log == []


def test_expectations_are_met_when_all_that_was_announced_was_seen() -> None:
    """Seed 000, SatisfiedExpectations: adds and dels <= 0, or no row for the key."""
    memory = JobMemory()
    assert memory.satisfied(at(0))
    memory.expect_creations(1, at(0))
    assert not memory.satisfied(at(0))
    memory.creation_observed()
    assert memory.satisfied(at(0))


def test_expectations_expire_after_five_minutes() -> None:
    """Seed 000, SatisfiedExpectations: a row that is older than 5 min holds nothing back."""
    for age_s, created in ((300, 0), (301, 1)):
        memory = JobMemory(PodExpectations(1, 0, at(-age_s)))
        done = bench(job(), memory=memory)
        done.sync()
        assert len(done.api.created) == created


def test_pods_are_adopted_and_released() -> None:
    """Seed 000, getPodsForJob: matching orphans are taken in, pods with other labels let go."""
    given = [pod("orphan", owner=None, **PLAIN), pod("strayed", labels={"app": "x"}, **PLAIN)]
    done = bench(job(parallelism=1), given)
    done.sync()
    assert done.api.adopted == [("orphan", False)]
    assert done.api.released == ["strayed"]
    assert done.status.active == 1


def test_pods_are_counted_by_listing_them() -> None:
    """Seed 000, syncJob step 6: active, succeeded and failed are counts of the pods that exist."""
    given = [
        *pods(2, **PLAIN),
        *pods(1, "Succeeded", **PLAIN),
        *pods(1, "Failed", **PLAIN),
        pod("going", deleted_ns=at(30), **PLAIN),
    ]
    done = bench(job(parallelism=2, completions=5), given)
    done.sync()
    assert (done.status.active, done.status.succeeded, done.status.failed) == (2, 1, 1)


def test_the_first_sync_sets_the_start_and_arms_the_deadline() -> None:
    """Seed 000, syncJob step 7: startTime is now, the key comes back after the deadline."""
    done = bench(job(activeDeadlineSeconds=120))
    assert done.sync().wake_after_ns == 120 * NS_PER_S
    assert done.status.start_ns == NOW_NS


def test_the_back_off_limit_is_compared_with_the_requeues_of_the_key() -> None:
    """Seed 000, BackoffLimitExceeded: a new failure and NumRequeues + 1 > backoffLimit (<= 1.19)."""
    for requeues, expected in ((1, []), (2, [("Failed", "BackoffLimitExceeded")])):
        memory = JobMemory(requeues=requeues)
        done = bench(job(backoff_limit=2), pods(1, "Failed", **PLAIN), memory=memory)
        done.sync()
        assert endings(done) == expected


def test_container_restarts_count_where_the_policy_is_on_failure() -> None:
    """Seed 000, pastBackoffLimitOnFailure: restarts of running pods reach the limit."""
    template = {"metadata": {"labels": {"app": "demo"}}, "spec": {"restartPolicy": "OnFailure"}}
    for restarts, expected in ((1, []), (2, [("Failed", "BackoffLimitExceeded")])):
        running = pod(containers=[container(restarts=restarts)], **PLAIN)
        done = bench(job(backoff_limit=2, template=template), [running])
        done.sync()
        assert endings(done) == expected


def test_the_deadline_fails_the_job() -> None:
    """Seed 000, pastActiveDeadline: DeadlineExceeded, and its active pods are deleted."""
    started = {"startTime": format_rfc3339(at(-120))}
    done = bench(job(activeDeadlineSeconds=120, status=started), [pod("a", **PLAIN)])
    done.sync()
    assert endings(done) == [("Failed", "DeadlineExceeded")]
    assert done.api.deleted == ["a"]
    assert (done.status.active, done.status.failed) == (0, 1)


def test_the_job_completes_at_its_completions() -> None:
    """Seed 000, syncJob steps 12 and 13: Complete and completionTime."""
    done = bench(job(completions=2), pods(2, "Succeeded", **PLAIN))
    done.sync()
    assert endings(done) == [("Complete", "")]
    assert done.status.completion_ns == NOW_NS


def test_without_completions_a_success_completes_once_nothing_is_active() -> None:
    """Seed 000, completions unset, corrected: one success and no active pod."""
    success = pods(1, "Succeeded", **PLAIN)
    for given, expected in (([*success, pod("a", **PLAIN)], []), (success, [("Complete", "")])):
        done = bench(job(completions=None), given)
        done.sync()
        assert endings(done) == expected


def test_the_status_is_written_only_where_it_changed() -> None:
    """Seed 000, syncJob step 14: no difference, no PUT."""
    status = {"active": 1, "startTime": format_rfc3339(LONG_AGO_NS)}
    done = bench(job(status=status), [pod("a", **PLAIN)])
    done.sync()
    assert done.api.log == []


def test_a_new_failure_is_an_error_so_that_the_retry_backs_off() -> None:
    """Seed 000, end of syncJob: a written new failure returns an error; the queue counts it."""
    done = bench(job(), pods(1, "Failed", **PLAIN))
    assert done.sync().error
    assert done.memory.requeues == 1


@pytest.mark.parametrize(
    ("completions", "succeeded", "active", "wanted"),
    [(None, 0, 1, 3), (None, 1, 1, 0), (10, 4, 1, 3), (5, 4, 0, 1)],
)
def test_the_number_of_pods_to_create(
    completions: int | None, succeeded: int, active: int, wanted: int
) -> None:
    """Seed 000, manageJob's diff: from completions, parallelism, successes and active pods."""
    given = [*pods(succeeded, "Succeeded", **PLAIN), *pods(active, **PLAIN)]
    done = bench(job(parallelism=4, completions=completions), given)
    done.sync()
    assert len(done.api.created) == wanted


def test_pods_beyond_parallelism_are_deleted_and_expected() -> None:
    """Seed 000, manageJob: active > parallelism deletes the difference, ExpectDeletions first."""
    done = bench(job(parallelism=1, completions=9), pods(3, **PLAIN))
    done.sync()
    assert len(done.api.deleted) == 2
    assert done.memory.expectations == PodExpectations(0, 2, NOW_NS)


RUNS = {"node": "n", "ready_since_ns": at(-60), **PLAIN}
# The pod that goes first has the later name: a tie would be seen.
RANKS = [
    ("unassigned before assigned", pod("b", **PLAIN), pod("a", node="n", **PLAIN)),
    ("Pending before Unknown", pod("b", "Pending", **PLAIN), pod("a", "Unknown", **PLAIN)),
    ("Unknown before Running", pod("b", "Unknown", **PLAIN), pod("a", **PLAIN)),
    ("not ready before ready", pod("b", node="n", **PLAIN), pod("a", **RUNS)),
    ("ready for less time", pod("b", **{**RUNS, "ready_since_ns": at(-1)}), pod("a", **RUNS)),
    ("more restarts", pod("b", containers=[container(restarts=2)], **RUNS), pod("a", **RUNS)),
    ("younger", pod("b", created_ns=at(-1), **RUNS), pod("a", **RUNS)),
]


@pytest.mark.parametrize(("rank", "first", "second"), RANKS, ids=[rank for rank, _, _ in RANKS])
def test_six_deletion_ranks(rank: str, first: Any, second: Any) -> None:
    """Seed 000, ActivePods: the six ranks by which surplus pods are chosen."""
    del rank
    ranked = rank_active_pods([second, first], (), by_sidecars=False)
    assert [view.name for view in ranked] == ["b", "a"]


def test_slow_start_doubles_its_batches() -> None:
    """Seed 000, slow start: batches of 1, 2, 4, 8 and the rest."""
    done = bench(job(parallelism=20, completions=20))
    done.sync()
    assert done.api.batches == [1, 2, 4, 8, 5]


def test_slow_start_stops_at_a_refusal_and_cancels_what_it_skips() -> None:
    """Seed 000, slow-start failure: skipped pods leave active and the expectations."""
    done = bench(job(parallelism=20, completions=20), api=FakeApi(create_limit=2))
    assert done.sync().error
    assert done.api.batches == [1, 2]
    assert done.memory.expectations == PodExpectations(2, 0, NOW_NS)


def test_a_create_that_timed_out_counts_as_done() -> None:
    """Seed 000, timeouts ignored on create, as the listing (1.16.4) has it."""
    api = FakeApi(create_limit=0, create_answer=Outcome.TIMEOUT)
    done = bench(job(), api=api)
    assert not done.sync().error
    assert done.memory.expectations == PodExpectations(1, 0, NOW_NS)


class Server:
    """The TTL controller's API server."""

    def __init__(self, live: JobView | Answer) -> None:
        self.live = live
        self.deletes: list[DeleteExpiredJob] = []

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        del namespace, name
        return self.live

    def delete_job(self, intent: DeleteExpiredJob) -> Answer:
        self.deletes.append(intent)
        return Answer()


def test_ttl_timer() -> None:
    """Seed 000, TTL: a finished Job gets a timer for the rest of its 60 s."""
    view = finished_job("pi", state="Complete", ttl=60)
    server = Server(view)
    assert job_seen(view)
    assert process(view, clock_time("10:30:20"), server) == TtlResult(rearm_after_ns=40 * NS_PER_S)
    assert server.deletes == []


def test_ttl_fresh_check_before_the_deletion() -> None:
    """Seed 000, TTL: a TTL raised on the server since then arms a timer, and nothing goes."""
    server = Server(finished_job("pi", state="Complete", ttl=90))
    cached = finished_job("pi", state="Complete", ttl=60)
    done = process(cached, clock_time("10:31:00"), server)
    assert done == TtlResult(rearm_after_ns=30 * NS_PER_S)
    assert server.deletes == []


def test_ttl_deletion_names_the_uid() -> None:
    """Seed 000, TTL: the deletion carries the uid as its precondition."""
    view = finished_job("pi", state="Failed", ttl=60, uid="u")
    server = Server(view)
    process(view, clock_time("10:31:00"), server)
    assert server.deletes == [DeleteExpiredJob("ns", "pi", "u")]


def test_ttl_gate() -> None:
    """Seed 000, TTLAfterFinished: alpha and off at first, on with its gate."""
    assert not cron_era("1.16.4").ttl
    assert cron_era("1.16.4", TTLAfterFinished=True).ttl


def test_nothing_to_create_returns_early() -> None:
    """Seed 000, manageJob: with nothing lacking no ExpectCreations(0) wipes what is expected."""
    for version, left in (("v1.15.12", 0), (VERSION, 1)):
        memory = JobMemory(PodExpectations(0, 1, at(-301)))
        view = job(parallelism=3, completions=2)
        Bench.of(view, rules(version), pods(2, **PLAIN), memory=memory).sync()
        assert memory.expectations is not None
        assert memory.expectations.deletions == left


def test_the_worker_forgets_a_key_or_tries_it_again() -> None:
    """Seed 000, processNextWorkItem: Forget where the sync says so, AddRateLimited on an error."""
    clock = VirtualClock(NOW_NS)
    queue = RateLimitingQueue(clock, job_rate_limiter(Era.resolve(VERSION).constants))
    results = [SyncResult(error=True), SyncResult(error=False, forget=False), DONE]
    counted = []
    for result in results:
        queue.add("default/demo")
        assert process_next_work_item(queue, lambda _, result=result: result, RULES.retries)
        counted.append(queue.num_requeues("default/demo"))
    assert counted == [1, 1, 0]
    assert queue.next_ready_ns() == NOW_NS + 10 * NS_PER_S


def test_too_many_pods_are_told() -> None:
    """Seed 000, syncJob: Events TooManyActivePods and TooManySucceededPods at completions."""
    done = bench(job(parallelism=2, completions=1), [*pods(1), *pods(2, "Succeeded")])
    done.sync()
    assert [reason for _, reason, _ in done.api.events] == [
        "TooManyActivePods",
        "TooManySucceededPods",
    ]


def test_ttl_cascades_in_the_foreground() -> None:
    """Seed 000, processJob: the deletion takes the Job's pods along, before the Job goes."""
    view = finished_job("j", state="Complete", ttl=0)
    intent = DeleteExpiredJob(view.namespace, view.name, view.uid)
    assert intent.propagation == "Foreground"
