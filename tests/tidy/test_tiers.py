"""Each entry of the table of tiers names a test that is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.tiers import QUICK

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("key", QUICK)
def test_the_test_is_there(key: str) -> None:
    path, _, name = key.partition("::")
    tree = ast.parse((TESTS / path).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
