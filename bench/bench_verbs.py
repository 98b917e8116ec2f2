"""What each verb takes, in multiples of one parse of the same lines, all in one run.

    python -m bench verbs --observations 120000 [--work DIR] [VERB…]

A real run is laid end to end in time (`laid_out.py`). CPU seconds are those of all processes of a
verb, memory is that of the largest; `orjson.loads` of the same lines is measured before and after,
so that a machine that has other work says so. What needs verdicts runs once before it counts. With
names (`"import watch" whatif`) only these are measured; the import is made all the same. The
package has its bytecode, as one that pip installed.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow.compute as pc

import tracekit
from bench.laid_out import laid_out
from bench.measured import Used, run
from tracekit.trace.reading.reader import TraceReader

_SOURCE = Path(__file__).parents[1] / "traces" / "v1.36.3-churn7" / "watch.jsonl.zst"
_BLOCK = 8 << 20
_QUERY = "SELECT outcome, count(*) FROM jobs GROUP BY ALL ORDER BY ALL"


class Verb(NamedTuple):
    """A row of the table: its name, the command, and the multiples that it may and should take."""

    name: str
    arguments: list[str]
    required: float
    aim: float
    #: Whether it is asked a second time, when the verdicts are known.
    again: bool = False


def main() -> None:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observations", type=int, default=120_000)
    parser.add_argument("--work", type=Path, help="keep the files here")
    parser.add_argument("verbs", nargs="*", help="only these")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        os.environ["TRACEKIT_CACHE_DIR"] = str(work / "cache")
        _compile()
        lines = work / "watch.jsonl"
        with lines.open("w", encoding="utf-8") as file:
            file.writelines(laid_out(_SOURCE, options.observations))
        before = _parsing(lines)
        imported, *others = _verbs(work, lines)
        some = [v for v in others if v.name.startswith(tuple(options.verbs or [""]))]
        rows = [(verb, _measured(verb)) for verb in (imported, *some)]
        after = _parsing(lines)
    parse = (before + after) / 2
    print(f"one parse: {before:.2f} s before, {after:.2f} s after; load {_load()}\n")
    print("| verb | CPU s | parses | required | aim | peak MiB |")
    print("|---|---|---|---|---|---|")
    for verb, took in rows:
        told = ("failed", "", "") if took is None else _told(took, parse)
        print(f"| {verb.name} | {told[0]} | {told[1]} | {verb.required} | {verb.aim} | {told[2]} |")


def _verbs(work: Path, lines: Path) -> list[Verb]:
    trace = work / "trace"
    made = ["import", "watch", str(lines), "-o", str(trace), "--kubernetes-version", "v1.36.3"]
    imported = Verb("import watch", made, 5, 3)
    shutil.rmtree(trace, ignore_errors=True)
    shutil.rmtree(work / "narrow", ignore_errors=True)
    page = str(work / "report.html")
    return [
        imported,
        Verb("replay --diff", ["replay", "--diff", "--processes", "1", str(trace)], 4, 2),
        Verb("diagnose, verdicts known", ["diagnose", str(trace)], 1.5, 0.5, again=True),
        Verb(
            "report, verdicts known",
            ["report", str(trace), "-o", page, "--force"],
            3,
            1,
            again=True,
        ),
        Verb("explain, verdicts known", ["explain", str(trace), "{job}"], 0.4, 0.1, again=True),
        Verb("SQL, jobs by outcome", ["sql", str(trace), _QUERY], 0.4, 0.1, again=True),
        Verb("watch --once", ["watch", "--once", str(trace)], 7, 5),
        Verb("whatif", ["whatif", str(trace), "--kubernetes-version", "v1.37.1"], 15, 8),
        Verb("compact", ["compact", str(trace), "-o", str(work / "narrow")], 6, 3),
    ]


def _measured(verb: Verb) -> Used | None:
    arguments = [_some_job(verb.arguments[1]) if a == "{job}" else a for a in verb.arguments]
    for _ in range(2 if verb.again else 1):
        ran, took = run(arguments)
    if took is None:
        print(f"{verb.name}: {ran.stderr[-300:]}", flush=True)
    return took


def _some_job(trace: str) -> str:
    rows = TraceReader(Path(trace)).table(("namespace", "job"), streams=["jobs"], last_seq=8_000)
    row = rows.filter(pc.is_valid(rows["job"])).to_pylist()[-1]
    return f"{row['namespace']}/{row['job']}"


def _compile() -> None:
    """Have the package as pip leaves it, with its bytecode: else each start compiles it anew."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(Path(tracekit.__file__).parent, quiet=2)


def _parsing(path: Path) -> float:
    # A block at a time: what this process has held once counts as its children's peak.
    taken = 0.0
    with path.open("rb") as file:
        while texts := file.readlines(_BLOCK):
            begin = time.process_time()
            for text in texts:
                orjson.loads(text)
            taken += time.process_time() - begin
    return taken


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def _told(took: Used, parse: float) -> tuple[str, str, str]:
    return f"{took.cpu_s:.2f}", f"{took.cpu_s / parse:.1f}", f"{took.rss_mib:,}"


if __name__ == "__main__":
    main()
