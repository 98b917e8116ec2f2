"""Seed 002, the CronJob controller that polls, at 1.11: one test per mechanism."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cron_pass import Cluster
from tests.support.cron_world import World, at, cron_job, era, job, ref
from tracekit.base.cron.zones import UTC
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer, CreateJob, UpdateCronJobStatus
from tracekit.ports.cronjob.children import group_by_owner_uid
from tracekit.ports.cronjob.missed import parse_schedule, unmet_starts
from tracekit.ports.cronjob.sync_all import sync_all
from tracekit.ports.cronjob.sync_polling import sync_one
from tracekit.versions.constants import CRON_POLL_PERIOD_NS
from tracekit.versions.cronjob import Controller

ERA = era("1.11.10")
RUNNING = job("cj-1463648400")
DONE = job("cj-1463648400", state="Complete")


def run(now: str = "10:00:01", jobs: tuple = (), world: World | None = None, **cj: Any) -> World:
    world = world or World()
    sync_one(cron_job(**cj), jobs, at(now), ERA, world)
    return world


def test_it_polls_every_ten_seconds() -> None:
    """Seed 002, Run: no queue and no informer; syncAll runs 10 s after the last pass."""
    assert ERA.controller is Controller.POLLING
    assert CRON_POLL_PERIOD_NS == 10 * NS_PER_S
    assert CronRunner(ERA).polls


def test_jobs_are_grouped_by_the_uid_of_their_owner() -> None:
    """Seed 002, groupJobsByParent: the controlling CronJob's uid, other Jobs are left out."""
    jobs = [job("a"), job("b", owner=None), job("c", owner_kind="Workflow"), job("d")]
    groups = group_by_owner_uid(jobs)
    assert {uid: [found.name for found in jobs] for uid, jobs in groups.items()} == {
        "cj-uid": ["a", "d"]
    }


def test_an_unknown_running_job_is_unexpected() -> None:
    """Seed 002, syncOne: unfinished and not in status.active is an UnexpectedJob."""
    world = run("09:59:59", (RUNNING,))
    assert world.events == ["UnexpectedJob"]
    assert world.statuses[-1].active == ()


def test_a_finished_job_leaves_the_active_list() -> None:
    """Seed 002, syncOne: SawCompletedJob."""
    world = run("09:59:59", (DONE,), active=(ref(DONE),))
    assert world.events == ["SawCompletedJob"]
    assert world.statuses[-1].active == ()


def test_a_job_that_is_gone_leaves_the_active_list() -> None:
    """Seed 002, syncOne: MissingJob."""
    world = run("09:59:59", active=(ref(RUNNING),))
    assert world.events == ["MissingJob"]
    assert world.statuses[-1].active == ()


def test_the_status_is_written_before_anything_starts() -> None:
    """Seed 002, syncOne: UpdateStatus after the bookkeeping; where it fails the pass ends."""
    failing = World(fail={UpdateCronJobStatus: [Answer(Outcome.REFUSED, "no")]})
    assert run(world=failing).calls == ["PUT status"]
    assert run().calls == ["PUT status", "POST job", "PUT status"]


@pytest.mark.parametrize("fields", [{"deleted": "10:00:00"}, {"suspend": True}])
def test_a_deleted_or_suspended_cron_job_starts_nothing(fields: dict[str, Any]) -> None:
    """Seed 002, syncOne: deletionTimestamp and suspend end the pass after the bookkeeping."""
    assert run(**fields).calls == ["PUT status"]


def test_every_missed_start_is_listed_from_the_last_run_or_the_creation() -> None:
    """Seed 002, getRecentUnmetScheduleTimes: from lastScheduleTime, else from the creation."""
    for fields, first in (({}, "10:00:00"), ({"last": "10:00:00"}, "11:00:00")):
        view = cron_job(**fields)
        starts = unmet_starts(view, parse_schedule(view, ERA), at("12:30:00"), UTC, limit=100)
        assert starts is not None
        assert (starts[0], starts[-1]) == (at(first), at("12:00:00"))


def test_more_than_a_hundred_missed_starts_are_an_error() -> None:
    """Seed 002, FailedNeedsStart: 100 missed starts start one Job, 101 none."""
    for missed, events in ((100, ["SuccessfulCreate"]), (101, ["FailedNeedsStart"])):
        world = World()
        view = cron_job(schedule="* * * * *", created="2016-05-19T10:00:00Z")
        sync_one(view, (), at("10:00:00") + missed * 60 * NS_PER_S, ERA, world)
        assert world.events == events


def test_an_unparseable_schedule_is_an_error() -> None:
    """Seed 002, FailedNeedsStart: the schedule is parsed in every pass."""
    assert run(schedule="x x x x x").events == ["FailedNeedsStart"]


def test_of_several_missed_starts_only_the_last_one_starts() -> None:
    """Seed 002, syncOne: times[len - 1], and lastScheduleTime is that slot."""
    world = run("12:30:00")
    assert world.created == ["cj-1463659200"]
    assert world.statuses[-1].last_schedule_ns == at("12:00:00")


def test_starting_deadline_seconds() -> None:
    """Seed 002, tooLate: slot + startingDeadlineSeconds before now starts nothing."""
    assert run("10:00:09", deadline=10).created == ["cj-1463652000"]
    assert run("10:00:11", deadline=10).created == []


@pytest.mark.parametrize(
    ("policy", "deleted", "created", "active"),
    [("Allow", 0, 1, 2), ("Forbid", 0, 0, 1), ("Replace", 1, 1, 1)],
)
def test_concurrency_policies(policy: str, deleted: int, created: int, active: int) -> None:
    """Seed 002, concurrencyPolicy: Allow, Forbid and Replace with one Job still active."""
    world = World(live_jobs={RUNNING.name: RUNNING})
    run(jobs=(RUNNING,), world=world, policy=policy, active=(ref(RUNNING),), last="09:00:00")
    assert (len(world.deleted), len(world.created)) == (deleted, created)
    assert len(world.statuses[-1].active) == active


def test_a_replacement_that_cannot_be_read_starts_nothing() -> None:
    """Seed 002, Replace: a failed GET is FailedGet, and nothing starts."""
    world = run(jobs=(RUNNING,), policy="Replace", active=(ref(RUNNING),), last="09:00:00")
    assert world.events == ["FailedGet"]
    assert world.created == []


def test_the_controller_of_1_11_deletes_the_pods_itself() -> None:
    """Seed 002, podControl: scale to 0, delete the pods, then the Job (up to 1.12)."""
    world = World(live_jobs={RUNNING.name: RUNNING})
    run(jobs=(RUNNING,), world=world, policy="Replace", active=(ref(RUNNING),), last="09:00:00")
    assert world.calls[1:4] == ["PUT job", "DELETE pods", "DELETE job"]


def test_the_job_of_a_slot() -> None:
    """Seed 002, getJobFromTemplate: name with the slot in seconds, labels, owner."""
    (intent,) = run(labels={"a": "b"}).of(CreateJob)
    assert intent.name == f"cj-{at('10:00:00') // NS_PER_S}"
    assert (intent.labels, intent.owner_api) == ({"a": "b"}, "batch/v1beta1")
    assert (intent.owner_name, intent.owner_uid) == ("cj", "cj-uid")


def test_a_start_is_noted_in_the_status() -> None:
    """Seed 002, end of syncOne: SuccessfulCreate, active gets the Job, lastScheduleTime the slot."""
    world = run()
    assert world.events == ["SuccessfulCreate"]
    assert [entry.name for entry in world.statuses[-1].active] == ["cj-1463652000"]
    assert world.statuses[-1].last_schedule_ns == at("10:00:00")


def test_a_create_that_fails_is_told() -> None:
    """Seed 002, FailedCreate: an Event, and no second status write."""
    world = run(world=World(fail={CreateJob: [Answer(Outcome.REFUSED, "no")]}))
    assert world.events == ["FailedCreate"]
    assert world.calls == ["PUT status", "POST job"]


def test_history_is_cleaned_oldest_first() -> None:
    """Seed 002, cleanupFinishedJobs: per kind, oldest first; limits unset delete nothing."""
    jobs = tuple(job(f"j{n}", state="Complete", started=f"09:0{n}:00") for n in (3, 1, 2))
    assert run("09:59:00", jobs, limits=(1, 1)).deleted == ["j1", "j2"]
    assert run("09:59:00", jobs, limits=(0, 1)).deleted == ["j1", "j2", "j3"]
    assert run("09:59:00", jobs).deleted == []


def test_a_pass_lists_jobs_first_and_ends_where_a_list_fails() -> None:
    """Seed 002, syncAll: Jobs, then CronJobs, then one sync after the other."""
    cluster = Cluster((), (cron_job(),))
    assert sync_all(cluster, ERA) is not None
    assert cluster.log == ["jobs 0", "cronjobs 0", "sync cj", "now"]
    assert sync_all(Cluster((), (cron_job(),), failing_job_page=0), ERA) is None
