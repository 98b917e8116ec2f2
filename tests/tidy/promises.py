"""The promises of the pages that make some, and the tests that hold them: tests/promises.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.tidy.source import REPOSITORY

TABLE = REPOSITORY / "tests" / "promises.md"


class Promise(NamedTuple):
    """Words of a page, and what holds them: a test's id, or why there is none."""

    page: str
    words: str
    tests: tuple[str, ...]
    why_none: str


def table() -> list[Promise]:
    """All rows."""
    promises, page = [], ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            page = line.removeprefix("## ")
        elif line.startswith("| ") and page and not line.startswith("| words"):
            words, held = (cell.strip() for cell in line.strip("| ").rsplit(" | ", 1))
            tests = tuple(re.findall(r"`(tests/[^`]+)`", held))
            promises.append(Promise(page, words, tests, "" if tests else held))
    return promises


def blocks(page: str) -> Iterator[str]:
    """The paragraphs, items and rows of tables of a page."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for part in re.split(r"\n\s*\n", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if part.startswith("#"):
            continue
        if part.lstrip().startswith("|"):
            yield from part.strip().splitlines()[2:]
            continue
        for item in re.split(r"\n(?=- )", part):
            if item.strip():
                yield " ".join(item.split())
