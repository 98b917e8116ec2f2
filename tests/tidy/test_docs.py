"""The documents: no broken link, no command or option that they leave out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.tidy.source import REPOSITORY, Module, modules
from tracekit.cli.main import VERBS, cli

DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "traces/*.md", "tests/**/*.md", "bench/*.md")
    for path in REPOSITORY.glob(pattern)
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def _anchors(document: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_links_lead_somewhere(document: Path) -> None:
    text = _CODE.sub("", document.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        where, _, anchor = link.partition("#")
        target = (document.parent / where) if where else document
        assert target.exists(), f"{document.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in _anchors(target), f"{document.name}: {link}"


@pytest.mark.parametrize("module", modules(), ids=str)
def test_documents_that_the_source_names_are_there(module: Module) -> None:
    for name in re.findall(r"\bdocs/[\w./-]+\.(?:md|json)\b", module.text):
        assert (REPOSITORY / name).exists(), f"{module} names {name}"


def _commands(verb: str) -> Iterator[tuple[str, click.Command]]:
    """A verb and what is below it, by the words that call it."""
    context = click.Context(cli)
    command = cli.get_command(context, verb)  # type: ignore[attr-defined]
    assert command is not None
    ahead: list[tuple[str, click.Command]] = [(f"tracekit {verb}", command)]
    while ahead:
        name, command = ahead.pop()
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                ahead.append((f"{name} {inner}", found))
        else:
            yield name, command


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_is_documented_and_explains_itself(verb: str) -> None:
    written = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    for name, command in _commands(verb):
        assert name in written, f"no document shows `{name}`"
        assert command.help, f"{name} --help says nothing"
        silent = [
            parameter.opts[0]
            for parameter in command.params
            if isinstance(parameter, click.Option) and not parameter.hidden and not parameter.help
        ]
        assert not silent, f"{name} --help says nothing about {silent}"


def test_the_readme_shows_every_verb() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert [verb for verb in VERBS if f"tracekit {verb}" not in readme] == []


def test_a_page_says_why_each_dependency_is_there() -> None:
    page = (REPOSITORY / "docs" / "dependencies.md").read_text(encoding="utf-8")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"]]
    for extra in project["project"].get("optional-dependencies", {}).values():
        wanted += extra
    for group in project.get("dependency-groups", {}).values():
        wanted += [entry for entry in group if isinstance(entry, str)]
    names = {re.split(r"[<>=!~;\[ ]", entry)[0] for entry in wanted}
    lines = {found[1] for found in re.finditer(r"^\| `([\w.-]+)` \|", page, re.MULTILINE)}
    assert names == lines, "docs/dependencies.md and pyproject.toml differ"
