"""Imports go down only: each room may import the rooms below it. docs/architecture.md says why."""

from __future__ import annotations

import pytest

from tests.tidy.source import module_of, modules

#: Lowest first; what stands in one line may not import each other. The longest prefix counts.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "tracekit.bounded_http",
        "tracekit.children",
        "tracekit.collecting",
        "tracekit.coverage",
        "tracekit.errors",
        "tracekit.foreign",
        "tracekit.kube",
        "tracekit.stopping",
        "tracekit.suggest",
    ),
    ("tracekit.sim", "tracekit.moments"),
    ("tracekit.eras.version",),
    ("tracekit.cron",),
    ("tracekit.eras",),
    ("tracekit.cache", "tracekit.workqueue"),
    ("tracekit.controllers",),
    ("tracekit.cluster",),
    ("tracekit.process",),
    ("tracekit.simulate",),
    ("tracekit.compare",),
    ("tracekit.verdict",),
    ("tracekit.replay",),
    ("tracekit.diff",),
    ("tracekit.worlds",),
    ("tracekit.findings.words",),
    ("tracekit.findings.model",),
    ("tracekit.findings.facts",),
    ("tracekit.answers",),
    ("tracekit.findings", "tracekit.whatif"),
    ("tracekit.trace.format",),
    ("tracekit.trace.stores",),
    ("tracekit.trace.reading",),
    ("tracekit.trace.writing",),
    ("tracekit.trace.importers",),
    ("tracekit.trace",),
    ("tracekit.crew",),
    ("tracekit.judging",),
    ("tracekit.record.failures",),
    ("tracekit.record.credentials", "tracekit.record.redaction"),
    ("tracekit.record.server",),
    ("tracekit.record.streams",),
    ("tracekit.record.last_words",),
    ("tracekit.record.operation",),
    ("tracekit.cronlint",),
    ("tracekit.record", "tracekit.sql"),
    ("tracekit.minimise", "tracekit.watch"),
    ("tracekit.report",),
    ("tracekit.api", "tracekit.mcp"),
    ("tracekit.cli", "tracekit.pytest_plugin", "tracekit"),
    ("tracekit.__main__",),
)


#: Rooms that know nothing of each other, although one stands above the other.
STRANGERS = (
    ("tracekit.watch", "tracekit.record"),
    ("tracekit.minimise", "tracekit.record"),
    ("tracekit.record", "tracekit.verdict"),
    ("tracekit.record", "tracekit.replay"),
    ("tracekit.record", "tracekit.diff"),
    ("tracekit.record", "tracekit.judging"),
)


def _layer(name: str) -> tuple[int, str]:
    """The layer of a module and the prefix that put it there."""
    best = max(
        (prefix for layer in LAYERS for prefix in layer if f"{name}.".startswith(f"{prefix}.")),
        key=len,
    )
    return next(i for i, layer in enumerate(LAYERS) if best in layer), best


def test_imports_go_down_only() -> None:
    wrong = []
    for module in modules():
        height, prefix = _layer(module.name)
        for imported, line in module.imports():
            target = module_of(imported)
            if target is None or target == "tracekit":
                continue
            depth, where = _layer(target)
            if depth > height or (depth == height and where != prefix):
                wrong.append(f"{module}:{line}: {prefix} may not import {where} ({imported})")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("room", "stranger"), STRANGERS)
def test_strangers_stay_strangers(room: str, stranger: str) -> None:
    wrong = [
        f"{module}:{line}: {room} may not know {stranger} ({imported})"
        for module in modules()
        if f"{module.name}.".startswith(f"{room}.")
        for imported, line in module.imports()
        if f"{imported}.".startswith(f"{stranger}.")
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_through_others() -> None:
    graph: dict[str, set[str]] = {
        module.name: {
            target
            for imported in module.loaded_with()
            if (target := module_of(imported)) is not None and target != "tracekit"
        }
        for module in modules()
    }
    for name in sorted(graph):
        seen: set[str] = set()
        ahead = list(graph[name])
        while ahead:
            other = ahead.pop()
            assert other != name, f"{name} imports itself through {sorted(seen)}"
            if other not in seen:
                seen.add(other)
                ahead += graph.get(other, set())
