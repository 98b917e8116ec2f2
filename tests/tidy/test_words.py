"""The field's words: names that a Kubernetes engineer would not search for are not used again."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.tidy.source import REPOSITORY, Module, modules

#: Private words of earlier names, with what to say in their place (docs/architecture.md has the terms).
PRIVATE_WORDS = {
    "told": "reported, observed, a summary",
    "untold": "unreported",
    "hunch": "a heuristic",
    "hunches": "heuristics",
    "owed": "a pending action",
    "crew": "executors",
    "wish": "what is wanted or due",
    "wishes": "what is wanted or due",
    "lives": "lifetimes",
    "hands": "user edits",
    "grudge": "a reason",
    "sweep": "cross-key timing",
    "sweeps": "cross-key timing",
    "hurried": "an early candidate",
}
#: Those that are no English for what they meant; the others are plain words in a sentence.
NEVER = ("untold", "hunch", "hunches", "crew")
_PART = re.compile(r"[A-Z]?[a-z]+")
_NEVER = re.compile(rf"\b({'|'.join(NEVER)})\b", re.IGNORECASE)


def _names(module: Module) -> Iterator[tuple[int, str]]:
    text = module.path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def private_words(name: str) -> list[str]:
    """The private words that an identifier is made of."""
    return [
        word for word in (part.lower() for part in _PART.findall(name)) if word in PRIVATE_WORDS
    ]


@pytest.mark.parametrize("name", ["told", "_told_ns", "Told", "isUntold", "by_hunch", "PodLives"])
def test_a_private_word_is_found_in_a_name(name: str) -> None:
    assert private_words(name)


def test_no_name_is_made_of_private_words() -> None:
    wrong = [
        f"{module}:{line}: {name}: say {PRIVATE_WORDS[words[0]]}"
        for module in modules()
        for line, name in _names(module)
        if (words := private_words(name))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_text_has_words_that_only_this_project_knew() -> None:
    pages = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")]
    texts = [
        *(module.path for module in modules()),
        *(p for p in pages if p.name != "CHANGELOG.md"),
    ]
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}"
        for path in texts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if _NEVER.search(line)
    ]
    assert not wrong, "\n".join(wrong)
