"""The polling controller (seed 002: syncOne, getRecentUnmetScheduleTimes, cleanup, job body)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.cron_world import (
    HOURLY,
    LONG_S,
    MEDIUM_S,
    SHORT_S,
    World,
    at,
    cron_job,
    era,
    job,
    ref,
)
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer, CreateJob, DeleteJob, UpdateCronJobStatus
from tracekit.ports.cronjob.children import group_by_owner_uid
from tracekit.ports.cronjob.sync_polling import sync_one

OLD = "1.17.17"
RUNNING = job("cj-1463648400")
DONE = job("cj-1463648400", state="Complete")
BROKEN = job("cj-1463648400", state="Failed")
FORGOTTEN = job("cj-other")


@dataclass(frozen=True)
class Case:
    """A CronJob with its Jobs at a moment, and what one pass does about it."""

    now: str = "10:00:01"
    cj: dict[str, Any] = field(default_factory=dict)
    jobs: tuple = ()
    version: str = OLD
    created: int = 0
    deleted: int = 0
    active: int = 0
    puts: int = 1
    events: tuple[str, ...] = ()
    live: tuple = ()


STARTED = {"created": 1, "active": 1, "puts": 2, "events": ("SuccessfulCreate",)}
WEEK_AGO = {"created": "2016-05-12T09:00:00Z", "last": None}
WITH_ACTIVE = {"active": (ref(RUNNING),), "last": "09:00:00"}

CASES = {
    "an unparseable schedule warns and starts nothing": Case(
        cj={"schedule": "x x x x x"}, events=("FailedNeedsStart",)
    ),
    "never ran, before its first slot: nothing": Case(now="09:59:59"),
    "never ran, at the slot exactly: starts": Case(now="10:00:00", **STARTED),
    "never ran, after the slot, Allow: starts": Case(**STARTED),
    "never ran, after the slot, Forbid: starts": Case(cj={"policy": "Forbid"}, **STARTED),
    "never ran, after the slot, Replace: starts": Case(cj={"policy": "Replace"}, **STARTED),
    "suspended: nothing": Case(cj={"suspend": True}),
    "a minute late with a short deadline: nothing, and no warning": Case(
        now="10:01:00", cj={"deadline": SHORT_S}
    ),
    "a minute late with a long deadline: starts": Case(
        now="10:01:00", cj={"deadline": LONG_S}, **STARTED
    ),
    "ran before, not due yet": Case(now="10:30:00", cj={"last": "10:00:00"}),
    "ran before, due, not active": Case(
        now="11:00:01",
        cj={"last": "10:00:00", "active": (ref(DONE),)},
        jobs=(DONE,),
        created=1,
        active=1,
        puts=2,
        events=("SawCompletedJob", "SuccessfulCreate"),
    ),
    "still active, Allow: a second Job": Case(
        cj=WITH_ACTIVE,
        jobs=(RUNNING,),
        created=1,
        active=2,
        puts=2,
        events=("SuccessfulCreate",),
    ),
    "still active, Forbid: none, silently": Case(
        cj={**WITH_ACTIVE, "policy": "Forbid"}, jobs=(RUNNING,), active=1
    ),
    "still active, Replace: the old one is deleted, a new one started": Case(
        cj={**WITH_ACTIVE, "policy": "Replace"},
        jobs=(RUNNING,),
        live=(RUNNING,),
        created=1,
        deleted=1,
        active=1,
        puts=2,
        events=("SuccessfulDelete", "SuccessfulCreate"),
    ),
    "still active, Replace, the read fails: a warning and nothing else": Case(
        cj={**WITH_ACTIVE, "policy": "Replace"}, jobs=(RUNNING,), active=1, events=("FailedGet",)
    ),
    "a week overdue without deadline: too many missed starts": Case(
        cj=WEEK_AGO, events=("FailedNeedsStart",)
    ),
    "a week overdue with a long deadline: too many missed starts": Case(
        cj={**WEEK_AGO, "deadline": LONG_S}, events=("FailedNeedsStart",)
    ),
    "a week overdue with a medium deadline: starts": Case(
        cj={**WEEK_AGO, "deadline": MEDIUM_S}, **STARTED
    ),
    "a week overdue with a short deadline, right after a slot: starts": Case(
        cj={**WEEK_AGO, "deadline": SHORT_S}, **STARTED
    ),
    "a finished Job in the active list is dropped": Case(
        now="10:30:00",
        cj={"active": (ref(DONE),), "last": "10:00:00"},
        jobs=(DONE,),
        events=("SawCompletedJob",),
    ),
    "an unfinished child outside the active list is unexpected, and the slot still starts": Case(
        jobs=(FORGOTTEN,),
        created=1,
        active=1,
        puts=2,
        events=("UnexpectedJob", "SuccessfulCreate"),
    ),
    "an active reference without Job went missing": Case(
        now="10:30:00", cj={"active": (ref(RUNNING),), "last": "10:00:00"}, events=("MissingJob",)
    ),
    "finished, forgotten and missing in one pass": Case(
        now="10:30:00",
        cj={"active": (ref(DONE), ref(job("gone"))), "last": "10:00:00"},
        jobs=(DONE, FORGOTTEN),
        events=("SawCompletedJob", "UnexpectedJob", "MissingJob"),
    ),
    "being deleted: bookkeeping only": Case(
        cj={"deleted": "10:00:00", "active": (ref(DONE),)},
        jobs=(DONE,),
        events=("SawCompletedJob",),
    ),
    "an impossible date is the same as too many missed starts": Case(
        cj={"schedule": "59 23 31 2 *"}, events=("FailedNeedsStart",)
    ),
    "a deadline shorter than an every-interval never fires again": Case(
        now="12:00:00", cj={"schedule": "@every 1h", "deadline": 60, "last": "10:00:00"}
    ),
    "limits without surplus still write the status once more": Case(
        now="09:59:59", cj={"limits": (3, 1)}, puts=2
    ),
    "no limits at all: no such write": Case(now="09:59:59", cj={"limits": (None, None)}),
    "limits while suspended: the clean-up still runs": Case(
        cj={"suspend": True, "limits": (0, None)},
        jobs=(DONE,),
        deleted=1,
        puts=2,
        events=("SuccessfulDelete",),
    ),
    "an unfinished Job is never surplus": Case(
        now="10:30:00",
        cj={"limits": (0, 0), "active": (ref(RUNNING),), "last": "10:00:00"},
        jobs=(RUNNING,),
        active=1,
        puts=2,
    ),
    "only the failed limit set: succeeded Jobs stay": Case(
        now="09:59:59",
        cj={"limits": (None, 0)},
        jobs=(DONE, job("b", state="Failed")),
        deleted=1,
        puts=2,
        events=("SuccessfulDelete",),
    ),
}


@pytest.mark.parametrize("sentence", CASES)
def test_one_pass(sentence: str) -> None:
    case = CASES[sentence]
    world = World(live_jobs={view.name: view for view in case.live})
    sync_one(cron_job(**case.cj), case.jobs, at(case.now), era(case.version), world)
    assert len(world.created) == case.created
    assert len(world.deleted) == case.deleted
    assert len(world.statuses) == case.puts
    assert len(world.statuses[-1].active) == case.active
    assert tuple(world.events) == case.events


def run(version: str = OLD, now: str = "10:00:01", jobs=(), world=None, **cj) -> World:
    world = world or World()
    sync_one(cron_job(**cj), jobs, at(now), era(version), world)
    return world


def test_the_name_carries_the_slot_in_seconds_and_the_owner_the_old_api() -> None:
    (intent,) = run(labels={"a": "b"}, annotations={"c": "d"}).of(CreateJob)
    assert intent.name == "cj-1463652000"
    assert intent.scheduled_ns == at("10:00:00")
    assert (intent.labels, intent.annotations) == ({"a": "b"}, {"c": "d"})
    assert (intent.owner_api, intent.owner_uid) == ("batch/v1beta1", "cj-uid")
    assert intent.creation_time_ns is None


def test_only_the_newest_of_several_missed_slots_starts() -> None:
    world = run(now="12:30:00")
    assert world.created == ["cj-1463659200"]
    assert world.statuses[-1].last_schedule_ns == at("12:00:00")


def test_with_the_gate_off_1_21_writes_the_new_api_as_owner() -> None:
    rules = era("1.21.14", CronJobControllerV2=False)
    world = World()
    sync_one(cron_job(), (), at("10:00:01"), rules, world)
    (intent,) = world.of(CreateJob)
    assert (intent.owner_api, intent.name) == ("batch/v1", "cj-1463652000")


@pytest.mark.parametrize(
    ("missed", "events", "created"),
    [(100, ["SuccessfulCreate"], 1), (101, ["FailedNeedsStart"], 0)],
)
def test_the_hundred_and_first_missed_slot_blocks(missed: int, events: list, created: int) -> None:
    world = World()
    now_ns = at("10:00:00") + missed * 60 * 10**9
    sync_one(
        cron_job(schedule="* * * * *", created="2016-05-19T10:00:00Z"), (), now_ns, era(OLD), world
    )
    assert world.events == events
    assert len(world.created) == created


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.14.10", "Too many missed start time (> 100). Set or decrease .spec.startingDeadlineSeconds or check clock skew."),
        ("1.15.0", "too many missed start time (> 100). Set or decrease .spec.startingDeadlineSeconds or check clock skew"),
    ],
)  # fmt: skip
def test_the_text_of_too_many_missed_starts(version: str, text: str) -> None:
    world = run(version, **WEEK_AGO)
    assert world.messages == [f"Cannot determine if job needs to be started: {text}"]


@pytest.mark.parametrize(
    ("version", "word"), [("1.15.12", "Unparseable"), ("1.16.0", "unparseable")]
)
def test_the_text_of_an_unparseable_schedule(version: str, word: str) -> None:
    (message,) = run(version, schedule="61 * * * *").messages
    assert message == (
        f"Cannot determine if job needs to be started: {word} schedule: 61 * * * * : "
        "End of range (61) above maximum (59): 61"
    )


@pytest.mark.parametrize(
    ("version", "text"),
    [("1.14.0", "Saw completed job: j"), ("1.15.0", "Saw completed job: j, status: Failed")],
)
def test_the_text_of_a_completed_job(version: str, text: str) -> None:
    done = job("j", state="Failed")
    world = run(version, "09:30:00", (done,), active=(ref(done),))
    assert world.messages == [text]


@pytest.mark.parametrize(("version", "events"), [("1.16.15", ["FailedCreate"]), ("1.17.0", [])])
def test_a_terminating_namespace_is_silent_from_1_17_on(version: str, events: list) -> None:
    answer = Answer(Outcome.NAMESPACE_TERMINATING, "namespace is being terminated")
    world = run(version, world=World(fail={CreateJob: [answer]}))
    assert world.events == events
    assert world.statuses[-1].last_schedule_ns is None


def test_a_job_that_exists_already_is_an_ordinary_failure() -> None:
    answer = Answer(Outcome.ALREADY_EXISTS, 'jobs.batch "cj-1463652000" already exists')
    world = run(world=World(fail={CreateJob: [answer]}))
    assert world.messages == ['Error creating job: jobs.batch "cj-1463652000" already exists']


@pytest.mark.parametrize(
    ("version", "calls", "propagation"),
    [
        ("1.12.10", ["PUT job", "DELETE pods", "DELETE job"], None),
        ("1.13.0", ["DELETE job"], None),
        ("1.13.1", ["DELETE job"], "Background"),
        ("1.20.15", ["DELETE job"], "Background"),
    ],
)
def test_how_a_replaced_job_is_deleted(version: str, calls: list, propagation: str | None) -> None:
    world = World(live_jobs={RUNNING.name: RUNNING})
    run(version, jobs=(RUNNING,), world=world, policy="Replace", **WITH_ACTIVE)
    assert world.calls == ["PUT status", *calls, "POST job", "PUT status"]
    assert world.of(DeleteJob)[0].propagation == propagation


def test_a_job_scaled_to_zero_already_is_not_scaled_again_before_its_deletion() -> None:
    stopped = job(RUNNING.name, parallelism=0)
    world = World(live_jobs={stopped.name: stopped})
    run("1.12.10", jobs=(stopped,), world=world, policy="Replace", **WITH_ACTIVE)
    assert world.calls[1:3] == ["DELETE pods", "DELETE job"]


def test_a_failed_deletion_keeps_the_old_job_and_starts_none() -> None:
    world = World(
        live_jobs={RUNNING.name: RUNNING}, fail={DeleteJob: [Answer(Outcome.REFUSED, "no")]}
    )
    run(jobs=(RUNNING,), world=world, policy="Replace", **WITH_ACTIVE)
    assert world.messages == ["Deleted job: no"]
    assert world.created == []


def test_surplus_history_goes_oldest_first() -> None:
    jobs = [job(f"j{n}", state="Complete", started=f"09:0{n}:00") for n in (3, 1, 4, 2, 5)]
    world = run(now="09:59:00", jobs=jobs, limits=(2, 1))
    assert world.deleted == ["j1", "j2", "j3"]


def test_jobs_without_start_time_are_the_youngest_and_ties_go_by_name() -> None:
    jobs = [
        job("none", state="Complete", started=None),
        job("b", state="Complete", started="09:00:00"),
        job("a", state="Complete", started="09:00:00"),
    ]
    assert run(now="09:59:00", jobs=jobs, limits=(1, 1)).deleted == ["a", "b"]


def test_a_limit_of_zero_deletes_every_finished_job_of_its_kind() -> None:
    jobs = [job("a", state="Complete"), job("b", state="Failed"), job("c", state="Complete")]
    assert run(now="09:59:00", jobs=jobs, limits=(0, 1)).deleted == ["a", "c"]


def test_after_a_start_the_clean_up_writes_with_the_revision_from_before() -> None:
    world = run(limits=(3, 1))
    assert [put.base_rv for put in world.of(UpdateCronJobStatus)] == [100, 101, 101]


def test_grouping_is_by_the_uid_of_a_controlling_cronjob() -> None:
    jobs = [
        job("a", owner_uid="u1"),
        job("b", owner_uid="u2", namespace="other"),
        job("c", owner_uid="u1", namespace="other"),
        job("d", owner=None),
        job("e", owner_uid="u1", owner_kind="Workflow"),
    ]
    groups = group_by_owner_uid(jobs)
    assert {uid: [j.name for j in found] for uid, found in groups.items()} == {
        "u1": ["a", "c"],
        "u2": ["b"],
    }


def test_a_failed_status_write_ends_the_pass_before_anything_starts() -> None:
    conflict = Answer(Outcome.CONFLICT, "the object has been modified")
    world = run(world=World(fail={UpdateCronJobStatus: [conflict]}), schedule=HOURLY)
    assert world.created == []
    assert world.events == []
