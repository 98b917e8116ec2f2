"""Verdicts asked for by what they are and whom they are about: of objects and of columns alike."""

import pyarrow as pa
import pytest

from tracekit.answers.judgements import Judgements, Listed
from tracekit.check.compare.fields import FieldDifference
from tracekit.check.verdict import Judgement, ObjectRef, Verdict
from tracekit.judge.verdict_table import verdict_table
from tracekit.sql.kept_judgements import KeptJudgements


def judgement(
    at_ns: int, verdict: Verdict, name: str, kind: str = "Job", subject: str = ""
) -> Judgement:
    fields = (FieldDifference("status.active", 1, 2),) if verdict is Verdict.DIFFERENT else ()
    return Judgement(
        "job", ObjectRef(kind, "ns", name, "u"), "pod-create", verdict, at_ns, str(at_ns), subject,
        "why", fields,
    )  # fmt: skip


ALL = [
    judgement(1, Verdict.MATCH, "a"),
    judgement(2, Verdict.MATCH_LAGGED, "b"),
    judgement(3, Verdict.FOREIGN, "a"),
    judgement(4, Verdict.DIFFERENT, "b"),
    judgement(5, Verdict.UNKNOWABLE, "a"),
    judgement(6, Verdict.MATCH, "nightly", "CronJob", "b"),
]


@pytest.fixture(params=["objects", "columns", "chunks"])
def held(request: pytest.FixtureRequest) -> Judgements:
    if request.param == "objects":
        return Listed(ALL)
    if request.param == "columns":
        return KeptJudgements(verdict_table(ALL))
    return KeptJudgements(pa.concat_tables([verdict_table(ALL[:2]), verdict_table(ALL[2:])]))


def test_by_what_they_are(held: Judgements) -> None:
    assert held.everything() == ALL
    assert held.divergent == [ALL[3]]
    assert held.unknowable == [ALL[4]]
    assert list(held.times_of("job")) == [1, 2, 5, 6]
    assert list(held.times_of("cronjob")) == []


def test_by_whom_they_are_about(held: Judgements) -> None:
    assert list(held.of_write(("ns", "a"), "pod-create", "")) == [ALL[0], ALL[2], ALL[4]]
    assert held.verdict_of(("ns", "a"), "pod-create", "") is Verdict.MATCH
    assert held.verdict_of(("ns", "a"), "pod-create", "x") is None
    assert list(held.of_write(("ns", "nightly"), "pod-create", "b")) == [ALL[5]]
    assert list(held.of_write(("ns", "b"), "pod-delete", "")) == []
    assert list(held.of_write(("other", "a"), "pod-create", "")) == []
    assert list(held.lagged("ns", "b")) == [ALL[1]]
    assert list(held.lagged("ns", "a")) == []
    assert [*filter(ALL.__contains__, held.naming([("ns", "b")]))][-1] == ALL[5]


def test_an_accepted_divergence_is_left_out(held: Judgements) -> None:
    assert held.but_for(lambda _: False) is held
    assert held.but_for(lambda _: True).everything() == [j for j in ALL if not j.divergent]
