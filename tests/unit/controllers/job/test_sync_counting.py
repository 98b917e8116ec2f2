"""The Job controller that counts pods by listing them (1.11 to 1.21, unannotated Jobs to 1.26).

The cases are those of upstream's own unit tests of these versions, as facts, in words of our own.
"""

import pytest
from counting_world import NOW, Api, S, job, pod, pods, rules, started, sync
from msgspec.structs import replace

from tracekit.base.kube.views import Condition
from tracekit.ports.actions import Outcome
from tracekit.ports.job.memory import JobMemory, PodExpectations

REFUSED = Outcome.REFUSED
ALL = ("1.11.0", "1.15.3", "1.17.17", "1.20.8", "1.21.14", "1.24.17")
COMPLETE = Condition("Complete", "True", "", "", NOW, NOW)

#: (parallelism, completions, phases) -> (creates, deletes, (active, succeeded, failed))
STEADY = {
    "a new Job gets as many pods as its parallelism": ((2, 5, {}), (2, 0, (2, 0, 0))),
    "a work queue gets as many pods as its parallelism": ((2, None, {}), (2, 0, (2, 0, 0))),
    "pending pods are enough": ((2, 5, {"Pending": 2}), (0, 0, (2, 0, 0))),
    "running pods are enough": ((2, 5, {"Running": 2}), (0, 0, (2, 0, 0))),
    "running pods are enough for a work queue": ((2, None, {"Running": 2}), (0, 0, (2, 0, 0))),
    "a success makes room for the next pod": (
        (2, 5, {"Running": 1, "Succeeded": 1}),
        (1, 0, (2, 1, 0)),
    ),
    "a failure is replaced": ((2, 5, {"Running": 1, "Failed": 1}), (1, 0, (2, 0, 1))),
    "a work queue with one pod too few gets one": ((2, None, {"Running": 1}), (1, 0, (2, 0, 0))),
    "no more pods than completions that are left": ((2, 5, {"Succeeded": 4}), (1, 0, (1, 4, 0))),
    "one pod too many is deleted": ((2, 5, {"Running": 3}), (0, 1, (2, 0, 0))),
    "eight pods too many are deleted": ((2, 5, {"Running": 10}), (0, 8, (2, 0, 0))),
    "parallelism 0 deletes every active pod": (
        (0, 5, {"Running": 2, "Succeeded": 1}),
        (0, 2, (0, 1, 0)),
    ),
    "a work queue with a success starts no more pods": (
        (2, None, {"Running": 1, "Succeeded": 1}),
        (0, 0, (1, 1, 0)),
    ),
    "two running and two done of five are left alone": (
        (2, 5, {"Running": 2, "Succeeded": 2}),
        (0, 0, (2, 2, 0)),
    ),
}


def ending(done):
    """Whether it ended in an error, the timer that it asks for, and whether the key is forgotten."""
    return done.result.error, done.result.wake_after_ns, done.result.forget


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("name", STEADY)
def test_pods_are_brought_to_what_the_spec_asks_for(name, version):
    (parallelism, completions, phases), (creates, deletes, counts) = STEADY[name]
    done = sync(version, job(parallelism, completions), pods(**phases))
    assert done.api.created == creates
    assert len(done.api.named("delete")) == deletes
    assert done.counts == counts
    new_failure = counts[2] > 0
    assert done.result.error == new_failure  # the retry of a new failure is its back-off


#: (parallelism, completions, phases) -> (counts, events)
COMPLETING = {
    "all completions reached": ((2, 5, {"Succeeded": 5}), (0, 5, 0), []),
    "a work queue with two successes and nothing active": (
        (2, None, {"Succeeded": 2}),
        (0, 2, 0),
        [],
    ),
    "a work queue that saw a success and a failure": (
        (2, None, {"Succeeded": 1, "Failed": 1}),
        (0, 1, 1),
        [],
    ),
    "no completions asked for": ((1, 0, {}), (0, 0, 0), []),
    "more successes than asked for": (
        (2, 5, {"Succeeded": 6}),
        (0, 6, 0),
        ["TooManySucceededPods"],
    ),
}


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("name", COMPLETING)
def test_a_job_completes(name, version):
    (parallelism, completions, phases), counts, events = COMPLETING[name]
    done = sync(version, job(parallelism, completions), pods(**phases))
    assert done.counts == counts
    assert done.api.conditions == [("Complete", "")]
    assert done.api.status.completion_ns == NOW
    assert done.api.created == 0
    completed = [] if version < "1.18" else ["Completed"]
    assert done.api.reasons == events + completed
    # From 1.24.10 on no status write forgets the retries of a key, only a success does.
    assert ending(done) == (False, None, version != "1.24.17" or counts[1] > 0)


def test_a_work_queue_with_an_active_pod_is_not_complete():
    done = sync("1.17.17", job(2, None), pods(Succeeded=1, Running=1))
    assert done.api.conditions == []


def test_up_to_1_21_a_job_completes_over_active_pods_and_says_so():
    done = sync("1.20.8", job(2, 2, succeeded=1), pods(Succeeded=2, Running=1))
    assert done.api.conditions == [("Complete", "")]
    assert done.counts == (1, 2, 0)
    assert done.api.reasons == ["TooManyActivePods", "Completed"]
    assert done.api.named("delete") == []


def test_from_1_22_on_it_deletes_the_pod_that_is_not_needed_first():
    done = sync("1.24.17", job(2, 2, succeeded=1), pods(Succeeded=2, Running=1))
    assert done.api.named("delete") == ["running-0"]
    assert done.counts == (0, 2, 0)
    assert done.api.conditions == [("Complete", "")]


# Writes that fail.


def test_a_refused_create_leaves_the_count_as_it_is_and_is_retried():
    done = sync("1.17.17", job(), pods(Running=1, Succeeded=1), api=Api(creates=[REFUSED]))
    assert done.api.batches == [1]
    assert done.counts == (1, 1, 0)
    assert done.result.error
    assert done.result.forget


def test_a_refused_create_beside_a_new_failure_still_counts_as_a_retry():
    memory = JobMemory(requeues=3)
    running = pods(Running=1, Succeeded=1, Failed=1)
    done = sync("1.17.17", job(), running, api=Api(creates=[REFUSED]), memory=memory)
    assert done.result.error
    assert memory.requeues == 4


def test_a_refused_delete_keeps_the_pod_in_the_count():
    done = sync(
        "1.17.17",
        job(),
        pods(Running=3),
        api=Api(deletes=dict.fromkeys(("running-0", "running-1", "running-2"), REFUSED)),
    )
    assert done.counts == (3, 0, 0)
    assert done.result.error
    assert done.memory.expectations.deletions == 0


def test_creation_starts_with_one_pod_and_doubles():
    done = sync("1.17.17", job(20, 40))
    assert done.api.batches == [1, 2, 4, 8, 5]
    assert done.memory.expectations == PodExpectations(20, 0, NOW)


def test_a_refusal_ends_the_series_after_its_batch():
    done = sync("1.17.17", job(100, 200), api=Api(creates=[Outcome.OK] * 10 + [REFUSED] * 90))
    assert done.api.batches == [1, 2, 4, 8]
    assert done.counts == (10, 0, 0)
    assert done.memory.expectations.creations == 10  # those that the informer will show
    assert done.result.error


def test_a_failed_status_write_is_an_error_and_forgets_nothing():
    memory = JobMemory(requeues=2)
    done = sync("1.17.17", job(), pods(Running=2), api=Api(status_outcome=REFUSED), memory=memory)
    assert ending(done) == (True, None, True)
    assert memory.requeues == 3


@pytest.mark.parametrize(("version", "silent"), [("1.16.15", False), ("1.17.17", True)])
def test_a_pod_refused_by_a_dying_namespace_counts_as_active_from_1_17_on(version, silent):
    done = sync(version, job(1, 1), api=Api(creates=[Outcome.NAMESPACE_TERMINATING]))
    assert done.result.error is not silent
    assert done.memory.expectations.creations == (1 if silent else 0)
    assert (done.counts == (1, 0, 0)) is silent


@pytest.mark.parametrize(
    ("version", "swallowed"),
    [("1.11.0", True), ("1.15.3", True), ("1.16.7", False), ("1.17.0", True), ("1.17.1", False)],
)
def test_a_create_that_timed_out_was_once_taken_for_done(version, swallowed):
    done = sync(version, job(1, 1), api=Api(creates=[Outcome.TIMEOUT]))
    assert done.result.error is not swallowed
    assert done.memory.satisfied(NOW) is not swallowed
    assert done.memory.satisfied(NOW + 300 * S) is not swallowed
    assert done.memory.satisfied(NOW + 300 * S + 1)


@pytest.mark.parametrize(
    ("version", "error", "active", "deletions", "reasons"),
    [
        ("1.11.0", True, 3, 0, ["FailedDelete"]),
        ("1.12.0", False, 2, 1, ["SuccessfulDelete"]),
        ("1.17.11", False, 2, 1, ["SuccessfulDelete"]),
        ("1.17.12", False, 2, 0, []),
        ("1.18.8", False, 2, 1, ["SuccessfulDelete"]),
        ("1.18.9", False, 2, 0, []),
        ("1.20.8", False, 2, 0, []),
    ],
)
def test_deleting_a_pod_that_is_gone_changed_twice(version, error, active, deletions, reasons):
    gone = dict.fromkeys(("running-0", "running-1", "running-2"), Outcome.NOT_FOUND)
    done = sync(version, job(), pods(Running=3), api=Api(deletes=gone))
    assert done.result.error is error
    assert done.counts == (active, 0, 0)
    assert done.memory.expectations.deletions == deletions
    assert done.api.reasons == reasons


# Expectations.


def test_outstanding_expectations_hold_back_creation_and_nothing_else():
    memory = JobMemory(expectations=PodExpectations(1, 0, NOW))
    done = sync("1.17.17", job(), pods(Running=1, Succeeded=1), memory=memory)
    assert done.api.created == 0
    assert done.counts == (1, 1, 0)


def test_expectations_that_are_five_minutes_old_hold_back_nothing():
    at_limit = JobMemory(expectations=PodExpectations(1, 0, NOW - 300 * S))
    assert sync("1.17.17", job(), memory=at_limit).api.created == 0
    expired = JobMemory(expectations=PodExpectations(1, 0, NOW - 300 * S - 1))
    assert sync("1.17.17", job(), memory=expired).api.created == 2


def test_expectations_over_fulfilled_hold_back_nothing():
    """A graceful deletion shows three times and lowers the count below zero."""
    memory = JobMemory(expectations=PodExpectations(0, 1, NOW))
    for _ in range(3):
        memory.deletion_observed()
    assert memory.expectations.deletions == -2
    assert sync("1.17.17", job(), memory=memory).api.created == 2


@pytest.mark.parametrize(("version", "reset"), [("1.15.3", True), ("1.16.7", False)])
def test_nothing_to_create_once_reset_the_row(version, reset):
    memory = JobMemory(expectations=PodExpectations(0, -1, NOW - S))
    done = sync(version, job(3, 5, succeeded=3), pods(Running=2, Succeeded=3), memory=memory)
    assert done.api.created == 0
    row = PodExpectations(0, 0, NOW) if reset else PodExpectations(0, -1, NOW - S)
    assert memory.expectations == row


def test_scaling_down_expects_the_deletion():
    done = sync("1.17.17", job(1, 5, active=2), pods(Running=2))
    assert done.memory.expectations == PodExpectations(0, 1, NOW)


def test_the_youngest_pod_that_is_not_ready_and_not_scheduled_goes_first():
    left = [
        pod("ready", ready=True, ready_since_ns=NOW - 60 * S),
        pod("unscheduled", "Pending", node_name=""),
        pod("young", created_ns=NOW),
        pod("old", created_ns=NOW - 60 * S),
    ]
    assert sync("1.17.17", job(3, 5), left).api.named("delete") == ["unscheduled"]
    assert sync("1.17.17", job(2, 5), left).api.named("delete") == ["unscheduled", "young"]


def test_an_unknown_key_forgets_expectations_and_retries():
    memory = JobMemory(expectations=PodExpectations(1, 0, NOW), requeues=4)
    done = sync("1.17.17", None, memory=memory)
    assert memory.expectations is None
    assert memory.requeues == 0
    assert done.api.calls == []


# Finished, deleted, suspended.


@pytest.mark.parametrize("version", ALL)
def test_a_finished_job_is_left_alone_and_its_retries_forgotten(version):
    memory = JobMemory(requeues=5)
    finished = job(1, 1, conditions=(COMPLETE,), deadline=1, start_ns=started(100))
    done = sync(version, finished, pods(Running=3), memory=memory)
    assert done.api.calls == []
    assert memory.requeues == 0


def test_a_job_that_is_being_deleted_is_counted_and_gets_no_pods():
    done = sync("1.17.17", job(deleting=True), pods(Pending=1, Running=1, Succeeded=1))
    assert done.api.calls == [("status",)]
    assert done.counts == (2, 1, 0)


def test_a_job_that_is_being_deleted_can_still_fail():
    done = sync("1.20.8", job(1, 1, 0, deleting=True), pods(Failed=1))
    assert done.api.conditions == [("Failed", "BackoffLimitExceeded")]
    assert done.counts == (0, 0, 1)


def test_terminating_pods_that_run_are_in_no_count_and_failed_ones_are():
    left = [pod("a", deleted_ns=NOW), pod("b", "Failed", deleted_ns=NOW)]
    done = sync("1.17.17", job(0, 5), left)
    assert done.counts == (0, 0, 1)


def test_counters_fall_when_finished_pods_are_deleted():
    done = sync("1.17.17", job(1, 5, succeeded=2, failed=1, active=1), pods(Running=1))
    assert done.counts == (1, 0, 0)


def test_parallelism_0_writes_nothing_and_never_keeps_its_start():
    done = sync("1.17.17", job(0, 5, deadline=60))
    assert done.api.calls == []
    assert ending(done) == (False, 60 * S, False)


def test_nothing_changed_neither_forgets_nor_counts():
    memory = JobMemory(requeues=2)
    done = sync("1.17.17", job(2, 5, active=2, start_ns=started(5)), pods(Running=2), memory=memory)
    assert done.api.calls == []
    assert memory.requeues == 2


# Deadline.

DEADLINE = {
    "past it, the active pod is deleted and counts as failed": (5, 15, {"Running": 1}, (0, 0, 1)),
    "successes are kept": (5, 15, {"Running": 1, "Succeeded": 1}, (0, 1, 1)),
    "exactly at it": (1, 10, {}, (0, 0, 0)),
}


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("name", DEADLINE)
def test_a_job_past_its_deadline_fails(name, version):
    completions, age, phases, counts = DEADLINE[name]
    late = job(1, completions, deadline=10, start_ns=started(age))
    done = sync(version, late, pods(**phases), now=NOW - 500_000_000)
    assert done.api.conditions == [("Failed", "DeadlineExceeded")]
    assert done.counts == counts
    assert done.api.status.completion_ns is None
    assert done.api.reasons == ["DeadlineExceeded"]


def test_a_deadline_of_0_fails_the_first_sync():
    done = sync("1.17.17", job(deadline=0))
    assert done.api.conditions == [("Failed", "DeadlineExceeded")]
    assert done.api.created == 0


def test_the_back_off_limit_goes_before_the_deadline():
    late = job(1, 1, 0, deadline=10, start_ns=started(15))
    done = sync("1.20.8", late, pods(Failed=1))
    assert done.api.conditions == [("Failed", "BackoffLimitExceeded")]


@pytest.mark.parametrize(("version", "rearmed"), [("1.23.0", False), ("1.25.0", True)])
def test_only_the_first_sync_armed_the_deadline_timer_before_it_was_mended(version, rearmed):
    first = sync(version, job(deadline=60), gates={"JobTrackingWithFinalizers": False})
    assert first.result.wake_after_ns == 60 * S
    later = job(deadline=60, start_ns=started(15), active=2)
    done = sync(version, later, pods(Running=2), gates={"JobTrackingWithFinalizers": False})
    left = 60 * S - 15 * S - 500_000_000
    assert done.result.wake_after_ns == (left if rearmed else None)


def test_deleting_after_a_failure_counts_pods_whose_deletion_failed_too():
    late = job(2, 5, deadline=10, start_ns=started(15))
    done = sync("1.17.17", late, pods(Running=2), api=Api(deletes={"running-0": REFUSED}))
    assert done.counts == (0, 0, 2)
    assert done.result.error
    assert done.memory.expectations is None  # no expectations on this path


# Back-off: the queue's retries up to 1.19, failed pods from 1.20 on.

RETRIES = {
    "the first failure of limit 1 is retried": (1, 0, False),
    "the second failure of limit 1 fails the Job": (1, 1, True),
    "limit 0 fails at the first failure": (0, 0, True),
    "limit 6 with five retries goes on": (6, 5, False),
    "limit 6 with six retries is spent": (6, 6, True),
}


@pytest.mark.parametrize("version", ["1.11.0", "1.17.17", "1.19.12"])
@pytest.mark.parametrize("name", RETRIES)
def test_up_to_1_19_retries_of_the_key_are_compared_with_the_limit(name, version):
    limit, retries, fails = RETRIES[name]
    memory = JobMemory(requeues=retries)
    done = sync(version, job(1, 1, limit), pods(Failed=1), memory=memory)
    assert (done.api.conditions == [("Failed", "BackoffLimitExceeded")]) is fails
    assert done.api.created == (0 if fails else 1)
    assert memory.requeues == (0 if fails else retries + 1)


FAILED_PODS = {
    "limit 1 with one failed pod goes on": (1, 1, {"Failed": 1}, False),
    "limit 1 with two failed pods fails": (1, 1, {"Failed": 2}, True),
    "limit 6 with six failed and one running goes on": (6, 2, {"Failed": 6, "Running": 1}, False),
    "limit 6 with seven failed fails": (6, 2, {"Failed": 7, "Running": 1}, True),
    "limit 10 with ten failed of ten goes on": (10, 10, {"Failed": 10}, False),
    "limit 10 with eleven failed fails": (10, 10, {"Failed": 11}, True),
}


@pytest.mark.parametrize("version", ["1.20.8", "1.21.14", "1.26.0"])
@pytest.mark.parametrize("name", FAILED_PODS)
def test_from_1_20_on_failed_pods_are_compared_with_the_limit(name, version):
    limit, parallelism, phases, fails = FAILED_PODS[name]
    done = sync(version, job(parallelism, 20, limit, failed=phases["Failed"] - 1), pods(**phases))
    assert (done.api.conditions == [("Failed", "BackoffLimitExceeded")]) is fails
    assert (done.api.created == 0) is fails


def test_ten_pods_failing_at_once_overshoot_up_to_1_19_and_stop_at_1_20():
    failed = pods(Failed=11)
    old = sync("1.19.12", job(10, 10, 10, failed=1), failed, memory=JobMemory(requeues=1))
    new = sync("1.20.8", job(10, 10, 10, failed=1), failed)
    assert old.api.created == 10
    assert new.api.created == 0


def test_a_stale_job_sees_the_same_failure_again_and_only_the_retries_grow():
    """Right after the write the pod's ADD syncs the Job as it was before."""
    memory = JobMemory(requeues=1)
    stale = job(1, 1, 2, start_ns=started(1), active=1)
    done = sync("1.17.17", stale, pods(Failed=1, Running=1), memory=memory)
    assert done.api.created == 0
    assert done.counts == (1, 0, 1)
    assert memory.requeues == 2


def test_a_success_clears_the_retries():
    memory = JobMemory(requeues=2)
    seen = job(2, 5, failed=1, start_ns=started(5))
    sync("1.17.17", seen, pods(Failed=1, Succeeded=1, Running=1), memory=memory)
    assert memory.requeues == 0


def test_any_other_change_of_the_status_clears_the_retries_too():
    memory = JobMemory(requeues=2)
    sync("1.17.17", job(3, 5, active=2, failed=1), pods(Failed=1, Running=2), memory=memory)
    assert memory.requeues == 0


@pytest.mark.parametrize(("retries", "fails"), [(5, False), (6, True)])
def test_retries_of_the_key_count_towards_the_limit(retries, fails):
    memory = JobMemory(requeues=retries)
    done = sync("1.17.17", job(1, 1, 6), pods(Failed=1), memory=memory)
    assert (done.api.conditions == [("Failed", "BackoffLimitExceeded")]) is fails


ON_FAILURE = {
    "limit 0 and no restart goes on": (1, 0, [("Running", 0)], "1.13.0", False),
    "limit 0 and no restart fails up to 1.12": (1, 0, [("Running", 0)], "1.12.1", True),
    "limit 0 and one restart fails": (1, 0, [("Running", 1)], "1.13.0", True),
    "limit 1 and one restart fails": (1, 1, [("Running", 1)], "1.17.17", True),
    "limit 1 and one restart of a pending pod fails from 1.15 on": (
        1,
        1,
        [("Pending", 1)],
        "1.15.0",
        True,
    ),
    "limit 1 and one restart of a pending pod goes on up to 1.14": (
        1,
        1,
        [("Pending", 1)],
        "1.14.6",
        False,
    ),
    "limit 2 with restarts 1 and 1 fails": (
        2,
        2,
        [("Running", 1), ("Running", 1)],
        "1.20.8",
        True,
    ),
    "limit 3 with restarts 1 and 1 goes on": (
        2,
        3,
        [("Running", 1), ("Running", 1)],
        "1.20.8",
        False,
    ),
    "restarts of finished pods do not count": (1, 1, [("Succeeded", 3)], "1.20.8", False),
}


@pytest.mark.parametrize("name", ON_FAILURE)
def test_restarts_are_compared_with_the_limit_where_the_policy_is_on_failure(name):
    parallelism, limit, left, version, fails = ON_FAILURE[name]
    listed = [pod(f"p{n}", phase, restarts=count) for n, (phase, count) in enumerate(left)]
    done = sync(version, job(parallelism, 5, limit, restart="OnFailure"), listed)
    assert (done.api.conditions == [("Failed", "BackoffLimitExceeded")]) is fails
    if fails:
        assert done.counts == (0, 0, len(left))


def test_restarts_do_not_count_where_the_policy_is_never():
    done = sync("1.17.17", job(1, 5, 0), [pod("p", restarts=9)])
    assert done.api.conditions == []


# Ownership.


def test_own_pods_and_orphans_that_match_are_taken_and_foreign_ones_are_not():
    left = [pod("own"), pod("foreign", owner="other"), pod("orphan", owner=None)]
    done = sync("1.17.17", job(2, 5), left)
    assert done.api.named("adopt") == ["orphan"]
    assert done.counts == (2, 0, 0)


def test_orphans_are_rechecked_once_a_sync():
    left = [pod("a", owner=None), pod("b", "Succeeded", owner=None)]
    done = sync("1.17.17", job(1, 5), left)
    assert [call[0] for call in done.api.calls[:3]] == ["recheck", "adopt", "adopt"]
    assert done.counts == (1, 1, 0)


def test_an_orphan_of_a_job_that_the_cache_shows_deleting_is_left_alone():
    done = sync("1.17.17", job(deleting=True), [pod("orphan", owner=None)])
    assert done.api.calls == []


def test_an_orphan_of_a_job_that_is_only_live_deleting_aborts_the_sync():
    done = sync("1.17.17", job(), [pod("orphan", owner=None)], api=Api(live=False))
    assert done.api.calls == [("recheck",)]
    assert done.result.error


def test_an_orphan_that_terminates_is_not_adopted():
    done = sync("1.17.17", job(0, 5), [pod("orphan", owner=None, deleted_ns=NOW)])
    assert done.api.calls == []


def test_an_owned_pod_that_no_longer_matches_is_released_and_not_counted():
    done = sync("1.17.17", job(1, 5), [pod("astray", labels={"a": "b"})])
    assert done.api.named("release") == ["astray"]
    assert done.api.created == 1
    assert done.counts == (1, 0, 0)


def test_a_release_that_fails_aborts_the_sync_and_counts_as_a_retry():
    memory = JobMemory()
    astray = [pod("astray", labels={"a": "b"})]
    done = sync("1.17.17", job(), astray, api=Api(releases=REFUSED), memory=memory)
    assert done.api.calls == [("release", "astray")]
    assert memory.requeues == 1


def test_a_pod_that_vanished_before_its_adoption_is_passed_over():
    done = sync(
        "1.17.17", job(1, 5), [pod("orphan", owner=None)], api=Api(adopts=Outcome.NOT_FOUND)
    )
    assert done.counts == (1, 0, 0)
    assert done.api.created == 1


# Suspension and indexes (1.21 on).

SUSPEND = {"SuspendJob": True, "IndexedJob": True}


def test_suspending_deletes_every_active_pod_and_says_so():
    running = job(2, 5, suspend=True, active=2, start_ns=started(5))
    done = sync("1.21.14", running, pods(Running=2), gates=SUSPEND)
    assert len(done.api.named("delete")) == 2
    assert done.counts == (0, 0, 0)
    assert done.api.conditions == [("Suspended", "JobSuspended")]
    assert done.api.reasons == ["Suspended"]
    assert done.memory.expectations == PodExpectations(0, 2, NOW)
    assert done.api.status.start_ns == started(5)


def test_a_job_born_suspended_has_no_start():
    done = sync("1.21.14", job(2, 5, suspend=True, deadline=9), gates=SUSPEND)
    assert done.api.status.start_ns is None
    assert done.result.wake_after_ns is None
    assert done.api.created == 0


def test_resuming_starts_anew_and_keeps_the_probe_time_up_to_1_25():
    asleep = Condition("Suspended", "True", "JobSuspended", "Job suspended", 7, 7)
    awake = job(2, 5, suspend=False, conditions=(asleep,), start_ns=None)
    done = sync("1.21.14", awake, gates=SUSPEND)
    assert done.api.created == 2
    assert done.api.reasons == ["Resumed"]
    assert done.api.status.conditions == (
        Condition("Suspended", "False", "JobResumed", "Job resumed", 7, NOW),
    )
    assert done.api.status.start_ns == NOW


def test_suspension_is_ignored_where_the_gate_is_off():
    done = sync("1.21.14", job(2, 5, suspend=True))
    assert done.api.created == 2
    assert done.api.conditions == []


def test_a_suspended_job_does_not_run_into_its_deadline():
    asleep = job(2, 5, suspend=True, deadline=1, start_ns=started(99))
    assert sync("1.21.14", asleep, gates=SUSPEND).api.conditions == [("Suspended", "JobSuspended")]


def test_an_indexed_job_gets_its_lowest_pending_indexes():
    left = [pod("a", "Succeeded", index=0), pod("b", index=2), pod("c", "Failed", index=1)]
    indexed = job(3, 6, mode="Indexed", failed=1)
    done = sync("1.21.14", indexed, left, gates=SUSPEND)
    assert done.api.named("create") == [1, 3]
    assert done.api.status.completed_indexes == "0"
    assert done.counts == (3, 1, 1)


@pytest.mark.parametrize(
    ("version", "prefix", "host"), [("1.21.14", "job-", None), ("1.22.17", "job-0-", "job-0")]
)
def test_an_index_is_in_the_pods_name_from_1_22_on(version, prefix, host):
    done = sync(version, job(1, 1, mode="Indexed"), gates=SUSPEND)
    intent = done.api.intent
    assert intent.generate_name == prefix
    assert intent.spec.get("hostname") == host
    assert intent.annotations == {"batch.kubernetes.io/job-completion-index": "0"}
    assert intent.finalizers == ()
    variable = intent.spec["containers"][0]["env"][0]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert "annotations" in variable["valueFrom"]["fieldRef"]["fieldPath"]


@pytest.mark.parametrize(("version", "creates"), [("1.21.14", 1), ("1.22.17", 0)])
def test_a_duplicate_index_goes_and_up_to_1_21_its_place_is_filled_in_the_same_sync(
    version, creates
):
    left = [pod("a", index=0, created_ns=5), pod("b", index=0, created_ns=9)]
    done = sync(version, job(2, 2, mode="Indexed"), left, gates=SUSPEND)
    assert done.api.named("delete") == ["b"]
    assert done.api.created == creates


def test_an_indexed_job_is_skipped_where_the_gate_is_off():
    memory = JobMemory(requeues=1)
    done = sync("1.21.14", job(1, 1, mode="Indexed"), memory=memory)
    assert done.api.reasons == ["IndexedJobDisabled"]
    assert len(done.api.calls) == 1
    assert memory.requeues == 1


def test_an_unknown_completion_mode_is_skipped():
    done = sync("1.21.14", job(1, 1, mode="Quantum"))
    assert done.api.reasons == ["UnknownCompletionMode"]


# Jobs that are not tracked though tracking exists (1.22 to 1.26).


def test_leftover_finalizers_are_taken_off():
    left = [replace(pod("a"), has_tracking_finalizer=True)]
    done = sync("1.24.17", job(1, 1), left)
    assert done.api.named("finalizer") == ["a"]


def test_ready_pods_are_told_where_the_gate_is_on():
    left = [pod("a", ready=True), pod("b")]
    done = sync("1.24.17", job(2, 5, active=2), left)
    assert done.api.status.ready == 1
    assert sync("1.22.17", job(2, 5), left).api.status.ready is None


def test_rules_say_which_jobs_are_counted():
    annotated = job(annotations={"batch.kubernetes.io/job-tracking": ""})
    assert not rules("1.21.14").tracks(annotated)
    assert rules("1.23.0").tracks(annotated)
    assert not rules("1.23.0").tracks(job())
    assert not rules("1.23.17").tracks(annotated)
    assert rules("1.26.0").tracks(annotated)
    assert not rules("1.26.0").tracks(job())
    assert rules("1.27.0").tracks(job())
