"""docs/seeds.md names only what exists, and leaves no test of the seeds out."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.support.traces import ROOT

PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
FUNCTIONS = sorted(set(re.findall(r"`(tracekit[\w.]*:[\w.]+)`", PAGE)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGE)))
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| Mechanism", "| ---"))
]
SEEDS = sorted(Path(__file__).parent.glob("test_seed_*.py"))


def defined(path: Path) -> dict[str, str]:
    """The tests of a file with their docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_the_page_was_read() -> None:
    assert len(ROWS) > 50
    assert len(SEEDS) == 5


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_exists(name: str) -> None:
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)


@pytest.mark.parametrize("name", TESTS)
def test_every_test_exists(name: str) -> None:
    path, _, function = name.partition("::")
    assert function in defined(ROOT / path)


def test_every_row_has_a_function_and_a_test_of_its_seed() -> None:
    for mechanism, functions, tests in ROWS:
        assert re.search(r"`tracekit[\w.]*:[\w.]+`", functions), mechanism
        assert re.search(r"^`tests/seeds/test_seed_\d{3}\.py::\w+`", tests), mechanism
        for backticked in re.findall(r"`([^`]+)`", functions + tests):
            assert backticked in FUNCTIONS or backticked in TESTS, backticked


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_every_test_of_a_seed_is_in_the_page_and_names_its_seed(path: Path) -> None:
    number = path.stem.removeprefix("test_seed_")
    for name, text in defined(path).items():
        assert f"tests/seeds/{path.name}::{name}" in TESTS
        assert text.startswith(f"Seed {number}, "), name
