"""What wakes the queue-based controller up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.cron_world import at, cron_job, era, job
from tracekit.ports.cronjob.actions import RecordEvent
from tracekit.ports.cronjob.handlers import (
    Enqueue,
    cron_job_added,
    cron_job_updated,
    job_added,
    job_deleted,
    job_updated,
)

NEW = era("1.36.3")
S = 10**9
PAD = 100_000_000


def lister(namespace: str, name: str):
    return cron_job() if (namespace, name) == ("ns", "cj") else None


def test_an_added_cronjob_is_looked_at_at_once() -> None:
    assert cron_job_added(cron_job()) == (Enqueue("ns/cj"),)


def test_a_template_edit_is_looked_at_at_once() -> None:
    old, new = cron_job(labels={"a": "1"}), cron_job(labels={"a": "2"})
    assert cron_job_updated(old, new, at("10:00:00"), NEW) == (Enqueue("ns/cj"),)


def test_a_resync_of_the_same_revision_is_looked_at_too() -> None:
    view = cron_job()
    assert cron_job_updated(view, view, at("10:00:00"), NEW) == (Enqueue("ns/cj"),)


@pytest.mark.parametrize(
    ("old", "new", "now", "delay_ns"),
    [
        ("30 * * * *", "*/1 * * * *", "10:10:25", 35 * S + PAD),
        ("@every 1m", "@every 3m", "10:00:59", 121 * S + PAD),
        ("@every 3m", "@every 1m", "10:00:59", 1 * S + PAD),
    ],
)
def test_a_changed_schedule_waits_for_its_next_slot(
    old: str, new: str, now: str, delay_ns: int
) -> None:
    before = cron_job(schedule=old, last="10:00:00")
    after = cron_job(schedule=new, last="10:00:00")
    assert cron_job_updated(before, after, at(now), NEW) == (Enqueue("ns/cj", delay_ns),)


def test_a_changed_zone_waits_for_its_next_slot() -> None:
    before = cron_job(schedule="0 12 * * *", last="10:00:00")
    after = cron_job(schedule="0 12 * * *", last="10:00:00", zone="Asia/Tokyo")
    (enqueue,) = cron_job_updated(before, after, at("10:30:00"), NEW)
    assert isinstance(enqueue, Enqueue)
    assert enqueue.delay_ns == 16 * 3600 * S + 1800 * S + PAD


def test_where_there_is_no_zone_field_a_changed_zone_is_any_update() -> None:
    after = cron_job(zone="Asia/Tokyo")
    assert cron_job_updated(cron_job(), after, at("10:30:00"), era("1.23.17")) == (
        Enqueue("ns/cj"),
    )


def test_a_schedule_changed_to_nonsense_warns_and_wakes_nobody() -> None:
    (event,) = cron_job_updated(cron_job(), cron_job(schedule="x"), at("10:00:00"), NEW)
    assert event == RecordEvent(
        "Warning", "UnParseableCronJobSchedule", "unparseable schedule for cronjob: x"
    )


def test_jobs_wake_the_cronjob_that_controls_them() -> None:
    view = job("a")
    assert job_added(view, lister) == (Enqueue("ns/cj"),)
    assert job_deleted(view, lister) == (Enqueue("ns/cj"),)
    assert job_updated(view, replace(view, rv=8), lister) == (Enqueue("ns/cj"),)


@pytest.mark.parametrize(
    "fields",
    [
        {"owner": None},
        {"owner": "other"},
        {"owner_uid": "an earlier one"},
        {"owner_kind": "Workflow"},
        {"namespace": "other"},
    ],
)
def test_other_jobs_wake_nobody(fields: dict) -> None:
    assert job_added(job("a", **fields), lister) == ()


def test_an_update_of_the_same_revision_wakes_nobody() -> None:
    assert job_updated(job("a"), job("a"), lister) == ()


def test_a_changed_owner_wakes_both() -> None:
    old, new = job("a"), job("a", owner=None, rv=8)
    assert job_updated(old, new, lister) == (Enqueue("ns/cj"),)
    assert job_updated(new, replace(old, rv=9), lister) == (Enqueue("ns/cj"),)
