"""The package's own source as the rules of this folder look at it: modules and their imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "tracekit"
#: What is pure: its results follow from what it is given, and from nothing else.
PURE = (
    "tracekit.base.kube",
    "tracekit.base.sim",
    "tracekit.base.cron",
    "tracekit.base.coverage",
    "tracekit.versions",
    "tracekit.ports",
    "tracekit.model.cluster",
    "tracekit.model.process",
    "tracekit.check",
    "tracekit.answers",
)
#: What of these is not.
NOT_PURE = ("tracekit.answers.cronlint", "tracekit.answers.whatif_traces")


@dataclass(frozen=True)
class Module:
    """One source file of the package."""

    name: str  # dotted; a package's own name for its __init__
    path: Path

    @property
    def layer(self) -> str:
        """The first folder or module below the package; "" for the package itself."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def is_pure(self) -> bool:
        """Whether it is of those that are pure."""
        return _within(self.name, PURE) and not _within(self.name, NOT_PURE)

    @property
    def text(self) -> str:
        """The source."""
        return self.path.read_text(encoding="utf-8")

    @property
    def tree(self) -> ast.Module:
        """The parsed source."""
        return _parsed(self.path)

    def imports(self) -> Iterator[tuple[str, int]]:
        """Every name that is imported from somewhere, dotted, with its line."""
        for node in ast.walk(self.tree):
            for name in _imported(node):
                yield name, node.lineno  # type: ignore[attr-defined]

    def loaded_with(self) -> Iterator[str]:
        """Every name that is imported as soon as the module is."""
        for node in self.tree.body:
            yield from _imported(node)

    def __str__(self) -> str:
        return str(self.path.relative_to(REPOSITORY))


def _within(name: str, rooms: tuple[str, ...]) -> bool:
    return any(f"{name}.".startswith(f"{room}.") for room in rooms)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports name the whole path"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package, by name."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        dotted = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        found.append(Module(dotted.removesuffix(".__init__"), path))
    return tuple(sorted(found, key=lambda module: module.name))


def module_of(imported: str) -> str | None:
    """The module of the package that an imported name is or comes from; None for others'."""
    if imported.split(".", maxsplit=1)[0] != PACKAGE.name:
        return None
    known = {module.name for module in modules()}
    return imported if imported in known else imported.rpartition(".")[0]
