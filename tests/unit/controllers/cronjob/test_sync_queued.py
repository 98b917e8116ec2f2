"""The queue-based controller, syncs of one key: starts, refusals, bookkeeping, history, writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.cron_world import (
    LONG_S,
    MEDIUM_S,
    NOT_FOUND,
    SHORT_S,
    World,
    at,
    cron_job,
    era,
    job,
    ref,
)
from tracekit.base.cron import load_zone
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import (
    Answer,
    CreateJob,
    DeleteJob,
    SyncResult,
    UpdateCronJobStatus,
)
from tracekit.ports.cronjob.body import SCHEDULED_TIMESTAMP_ANNOTATION, scheduled_ns_of_name
from tracekit.ports.cronjob.children import children_of
from tracekit.ports.cronjob.sync_queued import sync
from tracekit.versions.cronjob import Controller

NEW = "1.37.1"
SLOT_9, SLOT_10 = "cj-24394140", "cj-24394200"
RUNNING = job(SLOT_9)
DONE = job(SLOT_9, state="Complete", completed="09:30:00")
BROKEN = job(SLOT_9, state="Failed")
FORGOTTEN = job("cj-other")
WITH_ACTIVE = {"active": (ref(RUNNING),), "last": "09:00:00"}
WEEK_AGO = {"created": "2016-05-12T09:00:00Z"}
REFUSED = Answer(Outcome.REFUSED, "no")
EXISTS = Answer(Outcome.ALREADY_EXISTS, f'jobs.batch "{SLOT_10}" already exists')
TERMINATING = Answer(Outcome.NAMESPACE_TERMINATING, "namespace is being terminated")


def run(
    version: str = NEW,
    now: str = "10:00:01",
    jobs=(),
    world: World | None = None,
    process_zone: str = "UTC",
    **cj,
) -> tuple[SyncResult, World]:
    world = world or World()
    result = sync(
        cron_job(**cj), jobs, at(now), era(version), world, process_zone=load_zone(process_zone)
    )
    assert list(result.intents) == world.writes
    return result, world


@dataclass(frozen=True)
class Case:
    now: str = "10:00:01"
    cj: dict[str, Any] = field(default_factory=dict)
    jobs: tuple = ()
    live: tuple = ()
    version: str = NEW
    created: tuple[str, ...] = ()
    deleted: int = 0
    active: int | None = None  # in the status written last; None = no status is written
    events: tuple[str, ...] = ()
    wait_s: float | None = None
    error: bool = False


STARTED = {
    "created": (SLOT_10,),
    "active": 1,
    "events": ("SuccessfulCreate",),
    "wait_s": 3599.1,
}

CASES = {
    "before the slot: no write, wake up 100 ms after it": Case(now="09:59:30", wait_s=30.1),
    "at the slot: starts": Case(now="10:00:00", **{**STARTED, "wait_s": 3600.1}),
    "after the slot, Allow: starts": Case(**STARTED),
    "after the slot, Forbid: starts": Case(cj={"policy": "Forbid"}, **STARTED),
    "after the slot, Replace: starts": Case(cj={"policy": "Replace"}, **STARTED),
    "suspended: nothing and no timer": Case(cj={"suspend": True}),
    "being deleted: nothing and no timer": Case(cj={"deleted": "10:00:00"}),
    "a schedule that does not parse: a warning and no timer": Case(
        cj={"schedule": "x x x x x"}, events=("UnparseableSchedule",)
    ),
    "an impossible date: a warning and no timer": Case(
        cj={"schedule": "0 0 31 2 *"}, events=("InvalidSchedule",)
    ),
    "an unknown zone: a warning and no timer": Case(
        cj={"zone": "Nowhere/City"}, events=("UnknownTimeZone",)
    ),
    "an unknown zone warns even while suspended": Case(
        cj={"zone": "Nowhere/City", "suspend": True}, events=("UnknownTimeZone",)
    ),
    "a zone in the schedule warns and starts": Case(
        cj={"schedule": "TZ=UTC 0 * * * *"},
        created=(SLOT_10,),
        active=1,
        events=("UnsupportedSchedule", "SuccessfulCreate"),
        wait_s=3599.1,
    ),
    "a minute late with a short deadline: nothing, silently": Case(
        now="10:01:00", cj={"deadline": SHORT_S}, wait_s=3540.1
    ),
    "a minute late with a long deadline: starts": Case(
        now="10:01:00", cj={"deadline": LONG_S}, **{**STARTED, "wait_s": 3540.1}
    ),
    "a week overdue: starts the latest slot and warns": Case(
        cj=WEEK_AGO,
        created=(SLOT_10,),
        active=1,
        events=("TooManyMissedTimes", "SuccessfulCreate"),
        wait_s=3599.1,
    ),
    "a week overdue with a medium deadline: starts without warning": Case(
        cj={**WEEK_AGO, "deadline": MEDIUM_S}, **STARTED
    ),
    "still active, Allow: a second Job": Case(
        cj=WITH_ACTIVE, jobs=(RUNNING,), **{**STARTED, "active": 2}
    ),
    "still active, Forbid: an event, no write, wait for the next slot": Case(
        cj={**WITH_ACTIVE, "policy": "Forbid"},
        jobs=(RUNNING,),
        events=("JobAlreadyActive",),
        wait_s=3599.1,
    ),
    "still active, Replace: the old one goes, the new one comes": Case(
        cj={**WITH_ACTIVE, "policy": "Replace"},
        jobs=(RUNNING,),
        live=(RUNNING,),
        deleted=1,
        **{**STARTED, "events": ("SuccessfulDelete", "SuccessfulCreate")},
    ),
    "still active, Replace, the read fails: an error": Case(
        cj={**WITH_ACTIVE, "policy": "Replace"}, jobs=(RUNNING,), events=("FailedGet",), error=True
    ),
    "finished and due: dropped and started in one sync with one write": Case(
        cj={**WITH_ACTIVE, "policy": "Forbid"},
        jobs=(DONE,),
        **{**STARTED, "events": ("SawCompletedJob", "SuccessfulCreate")},
    ),
    "finished, not due: dropped and written": Case(
        now="09:45:00",
        cj=WITH_ACTIVE,
        jobs=(DONE,),
        active=0,
        events=("SawCompletedJob",),
        wait_s=900.1,
    ),
    "the slot was started already: nothing": Case(cj={"last": "10:00:00"}, wait_s=3599.1),
    "a Job of the slot's name is active: nothing": Case(
        cj={"last": "09:00:00", "active": (ref(job(SLOT_10)),)},
        jobs=(job(SLOT_10),),
        wait_s=3599.1,
    ),
    "a clock behind the last run: nothing is due": Case(
        now="09:30:00", cj={"last": "10:00:00"}, wait_s=5400.1
    ),
    "an active Job that the cache misses but the server has is kept": Case(
        now="09:45:00", cj=WITH_ACTIVE, live=(RUNNING,), wait_s=900.1
    ),
    "an active Job that nobody has went missing": Case(
        now="09:45:00", cj=WITH_ACTIVE, active=0, events=("MissingJob",), wait_s=900.1
    ),
    "surplus history goes before the start, in the same write": Case(
        cj={"limits": (0, 0), "last": "09:00:00"},
        jobs=(DONE,),
        deleted=1,
        **{**STARTED, "events": ("SuccessfulDelete", "SuccessfulCreate")},
    ),
    "history is cleaned while suspended": Case(
        cj={"suspend": True, "limits": (0, 0)},
        jobs=(DONE,),
        deleted=1,
        active=0,
        events=("SuccessfulDelete",),
    ),
    "history is cleaned while the schedule does not parse": Case(
        cj={"schedule": "?", "limits": (0, 0)},
        jobs=(BROKEN,),
        deleted=1,
        active=0,
        events=("SuccessfulDelete", "UnparseableSchedule"),
    ),
    "with a limit of zero a finished active Job leaves without SawCompletedJob": Case(
        now="09:45:00",
        cj={**WITH_ACTIVE, "limits": (0, 0)},
        jobs=(DONE,),
        deleted=1,
        active=0,
        events=("SuccessfulDelete",),
        wait_s=900.1,
    ),
    "a TZ schedule of 1.21 cannot be parsed": Case(
        version="1.21.14",
        cj={"schedule": "TZ=UTC 0 * * * *"},
        active=0,
        events=("UnparseableSchedule",),
    ),
}


@pytest.mark.parametrize("sentence", CASES)
def test_one_sync(sentence: str) -> None:
    case = CASES[sentence]
    world = World(live_jobs={view.name: view for view in case.live})
    result, _ = run(case.version, case.now, case.jobs, world, **case.cj)
    assert tuple(world.created) == case.created
    assert len(world.deleted) == case.deleted
    assert tuple(world.events) == case.events
    assert [len(status.active) for status in world.statuses][-1:] == (
        [] if case.active is None else [case.active]
    )
    assert (result.error is not None) is case.error
    wait_s = None if result.requeue_after_ns is None else result.requeue_after_ns / 1e9
    assert wait_s == pytest.approx(case.wait_s) if case.wait_s is not None else wait_s is None


def test_a_key_without_object_is_done() -> None:
    world = World()
    assert sync(None, (), at("10:00:00"), era(NEW), world) == SyncResult((), forgets=True)


# Which writes, in which order, in the three shapes of a sync.


@pytest.mark.parametrize(
    ("version", "calls"),
    [
        ("1.20.15", ["PUT status", "POST job", "PUT status", "DELETE job", "PUT status"]),
        ("1.23.17", ["PUT status", "POST job", "PUT status", "DELETE job", "PUT status"]),
        ("1.24.17", ["POST job", "DELETE job", "PUT status"]),
        ("1.28.1", ["POST job", "DELETE job", "PUT status"]),
        ("1.28.2", ["DELETE job", "POST job", "PUT status"]),
        ("1.25.13", ["POST job", "DELETE job", "PUT status"]),
        ("1.25.14", ["DELETE job", "POST job", "PUT status"]),
        ("1.36.3", ["DELETE job", "POST job", "PUT status"]),
    ],
)
def test_order_of_the_writes(version: str, calls: list[str]) -> None:
    rules = replace(era(version), controller=Controller.QUEUED)
    world = World()
    cj = cron_job(limits=(0, 0), last="09:00:00")
    sync(cj, (DONE,), at("10:00:01"), rules, world)
    assert world.calls == calls


@pytest.mark.parametrize(
    ("version", "puts"), [("1.21.14", 2), ("1.23.17", 2), ("1.24.0", 0), ("1.36.3", 0)]
)
def test_a_quiet_sync_writes_only_in_early_releases(version: str, puts: int) -> None:
    _, world = run(version, "09:30:00", limits=(3, 1))
    assert len(world.statuses) == puts


def test_when_quota_is_full_history_is_cleaned_all_the_same() -> None:
    world = World(fail={CreateJob: [Answer(Outcome.REFUSED, "exceeded quota")]})
    result, _ = run(jobs=(DONE,), world=world, limits=(0, 0), last="09:00:00")
    assert world.calls == ["DELETE job", "POST job", "PUT status"]
    assert world.messages[-1] == "Error creating job: exceeded quota"
    assert result.error == "exceeded quota"


def test_before_the_clean_up_came_first_a_full_quota_blocked_it() -> None:
    world = World(fail={CreateJob: [Answer(Outcome.REFUSED, "exceeded quota")]})
    run("1.24.17", jobs=(DONE,), world=world, limits=(0, 0), last="09:00:00")
    assert world.deleted == []


@pytest.mark.parametrize(
    ("version", "base_rvs"),
    [
        ("1.21.8", [100, 101, 101]),
        ("1.21.14", [100, 101, 102]),
        ("1.22.5", [100, 101, 101]),
        ("1.22.6", [100, 101, 102]),
        ("1.23.1", [100, 101, 101]),
        ("1.23.2", [100, 101, 102]),
    ],
)
def test_after_a_start_some_releases_clean_up_with_an_old_revision(
    version: str, base_rvs: list[int]
) -> None:
    _, world = run(version, limits=(3, 1))
    assert [put.base_rv for put in world.of(UpdateCronJobStatus)] == base_rvs


def test_a_conflict_is_an_error_and_loses_the_timer() -> None:
    conflict = Answer(Outcome.CONFLICT, "the object has been modified")
    result, world = run(world=World(fail={UpdateCronJobStatus: [conflict]}))
    assert world.created == [SLOT_10]
    assert (result.error, result.requeue_after_ns) == ("the object has been modified", None)


# The Job's body.


def test_the_name_is_the_slot_in_minutes_and_the_request_carries_the_slot() -> None:
    _, world = run(labels={"a": "b"}, annotations={"c": "d"})
    (intent,) = world.of(CreateJob)
    assert intent.name == SLOT_10
    assert scheduled_ns_of_name(intent.name, "cj", Controller.QUEUED) == at("10:00:00")
    assert intent.labels == {"a": "b"}
    assert intent.annotations == {"c": "d", SCHEDULED_TIMESTAMP_ANNOTATION: "2016-05-19T10:00:00Z"}
    assert (intent.owner_api, intent.owner_name, intent.owner_uid) == ("batch/v1", "cj", "cj-uid")
    assert intent.creation_time_ns == at("10:00:00")


def test_the_annotation_is_written_in_the_zone_of_the_cronjob() -> None:
    _, world = run(zone="Europe/Rome", schedule="0 12 * * *")
    (intent,) = world.of(CreateJob)
    assert intent.annotations[SCHEDULED_TIMESTAMP_ANNOTATION] == "2016-05-19T12:00:00+02:00"


def test_without_a_zone_the_annotation_is_in_utc_wherever_the_process_runs() -> None:
    _, world = run(process_zone="Asia/Tokyo")
    (intent,) = world.of(CreateJob)
    assert intent.annotations[SCHEDULED_TIMESTAMP_ANNOTATION] == "2016-05-19T10:00:00Z"


def test_the_annotation_replaces_one_of_the_template() -> None:
    _, world = run(annotations={SCHEDULED_TIMESTAMP_ANNOTATION: "mine"})
    assert world.of(CreateJob)[0].annotations[SCHEDULED_TIMESTAMP_ANNOTATION] != "mine"


@pytest.mark.parametrize(
    ("version", "gates", "there"),
    [
        ("1.27.16", {}, False),
        ("1.28.0", {}, True),
        ("1.28.0", {"CronJobsScheduledAnnotation": False}, False),
        ("1.32.0", {}, True),
    ],
)
def test_the_annotation_exists_from_1_28_on(version: str, gates: dict, there: bool) -> None:
    world = World()
    sync(cron_job(), (), at("10:00:01"), era(version, **gates), world)
    assert (SCHEDULED_TIMESTAMP_ANNOTATION in world.of(CreateJob)[0].annotations) is there


def test_releases_before_1_22_send_no_creation_time() -> None:
    _, world = run("1.21.14")
    assert world.of(CreateJob)[0].creation_time_ns is None


def test_two_slots_within_a_minute_share_a_name_and_the_second_is_suppressed() -> None:
    first = job(SLOT_10)
    result, world = run(
        now="10:00:31", jobs=(first,), schedule="@every 30s", last="10:00:00", active=(ref(first),)
    )
    assert world.created == []
    assert result.reason == "the slot was started already"


# AlreadyExists and terminating namespaces.


def own_existing() -> World:
    return World(live_jobs={SLOT_10: job(SLOT_10, uid="u9", rv=77)}, fail={CreateJob: [EXISTS]})


def test_an_own_job_that_exists_is_taken_into_the_status_without_an_event() -> None:
    result, world = run(world=own_existing())
    (status,) = world.statuses
    assert [(r.name, r.uid, r.rv) for r in status.active] == [(SLOT_10, "u9", "77")]
    assert status.last_schedule_ns == at("10:00:00")
    assert world.events == []
    assert result.requeue_after_ns is not None


@pytest.mark.parametrize("version", ["1.21.14", "1.24.17", "1.26.10", "1.28.15", "1.36.4"])
def test_before_the_recovery_an_existing_job_is_an_error(version: str) -> None:
    """From 1.25.15 on it is looked up without a namespace, which client-go refuses."""
    result, world = run(version, world=own_existing())
    assert result.error == EXISTS.message
    assert "FailedCreate" not in world.events


def test_a_foreign_job_of_that_name_is_left_alone_and_no_timer_is_set() -> None:
    foreign = job(SLOT_10, owner_uid="else")
    result, world = run(world=World(live_jobs={SLOT_10: foreign}, fail={CreateJob: [EXISTS]}))
    assert world.statuses == []
    assert (result.error, result.requeue_after_ns) == (None, None)


def test_an_existing_job_that_cannot_be_read_is_an_error() -> None:
    result, _ = run(world=World(fail={CreateJob: [EXISTS]}))
    assert result.error is not None


def test_1_20_falls_through_with_an_empty_job() -> None:
    rules = era("1.20.15", CronJobControllerV2=True)
    world = World(fail={CreateJob: [EXISTS]})
    sync(cron_job(), (), at("10:00:01"), rules, world)
    assert world.messages == ["Created job "]
    assert world.statuses[-1].active[0].name == ""


@pytest.mark.parametrize(("version", "idle"), [("1.36.4", False), ("1.37.0", True)])
def test_what_a_worker_forgets(version: str, idle: bool) -> None:
    """A timer is armed and an error is none: both as ever; neither: from 1.37 on forgotten."""
    assert run(version, suspend=True)[0].forgets is idle
    assert run(version, now="09:59:30")[0].forgets
    assert not run(version, world=World(fail={CreateJob: [REFUSED]}))[0].forgets


def test_a_terminating_namespace_is_a_quiet_error_in_new_releases() -> None:
    result, world = run(world=World(fail={CreateJob: [TERMINATING]}))
    assert (result.error, world.events, world.statuses) == (TERMINATING.message, [], [])


def test_a_terminating_namespace_leaves_a_ghost_in_1_21() -> None:
    _, world = run("1.21.14", world=World(fail={CreateJob: [TERMINATING]}))
    assert world.messages == ["Created job "]
    assert [r.name for r in world.statuses[-1].active] == [""]


# Children and bookkeeping.


@pytest.mark.parametrize(
    ("version", "found"), [("1.36.4", ["a", "e"]), ("1.37.0", ["a", "c", "d"])]
)
def test_children_are_chosen_by_the_owner_name_and_later_by_its_uid(
    version: str, found: list[str]
) -> None:
    jobs = [
        job("a"),
        job("b", owner=None),
        job("c", owner="other"),
        job("d", namespace="other"),
        job("e", owner_uid="an earlier cj", owner_kind="Other"),
    ]
    assert [j.name for j in children_of(cron_job(), jobs, era(version))] == found


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("1.21.2", 0),
        ("1.21.11", 1),
        ("1.22.7", 0),
        ("1.22.8", 1),
        ("1.23.4", 0),
        ("1.23.5", 1),
        ("1.24.0", 1),
    ],
)
def test_early_releases_also_wanted_the_template_labels(version: str, found: int) -> None:
    assert len(children_of(cron_job(labels={"a": "b"}), [job("a")], era(version))) == found


def test_an_unknown_running_child_is_unexpected_where_the_server_does_not_know_it_either() -> None:
    cj = cron_job()
    _, world = run(now="09:30:00", jobs=(FORGOTTEN,), world=World(live_cron_job=cj))
    assert world.messages == ["Saw a job that the controller did not create or forgot: cj-other"]
    assert world.reads == ["cronjob cj"]


def test_a_running_child_that_the_live_cronjob_knows_is_only_cache_lag() -> None:
    started = job(SLOT_10)
    live = cron_job(last="10:00:00", active=(ref(started),))
    result, world = run(jobs=(started,), world=World(live_cron_job=live))
    assert world.writes == []
    assert (result.error, result.due_ns) == (None, None)


def test_a_live_read_that_fails_is_an_error() -> None:
    world = World(live_cron_job=REFUSED)
    result, _ = run(jobs=(FORGOTTEN,), world=world)
    assert result.error == "no"
    assert world.writes == []


def test_what_is_written_after_a_live_read_is_the_cached_copy() -> None:
    started = job(SLOT_9)
    live = replace(cron_job(last="09:00:00", active=(ref(started),)), rv=105)
    world = World(live_cron_job=live)
    run(jobs=(started,), world=world)
    (put,) = world.of(UpdateCronJobStatus)
    assert put.base_rv == 100
    assert put.status.last_schedule_ns is None


def test_a_read_of_an_active_job_that_fails_otherwise_is_an_error() -> None:
    world = World(live_jobs={RUNNING.name: REFUSED})
    result, _ = run(world=world, **WITH_ACTIVE)
    assert result.error == "no"


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.21.14", "Saw completed job: cj-24394140, status: Complete"),
        ("1.30.14", "Saw completed job: cj-24394140, status: Complete"),
        ("1.31.0", "Saw completed job: cj-24394140, condition: Complete"),
    ],
)
def test_the_completed_event_says_condition_from_1_31_on(version: str, text: str) -> None:
    _, world = run(version, "09:45:00", (DONE,), **WITH_ACTIVE)
    assert world.messages == [text]


# lastSuccessfulTime.


@pytest.mark.parametrize(
    ("version", "state", "first", "second"),
    [
        ("1.21.14", "Complete", None, None),
        ("1.22.0", "Complete", None, "09:30:00"),
        ("1.22.0", "Failed", None, "09:30:00"),
        ("1.29.0", "Failed", None, "09:30:00"),
        ("1.30.0", "Complete", None, "09:30:00"),
        ("1.30.0", "Failed", None, None),
        ("1.31.0", "Complete", "09:30:00", "09:30:00"),
        ("1.31.0", "Failed", None, None),
    ],
)
def test_when_the_success_time_is_written(
    version: str, state: str, first: str | None, second: str | None
) -> None:
    done = job(SLOT_9, state=state, completed="09:30:00")
    rules = era(version)
    cj = cron_job(**WITH_ACTIVE)
    for expected in (first, second):
        world = World()
        sync(cj, (done,), at("09:45:00"), rules, world)
        status = world.statuses[-1] if world.statuses else cj.status
        cj = replace(cj, status=status)
        assert cj.status.last_successful_ns == (at(expected) if expected else None)


def test_only_failed_jobs_without_a_success_cause_writes_of_nothing_in_1_24_to_1_29() -> None:
    # A Job that failed has no completion time: nothing changes, yet the status counts as dirty.
    for version, puts in (("1.24.17", 1), ("1.29.0", 1), ("1.30.0", 0), ("1.36.3", 0)):
        _, world = run(version, "09:45:00", (BROKEN,), last="09:00:00")
        assert len(world.statuses) == puts, version


def test_an_older_success_does_not_move_the_time_back() -> None:
    _, world = run(now="09:45:00", jobs=(DONE,), last="09:00:00", succeeded="09:40:00")
    assert world.statuses == []


# Texts.


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.21.14", "unparseable schedule: * * * : Expected exactly 5 fields, found 3: * * *"),
        ("1.23.17", 'unparseable schedule: "* * *" : expected exactly 5 fields, found 3: [* * *]'),
        ("1.36.3", 'unparseable schedule: "* * *" : expected exactly 5 fields, found 3: [* * *]'),
    ],
)
def test_the_text_of_an_unparseable_schedule(version: str, text: str) -> None:
    _, world = run(version, schedule="* * *")
    assert world.messages == [text]


def test_a_parser_panic_is_an_ordinary_error_from_1_35_on() -> None:
    _, world = run("1.35.0", schedule="TZ=0")
    assert "invalid schedule format: " in world.messages[-1]


def test_the_text_of_an_invalid_schedule_in_1_21() -> None:
    _, world = run("1.21.14", schedule="0 0 31 2 *")
    assert world.messages == [
        (
            "invalid schedule schedule: 0 0 31 2 * : "
            "time difference between two schedules less than 1 second"
        )
    ]


@pytest.mark.parametrize(
    ("version", "count"),
    [
        ("1.21.14", ": 0"),
        ("1.22.17", ": 170"),
        ("1.25.11", ": 170"),
        ("1.25.12", ""),
        ("1.36.3", ""),
    ],
)
def test_the_text_of_too_many_missed_starts(version: str, count: str) -> None:
    _, world = run(version, **WEEK_AGO | {"created": "2016-05-12T08:00:00Z"})
    assert world.messages[0] == (
        f"too many missed start times{count}. "
        "Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    )


def test_the_text_of_an_unknown_zone() -> None:
    _, world = run(zone="Nowhere/City")
    assert world.messages == ['invalid timeZone: "Nowhere/City": unknown time zone Nowhere/City']


def test_a_zone_in_the_schedule_warns_after_the_parse_in_1_23_and_before_it_later() -> None:
    for version, events in (
        ("1.22.0", ["UnparseableSchedule"]),
        ("1.23.17", ["UnparseableSchedule"]),
        ("1.24.0", ["UnsupportedSchedule", "UnparseableSchedule"]),
    ):
        _, world = run(version, schedule="TZ=UTC 99 * * * *")
        assert world.events == events


def test_failed_deletions_are_told_and_skipped() -> None:
    world = World(fail={DeleteJob: [NOT_FOUND]})
    jobs = [job("a", state="Failed"), job("b", state="Failed")]
    run(now="09:30:00", jobs=jobs, world=world, limits=(None, 0))
    assert world.messages == ['Deleted job: jobs.batch "x" not found', "Deleted job b"]


def test_a_replacement_that_fails_is_an_error_with_the_jobs_name() -> None:
    world = World(live_jobs={RUNNING.name: RUNNING}, fail={DeleteJob: [REFUSED]})
    result, _ = run(jobs=(RUNNING,), world=world, policy="Replace", **WITH_ACTIVE)
    assert result.error == f"could not replace job ns/{RUNNING.name}"
    assert world.created == []


def test_unsuspending_starts_the_latest_missed_slot() -> None:
    _, world = run(now="12:30:00", last="10:00:00")
    assert world.created == ["cj-24394320"]
