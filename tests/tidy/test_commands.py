"""Advice has commands that somebody pastes; what a trace calls things is one word of a shell there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.source import modules

#: Names that a stranger's trace gives.
_GIVEN = frozenset({
    "name", "namespace", "container", "owner_name", "node_name", "job", "cronjob", "pod",
})  # fmt: skip
_COMMANDS = ("kubectl ", "`tracekit ")


def _unquoted(text: ast.JoinedStr) -> Iterator[str]:
    """What stands in a command as it came."""
    in_command = False
    for part in text.values:
        if isinstance(part, ast.Constant):
            in_command |= any(command in str(part.value) for command in _COMMANDS)
        elif isinstance(part, ast.FormattedValue) and in_command:
            value = part.value
            if isinstance(value, ast.Attribute) and value.attr in _GIVEN:
                yield ast.unparse(value)
            if isinstance(value, ast.Subscript) and ast.literal_eval(value.slice) in _GIVEN:
                yield ast.unparse(value)


def test_names_in_commands_are_quoted() -> None:
    wrong = [
        f"{module.path}:{node.lineno}: {given}: use for_shell"
        for module in modules()
        if "answers" in module.path.parts
        for node in ast.walk(module.tree)
        if isinstance(node, ast.JoinedStr)
        for given in _unquoted(node)
    ]
    assert not wrong, "\n".join(wrong)
