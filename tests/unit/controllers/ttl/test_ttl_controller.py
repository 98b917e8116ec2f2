"""TTL-after-finished (seeds 000 and 003: automatic clean-up, cascading deletion, ttl 0)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.support.cron_world import at, era, job
from tracekit.base.kube.views import JobView
from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer
from tracekit.ports.ttl.controller import (
    DeleteExpiredJob,
    NoFinishTimeError,
    TtlResult,
    add_job,
    job_seen,
    process,
    process_next_work_item,
    time_left_ns,
    update_job,
)
from tracekit.ports.workqueue.rate_limiters import default_controller_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.era import Era

S = 10**9


@dataclass
class Server:
    live: JobView | Answer
    answer: Answer = field(default_factory=Answer)
    deletes: list[DeleteExpiredJob] = field(default_factory=list)
    reads: int = 0

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        del namespace, name
        self.reads += 1
        return self.live

    def delete_job(self, intent: DeleteExpiredJob) -> Answer:
        self.deletes.append(intent)
        return self.answer


def look(view: JobView, now: str, live: JobView | Answer | None = None, **server) -> tuple:
    api = Server(view if live is None else live, **server)
    return process(view, at(now), api), api


@pytest.mark.parametrize("state", ["Complete", "Failed"])
@pytest.mark.parametrize(
    ("ttl", "now", "left_s"), [(0, "10:30:00", 0), (10, "10:30:00", 10), (15, "10:30:10", 5)]
)
def test_time_left(state: str, ttl: int, now: str, left_s: int) -> None:
    assert time_left_ns(job("j", state=state, ttl=ttl), at(now)) == left_s * S


def test_an_unfinished_job_has_no_time_left_to_tell() -> None:
    with pytest.raises(ValueError, match="should not be cleaned up"):
        time_left_ns(job("j", ttl=0), at("10:30:00"))


@pytest.mark.parametrize(
    ("sentence", "fields", "seen"),
    [
        ("finished with a TTL", {"state": "Complete", "ttl": 5}, True),
        ("failed with a TTL of zero", {"state": "Failed", "ttl": 0}, True),
        ("finished without a TTL", {"state": "Complete"}, False),
        ("running with a TTL", {"ttl": 5}, False),
        ("failure target only", {"state": "FailureTarget", "ttl": 5}, False),
        ("success criteria only", {"state": "SuccessCriteriaMet", "ttl": 5}, False),
        ("being deleted", {"state": "Complete", "ttl": 5, "deleted": "10:40:00"}, False),
    ],
)
def test_which_jobs_are_looked_at(sentence: str, fields: dict, seen: bool) -> None:
    del sentence
    view = job("j", **fields)
    assert job_seen(view) is seen
    if not seen:
        result, api = look(view, "23:00:00")
        assert (result, api.reads, api.deletes) == (TtlResult(), 0, [])


def test_before_its_time_a_timer_is_armed_and_nothing_is_read() -> None:
    result, api = look(job("j", state="Complete", ttl=60), "10:30:20")
    assert (result, api.reads) == (TtlResult(rearm_after_ns=40 * S), 0)


@pytest.mark.parametrize("now", ["10:31:00", "11:00:00"])
def test_at_its_time_the_job_is_read_again_and_deleted_by_uid(now: str) -> None:
    result, api = look(job("j", state="Complete", ttl=60, uid="u"), now)
    assert result.delete == DeleteExpiredJob("ns", "j", "u")
    assert api.deletes == [result.delete]
    assert (result.error, result.rearm_after_ns) == (None, None)


def test_a_ttl_of_zero_deletes_as_soon_as_the_job_is_seen_finished() -> None:
    result, _ = look(job("j", state="Failed", ttl=0), "10:30:00")
    assert result.delete is not None


def test_a_ttl_raised_meanwhile_arms_a_timer_instead() -> None:
    result, api = look(
        job("j", state="Complete", ttl=5), "10:31:00", job("j", state="Complete", ttl=120)
    )
    assert (result, api.deletes) == (TtlResult(rearm_after_ns=60 * S), [])


def test_a_new_running_job_of_the_same_name_is_left_alone() -> None:
    result, api = look(job("j", state="Complete", ttl=5), "11:00:00", job("j", ttl=5, uid="new"))
    assert (result, api.deletes) == (TtlResult(), [])


def test_a_ttl_taken_away_meanwhile_deletes_nothing() -> None:
    result, api = look(job("j", state="Complete", ttl=5), "11:00:00", job("j", state="Complete"))
    assert (result, api.deletes) == (TtlResult(), [])


def test_a_job_gone_from_the_server_is_done() -> None:
    gone = Answer(Outcome.NOT_FOUND, "not found")
    assert look(job("j", state="Complete", ttl=5), "11:00:00", gone)[0] == TtlResult()


def test_a_read_that_fails_is_retried() -> None:
    result, _ = look(job("j", state="Complete", ttl=5), "11:00:00", Answer(Outcome.TIMEOUT, "slow"))
    assert result.error == "slow"


@pytest.mark.parametrize("outcome", [Outcome.CONFLICT, Outcome.NOT_FOUND])
def test_any_failure_of_the_deletion_is_retried(outcome: Outcome) -> None:
    result, api = look(
        job("j", state="Complete", ttl=5), "11:00:00", answer=Answer(outcome, "precondition")
    )
    assert len(api.deletes) == 1
    assert result.error == "precondition"


def test_a_key_without_job_is_done() -> None:
    assert process(None, at("11:00:00"), Server(Answer())) == TtlResult()


def test_a_finish_without_time_is_an_error_for_ever() -> None:
    view = job("j", state="Complete", ttl=5, finished=None)
    result, _ = look(view, "11:00:00")
    assert result.error == "unable to find the time when the Job ns/j finished"
    with pytest.raises(NoFinishTimeError):
        time_left_ns(view, at("11:00:00"))


@pytest.mark.parametrize(
    ("version", "gates", "on"),
    [
        ("1.12.0", {}, False),
        ("1.20.15", {}, False),
        ("1.17.17", {"TTLAfterFinished": True}, True),
        ("1.21.0", {}, True),
        ("1.22.0", {"TTLAfterFinished": False}, False),
        ("1.23.0", {}, True),
        ("1.36.3", {}, True),
    ],
)
def test_the_gate(version: str, gates: dict, on: bool) -> None:
    assert era(version, **gates).ttl is on


def ttl_queue() -> RateLimitingQueue:
    clock = VirtualClock(at("10:30:00"))
    constants = Era.resolve("1.36.3").constants
    return RateLimitingQueue(clock, default_controller_rate_limiter(clock, constants))


def test_only_jobs_that_need_a_clean_up_are_enqueued() -> None:
    queue = ttl_queue()
    running, over = job("j", ttl=5), job("j", state="Complete", ttl=5)
    add_job(running, queue)
    update_job(over, running, queue)
    assert queue.waiting() == ()
    update_job(running, over, queue)
    add_job(over, queue)
    assert queue.waiting() == (over.key,)


def test_the_worker_arms_the_timer_retries_errors_and_forgets() -> None:
    """Each look at a key, with the clock at the time of the look: too early, refused, done."""
    view = job("j", state="Complete", ttl=10)
    queue, clock_ns = ttl_queue(), at("10:30:00")
    add_job(view, queue)
    answers = [Answer(Outcome.CONFLICT, "the uid differs"), Answer()]
    deletes = []

    def look_at(key: str) -> TtlResult:
        assert key == view.key
        server = Server(view, answer=answers[0] if answers else Answer())
        result = process(view, queue.clock.now_ns, server)
        deletes.extend(server.deletes)
        if server.deletes:
            answers.pop(0)
        return result

    assert process_next_work_item(queue, look_at)
    assert (deletes, queue.pending_ns(view.key)) == ([], clock_ns + 10 * S)
    queue.clock.advance(10 * S)
    assert process_next_work_item(queue, look_at)
    assert (len(deletes), queue.num_requeues(view.key)) == (1, 1)
    assert queue.pending_ns(view.key) == clock_ns + 10 * S + 5_000_000
    queue.clock.advance(5_000_000)
    assert process_next_work_item(queue, look_at)
    assert (len(deletes), queue.num_requeues(view.key)) == (2, 0)
    assert not process_next_work_item(queue, look_at)
    assert {found.propagation for found in deletes} == {"Foreground"}
