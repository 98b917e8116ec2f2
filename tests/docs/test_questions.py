"""docs/questions.md: each command gives what the lines of the two logs give, counted in Python."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import CONTROLLERS, ROOT, TRACES, audited_writes, json_lines
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.cli.main import main

NAME = "v1.36.3-troubles"
PAGE = ROOT / "docs" / "questions.md"
ROW = re.compile(r"^\| (\d+) \| (.+?) \| `(.+)` \|$", re.MULTILINE)
Rows = list[dict[str, Any]]


@cache
def lines(kind: str) -> tuple[dict[str, Any], ...]:
    """The states of one kind, in the order of the log."""
    log = json_lines(TRACES / NAME / "watch.jsonl.zst")
    return tuple(
        row
        for row in log
        if row["resource"] == kind and row["type"] in ("LIST", "ADDED", "MODIFIED", "DELETED")
    )


@cache
def audit() -> tuple[dict[str, Any], ...]:
    return tuple(json_lines(TRACES / NAME / "audit.jsonl.zst"))


@cache
def last(kind: str) -> Mapping[str, dict[str, Any]]:
    """The last state of each object, by uid."""
    return {row["object"]["metadata"]["uid"]: row["object"] for row in lines(kind)}


def name(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def condition(job: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    conditions = job.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind and c["status"] == "True"), None)


def seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def ended(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How its containers ended."""
    found = [s["state"].get("terminated") for s in pod["status"].get("containerStatuses", [])]
    return [state for state in found if state]


def failed_jobs(rows: Rows) -> None:
    failures = ((name(job), condition(job, "Failed")) for job in last("jobs").values())
    assert Counter((row["job"], row["reason"]) for row in rows) == Counter(
        (job, failed["reason"]) for job, failed in failures if failed
    )


def unfinished(rows: Rows) -> None:
    gone = {r["object"]["metadata"]["uid"] for r in lines("jobs") if r["type"] == "DELETED"}
    expected = [
        name(job)
        for uid, job in last("jobs").items()
        if uid not in gone
        and not condition(job, "Failed")
        and not condition(job, "Complete")
        and job["status"].get("startTime")
    ]
    assert sorted(row["job"] for row in rows) == sorted(expected)


def longest(rows: Rows) -> None:
    took = {}
    for job in last("jobs").values():
        failed = condition(job, "Failed") or {}
        end = job["status"].get("completionTime") or failed.get("lastTransitionTime")
        if end:
            took[name(job)] = seconds(job["status"]["startTime"], end)
    assert rows[0]["job"] == max(took, key=lambda job: took[job])
    assert rows[0]["duration_s"] == max(took.values())


def out_of_memory(rows: Rows) -> None:
    killed = [
        name(pod)
        for pod in last("pods").values()
        if any(state.get("reason") == "OOMKilled" for state in ended(pod))
    ]
    assert sorted(row["pod"] for row in rows) == sorted(killed)
    assert killed


def exit_codes(rows: Rows) -> None:
    codes: Counter[int] = Counter()
    for pod in last("pods").values():
        if states := ended(pod):
            codes[max(state["exitCode"] for state in states)] += 1
    assert {row["exit_code"]: row["pods"] for row in rows} == codes


def without_a_node(rows: Rows) -> None:
    pods = [name(pod) for pod in last("pods").values() if not pod["spec"].get("nodeName")]
    assert sorted(row["pod"] for row in rows) == sorted(pods)
    assert pods


def who_deleted(document: dict[str, Any]) -> None:
    asked = [
        entry["user"]["username"]
        for entry in audit()
        if entry["verb"] == "delete"
        and (entry["objectRef"]["resource"], entry["objectRef"].get("name")) == ("jobs", "held")
    ]
    told = [w["actor"] for w in document["writes"] if w["verb"] == "delete"]
    assert told == asked == ["alice"]


def what_alice_did(document: dict[str, Any]) -> None:
    asked = [e for e in audit() if e["user"]["username"] == "alice"]
    assert len(document["writes"]) == len(asked)
    fields = {f["path"]: (f["old"], f["new"]) for w in document["writes"] for f in w["fields"]}
    schedules = [
        row["object"]["spec"]["schedule"]
        for row in lines("cronjobs")
        if name(row["object"]) == "edited"
    ]
    assert fields[".spec.schedule"] == (schedules[0], schedules[-1])


def refused(rows: Rows) -> None:
    codes = Counter(
        (entry["user"]["username"], entry["responseStatus"]["code"])
        for entry in audit()
        if entry["responseStatus"]["code"] >= 400
        and entry["verb"] in ("create", "update", "patch", "delete", "deletecollection")
        and entry["objectRef"]["resource"] in ("pods", "jobs", "cronjobs")
    )
    assert {(row["actor"], row["code"]): row["requests"] for row in rows} == codes


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


#: What becomes of pods, by the first word that tells it.
PODS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "Scheduled": lambda pod: bool(pod.get("spec", {}).get("nodeName")),
    "Ready": is_ready,
    "Succeeded": lambda pod: pod.get("status", {}).get("phase") == "Succeeded",
    "deleted": lambda pod: bool(pod.get("metadata", {}).get("deletionTimestamp")),
}


def ten_seconds(document: dict[str, Any]) -> None:
    begin, end = (
        int(datetime.fromisoformat(f"2026-11-22T01:46:{s}Z").timestamp()) * 10**9
        for s in ("00", "10")
    )

    def then(kind: str, types: tuple[str, ...]) -> Rows:
        return [r for r in lines(kind) if r["type"] in types and begin <= r["recv"] <= end]

    found = document["happenings"]
    created = Counter(name(row["object"]) for row in then("jobs", ("ADDED",)))
    assert Counter(f["name"] for f in found if f["what"].startswith("created")) == created
    first: dict[str, int] = {}
    for row in lines("pods"):
        if row["object"]["status"]["phase"] == "Failed":
            first.setdefault(name(row["object"]), row["recv"])
    failures = sorted(pod for pod, at in first.items() if begin <= at <= end)
    told = [f["name"] for f in found if f["kind"] == "Pod" and f["what"].startswith("Failed")]
    assert sorted(told) == failures
    assert failures
    expected = Counter({"gone": len(then("jobs", ("DELETED",)))})
    before: dict[str, dict[str, Any]] = {}
    for row in lines("pods"):
        pod, old = row["object"], before.get(row["object"]["metadata"]["uid"], {})
        if begin <= row["recv"] <= end:
            expected += Counter(key for key, is_so in PODS.items() if is_so(pod) and not is_so(old))
        before[pod["metadata"]["uid"]] = pod
    words = Counter(f["what"].split(",")[0].split(" ")[0] for f in found)
    assert {key: words[key] for key in expected} == expected
    assert len(expected) == 5


def not_started(rows: Rows) -> None:
    missing: Counter[tuple[str, str]] = Counter()
    for cronjob in ("paused", "strict", "hangs"):
        (uid,) = (u for u, c in last("cronjobs").items() if name(c) == cronjob)
        begun = datetime.fromisoformat(last("cronjobs")[uid]["metadata"]["creationTimestamp"])
        runs = {name(j).rpartition("-")[2] for j in last("jobs").values() if _is_of(j, uid)}
        newest = max(row["recv"] for row in (*lines("pods"), *lines("jobs"), *lines("events")))
        for minute in range(int(begun.timestamp()) // 60 + 1, newest // (60 * 10**9) + 1):
            if str(minute) not in runs:
                due = datetime.fromtimestamp(minute * 60, tz=begun.tzinfo)
                missing[cronjob, due.isoformat().replace("+00:00", "Z")] += 1
    assert Counter((row["cronjob"], row["due_at"]) for row in rows) == missing
    assert {cronjob for cronjob, _ in missing} == {"paused", "strict", "hangs"}
    (running,) = (name(j) for j in last("jobs").values() if name(j).startswith("hangs-"))
    told = {row["cronjob"]: (row["outcome"], row["why"]) for row in rows}
    suspended, skipped, missed = (told[cronjob] for cronjob in ("paused", "hangs", "strict"))
    assert suspended == ("suspended", "spec.suspend was true")
    assert skipped[0] == "skipped"
    assert running in skipped[1]
    assert missed[0] == "missed"
    assert "startingDeadlineSeconds (15 s)" in missed[1]


def _is_of(job: Mapping[str, Any], uid: str) -> bool:
    return any(owner["uid"] == uid for owner in job["metadata"].get("ownerReferences", []))


def last_success(rows: Rows) -> None:
    best: dict[str, str | None] = {name(c): None for c in last("cronjobs").values()}
    for job in last("jobs").values():
        for owner in job["metadata"].get("ownerReferences", []):
            done = job["status"].get("completionTime") if condition(job, "Complete") else None
            if owner["kind"] == "CronJob" and done:
                best[owner["name"]] = max(best[owner["name"]] or "", done)
    assert {row["cronjob"]: row["last_success_at"] for row in rows} == best


def what_differs(document: dict[str, Any]) -> None:
    (first,), (second,) = (
        [job for job in last("jobs").values() if name(job) == wanted]
        for wanted in ("oom", "oom-once")
    )
    differing = {
        f".spec.{key}"
        for key in {*first["spec"], *second["spec"]} - {"template", "selector"}
        if first["spec"].get(key) != second["spec"].get(key)
    }
    told = {f["path"] for f in document["fields"]}
    assert differing == {path for path in told if path.count(".") == 2}
    assert differing == {".spec.backoffLimit"}
    facts = {fact["name"]: (fact["first"], fact["second"]) for fact in document["facts"]}
    reasons = [condition(first, "Failed"), condition(second, "Complete")]
    assert facts["reason"] == tuple(found["reason"] for found in reasons if found)
    failures = [first["status"]["failed"], second["status"]["failed"]]
    assert facts["pods failed"] == tuple(map(str, failures))
    limits = [first["spec"]["backoffLimit"], second["spec"]["backoffLimit"]]
    assert [failures[0] > limits[0], failures[1] > limits[1]] == [True, False]


def at_once(rows: Rows) -> None:
    """A pod runs from the first sight of startTime to its end, or until it is gone."""
    changes: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    begun, over = set(), set()
    for row in lines("pods"):
        pod = row["object"]
        uid = pod["metadata"]["uid"]
        (job,) = (o["uid"] for o in pod["metadata"].get("ownerReferences", [{"uid": ""}]))
        if pod["status"].get("startTime") and uid not in begun:
            begun.add(uid)
            changes[job].append((row["recv"], 1))
        finished = pod["status"]["phase"] in ("Succeeded", "Failed") or row["type"] == "DELETED"
        if uid in begun and uid not in over and finished:
            over.add(uid)
            changes[job].append((row["recv"], -1))
    most: Counter[str] = Counter()
    for job, steps in changes.items():
        running = 0
        for _, step in sorted(steps):
            running += step
            most[job] = max(most[job], running)
    names = {uid: name(job) for uid, job in last("jobs").items()}
    assert Counter((row["job"], row["most_running"]) for row in rows) == Counter(
        (names[uid], count) for uid, count in most.items()
    )


def by_the_rules(document: dict[str, Any]) -> None:
    audited = audited_writes(NAME, CONTROLLERS["job"])
    summary = document["summary"]["job"]
    assert document["divergences"] == []
    for action in ("pod-create", "pod-delete"):
        assert summary[action]["match"] + summary[action]["match-lagged"] == audited[action]


#: By the number of the question.
CHECKS: Mapping[str, Callable[[Any], None]] = {
    "1": failed_jobs, "2": unfinished, "3": longest, "4": out_of_memory, "5": exit_codes,
    "6": without_a_node, "7": who_deleted, "8": what_alice_did, "9": refused, "10": ten_seconds,
    "11": not_started, "12": last_success, "13": what_differs, "14": at_once, "15": by_the_rules,
}  # fmt: skip
ASKED = {number: command for number, _, command in ROW.findall(PAGE.read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `run` is, as the page says to make it."""
    place = tmp_path_factory.mktemp("questions")
    log, audited = (TRACES / NAME / f"{kind}.jsonl.zst" for kind in ("watch", "audit"))
    with pytest.raises(SystemExit):
        main(["import", str(log), "--with", str(audited), "-o", str(place / "run")])
    return place


def test_each_question_has_its_check() -> None:
    assert list(ASKED) == list(CHECKS)


@pytest.mark.parametrize("number", list(CHECKS))
def test_the_answer_is_that_of_the_lines(run, folder: Path, number: str, monkeypatch) -> None:  # noqa: F811
    monkeypatch.chdir(folder)
    code, out, err = run(*shlex.split(ASKED[number])[1:])
    assert code == 0, err
    CHECKS[number](json.loads(out))
