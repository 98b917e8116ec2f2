"""The same real records as other recorders would have seen them: `python -m bench views`.

    python -m bench views [--records DIR…] [--views 'offset*,lag 2 s'] [--seed N] [-o FILE]
    python -m bench views --list                        the names of all views

A DIR is a folder with watch.jsonl.zst and about.json, or a folder of such; without any those of
$TRACEKIT_VIEWS_RECORDS, or the repository's `traces`. `tests/support/views.py` has the views: a
recorder's clock that is off or set, late streams, less of the cluster, lists without a watch, other
clocks of controllers. Each is imported and judged in a process of its own that ends at its limits.

A row of the table is one view of one record: divergences that the record as it was does not have,
verdicts that are not what they were, actions that became unknowable, CPU time of import and
verdicts and peak memory of the verdicts beside those of the record as it was. `not`: which bounds
of docs/replay.md do not hold. Exit status 1 if there is a new divergence or a bound does not hold.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import orjson

from tests.support.erasures import Row
from tests.support.traces import TRACES, import_log, json_lines
from tests.support.views import VIEWS, View, seen

ROOT = Path(__file__).resolve().parents[1]
LOG = "watch.jsonl.zst"
RECORDS_VARIABLE = "TRACEKIT_VIEWS_RECORDS"
CLEAN = "as it was"
TIMES_MAX, MEMORY_MAX = 10.0, 2.0  # the bounds of docs/replay.md, beside the record as it was
TIMES_FROM_S = 2.0  # below this a start of Python is most of the time
LIMIT_BYTES = 4 << 30  # of a process; what needs more does not end
SHOWN_MAX = 1  # new divergences that are printed for one view

#: What a judgement is of, and what is said of it: all but when it was received, and words.
Told = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one record in one view."""

    record: str
    view: str
    ended: bool
    cpu_s: float = 0.0
    rss_mib: float = 0.0
    actions: int = 0
    unknowable: int = 0
    #: Beside the record as it was.
    new: int = 0
    changed: int = 0
    times: float = 0.0
    memory: float = 0.0
    broken: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    said: str = ""


@dataclass(frozen=True)
class _Judged:
    """What a process said of a record, and what that took."""

    judgements: tuple[dict[str, Any], ...]
    cpu_s: float
    rss_mib: float

    @property
    def unknowable(self) -> int:
        return sum(said["verdict"] == "unknowable" for said in self.judgements)


def _of(said: dict[str, Any]) -> Told:
    """The action that is judged."""
    return (said["controller"], *said["object"], said["action"], said["rv"], said["subject"])


def views_of(records: Iterable[Path], names: Sequence[str], seed: int, limit_s: int,
             side_by_side: int) -> Iterator[Outcome]:  # fmt: skip
    """Every record in every view, and as it was first."""
    with tempfile.TemporaryDirectory(prefix="views-") as temporary:
        work = Path(temporary)
        for record in records:
            rows: list[Row] = list(json_lines(record / LOG))
            clean = _judged(rows, record, work, limit_s)
            if isinstance(clean, str):
                yield Outcome(record=record.name, view=CLEAN, ended=False, said=clean)
                continue
            yield _beside(clean, clean, record, CLEAN)
            with ThreadPoolExecutor(side_by_side) as pool:
                asked = [
                    pool.submit(_view, name, rows, record, work, seed, limit_s, clean)
                    for name in names
                ]
                yield from (done.result() for done in asked)


def _view(name: str, rows: list[Row], record: Path, work: Path, seed: int, limit_s: int,
          clean: _Judged) -> Outcome:  # fmt: skip
    found = _judged(seen(name, rows, seed), record, work, limit_s)
    if isinstance(found, str):
        return Outcome(
            record=record.name, view=name, ended=False, broken=("does not end",), said=found
        )
    return _beside(found, clean, record, name)


def _beside(found: _Judged, clean: _Judged, record: Path, name: str) -> Outcome:
    """What is said in a view beside what is said of the record as it was."""
    before = Counter(_of(said) for said in clean.judgements if said["divergent"])
    new = [
        said
        for said in found.judgements
        if said["divergent"] and not before[_of(said)]
    ]  # fmt: skip
    verdicts = Counter((*_of(said), said["digest"]) for said in found.judgements)
    changed = (Counter((*_of(s), s["digest"]) for s in clean.judgements) - verdicts).total()
    times = max(found.cpu_s, TIMES_FROM_S) / max(clean.cpu_s, TIMES_FROM_S)
    memory = found.rss_mib / clean.rss_mib
    view = VIEWS.get(name, View(lambda rows, _: list(rows), 0.0, same=True))
    share = (found.unknowable - clean.unknowable) / max(1, len(clean.judgements))
    broken = {
        "divergences": new,
        "verdicts": view.same and changed,
        "unknowable": view.unknowable_max is not None and share > view.unknowable_max,
        "time": times > TIMES_MAX,
        "memory": memory > MEMORY_MAX,
    }
    return Outcome(
        record=record.name,
        view=name,
        ended=True,
        cpu_s=found.cpu_s,
        rss_mib=found.rss_mib,
        actions=len(found.judgements),
        unknowable=found.unknowable,
        new=len(new),
        changed=changed,
        times=times,
        memory=memory,
        broken=tuple(what for what, holds_not in broken.items() if holds_not),
        examples=tuple(
            f"{said['controller']} {said['action']} {said['verdict']} of "
            f"{said['object'][1]}/{said['object'][2]}, {said['rv']}: {said['why'][:200]}"
            for said in new[:SHOWN_MAX]
        ),
    )


def _judged(rows: Sequence[Row], record: Path, work: Path, limit_s: int) -> _Judged | str:
    """What a process of its own says of these rows, or why it did not end."""
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        log = Path(scratch) / "watch.jsonl"
        log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        command = [sys.executable, str(Path(__file__).resolve()), "--child", str(log)]
        done = subprocess.run(
            [*command, str(record.resolve()), "--limit", str(limit_s)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode < 0:
        return f"ended by signal {-done.returncode} after {limit_s} s of CPU time"
    if done.returncode:
        return (done.stderr.strip() or "no word").splitlines()[-1][:200]
    said = json.loads(done.stdout)
    return _Judged(tuple(said["judgements"]), said["cpu_s"], said["rss_mib"])


def _child(log: Path, record: Path, limit_s: int) -> None:
    """Import and judge a log in this process, which ends at its limits."""
    import hashlib  # noqa: PLC0415 - the parent needs none of this

    from tracekit.judge.judged import Judge, resolve_era  # noqa: PLC0415
    from tracekit.trace.reading.reader import TraceReader  # noqa: PLC0415

    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    # Apart: an import holds two blocks, whatever a log's length, and a record of polls is many
    # times as long as what it is beside. What may not grow is what judging holds.
    importing = multiprocessing.get_context("fork").Process(
        target=import_log, args=(log, log.with_name("trace"), record)
    )
    importing.start()
    importing.join()
    if importing.exitcode:
        sys.exit(importing.exitcode)
    reader = TraceReader(log.with_name("trace"))
    judgements = Judge(reader, resolve_era(reader, None, None)).report().judgements
    used = resource.getrusage(resource.RUSAGE_SELF)
    imported = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps(
            {
                "cpu_s": used.ru_utime + used.ru_stime + imported.ru_utime + imported.ru_stime,
                "rss_mib": used.ru_maxrss / 1024,
                "judgements": [
                    {
                        "controller": j.controller,
                        "object": list(j.object),
                        "action": j.action,
                        "rv": j.resource_version,
                        "subject": j.subject,
                        "verdict": j.verdict.value,
                        "divergent": j.divergent,
                        "why": j.why,
                        "digest": hashlib.sha256(
                            repr((j.verdict, j.reason, j.fields, j.why, j.forced, j.ambiguous,
                                  j.silent_syncs, j.lag_observations,
                                  [kind for kind, *_ in j.assumptions])).encode()
                        ).hexdigest()[:16],
                    }
                    for j in judgements
                ],
            }
        )
    )  # fmt: skip


HEADER = (
    f"{'record':26} {'view':30} {'new':>6} {'changed':>8} {'unknowable':>10} "
    f"{'time':>6} {'memory':>6}  not"
)


def line(outcome: Outcome) -> str:
    """A row of the table."""
    start = f"{outcome.record[:26]:26} {outcome.view:30} "
    if not outcome.ended:
        return f"{start}does not end: {outcome.said}"
    share = outcome.unknowable / max(1, outcome.actions)
    return (
        f"{start}{outcome.new:6,} {outcome.changed:8,} {share:10.1%} "
        f"{outcome.times:5.1f}x {outcome.memory:5.1f}x  {', '.join(outcome.broken)}"
    )


def print_outcomes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Print the table as it grows, with examples of what is new."""
    print(HEADER)
    shown = []
    for outcome in outcomes:
        shown.append(outcome)
        print(line(outcome), flush=True)
        for example in outcome.examples:
            print(f"    {example}", flush=True)
    return shown


def chosen_views(patterns: str) -> list[str]:
    """The views that one of the patterns names, in their order."""
    asked = [pattern.strip() for pattern in patterns.split(",")]
    return [name for name in VIEWS if any(fnmatchcase(name, pattern) for pattern in asked)]


def records_below(places: Iterable[Path]) -> list[Path]:
    """The folders with a record, of those that are named or right below them."""
    return [
        folder
        for place in places
        for folder in ([place] if (place / LOG).exists() else sorted(place.iterdir()))
        if (folder / LOG).exists()
    ]


def main() -> int:
    """Print the table; exit status 1 if something does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--views", default="*", help="names or patterns, with commas between")
    parser.add_argument("--list", action="store_true", help="print the views' names")
    parser.add_argument("--seed", type=int, default=0, help="of random walks")
    parser.add_argument("--limit", type=int, default=120, help="seconds of CPU time of one run")
    parser.add_argument("--side-by-side", type=int, default=1, help="runs at a time")
    parser.add_argument("-o", "--output", type=Path, help="write the same as JSON")
    parser.add_argument("--child", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _child(*options.child, options.limit)
        return 0
    names = chosen_views(options.views)
    if options.list or not names:
        print("\n".join(names or VIEWS))
        return 0 if options.list else 2
    places = options.records or [Path(os.environ.get(RECORDS_VARIABLE, TRACES))]
    shown = print_outcomes(
        views_of(records_below(places), names, options.seed, options.limit, options.side_by_side)
    )
    if options.output:
        options.output.write_text(json.dumps([asdict(outcome) for outcome in shown], indent=1))
    bad = [outcome for outcome in shown if outcome.broken or not outcome.ended]
    print(f"\n{len(shown)} views, {len(bad)} of them with something that does not hold")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
