"""False alarms on fresh records of real control planes: `python -m bench fidelity`.

    python -m bench fidelity [--versions v1.36.3,v1.30.14] [--mixes churn,storm] [--seed N]
                             [--jobs 60] [--minutes 4] [--cuts 8] [--keep DIR]
    python -m bench fidelity --hollow-nodes    nodes that are drained, tainted, lost: see tests/e2e
    python -m bench fidelity --judge DIR…      the same figures for what an earlier run kept
    python -m bench fidelity --views '*'       each record in these views of `bench views`, too

Each version and mix is a control plane of its own on loopback (`tests/e2e`), with a seed that was
never used before unless one is given. Its record is judged whole, and cut at random: a later
start, an earlier end, gaps, no Events. The controllers are the real ones, so that every divergence
is a false alarm. Prints Jobs, actions and false alarms per record and per version; exit status 1
if there was any, and its record stays in .cache/fidelity: it may never come about again.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench.bench_views import chosen_views, print_outcomes, views_of
from tests.e2e.build import DEFAULT_VERSION
from tests.support.erasures import Row, early_end, random_cut
from tests.support.traces import import_log, json_lines
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.verdict import Judgement
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.reading.reader import TraceReader

FAST = "--kube-api-qps=100 --kube-api-burst=200"
#: Records with a false alarm, where no other folder was asked for.
KEPT = Path(__file__).resolve().parents[1] / ".cache" / "fidelity"
SHOWN_MAX = 20  # false alarms that are printed for one record


@dataclass(frozen=True, kw_only=True)
class Mix:
    """What is recorded together: scenarios, the controllers' throttle, when they are killed."""

    scenarios: str
    kcm_flags: str = FAST
    restarts: str = ""


MIXES = {
    "churn": Mix(scenarios="churn,crons"),
    "throttled": Mix(scenarios="churn,drain,crons", kcm_flags=""),
    "storm": Mix(scenarios="burst,meddle,drain,webhook,quotas", restarts="70,140"),
    "meddle": Mix(scenarios="meddle,quotas"),
    "flood": Mix(scenarios="burst,meddle,webhook,crons", kcm_flags="", restarts="100"),
    "story": Mix(scenarios="all"),
}


@dataclass(kw_only=True)
class Tally:
    """What was judged."""

    records: int = 0
    jobs: int = 0
    actions: int = 0
    unknowable: int = 0
    alarms: int = 0

    def add(self, judgements: Sequence[Judgement]) -> None:
        """Count one record."""
        self.records += 1
        self.jobs += len(
            {(j.object.uid, j.object.name) for j in judgements if j.controller == "job"}
        )
        self.actions += len(judgements)
        self.unknowable += sum(j.verdict.value == "unknowable" for j in judgements)
        self.alarms += sum(j.divergent for j in judgements)

    def __str__(self) -> str:
        share = self.unknowable / self.actions if self.actions else 0
        return (
            f"{self.records:5} {self.jobs:8,} {self.actions:10,} {share:10.1%} {self.alarms:7}"
        )  # fmt: skip


HEADER = "records     jobs    actions unknowable  alarms"


def record(version: str, mix: str, seed: int, options: argparse.Namespace, keep: Path) -> Path:
    """Run one control plane; the folder with its log, or what the machinery says if it failed."""
    chosen = MIXES[mix]
    folder: Path = keep / f"{version}-{mix}-{seed}"
    command = [
        *(sys.executable, "-m", "tests.e2e.generate", "--version", version, "-o", str(folder)),
        *("--scenarios", chosen.scenarios, f"--kcm-flags={chosen.kcm_flags}"),
        *("--churn-seed", str(seed), "--churn-jobs", str(options.jobs)),
        *("--minutes", str(options.minutes), f"--restart-after={chosen.restarts}"),
        *(["--hollow-nodes"] if options.hollow_nodes else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not folder.exists():
        print(f"{folder.name}: no record; {done.stderr.strip()[-300:]}", file=sys.stderr)
    return folder


def judged(log: Path, folder: Path, target: Path) -> list[Judgement]:
    """Import a log as what about.json in `folder` says of it, and judge all of it."""
    reader = TraceReader(target) if target.exists() else import_log(log, target, folder)
    return list(Judge(reader, resolve_era(reader, None, None)).report().judgements)


def judge_record(
    folder: Path, options: argparse.Namespace, chance: random.Random, work: Path
) -> tuple[Tally, Tally]:
    """Judge one record whole, and some cuts of it."""
    log, whole, cut = folder / "watch.jsonl.zst", Tally(), Tally()
    found = judged(log, folder, work / folder.name)
    whole.add(found)
    _show(f"{folder.name}, whole", found)
    rows: list[Row] = list(json_lines(log)) if options.cuts or options.ends else []
    for number, (what, kept) in enumerate(_cuts(rows, options, chance)):
        path = work / "cut.jsonl"
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in kept))
        with tempfile.TemporaryDirectory(dir=work) as scratch:
            found = judged(path, folder, Path(scratch) / str(number))
        cut.add(found)
        _show(f"{folder.name}, {what}", found)
    return whole, cut


def _cuts(
    rows: Sequence[Row], options: argparse.Namespace, chance: random.Random
) -> Iterator[tuple[str, list[Row]]]:
    for _ in range(options.cuts):
        yield random_cut(rows, chance)
    for number in range(1, options.ends + 1):
        first, last = rows[0]["recv"], rows[-1]["recv"]
        at_ns = first + (last - first) * number // (options.ends + 1)
        yield f"up to {(at_ns - first) / NS_PER_S:.3f} s", early_end(rows, at_ns)


def _show(what: str, judgements: Sequence[Judgement]) -> None:
    alarms = [judgement for judgement in judgements if judgement.divergent]
    if alarms:
        kinds = Counter(f"{j.controller} {j.action} {j.verdict.value}" for j in alarms)
        print(f"{what}: {dict(kinds)}")
    for judgement in alarms[:SHOWN_MAX]:
        name = f"{judgement.object.namespace}/{judgement.object.name}"
        print(
            f"    {judgement.verdict.value} {judgement.action} of {name}, "
            f"{judgement.resource_version}: {judgement.why[:300]}",
            flush=True,
        )


def _folders(options: argparse.Namespace, seed: int, work: Path) -> Iterator[Path]:
    """The records, as they become whole."""
    if options.judge:
        yield from options.judge
        return
    keep: Path = options.keep or work / "records"
    keep.mkdir(parents=True, exist_ok=True)
    wanted = [(v, m) for v in options.versions.split(",") for m in options.mixes.split(",")]
    with ThreadPoolExecutor(options.side_by_side) as recorders:
        made = [
            recorders.submit(record, version, mix, seed + number, options, keep)
            for number, (version, mix) in enumerate(wanted)
        ]
        for future in made:
            if future.result().exists():
                yield future.result()


def _false_views(folder: Path, options: argparse.Namespace, seed: int) -> int:
    """How many of the views that were asked for say something else than the record."""
    if not options.views:
        return 0
    outcomes = views_of([folder], chosen_views(options.views), seed, 120, options.side_by_side)
    return sum(bool(found.broken) or not found.ended for found in print_outcomes(outcomes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--versions", default=DEFAULT_VERSION)
    parser.add_argument("--mixes", default="churn,throttled,storm", help=", ".join(MIXES))
    parser.add_argument("--seed", type=int, help="to record and cut the same again")
    parser.add_argument("--jobs", type=int, default=60, help="of each scenario")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--cuts", type=int, default=8, help="of each record")
    parser.add_argument("--ends", type=int, default=0, help="so many ends of each record, too")
    parser.add_argument("--side-by-side", type=int, default=2, help="control planes at a time")
    parser.add_argument(
        "--hollow-nodes", action="store_true", help="a real scheduler and kubelets (1.36)"
    )
    parser.add_argument("--views", default="", help="of each record: names or patterns")
    parser.add_argument("--keep", type=Path, help="where the records stay")
    parser.add_argument("--judge", type=Path, nargs="+", help="records that were kept")
    options = parser.parse_args()
    unknown = [mix for mix in options.mixes.split(",") if mix not in MIXES]
    if unknown:
        parser.error(f"there is no mix {unknown[0]!r}; choose from {', '.join(MIXES)}")
    return options


def main() -> int:
    """Record, judge, cut and count."""
    options = _options()
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    print(f"seed {seed}\n{'':28} {HEADER}")
    chance = random.Random(seed)  # noqa: S311 - a bench, no secret
    totals: dict[str, Tally] = {}
    bad_views = 0
    with tempfile.TemporaryDirectory(prefix="fidelity-") as temporary:
        for folder in _folders(options, seed, Path(temporary)):
            version = json.loads((folder / "about.json").read_text())["version"]
            work = Path(temporary)
            whole, cut = judge_record(folder, options, chance, work)
            print(f"{folder.name:40}\n{'  whole':28} {whole}\n{'  cut':28} {cut}", flush=True)
            false_views = _false_views(folder, options, seed)
            bad_views += false_views
            if (whole.alarms or cut.alarms or false_views) and folder.is_relative_to(work):
                kept = shutil.copytree(folder, KEPT / folder.name, dirs_exist_ok=True)
                print(f"kept as {kept}", flush=True)
            for label, part in ((f"{version} whole", whole), (f"{version} cut", cut)):
                total = totals.setdefault(label, Tally())
                for name in vars(total):
                    setattr(total, name, getattr(total, name) + getattr(part, name))
    print(f"\n{'all':28} {HEADER}")
    for label in sorted(totals):
        print(f"{label:28} {totals[label]}")
    return int(bad_views > 0 or any(total.alarms for total in totals.values()))


if __name__ == "__main__":
    sys.exit(main())
