"""Every pair of options of every verb: an answer, or one sentence that says why there is none.

docs/trust.md: "A fault of tracekit's own is exit status 2 and one sentence, never 1".
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.answers import PREFIX, run
from tests.attack.option_pairs import ASKED, line, lines, singles
from tests.support.command_tree import commands
from tests.support.traces import ROOT, import_log

RECORD = ROOT / "tests" / "data" / "replay" / "retries-of-a-failing-cronjob"
WORKLOAD = """
duration: 1m
kubernetesVersion: v1.36.3
jobs: [{name: a, namespace: n, spec: {completions: 2, parallelism: 1}, pods: {run: 1s}}]
"""
#: Binary; all others print text.
_BINARY = ("perfetto", "parquet")
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]")
#: Without these no verb exits 1.
_MAY_FAIL = ("--diff", "--fail-on")
_LONGEST_S = 60


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pairs") / "trace"
    import_log(RECORD / "watch.jsonl.zst", place, RECORD)
    return place


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cwd"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def prepared(folder: Path) -> set[str]:
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    (folder / "a-folder").mkdir()
    (folder / "a-file").write_text("no document of any kind\n")
    (folder / "a-workload").write_text(WORKLOAD)
    return {path.name for path in folder.iterdir()}


def troubles(words: list[str], folder: Path) -> Iterator[str]:
    """What is wrong with the answer to a command line."""
    there, begun_s = prepared(folder), time.monotonic()
    code, out, err = run(*words)
    if time.monotonic() - begun_s > _LONGEST_S:
        yield "it takes too long"
    if "fault of tracekit" in err or "Traceback" in err:
        yield "it is at fault"
    if code not in (0, 1, 2) or (code == 1 and not any(w.startswith(_MAY_FAIL) for w in words)):
        yield f"it exits {code}"
    if code == 2 and not all(text.startswith(PREFIX) for text in err.splitlines() or [""]):
        yield "it does not say why not"
    if _OBEYED.search(err) or (_OBEYED.search(out) and not any(w.endswith(_BINARY) for w in words)):
        yield "a terminal obeys it"
    made = {path.name for path in folder.iterdir()} ^ there
    if any(not any(name in word for word in words) for name in made):
        yield f"it made {made}"
    if code == 2 and made:
        yield f"it refused, and made {made}"


def check(asked: Iterator[list[str]], trace: Path, folder: Path) -> None:
    put = {"TRACE": str(trace), "LOG": str(RECORD / "watch.jsonl.zst")}
    before = {path: path.stat().st_mtime_ns for path in trace.rglob("*")}
    found = []
    for words in asked:
        wrong = [*troubles([put.get(word, word) for word in words], folder)]
        found += [(words, wrong)] if wrong else []
    assert not found
    assert before == {path: path.stat().st_mtime_ns for path in trace.rglob("*")}


def test_some_pairs(trace: Path, folder: Path) -> None:
    draw = random.Random(20)
    asked = [
        words for verb in ("info", "jobs", "versions", "cron next") for words in lines(verb, draw)
    ]
    check(iter(draw.sample(asked, 12)), trace, folder)


@pytest.mark.nightly
@pytest.mark.parametrize("verb", ASKED)
def test_each_verb_is_asked_rightly(trace: Path, folder: Path, verb: str) -> None:
    """Else it is refused whatever its options are."""
    put = {"TRACE": str(trace), "LOG": str(RECORD / "watch.jsonl.zst")}
    prepared(folder)
    code, _, err = run(*(put.get(word, word) for word in line(verb, {})))
    assert code in (0, 1), err


@pytest.mark.nightly
@pytest.mark.parametrize("verb", ASKED)
def test_each_value_alone(trace: Path, folder: Path, verb: str) -> None:
    check(singles(verb), trace, folder)


@pytest.mark.nightly
@pytest.mark.parametrize("verb", ASKED)
def test_each_pair(trace: Path, folder: Path, verb: str) -> None:
    """Other values each night; a failure prints the command line."""
    check(lines(verb, random.Random()), trace, folder)


def test_no_verb_is_left_out() -> None:
    others = {"demo", "record", "merge", "mcp", "completion"}
    known = {words for words, _ in commands() if not words.startswith("import ")}
    assert known - others == ASKED.keys() - {"import watch"}
