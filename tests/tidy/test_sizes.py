"""A function fits on a screen, a module has one purpose."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.source import Module, modules

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 600
#: Functions that may be longer: why. At most three.
EXEMPT: dict[str, str] = {}


def test_sizes() -> None:
    wrong = [what for module in modules() for what in _too_long(module)]
    assert not wrong, "\n".join(wrong)


def _too_long(module: Module) -> Iterator[str]:
    lines = len(module.text.splitlines())
    if lines > MODULE_LINES_MAX:
        yield f"{module} has {lines} lines: give a part its own module"
    for node in ast.walk(module.tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        assert node.end_lineno is not None
        length = node.end_lineno - node.lineno + 1
        name = f"{module.name}.{node.name}"
        if (length > FUNCTION_LINES_MAX) != (name in EXEMPT):
            yield f"{name} has {length} lines: split it, or drop its exemption"


def test_exemptions_stay_few() -> None:
    assert len(EXEMPT) <= 3
