"""A folder that somebody sent: no file in it is run because a verb was called there.

docs/trust.md: "Nothing in the working directory is run."
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import orjson
import pytest
import yaml

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.harness import write_kubeconfig
from tests.record.kills import ROOT
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.base.children import environment
from tracekit.base.home import own_folder

TRAP = "open({sprung!r}, 'w').close()\nraise SystemExit(97)\n"
NAMES = sorted({*sys.stdlib_module_names, *packages_distributions(), "tracekit"})
BLOCK = 9 << 20
EXEC = "client.authentication.k8s.io/v1"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A working directory with a module of each name that we could import."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    (tmp_path / "sprung").mkdir()
    for name in NAMES:
        if name.isidentifier():
            trap = TRAP.format(sprung=str(tmp_path / "sprung" / name))
            (folder / f"{name}.py").write_text(trap)
    return folder


@pytest.fixture
def run(tmp_path: Path, stranger: Path) -> Run:
    """Run a command there as its script on the PATH does; no trap may spring."""
    script = tmp_path / "bin" / "tracekit"
    script.parent.mkdir()
    script.write_text(
        "from tracekit.cli.main import main\nif __name__ == '__main__':\n    main()\n"
    )
    env = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}

    def begin(*words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, str(script), *words], cwd=stranger, capture_output=True, text=True,
            env={**env, "PYTHONPATH": str(ROOT)}, check=False, timeout=120,
        )  # fmt: skip
        assert sorted(path.name for path in (tmp_path / "sprung").iterdir()) == [], done.stderr
        return done

    return begin


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    name = "v1.36.3-restart"
    import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name)
    return tmp_path / "trace"


def test_an_import_of_several_blocks(stranger: Path, run: Run) -> None:
    lines = b"".join(json_lines_of("v1.36.3-restart"))
    note = b'{"recv":1,"resource":"pods","type":"NOTE","object":{"error":"%s"}}\n' % (b"x" * 1000)
    (stranger / "watch.jsonl").write_bytes(lines + note * (2 * BLOCK // len(note)))
    done = run("import", "watch", "watch.jsonl", "-o", "trace", "--processes", "2")
    assert done.returncode == 0, done.stderr


def json_lines_of(name: str) -> list[bytes]:
    return [orjson.dumps(row) + b"\n" for row in json_lines(TRACES / name / "watch.jsonl.zst")]


def test_traces_that_other_processes_judge(trace: Path, run: Run) -> None:
    assert run("replay", str(trace), "--diff", "--processes", "2").returncode == 0
    assert run("replay", str(trace), str(trace), "--diff").returncode == 0


@pytest.mark.full
def test_workers_of_dask(trace: Path, run: Run) -> None:
    assert run("replay", str(trace), "--diff", "--scheduler", "local").returncode == 0


def test_a_recorder_with_a_judge_and_a_plugin(tmp_path: Path, run: Run) -> None:
    cluster = FakeCluster()
    cluster.create("namespaces", name="ns")
    server = FakeServer(cluster, bookmark_every_s=0.2)
    plugin = tmp_path / "plugin"
    status = {"token": server.token}
    answer = {"apiVersion": EXEC, "kind": "ExecCredential", "status": status}
    # Its environment is the one that kubectl would give it.
    plugin.write_text(
        f"#!/bin/sh\nprintenv PYTHONSAFEPATH && exit 1\necho '{orjson.dumps(answer).decode()}'\n"
    )
    plugin.chmod(0o755)
    config = Path(write_kubeconfig(tmp_path / "config", server, namespace="ns"))
    document = yaml.safe_load(config.read_text())
    document["users"][0]["user"] = {
        "exec": {
            "apiVersion": EXEC,
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }
    config.write_text(yaml.safe_dump(document))
    done = run(
        "record", "-o", "run", "--judge", "--kubeconfig", str(config), "--duration", "1s"
    )  # fmt: skip
    server.close()
    assert done.returncode == 0, done.stderr


def test_the_environment_of_a_child_has_no_relative_search_path() -> None:
    given = {"PYTHONPATH": os.pathsep.join(("", ".", "lib", "/opt/lib")), "HOME": "/h"}
    assert environment(given) == {"PYTHONSAFEPATH": "1", "PYTHONPATH": "/opt/lib", "HOME": "/h"}
    assert environment({"PYTHONPATH": "."}) == {"PYTHONSAFEPATH": "1"}


@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"])
def test_a_place_of_ones_own_is_never_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A relative one would be a stranger's defaults, and a stranger's verdicts."""
    monkeypatch.chdir(tmp_path)
    for place in (".", "tracekit", "..", ""):
        monkeypatch.setenv(variable, place)
        folder = own_folder(variable, ".config")
        assert folder is not None
        assert folder.is_absolute()
        assert not folder.is_relative_to(tmp_path)
    monkeypatch.setenv("HOME", ".")
    assert own_folder(variable, ".config") is None
