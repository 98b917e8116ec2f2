"""Each promise of the pages that make some is held by a test that is there: tests/promises.md."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.tidy.promises import Promise, blocks, table
from tests.tidy.source import REPOSITORY

PAGES = ("docs/trust.md", "SECURITY.md", "docs/stability.md", "docs/record.md", "docs/watch.md")


@cache
def _tests_in(path: str) -> frozenset[str]:
    file = REPOSITORY / path
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return frozenset(re.findall(r"^ *def (test_\w+)\(", text, re.MULTILINE))


def _of(page: str) -> list[Promise]:
    return [promise for promise in table() if promise.page == page]


@pytest.mark.parametrize("page", PAGES)
def test_each_block_has_a_promise_or_a_reason(page: str) -> None:
    words = [promise.words for promise in _of(page)]
    assert [text for text in blocks(page) if not any(each in text for each in words)] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_promise_is_on_its_page(page: str) -> None:
    text = "\n".join(blocks(page))
    assert [promise.words for promise in _of(page) if promise.words not in text] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_test_is_there(page: str) -> None:
    assert _of(page)
    gone = [
        test
        for promise in _of(page)
        for test in promise.tests
        if test.partition("::")[2] not in _tests_in(test.partition("::")[0])
    ]
    assert gone == []
    assert [p.words for p in _of(page) if not p.tests and len(p.why_none) < 5] == []


def test_a_page_that_is_listed_is_looked_at() -> None:
    assert {promise.page for promise in table()} == set(PAGES)
