"""The same run as other recorders would have seen it: no divergence that the run does not have.

`python -m bench views` asks it of every record and view; here are views of one small record.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections import Counter, defaultdict
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.erasures import Row
from tests.support.judged_rows import held, judgements_of
from tests.support.other_clocks import moved
from tests.support.traces import TRACES, json_lines
from tests.support.views import VIEWS, frozen, lagging, looked_once, offset, seen
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.verdict import Judgement, Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.reading.reader import TraceReader

NAME = "v1.36.3-twins"
HELD = (
    "offset -300 s",
    "offset -0.3 s",
    "offset +3 s",
    "step -60 s",
    "step -1 s",
    "step +1 s",
    "step +60 s",
    "controllers +1 s",
    "controllers +3 s",
    "controllers and kubelets +1 s",
    "controllers and kubelets +3 s",
    "lag 2 s",
    "lag 4 s",
    "freeze 3 x 8 s",
    "late pods 5 s",
    "lag 60 s",
    "late jobs 3 s",
    "late events 3 s",
    "one namespace",
    "jobs and pods",
    "jobs",
    "cronjobs and jobs",
    "no pods",
    "no jobs",
    "no Events",
    "no leases",
    "no managedFields",
    "lists 10 s apart",
    "lists by namespace",
    "polls every 10 s",
    "polls every 60 s",
    "kubelets -1 s",
    "kubelets -3 s",
    "an API server +2 s",
)


@cache
def rows() -> tuple[Row, ...]:
    """The record, which nobody changes."""
    return tuple(json_lines(TRACES / NAME / "watch.jsonl.zst"))


@pytest.mark.parametrize("view", HELD)
def test_a_view_has_no_divergence(view: str) -> None:
    made = judgements_of(seen(view, rows()), NAME)
    assert [judgement for judgement in made if judgement.divergent] == []
    most = VIEWS[view].unknowable_max
    if most is not None:  # nor is what would be one unknowable instead
        unknowable = sum(judgement.verdict is Verdict.UNKNOWABLE for judgement in made)
        assert unknowable <= most * len(made)


@pytest.mark.parametrize("view", ["offset -300 s", "offset -0.3 s", "offset +60 s"])
def test_a_constant_offset_of_the_recorders_clock_changes_no_verdict(view: str) -> None:
    made = judgements_of(seen(view, rows()), NAME)
    assert [_but_for_time(j) for j in made] == [
        _but_for_time(j) for j in judgements_of(rows(), NAME)
    ]


def test_a_verdict_that_hangs_on_an_offset_says_what_tells_it() -> None:
    reader = TraceReader(held(rows(), NAME).snapshot, clock_offset_ns=3 * NS_PER_S)
    found = Judge(reader, resolve_era(reader, None, None)).report().divergences
    hanging = 0
    for judgement in found:
        assumed = [each for each in judgement.assumptions if each.kind == "clock-offset"]
        if judgement.verdict is Verdict.EXTRA:
            assert assumed == []
        elif judgement.fields and all("time" in each.path.lower() for each in judgement.fields):
            [one] = assumed
            assert one.evidence == "the recorder's clock is put right by --clock-offset"
            assert one.from_ns <= judgement.time_ns <= one.until_ns
            hanging += 1
    assert hanging > 10


def _but_for_time(judgement: Judgement) -> Judgement:
    """The judgement without when it was received, which is the recorder's to say."""
    assumed = tuple(each._replace(from_ns=0, until_ns=0) for each in judgement.assumptions)
    return replace(judgement, time_ns=0, assumptions=assumed)


@pytest.mark.parametrize("view", ["no leases", "no managedFields"])
def test_what_decides_nothing_changes_no_verdict(view: str) -> None:
    made = judgements_of(seen(view, rows()), NAME)
    assert [(j.object, j.action, j.subject, j.verdict) for j in made] == [
        (j.object, j.action, j.subject, j.verdict) for j in judgements_of(rows(), NAME)
    ]


def by_stream(some: list[Row] | tuple[Row, ...]) -> dict[str, list[Any]]:
    """What each stream brought, in its order."""
    streams = defaultdict(list)
    for row in some:
        streams[row["resource"]].append((row["type"], row["object"]))
    return streams


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_leaves_the_rows_that_it_was_given(view: str) -> None:
    few = copy.deepcopy(list(rows()[:120]))
    seen(view, few)
    assert few == list(rows()[:120])


@pytest.mark.parametrize("view", [name for name in VIEWS if name.startswith(("lag", "late", "fr"))])
def test_a_late_stream_keeps_its_order_and_is_never_early(view: str) -> None:
    made = seen(view, rows())
    assert by_stream(made) == by_stream(rows())
    assert [row["recv"] for row in made] == sorted(row["recv"] for row in made)
    for stream in by_stream(made):
        was = [row["recv"] for row in rows() if row["resource"] == stream]
        now = [row["recv"] for row in made if row["resource"] == stream]
        assert all(before <= after for before, after in zip(was, now, strict=True))


def test_lags_differ_between_streams_and_have_a_limit() -> None:
    made = lagging(rows(), random.Random(1), max_s=2.0)
    was = Counter(id(row["object"]) for row in rows())
    assert was == Counter(id(row["object"]) for row in made)
    at = {id(row["object"]): row["recv"] for row in rows()}
    late = [row["recv"] - at[id(row["object"])] for row in made]
    assert max(late) <= 2 * NS_PER_S < max(late) * 2
    assert [row["resource"] for row in made] != [row["resource"] for row in rows()]


def test_nothing_comes_while_all_streams_stand_still() -> None:
    made = frozen(rows(), random.Random(1), for_s=4.0, times=2)
    times = [row["recv"] for row in made]
    still = [b - a for a, b in itertools.pairwise(times) if b - a > 3.9 * NS_PER_S]
    assert len(still) == 2


def test_an_offset_is_of_every_row() -> None:
    made = offset(rows(), random.Random(1), by_s=-0.3)
    assert {b["recv"] - a["recv"] for a, b in zip(rows(), made, strict=True)} == {-300_000_000}


def test_lists_by_namespace_hold_one_namespace_each() -> None:
    made = looked_once(rows(), random.Random(1), apart_s=0.05, by_namespace=True)
    listed: list[set[str]] = []
    for row in made:
        if row["type"] == "LIST_BEGIN":
            listed.append(set())
        elif row["type"] == "LIST":
            listed[-1].add(row["object"]["metadata"].get("namespace", ""))
    assert len(listed) > len(by_stream(rows()))
    assert all(len(of) == 1 for of in listed)


@pytest.mark.parametrize(
    ("text", "later"),
    [
        ("2026-11-21T05:42:59Z", "2026-11-21T05:43:00Z"),
        ("2026-11-21T05:42:34.951380Z", "2026-11-21T05:42:35.951380Z"),
    ],
)
def test_a_time_keeps_its_digits(text: str, later: str) -> None:
    assert moved(text, NS_PER_S) == later


def test_clocks_of_controllers_move_what_they_write_and_nothing_else() -> None:
    made = seen("controllers and kubelets +1 s", rows())
    left = {_identity(row) for row in made}
    kept = [row for row in rows() if _identity(row) in left]
    assert len(kept) > 0.8 * len(rows())  # without Jobs whose pods would have ended otherwise
    for before, after in zip(kept, made, strict=True):
        meta = dict(before["object"].get("metadata") or {})
        told = dict(after["object"].get("metadata") or {})
        if before["resource"] == "events":
            meta.pop("name", None)
            told.pop("name", None)
        assert told == meta
    changed = {a["resource"] for a, b in zip(kept, made, strict=True) if a != b}
    assert changed == {"jobs", "pods", "events", "leases"}


def _identity(row: Row) -> tuple[object, ...]:
    meta = row["object"].get("metadata") or {}
    key = row["recv"], row["resource"], row["type"]
    return *key, meta.get("uid"), meta.get("resourceVersion")


@pytest.mark.parametrize(
    ("ended", "deleted", "there"),
    [
        ("00:00:20", "00:00:30", True),
        ("00:00:30", "00:00:20", True),
        ("00:00:30", "00:00:30", False),  # by a clock 3 s behind it ended before the other failed
        ("00:00:32", "00:00:30", False),
    ],
)
def test_no_kubelet_is_behind_whose_pod_ended_as_another_was_deleted(
    ended: str, deleted: str, *, there: bool
) -> None:
    """Which was first decides whether a Job is in back-off."""
    owner = [{"kind": "Job", "name": "j", "uid": "j"}]
    job = {"metadata": {"namespace": "a", "name": "j", "uid": "j"}}
    finished = {"state": {"terminated": {"finishedAt": f"1970-01-01T{ended}Z"}}}
    one = {"metadata": {"namespace": "a", "name": "p", "uid": "p", "ownerReferences": owner},
           "status": {"phase": "Succeeded", "containerStatuses": [finished]}}  # fmt: skip
    going = {"deletionTimestamp": f"1970-01-01T{deleted}Z", "ownerReferences": owner}
    other = {"metadata": {"namespace": "a", "name": "q", "uid": "q", **going}}
    few = [
        {"recv": NS_PER_S, "resource": "jobs", "type": "ADDED", "object": job},
        {"recv": 40 * NS_PER_S, "resource": "pods", "type": "MODIFIED", "object": one},
        {"recv": 40 * NS_PER_S, "resource": "pods", "type": "MODIFIED", "object": other},
    ]
    assert len(seen("kubelets -3 s", few)) == (3 if there else 0)


@pytest.mark.parametrize(
    ("schedule", "at_s", "there"),
    [
        ("* * * * *", 56, True),
        ("* * * * *", 58, False),  # by a clock 3 s ahead it is after the slot of 60
        ("@every 40s", 58, True),  # created at 10: slots at 50, 90
        ("@every 40s", 88, False),
    ],
)
def test_no_clock_is_ahead_for_a_cron_job_that_was_served_just_before_a_slot(
    schedule: str, at_s: int, there: bool
) -> None:
    meta = {"namespace": "a", "name": "c", "uid": "u", "creationTimestamp": "1970-01-01T00:00:10Z"}
    cron_job = {"metadata": meta, "spec": {"schedule": schedule}}
    served = {**cron_job, "status": {"lastScheduleTime": "1970-01-01T00:00:50Z"}}
    few = [
        {"recv": 11 * NS_PER_S, "resource": "cronjobs", "type": "ADDED", "object": cron_job},
        {"recv": at_s * NS_PER_S, "resource": "cronjobs", "type": "MODIFIED", "object": served},
    ]
    assert len(seen("controllers +3 s", few)) == (2 if there else 0)


@pytest.mark.parametrize("view", VIEWS)
def test_a_bookmark_is_an_object_without_a_name(view: str) -> None:
    mark = {"resourceVersion": "400", "creationTimestamp": None}
    empty = {"metadata": mark, "spec": {}, "status": {}}
    last = {"recv": rows()[119]["recv"], "type": "BOOKMARK", "object": empty}
    marks = [{**last, "resource": stream} for stream in ("leases", "jobs", "pods", "events")]
    seen(view, [*rows()[:120], *marks])
