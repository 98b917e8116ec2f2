"""What a user has without a checkout: the wheel in a fresh environment, and the demo from it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.support.traces import ROOT

pytestmark = pytest.mark.e2e  # it needs a package index, and a minute


def _run(*command: str | Path, cwd: Path, status: int = 0) -> str:
    # Nothing of this environment may help: neither its packages nor the checkout.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=kept | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a fresh environment has its programs, with the wheel of this checkout installed."""
    place = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    _run(*pip, "wheel", "--no-deps", "-w", place / "dist", ROOT, cwd=place)
    (wheel,) = (place / "dist").glob("*.whl")
    venv.create(place / "env", with_pip=True)
    programs = place / "env" / "bin"
    _run(programs / "python", *pip[1:], "install", wheel, cwd=place)
    return programs


def test_the_demo_runs_from_the_wheel(programs: Path, tmp_path: Path) -> None:
    where = _run(
        programs / "python", "-c", "import tracekit; print(tracekit.__file__)", cwd=tmp_path
    )
    assert Path(where.strip()).is_relative_to(programs.parent)
    shown = _run(programs / "tracekit", "demo", "-o", "demo", cwd=tmp_path)
    assert "no divergence" in shown
    assert "The lie was found" in shown
    _run(programs / "tracekit", "replay", "demo/real", "--diff", cwd=tmp_path)
    _run(programs / "kubectl-tracekit", "replay", "demo/lie", "--diff", cwd=tmp_path, status=1)


def test_the_first_block_of_the_readme_can_be_pasted(tmp_path: Path) -> None:
    """As it stands, into a shell that stands in a clone."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert first is not None
    clone = tmp_path / "clone"
    _run("git", "clone", "--quiet", ROOT, clone, cwd=tmp_path)
    shown = _run("sh", "-e", "-c", first[1], cwd=clone)
    assert "The lie was found" in shown
    assert _run("git", "status", "--porcelain", cwd=clone) == ""
