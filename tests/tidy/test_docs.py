"""The documents: no broken link, no command or option that they leave out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from tests.support.command_tree import commands
from tests.tidy.source import REPOSITORY, modules
from tracekit.cli.main import VERBS

DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "traces/*.md", "tests/**/*.md", "bench/*.md")
    for path in REPOSITORY.glob(pattern)
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@cache
def _anchors(document: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


def test_links_lead_somewhere() -> None:
    wrong = [
        f"{document.relative_to(REPOSITORY)}: {link}"
        for document in DOCUMENTS
        for link in _LINK.findall(_CODE.sub("", document.read_text(encoding="utf-8")))
        if not _leads_somewhere(document, link)
    ]
    assert not wrong, "\n".join(wrong)


def _leads_somewhere(document: Path, link: str) -> bool:
    if link.startswith(("http://", "https://", "mailto:")):
        return True
    where, _, anchor = link.partition("#")
    target = (document.parent / where) if where else document
    if anchor and target.suffix == ".md" and target.exists():
        return anchor in _anchors(target)
    return target.exists()


def test_documents_that_the_source_names_are_there() -> None:
    wrong = [
        f"{module} names {name}"
        for module in modules()
        for name in re.findall(r"\bdocs/[\w./-]+\.(?:md|json)\b", module.text)
        if not (REPOSITORY / name).exists()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_is_documented_and_explains_itself(verb: str) -> None:
    written = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    for words, command in commands(verb):
        name = f"tracekit {words}"
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


_MODULE = re.compile(r"`(?:tracekit\.)?((?:[a-z_]+\.)+)([A-Za-z_]+)(?=[`.(\[])")
_PATH = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)\b")
#: Of files, which look like modules.
_ENDINGS = {"html", "json", "jsonl", "zst"}
#: Documents in which a layer's name is also that of an object or of a value.
_OBJECTS = {"docs/api.md", "docs/install.md"}
_LAYERS = {path.stem for path in (REPOSITORY / "tracekit").iterdir() if path.is_dir()}


def _texts() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        if "changelog.d" not in document.parts and document.name != "CHANGELOG.md":
            yield str(document.relative_to(REPOSITORY)), document.read_text(encoding="utf-8")
    for module in modules():
        yield str(module), module.text


def test_modules_that_are_named_are_there() -> None:
    """A module in backticks, by its path or with dots from its layer on."""
    package = REPOSITORY / "tracekit"
    wrong = []
    for where, text in _texts():
        for path in _PATH.findall(text):
            if path.split("/")[0] in _LAYERS and not (package / path).exists():
                wrong.append(f"{where} names {path}")
        for folders, name in _MODULE.findall(text):
            parts = folders.rstrip(".").split(".")
            if len(parts) == 1 and where in _OBJECTS:
                continue
            if parts[0] in _LAYERS and name not in _ENDINGS and not _is_there(parts, name):
                wrong.append(f"{where} names {folders}{name}")
    assert not wrong, "\n".join(sorted(set(wrong)))


def _is_there(parts: list[str], name: str) -> bool:
    """Whether there is such a module, or the room that something is said to be in."""
    room = (REPOSITORY / "tracekit").joinpath(*parts)
    module = room / name
    is_named = name[0].isupper() and (room / "__init__.py").exists()
    return (
        room.with_suffix(".py").exists()
        or module.with_suffix(".py").exists()
        or module.is_dir()
        or is_named
    )
