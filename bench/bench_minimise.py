"""The smallest trace of each kind of divergence that a planted lie can lead to.

    python -m bench minimise [--records v1.36.3-churn7,v1.36.3-all] [--rules TK101,TK102] [--salt 0]

A lie of every kind that the tests know is planted in each record, one at a time; the first that
leads to a divergence of a rule is made small by it. Prints rows and bytes before and after, what
else the small trace shows, and which rules no lie led to. Exit status 1 if a small trace does not
show what it was made for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from tests.lies import KINDS, draws_of, plant
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.answers.findings.divergences import RULES
from tracekit.judge.judged import Judge, resolve_era
from tracekit.minimise.limit import TimeLimit
from tracekit.minimise.run import minimise, write
from tracekit.minimise.showing import divergence, showing_of
from tracekit.minimise.target import choose
from tracekit.trace.reading.objects import objects_of
from tracekit.trace.reading.reader import TraceReader

RECORDS = ("v1.36.3-churn7", "v1.36.3-all", "v1.28.15-all", "v1.23.17-all", "v1.21.14-all")


@dataclass(frozen=True, slots=True)
class Lied:
    """A record with one lie in it."""

    kind: str
    reader: TraceReader
    rules: frozenset[str]


def lied(name: str, salt: int) -> Iterator[Lied]:
    """A record with each kind of lie that has a place in it, and the rules that it leads to."""
    rows = list(json_lines(TRACES / name / "watch.jsonl.zst"))
    for kind in sorted(KINDS):
        planted = plant(kind, rows, draws_of(kind, name, salt))
        if planted is None:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            log = Path(temporary) / "watch.jsonl"
            log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in planted[0]))
            reader = import_log(log, Path(temporary) / "trace", name)
            report = Judge(reader, resolve_era(reader, None, None)).report()
            yield Lied(kind, reader, frozenset(divergence(j).rule for j in report.divergences))


def shown_small(record: Lied, rule: str) -> bool:
    """Make the record small by its first divergence of a rule, and print how small."""
    started, reader = time.process_time(), record.reader
    judge = Judge(reader, resolve_era(reader, None, None))
    target = choose(showing_of(reader, judge), objects_of(reader), key=None, rule=rule)
    found = minimise(
        reader, judge, target, attempts_max=5000, limit=TimeLimit(), say=lambda *_: None
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "small"
        write(found, folder)
        small = TraceReader(folder)
        again = Judge(small, resolve_era(small, None, None)).report().divergences
        others = ", ".join(sorted({other.rule for other in found.others})) or "nothing"
        print(
            f"{rule}  {record.kind:32} {reader.rows:>6} -> {small.rows:>3} rows, "
            f"{sum_of_bytes(reader.path):>9,} -> {sum_of_bytes(folder):>6,} bytes, "
            f"{time.process_time() - started:5.1f} s CPU; with it: {others}",
            flush=True,
        )
        return found.target in {divergence(judgement) for judgement in again}


def sum_of_bytes(folder: str | Path) -> int:
    """The bytes of a trace's files."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 if a small trace does not show what it was made for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default=",".join(RECORDS))
    parser.add_argument("--rules", default=",".join(rule.id for rule in RULES))
    parser.add_argument("--salt", type=int, default=0)
    options = parser.parse_args(arguments)
    wanted, lost = set(options.rules.split(",")), []
    for name in options.records.split(","):
        print(name)
        for record in lied(name, options.salt):
            for rule in sorted(record.rules & wanted):
                wanted.remove(rule)
                if not shown_small(record, rule):
                    lost.append(rule)
    print(f"not shown by the small trace: {', '.join(lost) or 'none'}")
    print(f"no lie led to: {', '.join(sorted(wanted)) or 'none'}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
