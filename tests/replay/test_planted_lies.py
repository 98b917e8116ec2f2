"""A diff that never says no is worth nothing: each planted lie is found, on its own Job only."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
import pytest

from tests.lies import KINDS, Lie, Record, draws_of, plant
from tests.support.judged_rows import divergences_of, judge_of, judgements_of
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.base.coverage import ALL
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era

PLACES = ("v1.36.3-all", "v1.28.15-all", "v1.34.4-all")
OLD_PLACES = ("v1.23.17-all", "v1.21.14-all", "v1.17.17-all")

#: Kinds of which a single record cannot tell that they are lies, with the reason.
UNDETECTABLE = {
    "batch-early": "an older delta may have had a timer pending",
    "event-missing": "Events may be dropped, merged or late",
    "spec-replacement-policy": "decides nothing where no pod was terminating at the wrong moment",
    "status-ready-lags": "an earlier cut writes it",
    "body-container-security": "admission may add it; told only where three pods show it is odd",
    "body-image-pull-secrets": "as body-container-security",
    "body-preemption": "as body-container-security",
    "body-priority": "as body-container-security",
    "body-resources": "as body-container-security",
    "body-service-account": "as body-container-security",
    "body-toleration-exists": "as body-container-security",
    "body-toleration-gone": "as body-container-security",
    "body-toleration-seconds": "as body-container-security",
    "finalizer-orphan-kept": "told only where the record goes on for a while after the end",
    "ttl-early": "a user may have deleted the Job in the foreground: an audit log tells",
    "ttl-longer": "as ttl-early",
}
#: Kinds about what came after 1.23.
NEWER = (
    "body-failure-count", "body-index-label-gone", "condition-policy-message",
    "deletion-missing-policy", "deletion-wrong-pod", "failed-indexes-", "interim-", "pod-exit-code",
    "pod-never-ready", "ready-absent", "spec-always-suspended", "spec-index-limit-",
    "spec-managed-by", "spec-max-failed-", "spec-policy-", "spec-success-", "status-ready-",
    "status-terminating-", "terminating-absent",
    "cron-body-scheduled",  # an annotation of 1.28
    "ttl-wrong-job",  # the old records have no other Job in its namespace
)  # fmt: skip
#: Kinds for which the shipped traces have no place: `tests/lies/test_lies.py` plants them elsewhere.
NO_PLACE = {
    "pod-finish-later",
    "pod-index-skipped",
    "first-sync-late",
    "spec-backoff-limit-passed",
}
CRON = sorted(kind for kind in set(KINDS) - set(UNDETECTABLE) if kind.startswith(("cron-", "ttl-")))
FOUND = sorted(set(KINDS) - set(UNDETECTABLE) - NO_PLACE - set(CRON))


@cache
def record(name: str) -> Record:
    return Record(list(json_lines(TRACES / name / "watch.jsonl.zst")))


def told_of(rows: list, name: str) -> dict[str, list[str]]:
    """What is divergent, by the object that it is told of, as "namespace/name"."""
    found: dict[str, list[str]] = {}
    for judgement in divergences_of(rows, name):
        where = f"{judgement.object.namespace}/{judgement.object.name}"
        found.setdefault(where, []).append(f"{judgement.action} {judgement.verdict.value}")
    return found


def planted(kind: str, places: tuple[str, ...] = PLACES) -> tuple[str, list, Lie] | None:
    start = crc32(kind.encode()) % len(places)
    for name in (*places[start:], *places[:start]):
        answer = plant(kind, record(name), draws_of(kind, name))
        if answer is not None:
            return name, *answer
    return None


@pytest.mark.parametrize("name", PLACES + OLD_PLACES)
def test_the_untouched_record_says_nothing(name: str) -> None:
    assert told_of(record(name).rows, name) == {}


@pytest.mark.parametrize("name", [PLACES[0], OLD_PLACES[0]])
@pytest.mark.parametrize("kind", ["pod-removed", "cron-job-removed"])
def test_what_is_remembered_of_a_key_is_what_is_said_of_it_again(kind: str, name: str) -> None:
    judgements_of(record(name).rows, name)  # now all keys are known that the lie leaves alone
    lied = planted(kind, (name,))
    assert lied is not None
    with judge_of(lied[1], name) as judge:
        assert judgements_of(lied[1], name) == judge.report().judgements


#: Kinds that only what other namespaces did gives away.
NEEDS_OTHERS = {"spec-deadline-sooner"}
#: Kinds that what was done for other Jobs of the namespace gives away.
NEEDS_NEIGHBOURS = {"adopted-owner-block", "silent-last-sync", "silent-midway"}


def of_namespaces(rows: list, namespaces: set[str]) -> list:
    """The rows of these namespaces, and of what has none: a tenth of a record."""
    return [
        row
        for row in rows
        if row["resource"] not in {"jobs", "pods", "cronjobs", "events"}
        or row["object"].get("metadata", {}).get("namespace") in {None, *namespaces}
    ]


def of_one(rows: list, keys: set[str]) -> list:
    """The rows of these Jobs, or of the CronJobs that they are of, with their pods and Events."""
    names = {re.sub(r"-\d+$", "", key.split("/")[1]) for key in keys}
    return [row for row in rows if not (who := names_of(row)) or any(map(of_any(names), who))]


def of_any(names: set[str]) -> Callable[[str], bool]:
    return lambda name: any(name == of or name.startswith(f"{of}-") for of in names)


def names_of(row: dict[str, Any]) -> list[str]:
    """Whom a row is about, and who owns it; nobody where it is about a namespace or a Lease."""
    body, meta = row["object"], row["object"].get("metadata", {})
    if row["resource"] == "events":
        return [body.get("involvedObject", {}).get("name", "")] if meta.get("name") else []
    if row["resource"] not in {"jobs", "pods", "cronjobs"} or not meta.get("name"):
        return []
    return [meta["name"], *(owner["name"] for owner in meta.get("ownerReferences", ()))]


def check(kind: str, places: tuple[str, ...], *, whole: bool) -> None:
    lied = planted(kind, places)
    assert lied is not None, "no place for this lie in any of the traces"
    name, rows, lie = lied
    if not whole:
        keys = {lie.key, *lie.also}
        rows = of_namespaces(rows, {key.split("/")[0] for key in keys})
        if kind not in NEEDS_NEIGHBOURS:
            rows = of_one(rows, keys)
    told = told_of(rows, name)
    # A lie in the spec of a CronJob's Job is told of the CronJob that would have posted it.
    own = {key for key in told if lie.key.startswith(key)}
    assert set(told) <= {*own, *lie.also}, lie.description
    assert own or lie.doubt, f"not found: {lie.description}"


@pytest.mark.parametrize("kind", FOUND + CRON)
def test_a_lie_is_found_in_the_rows_of_its_object(kind: str) -> None:
    check(kind, PLACES, whole=kind in NEEDS_OTHERS)


@pytest.mark.full
@pytest.mark.parametrize("kind", FOUND + CRON)
def test_a_lie_is_found_on_its_own_object_and_nowhere_else(kind: str) -> None:
    check(kind, PLACES, whole=True)


@pytest.mark.parametrize("kind", [kind for kind in FOUND + CRON if not kind.startswith(NEWER)])
def test_a_lie_about_an_old_controller_is_found(kind: str) -> None:
    check(kind, OLD_PLACES, whole=True)


#: Where a lie was planted once and not found: kind, record, salt.
ONCE_MISSED = [
    ("status-failed-low-once", "v1.21.14-all", 9401),  # two syncs of one key beside each other
    ("silent-midway", "v1.34.4-all", 9401),  # a refused creation excuses nothing else
    ("retry-early", "v1.23.17-all", 9401),  # a tracked Job's retries in the work queue
    ("retry-early", "v1.23.17-all", 20231),  # each count has a wait of its own, and none between
    ("silent-last-sync", "v1.21.14-all", 266404),  # due before a deadline that may wake nobody
    ("cron-tick-skipped", "v1.20.15-all", 984018717),  # a pass between two rests of the controller
    # What comes after a sync that failed wakes its Job besides the retry.
    ("silent-midway", "v1.21.14-all", 2),
    ("silent-last-sync", "v1.23.17-all", 5),
    # The retry of a refused creation is not all that wakes a Job with a deadline.
    ("deadline-late", "../tests/data/replay/deadline-after-a-refusal", 0),
]


@pytest.mark.parametrize(("kind", "name", "salt"), ONCE_MISSED)
def test_a_lie_that_was_missed_is_found(kind: str, name: str, salt: int) -> None:
    answer = plant(kind, record(name), draws_of(kind, name, salt))
    assert answer is not None
    rows, lie = answer
    told = told_of(rows, name)
    assert [key for key in told if lie.key.startswith(key)] == list(told) != []


def test_a_first_call_long_after_its_sync_began_is_late_where_the_process_had_the_time() -> None:
    """A sync reads its clock for a startTime as it begins; its first pod comes half a minute later.

    The record is a part, one Job of a recording: what its controller did beside that is not there,
    so that the part proves nothing. As a record of all that there was, it proves the silence.
    """
    kind, name = "start-time-early", "../tests/data/replay/events-name-the-job-they-saw"
    answer = plant(kind, record(name), draws_of(kind, name, 0))
    assert answer is not None
    rows, lie = answer
    for rows_of, scope, told in (
        (rows, ALL, [(lie.key, "pod-create", Verdict.LATE)]),
        (rows, None, []),
        (record(name).rows, ALL, []),
    ):
        with judge_of(rows_of, name, scope=scope) as judge:
            assert [
                (f"{j.object.namespace}/{j.object.name}", j.action, j.verdict)
                for j in judge.report().judgements
                if j.divergent
            ] == told


def test_what_a_process_left_undone_is_told_though_another_has_come() -> None:
    """The record ends a second after a restart: only the process before had the time for it."""
    name = "v1.36.3-restart"
    _, begun_ns = record(name).handovers[0]
    answer = plant("silent-midway", record(name), draws_of("silent-midway", name, 3))
    assert answer is not None
    rows, lie = answer
    told = told_of([row for row in rows if row["recv"] <= begun_ns + 10**9], name)
    assert {*told} == {lie.key}
    assert told[lie.key].count("status-update missing") == 2
    assert (
        told_of([row for row in record(name).rows if row["recv"] <= begun_ns + 10**9], name) == {}
    )


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "doubt"),
    [
        ("retry-early", "only the retry of a sync that left no write"),
        ("retry-late", "its failures waited for retries of syncs that left no write"),
    ],
)
def test_a_retry_that_syncs_without_a_write_explain_is_told_as_ambiguous(
    kind: str, doubt: str
) -> None:
    """A conflict leaves no trace, counts as a retry and has one of its own."""
    name = "v1.24.17-all"
    answer = plant(kind, record(name), draws_of(kind, name, 984018717))
    assert answer is not None
    rows, lie = answer
    with judge_of(rows, name) as judge:
        doubted = [j for j in judge.report().judgements if doubt in j.why]
    assert [f"{j.object.namespace}/{j.object.name}" for j in doubted] == [lie.key]
    assert all(j.ambiguous and not j.divergent for j in doubted)
    with judge_of(record(name).rows, name) as judge:
        assert not any(doubt in j.why for j in judge.report().judgements)


@pytest.mark.parametrize("kind", (FOUND + CRON)[::40])
def test_a_lie_in_a_trace_on_disk_is_judged_alike(kind: str, tmp_path: Path) -> None:
    lied = planted(kind)
    assert lied is not None
    name, rows, _ = lied
    log = tmp_path / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    reader = import_log(log, tmp_path / "trace", name)
    on_disk = Judge(reader, resolve_era(reader, None, None)).report()
    with judge_of(rows, name) as judge:
        assert judge.report().judgements == on_disk.judgements


def test_an_event_of_a_refused_call_is_a_warning() -> None:
    """Where a sync met a refusal its Event was explained, whatever its type."""
    rows = record("v1.34.4-all").rows
    at = next(
        i
        for i, row in enumerate(rows)
        if row["type"] == "ADDED"
        and row["object"].get("reason") == "FailedCreate"
        and row["object"]["involvedObject"]["name"] == "squeezed"
    )
    event = {**rows[at]["object"], "type": "Normal"}
    lied = [*rows[:at], {**rows[at], "object": event}, *rows[at + 1 :]]
    assert told_of(lied, "v1.34.4-all") == {"t-quota/squeezed": ["event extra"]}
