"""Each of the thirty questions has the answer that the tools give."""

from __future__ import annotations

import json

import pytest

from bench.bench_questions import is_right, questions, score
from tests.mcp.conftest import Call

QUESTIONS = questions()


@pytest.mark.parametrize("question", QUESTIONS, ids=[q["id"] for q in QUESTIONS])
def test_the_right_answer_is_what_the_tools_say(question, call: Call) -> None:
    asked = dict(question["ask"])
    tool = asked.pop("tool")
    result = call(tool, trace=question["trace"], **asked)
    assert not result.is_error, result.content
    value = result.structured_content["record"]["statements"]
    for step in question["at"]:
        value = value[step]
    assert is_right(question, value), value


def test_a_score_counts_what_is_right() -> None:
    right = [json.dumps({"id": q["id"], "answer": f" {q['answer'][-1]} "}) for q in QUESTIONS]
    assert score(right) == (30, [])
    assert score([*right[1:], '{"id": "q01", "answer": "about 15"}']) == (29, ["q01"])
    assert len({q["id"] for q in QUESTIONS}) == 30
