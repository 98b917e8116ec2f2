"""The commonest mistakes: each is one sentence that says what to do, and docs/mistakes.md has it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.mistakes import MISTAKES, PAGE, answers, page

#: What DuckDB says of a query points at the place in it, in lines of their own.
_POINTED = ("SELEC ", "jbo", "FROM job'", "timelin")


def wrong(command: str, status: int, out: str, err: str) -> Iterator[str]:
    """What is wrong with the answer to a mistake."""
    if (status, out) != (2, ""):
        yield f"exit status {status}, stdout {out!r}"
    if not err.startswith("tracekit: "):
        yield "does not say who speaks"
    yield from (f"says {word}" for word in ("Traceback", "Errno") if word in err)
    if err.count("\n") != 1 and not any(part in command for part in _POINTED):
        yield "is not one sentence"


def test_a_mistake_is_one_sentence_and_the_page_says_what_is_printed() -> None:
    told = answers()
    assert len(told) == sum(map(len, MISTAKES.values())) >= 90
    found = [f"{c}: {what}: {a[2]}" for c, a in told.items() for what in wrong(c, *a)]
    assert not found, "\n".join(found)
    assert PAGE.read_text(encoding="utf-8") == page(told), "run: python -m tests.docs.mistakes"
