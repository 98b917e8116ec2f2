"""Seed 003, a summary of the Job controller at 1.16 with TTL: what it stresses on its own."""

from __future__ import annotations

from typing import Any

from tests.support.cron_world import at as clock_time
from tests.support.cron_world import job as finished_job
from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import NOW_NS, job, pods, rules
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer
from tracekit.ports.job.memory import PodExpectations
from tracekit.ports.ttl.controller import DeleteExpiredJob, process

RULES = rules("v1.16.4")
PLAIN: dict[str, Any] = {"finalizer": False}


class Server:
    """Answers the TTL controller."""

    def __init__(self, live: JobView | Answer, answer: Answer | None = None) -> None:
        self.live = live
        self.answer = answer or Answer()

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        del namespace, name
        return self.live

    def delete_job(self, intent: DeleteExpiredJob) -> Answer:
        del intent
        return self.answer


def test_the_yaml_of_the_article_runs_through() -> None:
    """Seed 003, the example Job: completions 4, parallelism 2, deadline 120 s, ttl 60 s."""
    view = job(parallelism=2, completions=4, activeDeadlineSeconds=120, ttlSecondsAfterFinished=60)
    first = Bench.of(view, RULES)
    assert first.sync().wake_after_ns == 120 * NS_PER_S
    assert first.api.batches == [1, 1]
    last = Bench.of(view, RULES, pods(4, "Succeeded", **PLAIN))
    last.sync()
    assert [found.type for found in last.status.conditions] == ["Complete"]


def test_parallelism_can_be_changed_at_run_time() -> None:
    """Seed 003, scaling, corrected: parallelism is adjustable; only completions is not."""
    down = Bench.of(job(parallelism=1, completions=9), RULES, pods(2, **PLAIN))
    down.sync()
    assert len(down.api.deleted) == 1
    up = Bench.of(job(parallelism=3, completions=9), RULES, pods(2, **PLAIN))
    up.sync()
    assert len(up.api.created) == 1


def test_expectations_mean_observed_or_given_up() -> None:
    """Seed 003, expectations <= 0, corrected: seen by the informer, or cancelled at a refusal."""
    done = Bench.of(job(parallelism=2, completions=2), RULES)
    done.sync()
    assert done.memory.expectations == PodExpectations(2, 0, NOW_NS)
    done.see_pods()
    assert done.memory.satisfied(NOW_NS)
    refused = Bench.of(job(), RULES, api=FakeApi(create_limit=0))
    refused.sync()
    assert refused.memory.satisfied(NOW_NS)


def test_skipped_pods_come_with_the_retry() -> None:
    """Seed 003, batched creation: what a refusal skipped is created by the rate-limited retry."""
    done = Bench.of(job(parallelism=5, completions=5), RULES, api=FakeApi(create_limit=1))
    assert done.sync().error
    assert done.memory.requeues == 1
    done.api.create_limit = None
    done.see_pods()
    done.sync()
    assert len(done.api.pods) == 5


def test_an_error_of_a_deletion_keeps_the_pod_in_the_count() -> None:
    """Seed 003, manageJob 2: a refused deletion lowers the expectation and raises active again."""
    answers = {f"running-{number}": Outcome.REFUSED for number in range(2)}
    done = Bench.of(
        job(completions=9), RULES, pods(2, **PLAIN), api=FakeApi(delete_answers=answers)
    )
    assert done.sync().error
    assert done.status.active == 2
    assert done.memory.expectations == PodExpectations(0, 0, NOW_NS)


def test_ttl_zero_deletes_as_soon_as_the_end_is_seen() -> None:
    """Seed 003, TTL: ttlSecondsAfterFinished 0."""
    view = finished_job("pi", state="Complete", ttl=0, uid="u")
    done = process(view, clock_time("10:30:00"), Server(view))
    assert done.delete == DeleteExpiredJob("ns", "pi", "u")


def test_ttl_precondition_that_fails_is_retried() -> None:
    """Seed 003, TTL: a new Job of the same name answers the uid with a conflict."""
    view = finished_job("pi", state="Complete", ttl=0)
    server = Server(view, Answer(Outcome.REFUSED, "the UID in the precondition differs"))
    assert process(view, clock_time("10:30:00"), server).error is not None
