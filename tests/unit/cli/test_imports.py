"""Modules that are run late, or hidden from whoever does without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.support.traces import TRACES, import_log
from tracekit.cli import imports
from tracekit.cli.executor_options import executor_of
from tracekit.judge.executors.tasks import Done
from tracekit.judge.partitioned import ready


@pytest.fixture
def late_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package `slowly` whose module `slowly.one` takes its time, and sees no numpy."""
    package = tmp_path / "slowly"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text(
        "import time\n"
        "first = 1\n"
        "time.sleep(0.2)\n"
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
        "last = 2\n"
    )
    finder = imports.Finder()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(imports, "_LATE", ("slowly.one",))
    monkeypatch.delitem(sys.modules, "numpy", raising=False)
    sys.meta_path.insert(0, finder)
    yield import_module("slowly.one")
    sys.meta_path.remove(finder)
    for name in ("slowly", "slowly.one"):
        sys.modules.pop(name, None)


def test_a_late_module_is_run_once_and_whole_for_each_thread(late_one: ModuleType) -> None:
    assert type(late_one).__name__ == "_Late"
    assert import_module("slowly.one") is late_one
    assert type(late_one).__name__ == "_Late"  # to import it again does not run it
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: late_one.last, range(4))) == [2] * 4
    assert type(late_one).__name__ == "module"
    assert late_one.numpy is None
    assert not hasattr(late_one, "nothing")


def test_others_find_what_was_hidden_for_a_while() -> None:
    finder = imports.Finder()
    with finder.also("numpy"), pytest.raises(ModuleNotFoundError, match="numpy"):
        finder.find_spec("numpy")
    assert finder.find_spec("numpy") is None
    with pytest.raises(ModuleNotFoundError, match="pandas"):
        finder.find_spec("pandas")


def test_a_quick_question_runs_none_of_what_takes_long(tmp_path: Path) -> None:
    """As the program, with everything that a user's question goes through."""
    code = (
        "import sys; from tracekit.cli.main import main\n"
        "sys.argv[1:] = ['sql', sys.argv[1], 'SELECT 1']\n"
        "try: main()\n"
        "except SystemExit as left: assert not left.code\n"
        "late = type(sys.modules['pyarrow.compute']).__name__\n"
        "print(late, [n for n in ('numpy', 'pandas', 'cloudpickle') if n in sys.modules])"
    )
    import_log(TRACES / "v1.36.3-churn7" / "watch.jsonl.zst", tmp_path / "t", "v1.36.3-churn7")
    words = [sys.executable, "-c", code, str(tmp_path / "t")]
    # Who reads a trace first compares its footers with its rows, which takes more.
    for _ in range(2):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "_Late []"


class Imported(NamedTuple):
    """Work that tells which of some modules a worker has, and which it may still have."""

    names: tuple[str, ...]

    def do(self, _: int) -> tuple[list[str], bool]:
        here = [name for name in self.names if name in sys.modules]
        return here, import_module("numpy") is not None


@pytest.mark.full
def test_a_process_that_judges_imports_no_more_and_lets_a_controller_do_so() -> None:
    names = ("numpy", "pandas", "cloudpickle")
    with executor_of(2, None, 0) as executor:
        assert executor is not None
        executor.begin(ready)
        (done,) = executor.run(Imported(names), [0], lambda _: ())
    assert isinstance(done, Done)
    assert done.result == ([], True)


@pytest.mark.full
def test_only_the_recorder_takes_what_speaks_to_a_cluster() -> None:
    """It is a quarter of an installation, and a second of a start."""
    script = (
        "import sys, importlib\n"
        "from tracekit.cli.main import VERBS\n"
        "for name, verb in VERBS.items():\n"
        "    if name != 'record':\n"
        "        importlib.import_module(verb.place.partition(':')[0])\n"
        "print([n for n in ('kubernetes', 'aiohttp', 'mcp', 'perfetto', 'prompt_toolkit') "
        "if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
