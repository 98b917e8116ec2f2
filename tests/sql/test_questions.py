"""The questions of a postmortem, each answered by one view, against plain walks over the raw JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.raw_walk import Pod, finished, walk
from tests.support.traces import ALL, CONTROLLERS, TRACES, json_lines
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.cli.import_ import import_
from tracekit.sql.catalog import views
from tracekit.sql.messages import QueryError
from tracekit.sql.session import Session
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.writing.writer import TraceWriter

SessionOf = Callable[[str], Session]
on_all = pytest.mark.parametrize("name", ALL)
INCIDENTS = TRACES / "incidents"


def rows(session: Session, query: str) -> list[dict[str, Any]]:
    return session.table(query).to_pylist()


def seconds(until_ns: int, from_ns: int) -> float:
    return (until_ns - from_ns) / 1e9


def ns_of(at: datetime) -> int:
    delta = at.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 10**9 + delta.microseconds * 1000


def percentile(values: list[float], share: float) -> float:
    values = sorted(values)
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def test_there_is_a_view_for_each_question() -> None:
    assert sum(bool(view.question) for view in views()) >= 16


@on_all
def test_failures_name_the_jobs_and_the_exit_codes_of_their_pods(
    name: str, session_of: SessionOf
) -> None:
    raw = walk(name)
    expected = {}
    for uid, job in raw.jobs.items():
        if finished(job.last) != "Failed":
            continue
        failed = [pod for pod in raw.pods_of(uid) if pod.phase == "Failed"]
        codes = [code for pod in failed if (code := exit_code(pod)) is not None]
        expected[uid] = (job.name, len(failed), dict(Counter(codes)))
    found = rows(session_of(name), "SELECT job_uid, job, pods_failed, exit_codes FROM failures")
    assert {
        row["job_uid"]: (row["job"], row["pods_failed"], dict(row["exit_codes"])) for row in found
    } == expected


def exit_code(pod: Pod) -> int | None:
    statuses = pod.object["status"].get("containerStatuses") or ()
    codes = [s["state"]["terminated"]["exitCode"] for s in statuses if "terminated" in s["state"]]
    return max(codes, default=None)


@on_all
def test_start_latency_is_that_between_the_received_rows(name: str, session_of: SessionOf) -> None:
    waits: dict[tuple[str, str], list[float]] = {}
    created: Counter[tuple[str, str]] = Counter()
    for pod in walk(name).pods.values():
        meta = pod.object["metadata"]
        key = (meta["creationTimestamp"][:13], meta["namespace"])
        created[key] += 1
        if pod.started_ns is None:
            continue
        if pod.added_ns is not None and pod.started_ns > pod.added_ns:
            waits.setdefault(key, []).append(seconds(pod.started_ns, pod.added_ns))
        else:
            at = [parse_rfc3339(pod.object["status"]["startTime"])]
            at.append(parse_rfc3339(meta["creationTimestamp"]))
            waits.setdefault(key, []).append(seconds(*at))
    found = rows(session_of(name), "FROM start_latency")
    assert {(r["hour"].isoformat()[:13], r["namespace"]): r["pods"] for r in found} == created
    for row in found:
        known = waits.get((row["hour"].isoformat()[:13], row["namespace"]), [])
        assert row["never_started"] == row["pods"] - len(known)
        if known:
            assert row["p50_s"] == pytest.approx(percentile(known, 0.5))
            assert row["p95_s"] == pytest.approx(percentile(known, 0.95))
            assert row["max_s"] == pytest.approx(max(known))


@on_all
def test_missed_runs_are_due_times_without_a_job_in_the_audit_log(
    name: str, session_of: SessionOf
) -> None:
    audited = {
        (entry["objectRef"]["namespace"], entry["responseObject"]["metadata"]["name"])
        for entry in json_lines(TRACES / name / "audit.jsonl.zst")
        if entry["user"]["username"] == CONTROLLERS["cronjob"]
        and (entry["verb"], entry["objectRef"]["resource"]) == ("create", "jobs")
        and entry["responseStatus"]["code"] == 201
    }
    for row in rows(session_of(name), "FROM missed_runs"):
        due_s = ns_of(row["due_at"]) // 10**9
        for suffix in (due_s // 60, due_s):
            key = (row["namespace"], f"{row['cronjob']}-{suffix}")
            # A schedule finer than minutes gives several due times one name.
            assert key not in audited or "@every" in row["why"] or due_s % 60, row
    every_minute = [
        (uid, cron)
        for uid, cron in walk(name).cronjobs.items()
        if {obj["spec"]["schedule"] for _, _, obj in cron.revisions} == {"* * * * *"}
    ]
    for uid, cron in every_minute:
        first_ns = parse_rfc3339(cron.last["metadata"]["creationTimestamp"])
        last = cron.revisions[-1]
        until_ns = last[0] if last[1] == "DELETED" else walk(name).end_ns
        minutes = range(first_ns // (60 * 10**9) + 1, until_ns // (60 * 10**9) + 1)
        query = f"SELECT due_at FROM cron_ticks WHERE cronjob_uid = '{uid}' ORDER BY due_at"  # noqa: S608
        due = [ns_of(row["due_at"]) // (60 * 10**9) for row in rows(session_of(name), query)]
        assert due == list(minutes)


@on_all
def test_backoffs_are_the_waits_of_a_plain_walk(name: str, session_of: SessionOf) -> None:
    expected = Counter()
    retries: Counter[tuple[str, str | None]] = Counter()
    for (job, index), changes in _creations_and_failures(name).items():
        waiting: list[int] = []
        for at_ns, what, pod in sorted(changes):
            if what == "failed":
                waiting.append(at_ns)
            elif waiting:
                expected[job, round(seconds(at_ns, waiting[0]), 6), len(waiting), pod] += 1
                retries[job, index] += len(waiting)
                waiting = []
    found = rows(session_of(name), "SELECT job_uid, wait_s, pods, next_pod FROM backoffs")
    assert (
        Counter((r["job_uid"], round(r["wait_s"], 6), r["pods"], r["next_pod"]) for r in found)
        == expected
    )
    known = {
        (r["job_uid"], None if r["index"] is None else str(r["index"])): r["retries"]
        for r in rows(session_of(name), "SELECT job_uid, index, retries FROM retries")
    }
    jobs = walk(name).jobs
    assert known == {key: count for key, count in retries.items() if key[0] in jobs}


def _creations_and_failures(
    name: str,
) -> dict[tuple[str, str | None], list[tuple[int, str, str]]]:
    changes: dict[tuple[str, str | None], list[tuple[int, str, str]]] = {}
    for pod in walk(name).pods.values():
        meta = pod.object["metadata"]
        index = meta.get("annotations", {}).get("batch.kubernetes.io/job-completion-index")
        line = changes.setdefault((pod.job, index), [])
        created_ns = pod.added_ns or parse_rfc3339(meta["creationTimestamp"])
        line.append((created_ns, "created", meta["name"]))
        if pod.phase == "Failed" and pod.ended_ns is not None:
            line.append((pod.ended_ns, "failed", meta["name"]))
    return changes


@on_all
def test_accounting_is_from_the_last_end_of_a_pod_to_the_condition(
    name: str, session_of: SessionOf
) -> None:
    raw = walk(name)
    expected: dict[str, float | None] = {}
    for uid in raw.jobs:
        finish = raw.finish(uid)
        if finish is None:
            continue
        ends = [pod.until_ns for pod in raw.pods_of(uid)]
        known = [end for end in ends if end is not None]
        waited = len(known) == len(ends) > 0 and max(known) <= finish[0]
        expected[uid] = seconds(finish[0], max(known)) if waited else None
    found = {
        row["job_uid"]: row["accounting_s"] for row in rows(session_of(name), "FROM accounting")
    }
    assert found == pytest.approx(expected)


@on_all
def test_controller_lag_is_that_of_the_verdicts(name: str, session_of: SessionOf) -> None:
    lagged: Counter[tuple[str, str]] = Counter()
    writes: Counter[tuple[str, str]] = Counter()
    for row in rows(session_of(name), "FROM verdicts"):
        if row["verdict"] in ("match", "match-lagged"):
            writes[row["controller"], row["action"]] += 1
            lagged[row["controller"], row["action"]] += row["lag_observations"] > 0
    found = rows(session_of(name), "FROM controller_lag")
    assert {(r["controller"], r["action"]): r["writes"] for r in found} == writes
    assert {(r["controller"], r["action"]): r["lagged"] for r in found} == lagged


_USERS = {
    CONTROLLERS["job"]: "job-controller",
    CONTROLLERS["cronjob"]: "cronjob-controller",
    CONTROLLERS["ttl"]: "ttl-after-finished-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector": "garbage-collector",
}


@on_all
def test_deletions_are_by_whom_the_audit_log_says(name: str, session_of: SessionOf) -> None:
    asked: dict[tuple[str, str, str], list[str]] = {}
    for entry in json_lines(TRACES / name / "audit.jsonl.zst"):
        target = entry["objectRef"]
        if entry["responseStatus"]["code"] not in range(200, 300):
            continue
        who = _USERS.get(entry["user"]["username"], "user")
        if target.get("subresource") == "eviction":
            who = "eviction"
        elif entry["verb"] != "delete" or target.get("subresource"):
            continue
        key = (target["resource"], target.get("namespace", ""), target["name"])
        asked.setdefault(key, []).append(who)
    found = rows(session_of(name), "FROM deletions ORDER BY deletion_at")
    assert len(found) > 5
    seen: Counter[tuple[str, str, str]] = Counter()
    for row in found:
        key = (f"{row['kind'].lower()}s", row["namespace"], row["name"])
        # A name that was used again was deleted again; the first request for a pod counts.
        who = asked[key] if seen[key] else asked[key][:1]
        seen[key] += 1
        # Without the condition DisruptionTarget an eviction is a deletion that somebody asked for.
        told = ["user", "eviction"] if who == ["eviction"] else who
        assert row["deleted_by"] in told, row
        assert row["delete_evidence"]


@pytest.mark.parametrize("name", ["v1.27.4-churn606", "v1.36.3-troubles"])
def test_with_an_audit_log_each_deletion_names_its_user(name: str, tmp_path: Path) -> None:
    asked: dict[tuple[str, str], set[str]] = {}
    for entry in json_lines(TRACES / name / "audit.jsonl.zst"):
        if entry["responseStatus"]["code"] in range(200, 300) and "delete" in entry["verb"]:
            # A deletecollection has no name: it may be any of its namespace.
            key = (entry["objectRef"].get("namespace", ""), entry["objectRef"].get("name", ""))
            asked.setdefault(key, set()).add(entry["user"]["username"])
    logs = [str(TRACES / name / f"{log}.jsonl.zst") for log in ("watch", "audit")]
    out = str(tmp_path / "trace")
    words = [*logs, "-o", out, "--processes", "1"]
    assert CliRunner().invoke(import_, words, catch_exceptions=False).exit_code == 0
    found = rows(Session([out]), "FROM deletions")
    people = [row for row in found if row["actor"] and not row["actor"].startswith("system:")]
    assert len(people) >= 5
    assert {row["deleted_by"] for row in people} == {"user"}
    for row in found:
        by_name, swept = (asked.get((row["namespace"], n), set()) for n in (row["name"], ""))
        assert row["actor"] in by_name | swept, row
        assert row["delete_evidence"].startswith("audit log")
        if row in people:
            assert row["actor"] in row["delete_evidence"]


@on_all
def test_node_pods_are_those_of_a_plain_count_at_any_time(name: str, session_of: SessionOf) -> None:
    raw = walk(name)
    spans = rows(session_of(name), "FROM node_pods")
    times = sorted({pod.bound_ns for pod in raw.pods.values() if pod.bound_ns})[::7]
    for at_ns in times:
        counted: Counter[str] = Counter()
        for pod in raw.pods.values():
            if pod.bound_ns and pod.bound_ns <= at_ns and (pod.until_ns or raw.end_ns + 1) > at_ns:
                counted[pod.object["spec"]["nodeName"]] += 1
        at_us = at_ns // 1000
        known = {
            row["node"]: row["pods"]
            for row in spans
            if ns_of(row["from_at"]) // 1000 <= at_us
            and (row["until_at"] is None or ns_of(row["until_at"]) // 1000 > at_us)
        }
        assert {node: pods for node, pods in known.items() if pods} == counted


@on_all
def test_counts_go_back_where_they_do_in_the_raw_revisions(
    name: str, session_of: SessionOf
) -> None:
    """Before tracking finalizers a count is of the pods that are there: it goes back with them."""
    expected = set()
    for uid, job in walk(name).jobs.items():
        for (_, _, before), (_, _, after) in pairwise(job.revisions):
            rv = int(after["metadata"]["resourceVersion"])
            for field in ("succeeded", "failed"):
                numbers = [obj.get("status", {}).get(field, 0) for obj in (before, after)]
                if numbers[1] < numbers[0]:
                    expected.add((uid, rv, field, *numbers))
            if finished(before) and not finished(after):
                expected.add((uid, rv, finished(before), 1, 0))
    found = rows(session_of(name), "FROM count_jumps")
    assert {tuple(r[c] for c in ("job_uid", "rv", "field", "before", "after")) for r in found} == (
        expected
    )
    assert {row["what"] for row in found} <= {"back"}
    if name.endswith("-all"):
        assert bool(found) == (name.split(".")[1] < "26" and name != "v1.23.17-all")


def test_a_pod_counted_twice_is_a_jump() -> None:
    found = rows(Session([INCIDENTS / "counted-twice"]), "FROM count_jumps")
    assert [(r["field"], r["before"], r["after"], r["ended"], r["what"]) for r in found] == [
        ("succeeded", 1, 2, 1, "too-many")
    ]


def test_a_status_that_goes_back_is_a_jump(tmp_path: Path) -> None:
    def job(rv: int, **status: object) -> dict[str, object]:
        meta = {"name": "j", "namespace": "ns", "uid": "u", "resourceVersion": str(rv)}
        return {"kind": "Job", "metadata": meta, "spec": {}, "status": status}

    complete = [{"type": "Complete", "status": "True"}]
    with TraceWriter(tmp_path / "t", TraceHeader(kubernetes_version="v1.36.3")) as writer:
        writer.append("jobs", "LIST", 10**18, job(1, succeeded=2, conditions=complete))
        writer.append("jobs", "MODIFIED", 10**18 + 1, job(2, succeeded=1))
    found = rows(Session([tmp_path / "t"]), "SELECT field, before, after, what FROM count_jumps")
    assert sorted(tuple(row.values()) for row in found) == [
        ("Complete", 1, 0, "back"),
        ("succeeded", 2, 1, "back"),
    ]


@on_all
def test_job_concurrency_is_the_peak_of_a_plain_sweep(name: str, session_of: SessionOf) -> None:
    raw = walk(name)
    expected = {}
    for uid in raw.jobs:
        steps: Counter[int] = Counter()
        for pod in raw.pods_of(uid):
            start_text = pod.object["status"].get("startTime")
            if start_text is None:
                continue
            steps[pod.started_ns or parse_rfc3339(start_text)] += 1
            if pod.until_ns is not None:
                steps[pod.until_ns] -= 1
        if steps:
            level = 0
            peaks = []
            for at_ns in sorted(steps):
                level += steps[at_ns]
                peaks.append(level)
            expected[uid] = max(peaks)
    found = rows(session_of(name), "FROM job_concurrency")
    assert {row["job_uid"]: row["most_running"] for row in found} == expected


def test_a_duplicate_pod_is_more_than_parallelism_allows() -> None:
    found = rows(Session([INCIDENTS / "duplicate-pod"]), "FROM job_concurrency WHERE over")
    assert [(r["job"], r["parallelism"], r["most_running"]) for r in found] == [("import", 1, 2)]
    assert found[0]["over_s"] > 5


def held_s(pod: Pod, end_ns: int) -> float:
    return seconds(pod.until_ns or end_ns, pod.bound_ns) if pod.bound_ns else 0.0


@on_all
def test_costs_and_waste_are_the_seconds_of_the_raw_pods(name: str, session_of: SessionOf) -> None:
    raw = walk(name)
    costs: dict[str, float] = {}
    wasted: dict[str, float] = {}
    for pod in raw.pods.values():
        namespace = pod.object["metadata"]["namespace"]
        held = held_s(pod, raw.end_ns)
        costs[namespace] = costs.get(namespace, 0) + held
        if pod.job not in raw.jobs:
            continue
        unfinished = pod.phase not in ("Succeeded", "Failed") and pod.deleted
        in_vain = pod.phase == "Succeeded" and finished(raw.jobs[pod.job].last) == "Failed"
        if pod.phase == "Failed" or unfinished or in_vain:
            wasted[pod.job] = wasted.get(pod.job, 0) + held
    session = session_of(name)
    assert {r["namespace"]: r["pod_s"] for r in rows(session, "FROM costs")} == pytest.approx(costs)
    found = {r["job_uid"]: r["wasted_pod_s"] for r in rows(session, "FROM wasted_pods")}
    assert found == pytest.approx(wasted)


@on_all
def test_outliving_pods_are_those_that_end_after_their_job(
    name: str, session_of: SessionOf
) -> None:
    raw = walk(name)
    expected = dict(_outliving(raw))
    found = rows(session_of(name), "SELECT pod_uid, outlived_s FROM outliving_pods")
    assert {row["pod_uid"]: row["outlived_s"] for row in found} == pytest.approx(expected)


def _outliving(raw: Any) -> Iterator[tuple[str, float]]:
    for uid, pod in raw.pods.items():
        if pod.job not in raw.jobs:
            continue
        finish = raw.finish(pod.job)
        last = raw.jobs[pod.job].revisions[-1]
        ends = [finish[0]] if finish else []
        ends += [last[0]] if last[1] == "DELETED" else []
        if ends and (pod.until_ns is None or pod.until_ns > min(ends)):
            yield uid, seconds(pod.until_ns or raw.end_ns, min(ends))


@on_all
def test_last_success_and_cronjobs_are_those_of_the_raw_objects(
    name: str, session_of: SessionOf
) -> None:
    raw = walk(name)
    expected = {}
    for uid, cron in raw.cronjobs.items():
        jobs = [
            job.last
            for job in raw.jobs.values()
            if any(
                owner["uid"] == uid
                for _, _, obj in job.revisions
                for owner in obj["metadata"].get("ownerReferences", ())
            )
        ]
        times = [job["status"]["completionTime"] for job in jobs if finished(job) == "Complete"]
        status = cron.last.get("status", {})
        times += [status["lastSuccessfulTime"]] if "lastSuccessfulTime" in status else []
        expected[uid] = (
            cron.name,
            max(times, default=None),
            cron.last["spec"]["schedule"],
            len(status.get("active") or ()),
            len(jobs),
        )
    found = rows(
        session_of(name),
        "SELECT cronjobs.cronjob_uid, cronjobs.cronjob, last_success.last_success_at, "
        "cronjobs.schedule, active, jobs FROM cronjobs JOIN last_success USING (cronjob_uid)",
    )
    assert {
        row["cronjob_uid"]: (
            row["cronjob"],
            row["last_success_at"] and f"{row['last_success_at'].isoformat()}Z",
            row["schedule"],
            row["active"],
            row["jobs"],
        )
        for row in found
    } == expected


def test_requests_cost_what_the_scheduler_counts(tmp_path: Path) -> None:
    def requests(**amounts: str) -> dict[str, Any]:
        return {"resources": {"requests": amounts}}

    def pod(name: str, rv: int, spec: dict[str, Any], phase: str = "Running") -> dict[str, Any]:
        owner = {"kind": "Job", "name": "j", "uid": "j", "controller": True}
        meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(rv)}
        meta["ownerReferences"] = [owner]  # type: ignore[assignment]
        return {
            "kind": "Pod",
            "metadata": meta,
            "spec": {"nodeName": "n", **spec},
            "status": {"phase": phase},
        }

    stays = {**requests(cpu="500m"), "restartPolicy": "Always"}
    specs = {
        "plain": {"containers": [requests(cpu="100m", memory="1Gi"), requests(cpu="1")]},
        "staying": {"containers": [requests(cpu="1")], "initContainers": [stays]},
        "init": {
            "containers": [requests(cpu="1")],
            "initContainers": [stays, requests(cpu="2")],
            "overhead": {"cpu": "250m"},
        },
        "whole": {**requests(cpu="4"), "containers": [requests(cpu="1")]},
        "nothing": {"containers": [{}]},
    }
    with TraceWriter(tmp_path / "t", TraceHeader(kubernetes_version="v1.36.3")) as writer:
        for rv, (name, spec) in enumerate(specs.items()):
            writer.append("pods", "ADDED", 10**18, pod(name, 2 * rv + 1, spec))
            done = pod(name, 2 * rv + 2, spec, "Succeeded")
            writer.append("pods", "MODIFIED", 10**18 + 10 * 10**9, done)
    session = Session([tmp_path / "t"])
    found = rows(session, "SELECT pod, cpu_request, memory_request FROM attempts")
    assert {r["pod"]: (r["cpu_request"], r["memory_request"]) for r in found} == {
        "plain": (pytest.approx(1.1), 1024.0**3),
        "staying": (1.5, None),
        "init": (2.75, None),
        "whole": (4.0, None),
        "nothing": (None, None),
    }
    (cost,) = rows(session, "FROM costs")
    assert cost["cpu_core_s"] == pytest.approx(10 * (1.1 + 1.5 + 2.75 + 4))
    assert (cost["memory_gib_s"], cost["pod_s"], cost["without_requests"]) == (10.0, 50.0, 1)


@pytest.mark.parametrize(
    ("amount", "number"),
    [
        ("100m", 0.1), ("1.5", 1.5), ("64Mi", 64 * 1024**2), ("1e3", 1000), ("2k", 2000),
        ("1E", 1e18), ("1Ei", 1024.0**6), ("250u", 0.00025), ("-1", -1), ("x", None), ("", None),
    ],
)  # fmt: skip
def test_quantities_are_read_as_the_api_does(session_of, amount, number) -> None:
    (row,) = rows(session_of("empty"), f"SELECT quantity('{amount}') AS n")
    assert row["n"] == (None if number is None else pytest.approx(number))


def test_labels_are_maps(session_of) -> None:
    found = rows(
        session_of("v1.36.3-all"),
        "SELECT job, labels['app'] AS app FROM jobs WHERE labels['app'] = 'flaky'",
    )
    assert found == [{"job": "flaky", "app": "flaky"}]


def test_the_end_of_the_trace_is_its_last_receipt(session_of) -> None:
    (row,) = rows(session_of("v1.36.3-all"), "SELECT trace_end() AS at")
    assert ns_of(row["at"]) // 1000 == walk("v1.36.3-all").end_ns // 1000


#### Closed sets of values ####


@pytest.mark.parametrize("view", [v for v in views() if v.values], ids=lambda v: v.name)
def test_closed_columns_compare_without_regard_to_case(session_of, view) -> None:
    session = session_of("v1.36.3-all")
    for column in view.values:
        query = f"FROM {view.name} SELECT {column} AS v, count(*) AS n GROUP BY 1"
        for row in rows(session, query):
            if row["v"] is not None:
                other = row["v"].swapcase()
                query = f"FROM {view.name} SELECT count(*) AS n WHERE {column} = '{other}'"
                assert rows(session, query) == [{"n": row["n"]}], (column, row)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM jobs WHERE outcome = 'Faild'", "outcome is never 'Faild'; did you mean 'Failed'"),
        ("FROM jobs j WHERE j.outcome IN ('Complete', 'Done')", "outcome is never 'Done'; it is one of"),
        ("SELECT count(*) FILTER (verdict <> 'matched') FROM verdicts", "did you mean 'match'"),
        ("WITH a AS (FROM attempts WHERE 'Evicted' = phase) FROM a", "phase is never 'Evicted'"),
    ],
)  # fmt: skip
def test_a_value_that_a_column_never_has_is_refused(session_of, query, said) -> None:
    with pytest.raises(QueryError) as error:
        session_of("v1.36.3-all").table(query)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT CASE WHEN pods > 1 THEN 'big' ELSE 'small' END AS outcome FROM jobs WHERE outcome = 'big'",
        "SELECT * FROM (SELECT job AS outcome FROM jobs) WHERE outcome = 'flaky'",
        "SELECT * FROM attempts JOIN conditions USING (trace, job) WHERE attempts.reason = 'whatever'",
        "SELECT * FROM observations WHERE phase = 'whatever'",
        "SELECT * FROM jobs WHERE outcome LIKE 'Fail%' OR outcome = 'failed'",
        "SELECT * FROM jobs USING SAMPLE 6 ROWS (reservoir, 7)",
    ],
)  # fmt: skip
def test_what_may_be_the_querys_own_is_let_through(session_of, query) -> None:
    session_of("v1.36.3-all").table(query)


TRACKING = "batch.kubernetes.io/job-tracking"


def _waited(log: list[dict[str, Any]]) -> Iterator[tuple[int, int | None]]:
    """When a Job waited for its first status, or an ended pod to be counted: by the raw lines."""
    jobs, pods = {}, {}
    for row in log:
        if row["resource"] not in ("jobs", "pods") or row["type"] not in (
            "LIST", "ADDED", "MODIFIED", "DELETED",
        ):  # fmt: skip
            continue
        obj = row["object"]
        kept = jobs if row["resource"] == "jobs" else pods
        kept.setdefault(obj["metadata"]["uid"], []).append((row["recv"], row["type"], obj))
    over: dict[str, int] = {}
    for uid, states in jobs.items():
        at, kind, first = states[0]
        served = next(
            (a for a, k, o in states if k == "DELETED" or o["status"].get("startTime")), None
        )
        ends = [
            a for a, k, o in states
            if k == "DELETED" or "deletionTimestamp" in o["metadata"] or finished(o)
        ]  # fmt: skip
        over[uid] = min(ends, default=1 << 62)
        if kind == "ADDED" and not first["spec"].get("suspend"):
            yield at, served
    for states in pods.values():
        owner = next((o["uid"] for o in states[0][2]["metadata"].get("ownerReferences", [])), "")
        for place, (at, kind, pod) in enumerate(states):
            held = TRACKING in pod["metadata"].get("finalizers", [])
            ended = pod["status"].get("phase") in ("Succeeded", "Failed")
            if ended and held and kind not in ("DELETED", "LIST"):
                freed = (
                    a for a, k, o in states[place + 1:]
                    if k == "DELETED" or TRACKING not in o["metadata"].get("finalizers", [])
                )  # fmt: skip
                if owner in over and at < over[owner]:
                    yield at, next(freed, None)
                break


@pytest.mark.parametrize("name", ["v1.36.3-troubles", "v1.36.3-churn7"])
def test_the_backlog_is_the_curve_of_what_waited(name: str, session_of: SessionOf) -> None:
    log = list(json_lines(TRACES / name / "watch.jsonl.zst"))
    end_ns = max(row["recv"] for row in log if row.get("recv"))
    waits = [(a, end_ns if b is None else b) for a, b in _waited(log)]
    session = session_of(name)
    found = rows(session, "FROM backlog")
    assert sum(r["waiting"] * r["seconds"] for r in found) == pytest.approx(
        sum(seconds(until, since) for since, until in waits), rel=1e-3
    )
    for row in found[:: max(1, len(found) // 40)]:
        middle = (ns_of(row["from_at"]) + ns_of(row["until_at"])) // 2
        assert row["waiting"] == sum(since <= middle < until for since, until in waits)
        assert row["waiting"] == row["jobs"] + row["pods"]


@pytest.mark.parametrize("name", ["v1.36.3-all", "v1.37.1-all"])
def test_lost_work_is_what_pods_of_an_index_held_for_nothing(
    name: str, session_of: SessionOf
) -> None:
    session = session_of(name)
    found = rows(session, "FROM lost_work")
    of_jobs: Counter[str] = Counter()
    for row in found:
        of_jobs[row["job_uid"]] += row["disrupted_s"] + row["failed_s"] + row["cut_off_s"]
    wasted = {
        row["job_uid"]: row["failed_pod_s"] + row["deleted_pod_s"]
        for row in rows(session, "FROM wasted_pods")
    }
    assert {uid: s for uid, s in of_jobs.items() if s} == pytest.approx(
        {uid: s for uid, s in wasted.items() if s}
    )
    raw = walk(name)
    disrupted: Counter[tuple[str, int | None]] = Counter()
    for pod in raw.pods.values():
        last = pod.object
        index = (
            last["metadata"].get("annotations", {}).get("batch.kubernetes.io/job-completion-index")
        )
        conditions = last["status"].get("conditions", [])
        if pod.job in raw.jobs and any(
            c["type"] == "DisruptionTarget" and c["status"] == "True" for c in conditions
        ):
            disrupted[pod.job, None if index is None else int(index)] += 1
    assert disrupted
    told = {(row["job_uid"], row["index"]): row["disrupted"] for row in found}
    assert all(told.get(key, 0) >= count for key, count in disrupted.items()), disrupted
