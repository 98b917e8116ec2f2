"""Imports go down only. The contracts are in pyproject.toml, docs/architecture.md says why."""

from __future__ import annotations

import ast
import re
import tomllib

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.tidy.source import PACKAGE, REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
#: The layers, highest first; those of one line know nothing of each other.
LAYERS = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")


def test_the_contracts_are_kept() -> None:
    assert lint_imports(no_cache=True) == EXIT_STATUS_SUCCESS


def test_the_page_about_the_architecture_shows_the_layers_of_the_contract() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| layer |")[2].partition("\n\n")[0]
    shown = [
        " | ".join(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table.splitlines()[2:]
    ]
    assert shown == [layer for layer in LAYERS if layer != "__main__"]


def test_each_layer_says_what_it_knows_and_who_calls_it() -> None:
    wrong = []
    for name in re.findall(r"\w+", " ".join(LAYERS)):
        folder = PACKAGE / name / "__init__.py"
        if not folder.exists():
            continue  # a module
        said = ast.get_docstring(ast.parse(folder.read_text(encoding="utf-8"))) or ""
        if "Knows:" not in said or "Called by:" not in said:
            wrong.append(f'{folder}: its docstring has no line "Knows: …" and "Called by: …"')
    assert not wrong, "\n".join(wrong)
