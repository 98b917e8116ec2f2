"""A deletion that nobody owns up to may have been another's, at the moment the rules wanted it.

And a pod for a Job that has ended may follow from a cache that does not show the end yet.
"""

from __future__ import annotations

import pytest

from tests.lies import Lie, draws_of, plant
from tests.support.judged_rows import judge_of
from tests.support.traces import TRACES, json_lines
from tracekit.check.verdict import Judgement, Reason, Verdict

TRACE = "v1.28.15-all"


def lied(kind: str, name: str, salt: int) -> tuple[list, list, Lie]:
    """The rows of a record, the same with a lie, and the lie."""
    rows = list(json_lines(TRACES / name / "watch.jsonl.zst"))
    planted = plant(kind, rows, draws_of(kind, name, salt))
    assert planted is not None
    return rows, *planted


def made_of(rows: list, name: str) -> list[Judgement]:
    with judge_of(rows, name) as judge:
        return judge.report().judgements


def told_of(lie: Lie, made: list[Judgement]) -> list[Judgement]:
    """What is said of the Job that lies."""
    return [j for j in made if f"{j.object.namespace}/{j.object.name}" == lie.key]


def deletions(rows) -> dict[str, tuple[Verdict, bool]]:
    """What is said of each pod's deletion, and whether it is ambiguous."""
    return {
        f"{j.object.namespace}/{j.subject}": (j.verdict, j.ambiguous)
        for j in made_of(rows, TRACE)
        if j.action == "pod-delete" and j.verdict in (Verdict.MATCH, Verdict.MATCH_LAGGED)
    }


def names_a_pod(row) -> bool:
    return (
        row["resource"] == "events"
        and row["object"].get("reason") == "SuccessfulDelete"
        and (row["object"]["involvedObject"]["kind"] == "Job")
    )


@pytest.mark.full
def test_the_event_that_names_the_pod_tells_whose_deletion_it_is() -> None:
    rows = list(json_lines(TRACES / TRACE / "watch.jsonl.zst"))
    before = deletions(rows)
    assert before
    assert not any(ambiguous for _, ambiguous in before.values())
    event = next(row for row in rows if names_a_pod(row))
    namespace = event["object"]["metadata"]["namespace"]
    pod = f"{namespace}/{event['object']['message'].removeprefix('Deleted pod: ')}"
    after = deletions([row for row in rows if row is not event])
    assert after == before | {pod: (before[pod][0], True)}


def test_without_events_no_deletion_is_certainly_the_controllers() -> None:
    rows = list(json_lines(TRACES / TRACE / "watch.jsonl.zst"))
    told = deletions([row for row in rows if row["resource"] != "events"])
    assert told
    assert all(ambiguous for _, ambiguous in told.values())


def test_a_pod_for_a_job_that_had_ended_is_told_to_need_an_old_cache() -> None:
    """Up to 1.33 a sync on a Job that does not show its own end yet creates again."""
    # The salt plants at a Job of which the record shows no more after its end.
    _, rows, lie = lied("pod-extra-after-finish", TRACE, 7711)
    pod = lie.description.split()[1]
    found = told_of(lie, made_of(rows, TRACE))
    assert not any(j.divergent for j in found)
    [created] = [j for j in found if j.action == "pod-create" and j.subject == pod]
    assert created.ambiguous
    assert [assumption.kind for assumption in created.assumptions] == ["stale-cache"]
    assert not any(j.ambiguous for j in found if j is not created)


def test_a_deadline_that_was_kept_late_without_a_proof_says_so() -> None:
    """The deadline is written three seconds sooner: a busy controller acts as late as this one."""
    name = "v1.23.17-all"
    real, late, lie = lied("spec-deadline-sooner", name, 7711)
    for rows, ambiguous in ((real, []), (late, ["pod-delete"])):
        found = told_of(lie, made_of(rows, name))
        assert not any(j.divergent for j in found)
        assert [j.action for j in found if j.ambiguous] == ambiguous
        assert all("3.0 s after its timer" in j.why for j in found if j.ambiguous)


def test_what_the_last_sync_had_still_to_do_is_not_simply_granted() -> None:
    """A deletion beyond the history limit is left out, four seconds before the record ends."""
    name = "v1.21.14-all"
    *logs, lie = lied("cron-history-missing", name, 9401)
    before, after = (
        [
            j
            for j in made_of(rows, name)
            if j.ambiguous and lie.key.startswith(f"{j.object.namespace}/{j.object.name}")
        ]
        for rows in logs
    )
    assert before == []
    [last] = after
    assert (last.object.kind, last.action) == ("CronJob", "status-update")
    assert "the record ends without the job-delete of suspended-29920673" in last.why


@pytest.mark.parametrize(("name", "salt"), [("v1.36.3-all", 9401), (TRACE, 774411)])
def test_an_event_that_begins_with_two_is_not_simply_explained(name: str, salt: int) -> None:
    """It takes a post that was lost, besides a sync that left nothing else or of a combined one."""
    _, rows, lie = lied("event-count", name, salt)
    made = made_of(rows, name)
    [told] = [j for j in told_of(lie, made) if j.verdict is Verdict.UNKNOWABLE]
    assert (told.action, told.reason) == ("event", Reason.NOT_RECORDED)
    assert "its first row counts 2: a post of it was lost" in told.why
    assert not any(j.divergent for j in made)


def test_what_a_job_did_not_create_may_have_been_refused_when_its_events_were_spent() -> None:
    """25 pods of 26 that the spec wants: none of the Events that tell of a refusal would pass."""
    name = "v1.36.3-all"
    _, rows, lie = lied("spec-parallelism-more", name, 774411)
    found = told_of(lie, made_of(rows, name))
    assert not any(j.divergent for j in found)
    doubted = [j for j in found if j.ambiguous]
    assert doubted
    assert all("the Job had spent the 25 Events" in j.why for j in doubted)
    assert all(a.kind == "refused-creations" for j in doubted for a in j.assumptions)
