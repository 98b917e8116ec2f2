"""The Containerfile's own steps, run here: locked packages, and a program that writes nowhere else.

No image is pulled: a virtual environment stands for the base, and folders for the image's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.traces import ROOT

pytestmark = pytest.mark.e2e  # it needs a package index, and a minute


def python() -> str:
    """A Python that every user may run, as the base's is; the one of the tests may be a user's own."""
    wanted = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
    for name in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if (
            Path(name).exists()
            and subprocess.run([name, "-c", wanted], check=False).returncode == 0
        ):
            return name
    return pytest.fail("install python3 (3.11 or newer) and python3-venv for every user")


def steps(text: str) -> list[tuple[str, str]]:
    """The instructions of the build stage, lines joined."""
    stage = text.split("AS build", 1)[1].split("\nFROM", 1)[0].replace("\\\n", " ")
    return re.findall(r"(?m)^(COPY|RUN) (.*)$", stage)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter, as an image's root is."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def image(place: Path) -> Path:
    """Where /opt of the image lies, made by the steps of the build stage."""
    root = place
    source = root / "src"
    source.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    for instruction, words in steps((ROOT / "Containerfile").read_text()):
        if instruction == "COPY":
            *names, target = words.split()
            for name in names:
                place = source / target
                if (ROOT / name).is_dir():
                    # As an image's builder does: a link stays one.
                    shutil.copytree(ROOT / name, place, symlinks=True, dirs_exist_ok=True)
                else:
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, place)
        else:
            command = words.replace("/opt/", f"{root}/opt/").replace("python -m", f"{python()} -m")
            done = subprocess.run(
                ["sh", "-ec", command], cwd=source, env=kept, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return root / "opt"


def test_it_runs_as_a_user_that_owns_nothing(image: Path, place: Path) -> None:
    passing = place / "tmp"
    passing.mkdir()
    passing.chmod(0o777)
    text = (ROOT / "Containerfile").read_text()
    user = re.search(r"(?m)^USER (\d+):(\d+)$", text)
    assert user is not None
    environment = {"PATH": f"{image}/tracekit/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1",
                   "XDG_CACHE_HOME": str(passing / "cache")}  # fmt: skip
    done = subprocess.run(
        ["tracekit", "demo", "-o", str(passing / "demo")],
        cwd=passing, env=environment, user=int(user[1]), group=int(user[2]), extra_groups=[],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The lie was found" in done.stdout
    written = [path for path in image.rglob("*") if path.stat().st_uid == int(user[1])]
    assert written == []
