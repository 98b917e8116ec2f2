"""What is written is for its owner alone. docs/trust.md: "Who may read what is written"."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.kills import ROOT
from tests.support.traces import TRACES

LOG = TRACES / "v1.36.3-conflicts" / "watch.jsonl.zst"
TRACE = TRACES / "incidents" / "counted-twice"


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    environment["TRACEKIT_CACHE_DIR"] = str(folder / "cache")
    # A process of its own, with the mask of most machines.
    return subprocess.run(
        [sys.executable, "-c", "from tracekit.cli.main import main; main()", *words],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, umask=0o022,
    )  # fmt: skip


def modes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(("mask", "others"), [(None, 0o077), ("027", 0o027)])
def test_nobody_else_reads_what_is_written(tmp_path: Path, mask: str | None, others: int) -> None:
    more = {} if mask is None else {"TRACEKIT_UMASK": mask}
    for words in (
        ("import", "watch", str(LOG), "-o", "trace", "--kubernetes-version", "v1.36.3"),
        ("report", "trace", "-o", "report.html"),
        ("redact", "trace", "-o", "redacted", "--key-file", "key"),
        ("diagnose", "trace", "--write-baseline", "known.json"),
    ):
        done = run(tmp_path, *words, **more)
        assert done.returncode in (0, 2), done.stderr
    made = modes(tmp_path)
    assert {"trace/log", "report.html", "known.json", "cache"} <= made.keys()
    assert {name: oct(mode) for name, mode in made.items() if mode & others} == {}
    if mask is not None:
        assert made["report.html"] == 0o640


@pytest.mark.parametrize("mask", ["private", "-1", "0o27", "", "99", "٠٢٧"])
def test_a_mask_that_is_none_is_one_sentence(tmp_path: Path, mask: str) -> None:
    done = run(tmp_path, "versions", TRACEKIT_UMASK=mask)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """Who opened it to others did so on purpose, as with a redirection of the shell's."""
    page, new = tmp_path / "page.html", tmp_path / "new.html"
    page.touch(mode=0o644)
    page.chmod(0o644)
    for target in (page, new):
        done = run(tmp_path, "report", str(TRACE), "-o", target.name, "--force")
        assert done.returncode == 0, done.stderr
    assert [oct(stat.S_IMODE(file.stat().st_mode)) for file in (page, new)] == ["0o644", "0o600"]
