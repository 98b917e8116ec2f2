"""What a container had said stands with the first cause of its Job's failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.model import Case
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session

AT = "2026-11-21T05:42:45.123456789Z"


def log(pod: str, **values: Any) -> dict[str, Any]:
    return {"namespace": "t-backoff-limit", "pod": pod, "container": "main", "exit_code": 1,
            "text": None, "gap": None, **values}  # fmt: skip


@pytest.fixture(scope="module")
def failed(traces: Any) -> Any:
    facts = facts_from(Session([traces.path("v1.36.3-all")]))
    assert facts.last_words == {}

    def case(*logs: dict[str, Any]) -> Case:
        said = {("t-backoff-limit", one["pod"]): [one] for one in logs}
        found = diagnose(replace(facts, last_words=said))
        return next(
            c for f in found for c in f.cases if f.id == "TK401" and c.target.name == "once"
        )

    return case


def pods(failed: Any) -> list[str]:
    names: list[str] = failed().evidence["pods"]
    return names


def test_without_logs_nothing_is_said_of_them(failed: Any) -> None:
    assert "said" not in failed().detail
    assert "last_words" not in failed().evidence


def test_the_last_line_stands_in_the_sentence(failed: Any) -> None:
    pod = pods(failed)[0]
    case = failed(log(pod, text=f"{AT} starting\n{AT} panic: no such table\n{AT} \n"))
    assert case.detail.endswith(f"; container main of {pod} said last: panic: no such table")
    (words,) = case.evidence["last_words"]
    assert words["text"].splitlines()[1] == f"{AT} panic: no such table"


def test_words_count_more_than_gaps_and_other_containers_do_not_count(failed: Any) -> None:
    first, second, *_ = pods(failed)
    case = failed(log(first, text="boom"), log(second, gap="the pod was gone"))
    assert case.detail.endswith("said last: boom")
    case = failed(log(first, text="all is well", exit_code=0))
    assert "said" not in case.detail


def test_what_could_not_be_had_is_told(failed: Any) -> None:
    pod = pods(failed)[0]
    case = failed(log(pod, gap="the pod was gone"))
    assert case.detail.endswith(f"the log of container main of {pod} could not be had")
    assert case.evidence["last_words"][0]["gap"] == "the pod was gone"
    assert failed(log(pod, text="")).detail.endswith(f"container main of {pod} said nothing")


def test_a_long_line_is_cut(failed: Any) -> None:
    case = failed(log(pods(failed)[0], text="x" * 5000))
    assert len(case.detail) < 700
