"""Whether two commits give the same verdicts, byte for byte, on every trace and planted lie.

    python -m bench.identity --against COMMIT [--lies] [--but FIELD]… [TRACE…]

Prints one digest per trace: of every judgement with all its fields, `why` included, in order;
`--but why` leaves that field out. Only names that every commit has are imported here.
Without names the shipped traces are imported. With `--against` the
same is done by the code of another commit, in a worktree of its own, and what differs is told, exit
status 1. `--lies` adds each planted lie of `tests/lies`, judged with its whole record.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import tracekit
from tests.replay import test_planted_lies as lies
from tests.support.judged_rows import judge_of
from tests.support.traces import TRACES, import_log

ROOT = Path(__file__).resolve().parents[1]


def _digest(judgements: Iterable[Any], but: Collection[str]) -> str:
    total = hashlib.sha256()
    for judgement in judgements:
        names = [name for name in type(judgement).__annotations__ if name not in but]
        told = tuple(getattr(judgement, name) for name in names)
        total.update(repr(told).encode())
    return total.hexdigest()[:24]


def digests_of_traces(traces: Iterable[Path], but: Collection[str]) -> Iterator[tuple[str, str]]:
    """The digest of each trace's judgements, by the rules that it shows."""
    for path in traces:
        verdicts = tracekit.open(path).replay().verdicts
        yield path.name, f"{_digest(verdicts, but)} {len(verdicts)}"


def digests_of_lies(but: Collection[str]) -> Iterator[tuple[str, str]]:
    """The digest of the judgements of each record with a planted lie."""
    for places in (lies.PLACES, lies.OLD_PLACES):
        for kind in lies.FOUND + lies.CRON:
            planted = lies.planted(kind, places)
            if planted is None:
                continue
            name, rows, _ = planted
            with judge_of(rows, name) as judge:
                found = _digest(judge.report().judgements, but)
            yield f"{kind} in {name}", found


def _print_digests(names: list[str], but: Collection[str], *, with_lies: bool) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        traces = [Path(name) for name in names] or list(_imported(Path(temporary)))
        for name, digest in digests_of_traces(traces, but):
            print(f"{name}\t{digest}", flush=True)
    if with_lies:
        for name, digest in digests_of_lies(but):
            print(f"{name}\t{digest}", flush=True)


def _imported(work: Path) -> Iterator[Path]:
    """The shipped traces, imported as tests do."""
    for folder in sorted(TRACES.iterdir()):
        log = folder / "watch.jsonl.zst"
        if log.exists():
            import_log(log, work / folder.name, folder.name)
            yield work / folder.name


def _run_in(root: Path, arguments: list[str]) -> dict[str, str]:
    """What the code below `root` prints, by trace or lie."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), *arguments],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(line.split("\t") for line in done.stdout.splitlines())


def main() -> int:
    """Print the digests, or compare them with another commit's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", help="trace directories; default: the shipped ones")
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--lies", action="store_true")
    parser.add_argument("--but", action="append", default=[], metavar="FIELD")
    options = parser.parse_args()
    if options.against is None:
        _print_digests(options.traces, options.but, with_lies=options.lies)
        return 0
    arguments = [*options.traces, *(["--lies"] if options.lies else [])]
    arguments += [word for name in options.but for word in ("--but", name)]
    with tempfile.TemporaryDirectory() as temporary:
        other = Path(temporary) / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", other, options.against], check=True)
        try:
            before = _run_in(other, arguments)
        finally:
            subprocess.run([*git, "remove", "--force", other], check=True)
    after = _run_in(ROOT, arguments)
    differ = [name for name in before | after if before.get(name) != after.get(name)]
    for name in differ:
        print(f"differs: {name}")
    print(f"{len(before)} compared with {options.against}, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
