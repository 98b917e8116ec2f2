"""docs/seeds.md names only what exists, and leaves no test of the seeds out."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.simulate.test_law import run_of
from tests.support.executed import code_of, executed
from tests.support.random_worlds import random_world
from tests.support.traces import ROOT, TRACES, import_log
from tracekit.judge.judged import Judge, resolve_era

PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
FUNCTIONS = sorted(set(re.findall(r"`(tracekit[\w.]*:[\w.]+)`", PAGE)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGE)))
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| Mechanism", "| ---"))
]
#: Shipped traces whose replays, and worlds whose simulated runs, execute all that the page names.
REPLAYED = ("v1.17.17-all", "v1.23.17-all", "v1.28.15-all")
SIMULATED = ((17, "v1.27.4"), (0, "v1.11.10"), (101, "v1.11.10"))
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
    for mechanism, functions, tests, _ in ROWS:
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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The functions of the page that a replay of real traces runs, and a simulated run."""
    found: dict[str, set[str]] = {"replay": set(), "simulate": set()}
    for name in REPLAYED:
        target = tmp_path_factory.mktemp("trace") / name
        reader = import_log(TRACES / name / "watch.jsonl.zst", target, name)
        judge = Judge(reader, resolve_era(reader, None, None))
        found["replay"] |= executed(FUNCTIONS, judge.report)
    for seed, version in SIMULATED:
        world = random_world(seed, version)
        found["simulate"] |= executed(FUNCTIONS, lambda world=world: run_of(world))
    return found


def test_every_mechanism_is_run_by_the_product(runs: dict[str, set[str]]) -> None:
    """The last column says by which verbs; rows whose functions share the work name both."""
    for mechanism, functions, _, run_by in ROWS:
        named = {name for name in FUNCTIONS if f"`{name}`" in functions and code_of(name)}
        assert named <= runs["replay"] | runs["simulate"], mechanism
        alone = [verb for verb, run in runs.items() if named <= run]
        assert run_by == ", ".join(alone or runs), mechanism
