"""Which Jobs the handlers wake, and after what delay."""

import pytest
from counting_world import LABELS, NOW, S, job, pod, started
from msgspec.structs import replace

from tests.support.handlers import (
    Wake,
    job_updated,
    pod_added,
    pod_deleted,
    pod_updated,
)
from tracekit.base.kube.views import OwnerRef
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

ONE = job()
TWO = job(name="two", uid="uid-two")
OTHER = replace(
    job(name="other", uid="uid-other"),
    spec=replace(ONE.spec, selector={"matchLabels": {"a": "other"}}),
)
JOBS = {view.key: view for view in (ONE, TWO, OTHER)}


def rules(version, **gates):
    return JobRules.of(Era.resolve(version, gates))


def updated(old, new, version="1.17.17", retries=0, **gates):
    return pod_updated(
        old, replace(new, rv=old.rv + 1), JOBS, rules(version, **gates), lambda _: retries
    )


def woken(wakes):
    return [wake.key for wake in wakes]


def test_an_owned_pod_wakes_its_job():
    assert pod_added(pod("a"), JOBS, rules("1.17.17")) == (Wake("ns/job", 0),)


def test_an_orphan_wakes_every_job_that_it_matches():
    assert woken(pod_added(pod("a", owner=None), JOBS, rules("1.17.17"))) == ["ns/job", "ns/two"]


def test_an_orphan_without_labels_wakes_nobody():
    assert pod_added(pod("a", owner=None, labels={}), JOBS, rules("1.17.17")) == ()


def test_a_pod_of_another_uid_or_kind_wakes_nobody():
    stranger = pod("a", owner="uid of an earlier job")
    assert pod_added(stranger, JOBS, rules("1.17.17")) == ()
    ref = OwnerRef("ReplicaSet", "job", "job-uid", "apps/v1", controller=True)
    assert pod_added(replace(pod("a"), controller=ref), JOBS, rules("1.17.17")) == ()


def test_a_deleted_pod_wakes_its_owner_and_an_orphan_nobody():
    assert woken(pod_deleted(pod("a"), JOBS, rules("1.17.17"))) == ["ns/job"]
    assert pod_deleted(pod("a", owner=None), JOBS, rules("1.17.17")) == ()
    gone = pod("a", deleted_ns=NOW)
    assert woken(pod_added(gone, JOBS, rules("1.17.17"))) == ["ns/job"]
    assert woken(updated(pod("a"), gone)) == ["ns/job"]


def test_a_resyncs_echo_wakes_nobody():
    assert pod_updated(pod("a"), pod("a"), JOBS, rules("1.17.17"), lambda _: 0) == ()


def test_a_pod_that_changed_hands_wakes_both_owners():
    ref = OwnerRef("Job", "two", "uid-two", "batch/v1", controller=True)
    assert woken(updated(pod("a"), replace(pod("a"), controller=ref))) == ["ns/job", "ns/two"]


def test_a_released_pod_wakes_its_old_owner_and_all_that_it_matches():
    assert woken(updated(pod("a"), pod("a", owner=None))) == ["ns/job", "ns/job", "ns/two"]


def test_a_relabelled_orphan_wakes_those_that_it_matches_now():
    before = pod("a", owner=None, labels={"a": "b"})
    assert woken(updated(before, pod("a", owner=None, labels=LABELS))) == ["ns/job", "ns/two"]
    assert updated(before, replace(before, phase="Failed")) == ()


BACKOFF = {
    "no retry yet": (0, 0),
    "one retry": (1, 10),
    "two retries": (2, 20),
    "six retries": (6, 320),
    "seven retries reach the cap": (7, 360),
    "a hundred retries stay at it": (100, 360),
}


@pytest.mark.parametrize("name", BACKOFF)
def test_a_failed_pod_waits_for_the_keys_back_off(name):
    retries, seconds = BACKOFF[name]
    (wake,) = updated(pod("a"), pod("a", "Failed"), retries=retries)
    assert wake.delay_ns == seconds * S


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Pending"])
def test_other_changes_of_a_pod_do_not_wait(phase):
    (wake,) = updated(pod("a", "Pending"), pod("a", phase), retries=5)
    assert wake.delay_ns == 0


@pytest.mark.parametrize(("version", "delay"), [("1.24.0", 10), ("1.24.17", 1)])
def test_only_a_pods_first_failure_waits_once_that_was_mended(version, delay):
    (wake,) = updated(pod("a", "Failed"), pod("a", "Failed"), version, retries=1)
    assert wake.delay_ns == delay * S


@pytest.mark.parametrize(
    ("version", "gates", "batch_ns"),
    [
        ("1.22.17", {}, 0),
        ("1.23.17", {}, 0),
        ("1.23.17", {"JobReadyPods": True}, S // 2),
        ("1.24.17", {}, S),
        ("1.27.16", {"JobReadyPods": False}, 0),
        ("1.28.15", {"JobReadyPods": False}, S),
        ("1.36.0", {}, S),
    ],
)
def test_pod_events_are_batched(version, gates, batch_ns):
    batched = rules(version, **gates)
    assert pod_added(pod("a"), JOBS, batched)[0].delay_ns == batch_ns
    assert pod_deleted(pod("a"), JOBS, batched)[0].delay_ns == batch_ns
    (wake,) = updated(pod("a"), pod("a", "Succeeded"), version, retries=3, **gates)
    assert wake.delay_ns == batch_ns


def test_from_1_28_on_a_failed_pod_waits_for_the_batch_only():
    (wake,) = updated(pod("a"), pod("a", "Failed"), "1.28.15", retries=4)
    assert wake.delay_ns == S


@pytest.mark.parametrize(("version", "batch_ns"), [("1.27.16", 0), ("1.28.0", S)])
def test_a_status_write_wakes_the_job_after_the_batch_from_1_28_on(version, batch_ns):
    status = replace(ONE, generation=1, rv=11)
    assert job_updated(replace(ONE, generation=1), status, rules(version), now_ns=NOW) == (
        Wake("ns/job", batch_ns),
    )
    edited = replace(ONE, generation=2)
    assert job_updated(status, edited, rules(version), now_ns=NOW) == (Wake("ns/job", 0),)


@pytest.mark.parametrize(("version", "armed"), [("1.11.0", False), ("1.12.0", True)])
def test_a_changed_deadline_arms_a_timer_from_1_12_on(version, armed):
    old = job(deadline=60, start_ns=started(15))
    new = replace(old, spec=replace(old.spec, active_deadline_s=100))
    wakes = job_updated(old, new, rules(version), now_ns=NOW)
    left = 100 * S - (NOW - started(15))
    assert wakes == ((Wake("ns/job", 0), Wake("ns/job", left)) if armed else (Wake("ns/job", 0),))
    assert len(job_updated(new, new, rules(version), now_ns=NOW)) == 1


def test_a_deadline_that_is_past_already_asks_for_no_wait():
    old = job(start_ns=started(15))
    new = replace(old, spec=replace(old.spec, active_deadline_s=10))
    assert job_updated(old, new, rules("1.17.17"), now_ns=NOW)[1].delay_ns < 0
