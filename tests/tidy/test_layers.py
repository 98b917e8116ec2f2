"""Imports go down only: each room may import the rooms below it. docs/architecture.md says why."""

from __future__ import annotations

from tests.tidy.source import module_of, modules

#: Lowest first; what stands in one line may not import each other. The longest prefix counts.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("tracekit.errors", "tracekit.kube"),
    ("tracekit.sim",),
    ("tracekit.eras.version",),
    ("tracekit.cron",),
    ("tracekit.eras",),
    ("tracekit.cache", "tracekit.workqueue"),
    ("tracekit.controllers",),
    # Comparing one object with another, field by field: the walk asks them, the judge shows them.
    ("tracekit.diff.pod_body",),
    ("tracekit.diff.job_body", "tracekit.diff.status"),
    ("tracekit.replay",),
    ("tracekit.diff",),
    ("tracekit.trace",),
    ("tracekit.record", "tracekit.sql"),
    ("tracekit.report",),
    ("tracekit.api",),
    ("tracekit.cli", "tracekit"),
)
#: Imports that go up all the same: (importer, imported) -> why it stands.
EXEMPT: dict[tuple[str, str], str] = {
    ("tracekit.sql.computed", "tracekit.cli.replay"): (
        "the views of verdicts run the same replay as the command, which is put together there"
    ),
    ("tracekit.api", "tracekit.cli.replay"): "as the views of verdicts",
}


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
            if target is None or target == "tracekit" or (module.name, target) in EXEMPT:
                continue
            depth, where = _layer(target)
            if depth > height or (depth == height and where != prefix):
                wrong.append(f"{module}:{line}: {prefix} may not import {where} ({imported})")
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_through_others() -> None:
    graph: dict[str, set[str]] = {
        module.name: {
            target
            for imported, _ in module.imports()
            if (target := module_of(imported)) is not None
            and target != "tracekit"
            and (module.name, target) not in EXEMPT
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


def test_every_exemption_is_still_needed() -> None:
    seen = {
        (module.name, target)
        for module in modules()
        for imported, _ in module.imports()
        if (target := module_of(imported)) is not None
    }
    assert set(EXEMPT) <= seen
