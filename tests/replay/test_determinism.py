"""The same trace and options give the same bytes: for any hash seed, whatever arrived first."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.traces import ROOT, TRACES, import_log, json_lines
from tracekit.cli.replay import replay

#: One trace where the controller lags by seconds, one of the controller that counts.
NAMES = ("v1.36.3-churn7", "v1.17.17-all")
#: Receive times are rounded down to this, so that many rows share one.
GRAIN_NS = 10_000_000
_BOUNDS = ("LIST_BEGIN", "LIST_END")


@pytest.fixture(scope="module", params=NAMES)
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = request.param
    target: Path = tmp_path_factory.mktemp("trace") / name
    import_log(TRACES / name / "watch.jsonl.zst", target, name)
    return target


def _in_a_process(trace: Path, *options: str, hash_seed: int) -> bytes:
    """What a process says that judges for itself, and reads no verdicts of another one."""
    own = trace.with_name("-".join((trace.name, str(hash_seed), *options)))
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from tracekit.cli.main import main; main()"),
            *("replay", str(trace), *options),
        ],
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "PYTHONHASHSEED": str(hash_seed),
            "PYTHONPATH": str(ROOT),
            "TRACEKIT_CACHE_DIR": str(own),
        },
    )
    assert done.returncode == 0, done.stderr.decode()
    assert any(own.glob("verdicts/*"))
    return done.stdout


def _replay(trace: Path, *options: str) -> str:
    result = CliRunner().invoke(replay, [str(trace), *options], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.stdout


def _written(rows: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_hash_seeds_change_no_byte(trace: Path) -> None:
    for options in (("--diff", "-o", "json"), ("-o", "jsonl")):
        first, second = (_in_a_process(trace, *options, hash_seed=seed) for seed in (0, 1))
        assert first == second


@pytest.mark.parametrize("name", NAMES)
def test_the_order_among_rows_of_the_same_time_changes_no_byte(name: str, tmp_path: Path) -> None:
    rows = list(json_lines(TRACES / name / "watch.jsonl.zst"))
    for row in rows:
        row["recv"] -= row["recv"] % GRAIN_NS
    rows.sort(key=lambda row: row["recv"])
    choice = random.Random(7)
    shuffled: list[dict[str, Any]] = []
    # What bounds a list stays where it is: rows that change sides are other evidence.
    for _, same in itertools.groupby(
        rows, lambda row: (row["recv"], row["type"] in _BOUNDS and (row["resource"], row["type"]))
    ):
        together = list(same)
        choice.shuffle(together)
        shuffled += together
    assert shuffled != rows
    outputs = []
    for which, log in (("plain", rows), ("shuffled", shuffled)):
        target = tmp_path / which
        import_log(_written(log, tmp_path / f"{which}.jsonl"), target, name)
        outputs.append([_replay(target, "--diff", "-o", form) for form in ("json", "jsonl")])
    assert outputs[0] == outputs[1]


def test_a_part_is_judged_as_it_is_in_the_whole(trace: Path) -> None:
    whole = [json.loads(line) for line in _replay(trace, "--diff", "-o", "jsonl").splitlines()]
    spaces = sorted({judged["object"]["namespace"] for judged in whole})
    space = spaces[len(spaces) // 2]
    inside = [judged for judged in whole if judged["object"]["namespace"] == space]
    part = _replay(trace, "--diff", "-o", "jsonl", "-n", space).splitlines()
    assert [json.loads(line) for line in part] == inside
    job = inside[-1]["object"]["name"]
    one = _replay(trace, "--diff", "-o", "jsonl", "--job", f"{space}/{job}").splitlines()
    assert [json.loads(line) for line in one] == [
        judged for judged in inside if judged["object"]["name"] == job
    ]
