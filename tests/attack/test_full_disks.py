"""A disk that is full in the midst of a trace: what has the name is whole, or is not there.

docs/architecture.md: what the system says of a full disk is told as any error of a user is.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.attack.answers import is_refusal, run
from tests.attack.forge import honest
from tests.record.kills import ROOT
from tests.support.traces import TRACES
from tracekit.cli.export import _TEXT as TEXTS
from tracekit.judge.verdict_table import VerdictWriter, cached_table, load_verdicts

VERBS = (
    ("import", "watch", str(TRACES / "v1.36.3-restart" / "watch.jsonl.zst"), "-o", "out"),
    ("redact", "trace", "-o", "out"),
    ("merge", "trace", "trace", "-o", "out"),
    ("compact", "trace", "-o", "out"),
    ("simulate", "--workload", "load.json", "-o", "out"),
)
FILES = (
    *(("export", "trace", "--format", kind, "-o", "out") for kind in ("perfetto", *TEXTS)),
    ("report", "trace", "-o", "out"),
)
_SPEC = {"template": {"spec": {"containers": [{"name": "main", "image": "main"}]}}}
LOAD = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "load"}, "spec": _SPEC}


def _where_files_are_short(
    place: Path, *words: str, cache: str = "/dev/null/none"
) -> subprocess.CompletedProcess[str]:
    """Run where a file may have so few bytes that a header has room, and rows have none."""
    code = "from tracekit.cli.main import main; main()"
    return subprocess.run(
        ["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", sys.executable, "-B", "-c", code, *words],
        cwd=place, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRACEKIT_CACHE_DIR": cache},
    )  # fmt: skip


@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[0])
def test_a_trace_is_there_whole_or_not_at_all(words: tuple[str, ...], tmp_path: Path) -> None:
    """`redact` and `simulate` left one without rows, which `info` and `replay` took for one."""
    honest(tmp_path / "trace", rows=400)
    (tmp_path / "load.json").write_text(json.dumps(LOAD))
    before = sorted(path.name for path in tmp_path.iterdir())
    done = _where_files_are_short(tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert "out cannot be written (File too large): make room" in done.stderr.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("before", [None, "what was there"])
@pytest.mark.parametrize("words", FILES, ids=" ".join)
def test_a_file_is_there_whole_or_not_at_all(
    words: tuple[str, ...], before: str | None, tmp_path: Path
) -> None:
    """Half an export or a report stayed behind, under its name and in place of what had it."""
    honest(tmp_path / "trace", rows=400)
    target = tmp_path / "out"
    if before is not None:
        target.write_text(before)
        words = (*words, "--force")
    done = _where_files_are_short(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "tracekit: out cannot be written (File too large): make room, or name another file with -o"
    )
    left = {path.name for path in tmp_path.iterdir()} - {"trace"}
    assert left == set() if before is None else (target.read_text() == before and left == {"out"})


@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[0])
def test_a_link_that_leads_nowhere_is_there(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told after the work, as a disk on which to make room."""
    monkeypatch.chdir(tmp_path)
    honest(tmp_path / "trace", rows=20)
    (tmp_path / "load.json").write_text(json.dumps(LOAD))
    (tmp_path / "out").symlink_to("nowhere/at/all")
    status, printed, said = run(*words)
    assert (status, printed) == (2, "")
    last = said.splitlines()[-1]
    assert last.startswith("tracekit: out exists")
    assert "choose another name" in last


def test_what_cannot_be_compacted_stays_as_it_was(tmp_path: Path) -> None:
    """What was written by then stayed behind, on a disk that was full of it."""
    trace = honest(tmp_path / "trace", rows=400)

    def files() -> dict[str, bytes]:
        return {
            str(path.relative_to(trace)): path.read_bytes()
            for path in trace.rglob("*")
            if path.is_file()
        }

    before = files()
    assert _where_files_are_short(tmp_path, "compact", "trace").returncode == 2
    assert files() == before


def test_an_answer_that_cannot_be_kept_is_given(tmp_path: Path) -> None:
    """It was "[Errno 27] File too large", and what was begun stayed on the disk that was full."""
    honest(tmp_path / "trace", rows=400)
    cache = tmp_path / "cache"
    none, full = (
        _where_files_are_short(tmp_path, "replay", "trace", cache=place)
        for place in ("/dev/null/none", str(cache))
    )
    assert (full.returncode, full.stdout, full.stderr) == (
        none.returncode,
        none.stdout,
        none.stderr,
    )
    kept = [path for path in cache.rglob("*") if path.is_file()]
    assert not [path for path in kept if path.name.startswith("tmp")]
    assert not (cache / "verdicts").exists() or not list((cache / "verdicts").iterdir())


def test_verdicts_of_which_some_were_lost_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room came back before the rest was written: that was kept as all there were."""
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    rows = cached_table([])
    with VerdictWriter("key") as writer:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        many = pa.Table.from_pylist(
            [{"namespace": "default", "name": os.urandom(64).hex()} for _ in range(400)],
            schema=rows.schema,
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            writer.take_rows(many)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        writer.again([("default", "another")])
        writer.done()
    assert load_verdicts("key") is None


def test_what_is_there_is_not_simulated_over(tmp_path: Path) -> None:
    trace = honest(tmp_path / "trace")
    (tmp_path / "load.json").write_text(json.dumps(LOAD))
    answer = run("simulate", "--workload", str(tmp_path / "load.json"), "-o", str(trace))
    assert answer[:2] == (2, "")
    assert answer[2].endswith("trace exists: choose another name for the simulated trace\n")


@pytest.mark.parametrize("verb", ["info", "replay", "diagnose", "sql"])
def test_a_link_to_itself_is_no_trace(tmp_path: Path, verb: str) -> None:
    """It was "a fault of tracekit's own (RuntimeError: Symlink loop)"."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    answer = run(verb, str(loop), *(["SELECT 1"] if verb == "sql" else []))
    assert is_refusal(answer), answer
    assert "fault" not in answer[2]


def test_room_for_what_is_put_aside_is_asked_for(tmp_path: Path) -> None:
    """It was "[Errno 27] File too large; name another file": which file, nobody had named."""
    honest(tmp_path / "trace", rows=400)
    assert run("compact", str(tmp_path / "trace"), "-o", str(tmp_path / "narrow"))[0] == 0
    done = _where_files_are_short(tmp_path, "sql", "narrow", "SELECT count(name) FROM rows")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tracekit: no room to put work aside (File too large): make room there, or name a "
        "folder with TMPDIR\n"
    )
