"""Thirty questions about the shipped traces, with right answers, for whoever runs a model.

Without an option the questions, one JSON document a line, without their answers: an agent that has
`tracekit mcp` answers each with one value. With --answers the score: a file of one document a line,
{"id": "q01", "answer": "15"}. The traces: `tracekit demo -o demo`, and traces/incidents.

    python -m bench questions
    python -m bench questions --answers FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

QUESTIONS = Path(__file__).parent / "questions.json"


def questions() -> list[dict[str, Any]]:
    """All of them, with what is right and the call that shows it."""
    found: list[dict[str, Any]] = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    return found


def is_right(question: dict[str, Any], answer: object) -> bool:
    """Whether an answer is one of those that are right, but for case and spaces."""
    given = str(answer).strip().rstrip(".").casefold()
    return given in {right.casefold() for right in question["answer"]}


def score(lines: Iterable[str]) -> tuple[int, list[str]]:
    """How many answers are right, and the ids of the questions that have no right answer."""
    given = {row["id"]: row["answer"] for row in map(json.loads, filter(str.strip, lines))}
    wrong = [q["id"] for q in questions() if not is_right(q, given.get(q["id"], ""))]
    return len(questions()) - len(wrong), wrong


def main() -> None:
    """Print the questions, or a score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=Path)
    answers = parser.parse_args().answers
    if answers is None:
        for question in questions():
            shown = {name: question[name] for name in ("id", "trace", "question")}
            print(json.dumps(shown, ensure_ascii=False))
        return
    right, wrong = score(answers.read_text(encoding="utf-8").splitlines())
    print(f"{right} of {len(questions())} right")
    if wrong:
        print(f"not right: {', '.join(wrong)}", file=sys.stderr)


if __name__ == "__main__":
    main()
