"""Traces that several tests of this folder ask about, imported once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.traces import TRACES, import_log
from tracekit.cli.main import cli
from tracekit.eras.era import Era
from tracekit.judging.whatif import Running, Selected, answer_all
from tracekit.trace.reading.reader import TraceReader
from tracekit.whatif.answers import Answers
from tracekit.whatif.changes import Setting

Import = Callable[[str], Path]


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Import:
    """A shipped trace by its name."""
    known: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in known:
            target: Path = tmp_path_factory.mktemp("whatif") / name
            import_log(TRACES / name / "watch.jsonl.zst", target, name)
            known[name] = target
        return known[name]

    return get


_ANSWERED: dict[tuple[Any, ...], list[Answers]] = {}


def _answer_once(
    reader: TraceReader,
    recorded: Era,
    targets: Sequence[Era],
    selected: Selected,
    settings: tuple[Setting, ...],
    running: Running,
) -> list[Answers]:
    """`answer_all`, once for all questions that differ only in how they are printed."""
    key = (reader.path, recorded, tuple(targets), selected, repr(settings), running)
    if key not in _ANSWERED:
        _ANSWERED[key] = answer_all(reader, recorded, targets, selected, settings, running)
    return _ANSWERED[key]


@cache
def ask(trace: Path, *options: str, verb: str = "whatif") -> Result:
    """Run the verb; once for all tests that ask the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracekit.cli.whatif.answer_all", _answer_once)
        return CliRunner().invoke(cli, [verb, str(trace), *options], standalone_mode=False)


def answers(trace: Path, *options: str) -> dict[str, Any]:
    """The JSON document of `whatif`."""
    result = ask(trace, *options, "-o", "json")
    assert result.exception is None, result.exception
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The Jobs of a document; of several with one name the last."""
    return {f"{job['namespace']}/{job['name']}": job for job in document["jobs"]}
