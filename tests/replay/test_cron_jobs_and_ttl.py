"""CronJobs and TTL deletions of real control planes: explained in parts too, planted lies found."""

from __future__ import annotations

import copy
from functools import cache

import pytest

from tests.support.cron_logs import (
    NS,
    divergences,
    edited,
    era_of,
    is_cron_job,
    is_job,
    jobs_of,
    judge,
    name_of,
    shifted,
    tells_of,
    without_pods,
    without_tick,
)
from tests.support.cron_logs import log as whole_log
from tracekit.base.cron.gotime import rfc3339
from tracekit.check.verdict import Reason, Verdict
from tracekit.ports.cronjob.body import job_name
from tracekit.versions.cronjob import Controller

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
CRON_JOB = "failing"  # every minute, Allow, its Jobs fail at once; failedJobsHistoryLimit 1
#: The streams whose revisions order what the controllers saw.
WATCHED = ("jobs", "pods", "cronjobs")
#: One trace for each shape of the controller: polling, and the three shells of the other.
LIED = ["v1.17.17-all", "v1.21.14-all", "v1.28.15-all", "v1.36.3-all"]


@cache
def log(name: str):
    """What a recorder of the namespaces that have CronJobs or TTLs had seen."""
    rows = whole_log(name)
    asked = {
        row.object["metadata"]["namespace"]
        for row in rows
        if (row.resource == "cronjobs" and row.type == "ADDED")
        or (row.resource == "jobs" and "ttlSecondsAfterFinished" in row.object.get("spec", ()))
    }
    return tuple(
        row
        for row in rows
        if not (space := row.object.get("metadata", {}).get("namespace", "")).startswith("t-")
        or space in asked
    )


@pytest.mark.parametrize("name", ["v1.17.17-all", "v1.21.14-all", "v1.36.3-restart"])
def test_a_record_that_ends_anywhere_has_no_divergence(name: str) -> None:
    rows = whole_log(name)
    for end in without_pods(rows)[30::83]:
        assert [(end, j.object.name, j.why) for j in divergences(name, rows[:end])] == []


@pytest.mark.parametrize("name", ["v1.17.17-all", "v1.28.15-all"])
def test_a_record_that_begins_in_the_middle_has_no_divergence(name: str) -> None:
    rows = whole_log(name)
    for start in without_pods(rows)[200::211]:
        assert [
            (start, j.object.name, j.why) for j in divergences(name, relisted(rows, start))
        ] == []


def relisted(rows, start):
    """The record as a recorder that began at `start` would have it."""
    alive: dict = {}
    for row in rows[:start]:
        if row.type in ("LIST", "ADDED", "MODIFIED") and row.resource in WATCHED:
            alive[row.resource, row.object["metadata"]["uid"]] = row
        elif row.type == "DELETED":
            alive.pop((row.resource, row.object["metadata"].get("uid")), None)
    at_ns = rows[start].recv_ns
    listed = [row._replace(type="LIST", recv_ns=at_ns) for row in alive.values()]
    return [*listed, *rows[start:]]


def found(name: str, rows, cron_job: str = CRON_JOB) -> set[tuple[str, str, str]]:
    """What is reported; a lie must be reported on its own CronJob and on nothing else."""
    reported = divergences(name, rows)
    assert reported
    assert {j.object.name for j in reported} == {cron_job}
    assert all(j.why for j in reported)
    return {(j.action, j.verdict.value, j.subject) for j in reported}


@pytest.mark.parametrize("name", LIED)
@pytest.mark.parametrize("cron_job", ["failing", "replace"])
def test_a_tick_taken_out_of_the_record_is_missing(name: str, cron_job: str) -> None:
    job = jobs_of(log(name), cron_job)[1]
    reported = found(name, without_tick(log(name), cron_job, job), cron_job)
    assert ("job-create", "missing", job) in reported


@pytest.mark.parametrize("name", LIED)
def test_a_job_taken_out_of_the_record_is_missing_by_its_status(name: str) -> None:
    job = jobs_of(log(name), CRON_JOB)[1]
    reported = found(name, [row for row in log(name) if not is_job(row, job)])
    assert ("job-create", "missing", job) in reported


@pytest.mark.parametrize("name", LIED)
def test_a_wrong_name_is_different(name: str) -> None:
    job = jobs_of(log(name), CRON_JOB)[1]
    rows = edited(
        log(name), lambda row: is_job(row, job), lambda o: o["metadata"].update(name="failing-77")
    )
    assert ("job-create", "different", "failing-77") in found(name, rows)


@pytest.mark.parametrize("name", LIED)
@pytest.mark.parametrize(
    ("path", "edit"),
    [
        ("image", lambda o: o["spec"]["template"]["spec"]["containers"][0].update(image="other")),
        ("deadline", lambda o: o["spec"].update(activeDeadlineSeconds=5)),
        ("parallelism", lambda o: o["spec"].update(parallelism=2)),
        ("label", lambda o: o["metadata"].setdefault("labels", {}).update(extra="1")),
        ("owner", lambda o: o["metadata"]["ownerReferences"][0].update(blockOwnerDeletion=False)),
    ],
)
def test_a_wrong_body_is_different_and_nothing_else(name: str, path: str, edit) -> None:
    del path
    job = jobs_of(log(name), CRON_JOB)[1]
    rows = edited(log(name), lambda row: is_job(row, job), edit)
    assert found(name, rows) == {("job-create", "different", job)}


@pytest.mark.parametrize("name", LIED)
def test_jobs_started_while_suspended_are_extra(name: str) -> None:
    rows = edited(
        log(name), lambda row: is_cron_job(row, CRON_JOB), lambda o: o["spec"].update(suspend=True)
    )
    reported = found(name, rows)
    assert {("job-create", "extra", job) for job in jobs_of(log(name), CRON_JOB)} <= reported


@pytest.mark.parametrize("name", LIED)
def test_jobs_started_although_forbidden_are_extra(name: str) -> None:
    rows = edited(
        log(name),
        lambda row: is_cron_job(row, "replace"),
        lambda o: o["spec"].update(concurrencyPolicy="Forbid"),
    )
    # A Job that Forbid would have kept running is deleted for each new one.
    first = jobs_of(log(name), "replace")[0]
    assert ("job-delete", "extra", first) in found(name, rows, "replace")


@pytest.mark.parametrize("name", LIED)
def test_a_job_beside_a_running_one_is_extra_where_that_is_forbidden(name: str) -> None:
    rows = list(log(name))
    controller = era_of(name).controller
    delay_ns = 9 * NS if controller is Controller.POLLING else NS // 10
    running, slot_ns = forbidden_slot(rows, delay_ns)
    body = copy.deepcopy(dict(running.object))
    body["metadata"] |= {"name": job_name("forbid", slot_ns, controller), "uid": "planted"}
    if SCHEDULED_AT in body["metadata"].get("annotations", {}):
        body["metadata"]["annotations"][SCHEDULED_AT] = rfc3339(slot_ns)
    at_ns = slot_ns + delay_ns
    body["metadata"]["creationTimestamp"] = rfc3339(at_ns - at_ns % NS)
    position = next(i for i, row in enumerate(rows) if row.recv_ns > at_ns)
    newest = max(
        int(row.object["metadata"]["resourceVersion"])
        for row in rows[:position]
        if row.resource != "events" and row.type in ("ADDED", "MODIFIED", "DELETED")
    )
    body["metadata"]["resourceVersion"] = str(newest + 1)
    rows.insert(position, running._replace(object=body, recv_ns=at_ns))
    assert ("job-create", "extra", body["metadata"]["name"]) in found(name, rows, "forbid")


def forbidden_slot(rows, delay_ns: int):
    """A Job of the CronJob that forbids concurrency, and a slot at which it was running."""
    for job in jobs_of(rows, "forbid"):
        states = [row for row in rows if is_job(row, job)]
        slot_ns = (states[0].recv_ns // (60 * NS) + 1) * 60 * NS
        until_ns = states[-1].recv_ns if states[-1].type == "DELETED" else rows[-1].recv_ns
        if slot_ns + delay_ns < until_ns:
            return states[0], slot_ns
    raise AssertionError("no such slot")


@pytest.mark.parametrize("name", LIED)
def test_a_start_before_its_slot_is_early(name: str) -> None:
    job = jobs_of(log(name), CRON_JOB)[1]
    ahead = -15 if era_of(name).controller is Controller.POLLING else -5
    rows = shifted(log(name), lambda row: is_job(row, job) and row.type == "ADDED", ahead)
    assert ("job-create", "early", job) in found(name, rows)


@pytest.mark.parametrize("name", LIED)
def test_a_start_long_after_its_slot_is_late(name: str) -> None:
    job = jobs_of(log(name), CRON_JOB)[1]
    added = next(row for row in log(name) if is_job(row, job))
    rows = shifted(
        log(name),
        lambda row: (
            is_job(row, job)
            or tells_of(row, CRON_JOB, job)
            or (
                is_cron_job(row, CRON_JOB)
                and added.recv_ns <= row.recv_ns < added.recv_ns + 20 * 10**9
            )
        ),
        30,
    )
    assert ("job-create", "late", job) in found(name, rows)


@pytest.mark.parametrize("name", LIED)
def test_a_clean_up_that_did_not_happen_is_missing(name: str) -> None:
    gone = next(
        row for row in log(name) if row.type == "DELETED" and name_of(row).startswith(CRON_JOB)
    )
    job = name_of(gone)
    rows = [
        row
        for row in log(name)
        if row is not gone and not tells_of(row, CRON_JOB, f"Deleted job {job}")
    ]
    assert ("job-delete", "missing", job) in found(name, rows)


@pytest.mark.parametrize("name", LIED)
def test_a_clean_up_of_the_wrong_job_misses_the_right_one(name: str) -> None:
    rows = list(log(name))
    gone = next(row for row in rows if row.type == "DELETED" and name_of(row).startswith(CRON_JOB))
    end_rv = gone.object["metadata"]["resourceVersion"]
    other = [
        row
        for row in rows
        if row.resource == "jobs"
        and name_of(row) in jobs_of(rows, CRON_JOB)
        and name_of(row) != name_of(gone)
        and int(row.object["metadata"]["resourceVersion"]) < int(end_rv)
    ][-1]
    body = copy.deepcopy(dict(other.object))
    body["metadata"]["resourceVersion"] = end_rv
    rows[rows.index(gone)] = gone._replace(object=body)
    assert ("job-delete", "missing", name_of(gone)) in found(name, rows)


@pytest.mark.parametrize("name", LIED)
def test_a_wrong_status_is_different(name: str) -> None:
    job = jobs_of(log(name), CRON_JOB)[1]
    rows = edited(
        log(name),
        lambda row: is_cron_job(row, CRON_JOB) and job in str(row.object.get("status")),
        lambda o: o["status"].update(lastScheduleTime="2026-11-21T00:00:00Z"),
    )
    assert ("status-update", "different", "status") in found(name, rows)


@pytest.mark.parametrize("name", LIED)
def test_an_event_of_nothing_is_extra(name: str) -> None:
    rows = edited(
        log(name),
        lambda row: tells_of(row, CRON_JOB, f"Created job {jobs_of(log(name), CRON_JOB)[1]}"),
        lambda o: o.update(message="Created job failing-1"),
    )
    assert found(name, rows) == {("event", "extra", "SuccessfulCreate")}


@pytest.mark.parametrize("name", ["v1.17.17-all", "v1.21.14-all", "v1.36.3-all"])
def test_a_schedule_without_a_zone_is_read_in_that_of_the_process(name: str) -> None:
    """Every minute of the hours of the record, as a clock ahead of UTC by five hours has them."""
    hours = sorted({(row.recv_ns // (3600 * NS) + 5) % 24 for row in log(name)})
    rows = edited(
        log(name),
        lambda row: is_cron_job(row, CRON_JOB),
        lambda o: o["spec"].update(schedule=f"* {','.join(map(str, hours))} * * *"),
    )
    reported = [j for j in judge(name, rows) if j.divergent]
    assert {(j.object.name, j.action) for j in reported} >= {(CRON_JOB, "job-create")}
    ahead = judge(name, rows, process_zone="Etc/GMT-5")  # POSIX signs: ahead of UTC
    assert [(j.subject, j.why) for j in ahead if j.divergent] == []


# TTL.

TTL_TRACES = ["v1.17.17-all", "v1.36.3-all", "v1.36.3-churn7"]


def ttl_deletion(name: str):
    """The row that shows a TTL deletion, of a Job whose TTL is not 0."""
    return next(
        row
        for row in log(name)
        if row.resource == "jobs"
        and row.type == "MODIFIED"
        and "foregroundDeletion" in row.object["metadata"].get("finalizers", ())
        and row.object["spec"].get("ttlSecondsAfterFinished", 0) > 2
    )


@pytest.mark.parametrize("name", TTL_TRACES)
def test_a_ttl_deletion_before_its_time_may_be_a_users(name: str) -> None:
    gone = ttl_deletion(name)
    ttl_s = gone.object["spec"]["ttlSecondsAfterFinished"]
    rows = shifted(log(name), lambda row: row is gone, -(ttl_s - 0.2))
    judged = judge(name, rows)
    assert not [j for j in judged if j.divergent]
    [told] = [j for j in judged if j.controller == "ttl" and j.subject == name_of(gone)]
    assert (told.verdict, told.reason) == (Verdict.UNKNOWABLE, Reason.NOT_RECORDED)
    assert told.ambiguous


@pytest.mark.parametrize("name", TTL_TRACES)
def test_a_ttl_deletion_long_after_its_time_is_late(name: str) -> None:
    gone = ttl_deletion(name)
    rows = shifted(
        log(name), lambda row: is_job(row, name_of(gone)) and row.recv_ns >= gone.recv_ns, 60
    )
    # Pods of that minute, with newer revisions, would show that only the stream was late.
    rows = [row for row in rows if row.resource != "pods" or row.recv_ns < gone.recv_ns]
    assert found(name, rows, name_of(gone)) == {("job-delete", "late", name_of(gone))}


@pytest.mark.parametrize("name", TTL_TRACES)
def test_a_ttl_deletion_that_did_not_happen_is_missing(name: str) -> None:
    gone = ttl_deletion(name)
    rows = [
        row for row in log(name) if not (is_job(row, name_of(gone)) and row.recv_ns >= gone.recv_ns)
    ]
    assert found(name, rows, name_of(gone)) == {("job-delete", "missing", name_of(gone))}


@pytest.mark.parametrize("name", TTL_TRACES)
def test_a_ttl_deletion_of_the_wrong_job_is_told_on_both(name: str) -> None:
    gone = ttl_deletion(name)
    uid = gone.object["metadata"]["uid"]
    wrong = unexpired(name, gone)
    rows = []
    for row in whole_log(name):
        if row is gone:
            body = copy.deepcopy(dict(wrong.object))
            for key in ("deletionTimestamp", "finalizers", "resourceVersion"):
                body["metadata"][key] = gone.object["metadata"][key]
            rows.append(row._replace(object=body))
        elif (
            row.resource != "jobs"
            or row.recv_ns < gone.recv_ns
            or row.object["metadata"].get("uid") not in (uid, wrong.object["metadata"]["uid"])
        ):
            rows.append(row)
    told = {j.object.name: j for j in judge(name, rows) if j.controller == "ttl"}
    assert told[name_of(gone)].verdict is Verdict.MISSING
    assert told[name_of(wrong)].verdict is Verdict.UNKNOWABLE  # a user may have done it
    assert told[name_of(wrong)].ambiguous
    assert name_of(gone) in told[name_of(wrong)].why


def unexpired(name: str, gone):
    """The last state of a Job without a TTL that lived when another's TTL was over."""
    alive: dict = {}
    for row in whole_log(name):
        if row is gone:
            break
        if row.resource == "jobs" and row.type in ("LIST", "ADDED", "MODIFIED", "DELETED"):
            alive[row.object["metadata"]["uid"]] = row
    return next(
        row
        for row in alive.values()
        if row.type != "DELETED"
        and "deletionTimestamp" not in row.object["metadata"]
        and "ttlSecondsAfterFinished" not in row.object["spec"]
        and not row.object["metadata"].get("ownerReferences")
    )
