"""Numbers of the views against independent counts: the raw JSON lines, and the audit logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.support.traces import ALL, CONTROLLERS, TRACES, audited_writes, json_lines
from tracekit.sql.session import Session
from tracekit.trace.reading.summary import job_outcomes

SessionOf = Callable[[str], Session]
pytestmark = pytest.mark.parametrize("name", ALL)
_STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")


@cache
def last_states(name: str, resource: str) -> dict[str, dict[str, Any]]:
    """By uid: the newest object, whether it is gone, and every owner Job it had."""
    found: dict[str, dict[str, Any]] = {}
    for line in json_lines(TRACES / name / "watch.jsonl.zst"):
        if line["resource"] != resource or line["type"] not in _STATES:
            continue
        obj = line["object"]
        meta = obj["metadata"]
        entry = found.setdefault(
            meta["uid"], {"rv": -1, "gone": False, "jobs": set(), "created": False, "ended": False}
        )
        entry["created"] |= line["type"] == "ADDED"
        entry["gone"] |= line["type"] == "DELETED"
        entry["ended"] |= obj.get("status", {}).get("phase") in ("Succeeded", "Failed")
        for owner in meta.get("ownerReferences", ()):
            if owner["kind"] == "Job" and owner.get("controller"):
                entry["jobs"].add(owner["uid"])
        if int(meta["resourceVersion"]) >= entry["rv"]:
            entry["rv"], entry["object"] = int(meta["resourceVersion"]), obj
    return found


@cache
def jobs_of_pods_that_ran(name: str) -> frozenset[str]:
    """Uids of the Jobs of whose pods one was seen past Pending."""
    return frozenset(
        owner["uid"]
        for line in json_lines(TRACES / name / "watch.jsonl.zst")
        if line["resource"] == "pods" and line["type"] in _STATES
        if line["object"].get("status", {}).get("phase") in ("Running", "Succeeded", "Failed")
        for owner in line["object"]["metadata"].get("ownerReferences", ())
    )


def outcome(name: str, entry: dict[str, Any]) -> str:
    job = entry["object"]
    status = job.get("status", {})
    for condition in job.get("status", {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return condition["type"]
    if entry["gone"]:
        return "Deleted"
    if job["spec"].get("suspend"):
        return "Suspended"
    runs = job["metadata"]["uid"] in jobs_of_pods_that_ran(name)
    runs |= any(status.get(field) for field in ("ready", "succeeded", "failed"))
    return "Running" if runs else "Pending"


def test_jobs_are_those_of_the_json_lines_with_their_outcome(
    name: str, session_of: SessionOf
) -> None:
    expected = {
        uid: (
            entry["object"]["metadata"]["namespace"],
            entry["object"]["metadata"]["name"],
            outcome(name, entry),
            entry["object"].get("status", {}).get("succeeded", 0),
            entry["object"].get("status", {}).get("failed", 0),
            entry["object"]["spec"].get("parallelism"),
        )
        for uid, entry in last_states(name, "jobs").items()
    }
    rows = session_of(name).table(
        "SELECT job_uid, namespace, job, outcome, succeeded, failed, parallelism FROM jobs"
    )
    assert {row["job_uid"]: tuple(row.values())[1:] for row in rows.to_pylist()} == expected


def test_pods_per_job_and_their_ends_are_those_of_the_json_lines(
    name: str, session_of: SessionOf
) -> None:
    pods: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for entry in last_states(name, "pods").values():
        for job in entry["jobs"]:
            pods[job] += 1
            failed[job] += entry["object"]["status"]["phase"] == "Failed"
    rows = session_of(name).table("SELECT job_uid, pods, pods_failed FROM jobs").to_pylist()
    assert {r["job_uid"]: r["pods"] for r in rows if r["pods"]} == {
        j: n for j, n in pods.items() if j in last_states(name, "jobs")
    }
    assert {r["job_uid"]: r["pods_failed"] for r in rows if r["pods_failed"]} == {
        j: n for j, n in failed.items() if n and j in last_states(name, "jobs")
    }


def test_attempts_have_the_exit_codes_of_the_json_lines(name: str, session_of: SessionOf) -> None:
    expected = {}
    for uid, entry in last_states(name, "pods").items():
        if not entry["jobs"]:
            continue
        statuses = entry["object"]["status"].get("containerStatuses") or ()
        codes = [
            s["state"]["terminated"]["exitCode"] for s in statuses if "terminated" in s["state"]
        ]
        expected[uid] = (entry["object"]["status"]["phase"], max(codes, default=None))
    rows = session_of(name).table("SELECT pod_uid, phase, exit_code FROM attempts").to_pylist()
    assert {r["pod_uid"]: (r["phase"], r["exit_code"]) for r in rows} == expected


def test_attempts_are_numbered_without_holes(name: str, session_of: SessionOf) -> None:
    rows = session_of(name).table(
        "SELECT job_uid, index, list(attempt ORDER BY attempt) AS n FROM attempts GROUP BY ALL"
    )
    assert all(row["n"] == list(range(1, len(row["n"]) + 1)) for row in rows.to_pylist())


def test_pod_creations_and_status_updates_are_those_of_the_audit_log(
    name: str, session_of: SessionOf
) -> None:
    audited = audited_writes(name, CONTROLLERS["job"])
    rows = session_of(name).table("SELECT action, count(*) AS n FROM actions GROUP BY action")
    counted = {row["action"]: row["n"] for row in rows.to_pylist()}
    assert counted["pod-create"] == audited["pod-create"]
    assert counted["status-update"] == audited["status-update"]


def test_job_controller_deletions_are_those_of_the_audit_log(
    name: str, session_of: SessionOf
) -> None:
    audited = audited_writes(name, CONTROLLERS["job"])
    rows = session_of(name).table(
        "SELECT count(*) AS n FROM actions WHERE action = 'pod-delete' AND actor = 'job-controller'"
    )
    assert rows.to_pylist()[0]["n"] <= audited["pod-delete"]
    told = sum(
        1
        for uid, event in last_states(name, "events").items()
        if event["object"].get("reason") == "SuccessfulDelete"
        and event["object"]["involvedObject"]["kind"] == "Job"
    )
    assert rows.to_pylist()[0]["n"] >= min(told, audited["pod-delete"]) - 1


def test_started_ticks_are_the_jobs_that_the_cronjob_controller_created(
    name: str, session_of: SessionOf
) -> None:
    audited = {
        entry["responseObject"]["metadata"]["name"]
        for entry in json_lines(TRACES / name / "audit.jsonl.zst")
        if entry["user"]["username"] == CONTROLLERS["cronjob"]
        and (entry["verb"], entry["objectRef"]["resource"]) == ("create", "jobs")
        and entry["responseStatus"]["code"] == 201
    }
    rows = session_of(name).table("SELECT job FROM cron_ticks WHERE outcome = 'started'")
    assert sorted(row["job"] for row in rows.to_pylist()) == sorted(audited)


def test_every_tick_that_was_not_started_says_why(name: str, session_of: SessionOf) -> None:
    rows = session_of(name).table(
        "SELECT cronjob, due_at, outcome, why FROM cron_ticks WHERE policy IS NULL "
        "AND outcome <> 'pending'"
    )
    # The polling controller looks every 10 s: a schedule edited just before its tick may lose it.
    unexplained = rows.to_pylist()
    assert not unexplained or name == "v1.17.17-all", unexplained


def test_verdicts_are_those_of_the_replay(name: str, session_of: SessionOf) -> None:
    session = session_of(name)
    assert session.table("SELECT * FROM divergences").num_rows == 0
    rows = session.table(
        "SELECT count(*) AS n FROM verdicts WHERE action = 'pod-create' AND controller = 'job' "
        "AND verdict LIKE 'match%'"
    )
    assert rows.to_pylist()[0]["n"] == audited_writes(name, CONTROLLERS["job"])["pod-create"]


def test_backoff_and_retries_are_those_of_a_plain_walk_over_the_json_lines(
    name: str, session_of: SessionOf
) -> None:
    changes: dict[tuple[str, str | None], list[tuple[int, int, str]]] = {}
    owners: dict[str, tuple[str, str | None]] = {}
    failed: set[str] = set()
    for line in json_lines(TRACES / name / "watch.jsonl.zst"):
        if line["resource"] != "pods" or line["type"] not in _STATES:
            continue
        meta = line["object"]["metadata"]
        for owner in meta.get("ownerReferences", ()):
            if owner["kind"] == "Job" and owner.get("controller") and meta["uid"] not in owners:
                index = meta.get("annotations", {}).get("batch.kubernetes.io/job-completion-index")
                owners[meta["uid"]] = (owner["uid"], index)
        if meta["uid"] not in owners:
            continue
        walk = changes.setdefault(owners[meta["uid"]], [])
        if line["type"] == "ADDED":
            walk.append((line["recv"], 0, "created"))
        if line["object"]["status"].get("phase") == "Failed" and meta["uid"] not in failed:
            failed.add(meta["uid"])
            walk.append((line["recv"], 1, "failed"))
    expected: dict[str, list[float]] = {}
    for (job, _), walk in changes.items():
        waiting: list[int] = []
        total = expected.setdefault(job, [0, 0.0])
        for at_ns, _, what in sorted(walk):
            if what == "failed":
                waiting.append(at_ns)
            elif waiting:
                total[0] += len(waiting)
                total[1] += (at_ns - waiting[0]) / 1e9
                waiting = []
    rows = session_of(name).table("SELECT job_uid, retries, backoff_s FROM jobs").to_pylist()
    for row in rows:
        retries, backoff_s = expected.get(row["job_uid"], [0, 0.0])
        assert row["retries"] == retries
        assert row["backoff_s"] == pytest.approx(backoff_s)


def test_info_counts_jobs_as_the_view_does(session_of: SessionOf, name: str) -> None:
    session = session_of(name)
    rows = session.rows("SELECT outcome, reason FROM jobs")
    words = {"Complete": "complete", "Deleted": "deleted unfinished", "Suspended": "suspended",
             "Running": "running", "Pending": "not started"}  # fmt: skip
    counted = Counter(words.get(r["outcome"]) or f"failed: {r['reason']}" for r in rows)
    assert dict(counted) == dict(job_outcomes(session.sources[0].reader()).by_outcome)
