"""The examples in the docstrings of the Python API run, on the traces of `tracekit demo`."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest
from click.testing import CliRunner

import tracekit
from tracekit.cli.demo import demo

MODULES = ("tracekit", "tracekit.api.trace", "tracekit.api.results")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("demo")
    done = CliRunner().invoke(demo, ["-o", str(folder / "demo")], catch_exceptions=False)
    assert done.exit_code == 0
    return folder


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name: str, place, monkeypatch) -> None:
    monkeypatch.chdir(place)
    names = {"tracekit": tracekit, "trace": tracekit.open("demo/real")}
    result = doctest.testmod(import_module(name), extraglobs=names)
    assert result.failed == 0
    assert result.attempted >= 3


@pytest.mark.parametrize("name", ["Trace", "Replay", "Diagnosis"])
def test_what_answers_has_an_example(name: str) -> None:
    kind = getattr(tracekit, name)
    assert ">>>" in (kind.__doc__ or "")


def test_all_that_is_public_is_there() -> None:
    names: dict[str, object] = {}
    exec("from tracekit import *", names)  # noqa: S102
    assert set(tracekit.__all__) <= {*names, "__version__"}
    assert set(tracekit.__all__) <= set(dir(tracekit))
    with pytest.raises(AttributeError, match="no attribute 'Tracer'"):
        _ = tracekit.Tracer
