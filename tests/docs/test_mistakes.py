"""The commonest mistakes: each is one sentence that says what to do, and docs/mistakes.md has it."""

from __future__ import annotations

import pytest

from tests.docs.mistakes import MISTAKES, PAGE, commands, desk, page, said

#: What DuckDB says of a query points at the place in it, in lines of their own.
_POINTED = ("SELEC ", "jbo", "FROM job'", "timelin")


@pytest.fixture(scope="module")
def _desk():
    with desk():
        yield


@pytest.mark.usefixtures("_desk")
@pytest.mark.parametrize("command", list(commands()))
def test_a_mistake_is_one_sentence(command: str) -> None:
    status, out, err = said(command)
    assert (status, out) == (2, ""), (out, err)
    assert err.startswith("tracekit: ")
    assert "Traceback" not in err
    assert "Errno" not in err
    if not any(part in command for part in _POINTED):
        assert err.count("\n") == 1


def test_the_page_says_what_is_printed() -> None:
    assert sum(map(len, MISTAKES.values())) >= 90
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.docs.mistakes"
