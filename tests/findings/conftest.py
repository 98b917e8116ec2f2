"""Findings of real traces, as they are and with rows changed, each made once per test process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import LOOK, imported
from tests.support.traces import ROOT, TRACES, import_log, json_lines
from tracekit.answers.model import Finding
from tracekit.answers.trace_model import Facts
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session

Row = dict[str, Any]
Edit = Callable[[list[Row]], list[Row]]
RECORDED = ROOT / "tests" / "data" / "findings"


class Traces:
    """Traces by name: shipped logs, recordings of tests/data/findings, incidents, edited logs."""

    def __init__(self, folder: Path, edits: Mapping[str, tuple[str, Edit]]) -> None:
        self.folder = folder
        self.edits = edits
        self.path = cache(self._path)
        self.findings = cache(self._findings)

    def _path(self, name: str) -> Path:
        target = self.folder / name.replace("/", "-")
        if name in self.edits:
            source, edit = self.edits[name]
            rows = edit(list(json_lines(TRACES / source / "watch.jsonl.zst")))
            log = self.folder / f"{target.name}.jsonl"
            log.write_text("".join(json.dumps(row) + "\n" for row in rows))
            import_log(log, target, source)
        elif (TRACES / name / "watch.jsonl.zst").exists():
            import_log(TRACES / name / "watch.jsonl.zst", target, name)
        else:
            source = TRACES / name if (TRACES / name).exists() else RECORDED / name
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("cache", ".lock"))
        return target

    def _findings(self, name: str) -> list[Finding]:
        return findings_of(Session([self.path(name)]))

    def about(self, name: str, finding_id: str) -> list[str]:
        """The objects of a trace that the findings of one id are about."""
        found = [f for f in self.findings(name) if f.id == finding_id]
        return [f"{t.namespace}/{t.name}".strip("/") for f in found for t in f.objects]


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    from tests.findings.edits import EDITS  # noqa: PLC0415 - edits need Row from here

    return Traces(tmp_path_factory.mktemp("findings"), EDITS)


@pytest.fixture(scope="module")
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """All that a module asks about (`ASKED`), each in a namespace of its own."""
    return imported(request.module.ASKED, tmp_path_factory.mktemp("asked"), LOOK)


@pytest.fixture(scope="module")
def facts(trace: str) -> Facts:
    """What is known of the trace of a module."""
    return facts_from(Session([trace]))
