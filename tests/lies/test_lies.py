"""Each planted lie changes what it says it changes, and nothing else."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.lies import KINDS, plant
from tests.lies.record import OBSERVATIONS, Lie, Record, Row, spread
from tests.support.traces import ALL, TRACES, json_lines

FIRST = ("v1.36.3-all", "v1.28.15-all")
ROOM = 64

#: Where, by kind, the objects of replaced rows may differ: (resource, start of the path).
_STATUS = (("jobs", "status."),)
_BODY = (("pods", "metadata."), ("pods", "spec."))
_WHEN = tuple((r, "") for r in ("jobs", "pods", "events", "cronjobs"))
ALLOWED: dict[str, tuple[tuple[str, str], ...]] = {
    "body-name": (("pods", ""), ("events", "message")),
    "body-": _BODY,
    "pod-removed": (),
    "pod-tail-removed": (),
    "pod-extra": (),
    "pod-duplicate-index": _BODY,
    "pod-index-out-of-range": _BODY,
    "pod-completed-index": _BODY,
    "pod-index-skipped": (("pods", ""), ("events", "message")),
    "pod-": (("pods", "status."),),
    "status-": _STATUS,
    "uncounted-": _STATUS,
    "completed-indexes-": _STATUS,
    "failed-indexes-": _STATUS,
    "ready-": _STATUS,
    "terminating-": _STATUS,
    "start-time-": _STATUS,
    "completion-time-": _STATUS,
    "terminal-": _STATUS,
    "interim-": _STATUS,
    "suspended-": _STATUS,
    "resumed-": _STATUS,
    "condition": _STATUS,
    "finalizer-": (("pods", "metadata.finalizers"),),
    "adopt": (
        ("pods", "metadata.labels"),
        ("pods", "metadata.ownerReferences"),
        ("pods", "metadata.finalizers"),
    ),
    "release-": (
        ("pods", "metadata.labels"),
        ("pods", "metadata.ownerReferences"),
        ("pods", "metadata.finalizers"),
    ),
    "deletion-wrong-pod": (("pods", ""), ("events", "message"), ("jobs", "status.uncounted")),
    "deletion-": (),
    "spec-edit-late": (("jobs", "spec."), ("jobs", "metadata.generation"), ("jobs", "status.")),
    "spec-": (("jobs", "spec."),),
    "event-of-another-job": (("events", "involvedObject."),),
    "event-": (
        ("events", "message"),
        ("events", "reason"),
        ("events", "type"),
        ("events", "count"),
    ),
    "silent-": (("jobs", "status."), ("pods", "metadata.finalizers")),
    "cron-wrong-name": _WHEN,
    "cron-tick-skipped": (("cronjobs", "status."),),
    "cron-history-wrong": (("events", "message"),),
    "cron-event-name": (("events", "message"),),
    "cron-body-image": (("jobs", "spec.template."), ("pods", "spec.containers.")),
    "cron-body-": (("jobs", "metadata."), ("jobs", "spec.")),
    "cron-last-": (("cronjobs", "status."),),
    "cron-active-": (("cronjobs", "status."),),
    "cron-": (("cronjobs", "spec."),),
    "ttl-": (("jobs", "spec.ttlSecondsAfterFinished"),),
}


@cache
def record(name: str) -> Record:
    return Record(spread(json_lines(TRACES / name / "watch.jsonl.zst"), ROOM))


@cache
def planted(kind: str) -> tuple[Record, list[Row], Lie]:
    """The kind planted into the first trace that has a place for it."""
    for name in (*FIRST, *ALL):
        result = plant(kind, record(name), random.Random(kind))
        if result is not None:
            return record(name), *result
    raise AssertionError(f"no shipped trace has a place for {kind}")


def _key(row: Row) -> tuple[str, str, str, str]:
    meta = row["object"]["metadata"]
    return row["resource"], meta.get("uid", ""), meta["resourceVersion"], row["type"]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}{key}.")
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from _leaves(item, f"{path}{position}.")
    else:
        yield path, json.dumps(value)


def _differences(old: Row, new: Row) -> set[str]:
    left, right = set(_leaves(old["object"])), set(_leaves(new["object"]))
    return {path for path, _ in left ^ right}


@cache
def _changes(kind: str) -> tuple[list[Row], list[Row], list[tuple[Row, Row]], Lie]:
    """Rows that are gone, rows that are new, rows that were replaced."""
    rec, rows, lie = planted(kind)
    kept = {id(row) for row in rows}
    was = {id(row) for row in rec.rows}
    gone = [row for row in rec.rows if id(row) not in kept]
    new = [row for row in rows if id(row) not in was]
    by_key = {_key(row): row for row in gone}
    pairs = [(by_key.pop(_key(row)), row) for row in new if _key(row) in by_key]
    replaced = {id(row) for _, row in pairs}
    return list(by_key.values()), [row for row in new if id(row) not in replaced], pairs, lie


def _names(row: Row) -> set[str]:
    """Names of the keys that a row belongs to."""
    obj = row["object"]
    names = {obj["metadata"]["name"]}
    names |= {ref["name"] for ref in obj["metadata"].get("ownerReferences", ())}
    if row["resource"] == "events":
        names.add(obj["involvedObject"]["name"])
    return names


def allowed(kind: str) -> tuple[tuple[str, str], ...]:
    return next(paths for start, paths in ALLOWED.items() if kind.startswith(start))


@pytest.mark.parametrize("kind", KINDS)
def test_it_names_the_object_that_it_lies_about(kind: str) -> None:
    gone, new, pairs, lie = _changes(kind)
    touched = [*gone, *new, *(row for _, row in pairs)]
    assert touched
    assert lie.kind == kind
    assert {row["object"]["metadata"].get("namespace") for row in touched} == {lie.namespace}
    keys = {lie.key, *lie.also}
    jobs = {
        f"{lie.namespace}/{n}"
        for row in touched
        if row["resource"] == "jobs"
        for n in [row["object"]["metadata"]["name"]]
    }
    assert jobs <= keys
    assert lie.actions
    assert lie.verdicts
    assert lie.description


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_stay_differ_only_where_the_kind_says(kind: str) -> None:
    _, _, pairs, _ = _changes(kind)
    for old, new in pairs:
        assert old["recv"] == new["recv"]
        for path in _differences(old, new):
            assert any(
                old["resource"] == resource and path.startswith(start)
                for resource, start in allowed(kind)
            ), (old["resource"], path)


@pytest.mark.parametrize("kind", KINDS)
def test_managed_fields_stay_what_they_were(kind: str) -> None:
    _, _, pairs, lie = _changes(kind)
    if kind == "deletion-wrong-pod":
        pytest.skip("two pods change places")
    for old, new in pairs:
        was, now = (r["object"]["metadata"].get("managedFields") for r in (old, new))
        if kind == "cron-wrong-name":
            was = json.loads(
                json.dumps(was).replace(lie.also[0].split("/")[1], lie.also[1].split("/")[1])
            )
        assert was == now


@pytest.mark.parametrize("kind", KINDS)
def test_streams_stay_in_the_order_of_the_store(kind: str) -> None:
    rec, rows, _ = planted(kind)
    for resource in ("jobs", "pods", "events", "cronjobs"):
        mine = [r for r in rows if r["resource"] == resource and r["type"] in OBSERVATIONS]
        versions = [int(r["object"]["metadata"]["resourceVersion"]) for r in mine]
        theirs = [r for r in rec.rows if r["resource"] == resource and r["type"] in OBSERVATIONS]
        before = [int(r["object"]["metadata"]["resourceVersion"]) for r in theirs]
        if before == sorted(before):
            assert versions == sorted(versions)
        counts = Counter(versions)
        twice = {v for v, n in counts.items() if n > 1}
        assert twice <= {v for v, n in Counter(before).items() if n > 1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_plants_the_same_lie_again(kind: str) -> None:
    rec, rows, lie = planted(kind)
    again = plant(kind, rec, random.Random(kind))
    assert again is not None
    assert again[1] == lie
    assert again[0] == rows


@pytest.mark.full
def test_the_rows_given_are_not_changed() -> None:
    rows = list(json_lines(TRACES / FIRST[0] / "watch.jsonl.zst"))
    before = json.dumps(rows)
    indexed = Record(rows)
    for kind in KINDS:
        plant(kind, indexed, random.Random(kind))
    assert json.dumps(rows) == before


def test_where_no_resource_version_is_free_all_are_spread_alike() -> None:
    rows = list(json_lines(TRACES / FIRST[0] / "watch.jsonl.zst"))
    result = plant("pod-extra", rows, random.Random(0))
    assert result is not None
    old = [r for r in rows if r["type"] in OBSERVATIONS and r["resource"] == "leases"]
    new = [r for r in result[0] if r["type"] in OBSERVATIONS and r["resource"] == "leases"]
    factors = {
        int(b["object"]["metadata"]["resourceVersion"])
        / int(a["object"]["metadata"]["resourceVersion"])
        for a, b in zip(old, new, strict=True)
    }
    assert len(factors) == 1
    assert factors.pop() > 1
