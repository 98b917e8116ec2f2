"""Does `whatif` predict what really happened? `python -m bench whatif`.

Real control planes of several releases ran the same scenarios. For each ordered pair of records of
one family, and each Job in both: the answer that `whatif` gives on the first record, for the rules
of the second, beside what the second shows: ending, pods, succeeded, failed.

`python -m bench whatif --folder DIR` measures other records (again for each family): the folder
holds imported traces of one family, each with its about.json or none. What changed and was not told
is counted by its reason: a race, or a life that nobody saw to its end, no record can tell.

`python -m bench whatif --jobs 10000 --to v1.36.3` lays one recording end to end in time until it
has so many Jobs, and puts CPU time and memory of `whatif` beside `replay --diff` by the same rules.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

from bench.laid_out import laid_out
from bench.measured import Used, run
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.answers.whatif.answers import JobAnswer
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif_traces import Running, Selected, answer_all
from tracekit.judge.judged import resolve_era
from tracekit.model.process.manager import ManagerFlags
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.api_server import ApiRules

#: Records of the same scenarios: written at the same time, with the same flags of the controllers.
FAMILIES = (
    ("v1.25.4-twins", "v1.32.2-twins", "v1.36.3-twins"),
    ("v1.17.17-all", "v1.21.14-all", "v1.23.17-all", "v1.28.15-all", "v1.36.3-all"),
    ("v1.14.10-all", "v1.20.15-all", "v1.24.17-all", "v1.30.14-all", "v1.34.4-all"),
)
#: What depends on the minute of the clock or on a race with a user is no oracle.
LEFT_OUT = ("t-cronjobs/", "t-job-deleted/at-birth")


#: An answer in draws holds what happened if so many of them went so.
_LEAST_SHARE = 0.1
#: What many Jobs are made of: random ones, on the release that is furthest from today's.
_MANY = TRACES / "v1.27.4-churn606"


@dataclass(slots=True)
class Record:
    """One imported trace."""

    name: str
    reader: TraceReader
    flags: ManagerFlags


@dataclass(slots=True)
class Score:
    """How the answers of some pairs fared."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)  # of the draws that went as it did

    def add(self, answer: JobAnswer, real: JobCourse, where: str) -> None:
        """One Job: what was said, what happened."""
        changes = signature(answer.recorded) != signature(real)
        forks = answer.fork is not None
        told = answer.target is not None
        right = told and signature(answer.target) == signature(real)
        shares = {signature(way.course): way.times for way in answer.courses}
        share = shares.get(signature(real), 0) / max(1, sum(shares.values()))
        among = right or share >= _LEAST_SHARE
        self.counts["jobs"] += 1
        self.counts["told"] += told
        self.counts["right"] += right
        self.counts["forks"] += forks
        self.counts["forks calibrated"] += forks and answer.verdict != "uncalibrated"
        self.counts["changes"] += changes
        self.counts["changes told"] += changes and told
        self.counts["changes right"] += changes and right
        self.counts["changes among"] += changes and among
        if shares:
            self.counts["in draws"] += 1
            self.counts["in draws right"] += right
            self.counts["in draws among"] += among
            self.shares.append(share)
        else:
            self.counts["certain"] += told
            self.counts["certain right"] += right
        if changes and not told:
            self.counts[f"untold {answer.reason or answer.verdict}"] += 1
        if not right:
            self.wrong.append(_line(answer, real, where))

    def update(self, other: Score) -> None:
        """Add another score."""
        self.counts.update(other.counts)
        self.wrong += other.wrong
        self.shares += other.shares

    def row(self, name: str) -> str:
        """The figures as a line of the table."""
        c = self.counts
        return (
            f"{name:<34} {c['jobs']:>5} {_part(c['right'], c['told']):>16} "
            f"{_part(c['changes right'], c['changes']):>16} "
            f"{_part(c['changes among'], c['changes']):>16} "
            f"{_part(c['changes right'], c['changes told']):>16} "
            f"{_part(c['forks calibrated'], c['forks']):>16} {c['left out']:>8}"
        )

    def sure(self) -> str:
        """How the certain answers fared, and those that say in how many draws."""
        c = self.counts
        mean = sum(self.shares) / len(self.shares) if self.shares else 0.0
        return (
            f"Certain: {_part(c['certain right'], c['certain'])}. In k of n draws: the usual "
            f"course {_part(c['in draws right'], c['in draws'])}, one of at least "
            f"{_LEAST_SHARE:.0%} of the draws {_part(c['in draws among'], c['in draws'])}; "
            f"on average {mean:.0%} of the draws went as it did"
        )

    def unreported(self) -> str:
        """Why Jobs that changed were not told, with how many."""
        found = {k.removeprefix("untold "): n for k, n in self.counts.items() if "untold" in k}
        return ", ".join(f"{name} {count}" for name, count in sorted(found.items())) or "none"


def numbered(answers: Sequence[JobAnswer]) -> Iterator[tuple[tuple[str, int], JobAnswer]]:
    """Each Job with its name and the number of those before it that had the same."""
    seen: Counter[str] = Counter()
    for answer in sorted(answers, key=lambda a: a.job.created_ns):
        yield (answer.key, seen[answer.key]), answer
        seen[answer.key] += 1


#: What the API server writes into these fields where the user says nothing.
_DEFAULTS = {"completionMode": "NonIndexed", "suspend": False}


def other_question(answer: JobAnswer, happened: JobAnswer, rules: ApiRules) -> bool:
    """Whether what happened is no answer to what was asked.

    Where the API server of the first record dropped a field, the user's request is not in it, but
    in the other record it is. And a Job whose pods still run when a record ends is told at that
    moment, which is the end of nothing.
    """
    spec = happened.job.spec.raw
    # Where the user says nothing, this one depends on the podFailurePolicy, which is looked at.
    dropped = set(rules.dropped) - {"podReplacementPolicy"}
    if spec.get("podReplacementPolicy") == "Failed" and "podFailurePolicy" not in spec:
        dropped.add("podReplacementPolicy")
    asked_for = any(spec.get(name, _DEFAULTS.get(name)) != _DEFAULTS.get(name) for name in dropped)
    if "suspend" in dropped:
        asked_for |= any(c.type == "Suspended" for c in happened.job.status.conditions)
    running = [a.reason == "censored" and a.recorded.ended is None for a in (answer, happened)]
    return asked_for or any(running)


def signature(course: JobCourse | None) -> tuple[object, ...]:
    """What is compared."""
    return () if course is None else (course.ended, course.pods, course.succeeded, course.failed)


def _part(part: int, whole: int) -> str:
    return f"{part}/{whole} {part / whole:6.1%}" if whole else "-"


def _line(answer: JobAnswer, real: JobCourse, where: str) -> str:
    said = signature(answer.target) if answer.target is not None else f"{answer.why}"
    how = "proved" if answer.proved else answer.verdict
    if answer.courses:
        said = " or ".join(f"{signature(way.course)} in {way.times}" for way in answer.courses)
    return (
        f"  {where} {answer.key}: {how} {said}; really {signature(real)}, "
        f"recorded {signature(answer.recorded)}"
    )


def _flags(about: Path) -> ManagerFlags:
    """The flags of the controllers, as about.json names them."""
    text = json.loads(about.read_text()).get("kcm_flags", "") if about.exists() else ""
    named = dict(flag.removeprefix("--").split("=", 1) for flag in shlex.split(text) if "=" in flag)

    def number(name: str) -> int | None:
        return int(named[name]) if name in named else None

    return ManagerFlags(
        kube_api_qps=number("kube-api-qps"),
        kube_api_burst=number("kube-api-burst"),
        concurrent_job_syncs=number("concurrent-job-syncs"),
    )


def shipped(folder: Path) -> Iterator[list[Record]]:
    """The families among the traces of the repository."""
    for family in FAMILIES:
        records = []
        for name in family:
            if not (TRACES / name).exists():
                continue
            reader = import_log(TRACES / name / "watch.jsonl.zst", folder / name, name)
            records.append(Record(name, reader, _flags(TRACES / name / "about.json")))
        yield records


def given(folder: Path) -> list[Record]:
    """The imported traces of a folder."""
    return [
        Record(path.name, TraceReader(path), _flags(folder / f"{path.name}.about.json"))
        for path in sorted(folder.iterdir())
        if path.is_dir()
    ]


def measure(records: Sequence[Record]) -> Score:
    """Every ordered pair of a family; prints the table and each Job that was told wrong."""
    eras = {record.name: resolve_era(record.reader, None, None) for record in records}
    real: dict[str, dict[tuple[str, int], JobAnswer]] = {}
    for record in records:
        era = eras[record.name]
        found = answer_all(record.reader, era, [era], Selected(), None, Running(causes=False))[0]
        real[record.name] = dict(numbered(found.jobs))
    total = Score()
    for left in records:
        others = [record for record in records if record is not left]
        targets = [eras[record.name] for record in others]
        running = Running(left.flags, None, 1, causes=False)
        answers = answer_all(left.reader, eras[left.name], targets, Selected(), None, running)
        for right, found in zip(others, answers, strict=True):
            score = Score()
            for key, answer in numbered(found.jobs):
                happened = real[right.name].get(key)
                if happened is None or answer.key.startswith(LEFT_OUT):
                    continue
                if other_question(answer, happened, ApiRules.of(eras[left.name])):
                    score.counts["left out"] += 1
                    continue
                score.add(answer, happened.recorded, f"{left.name} → {right.name}")
            print(score.row(f"{left.name} → {right.name}"), flush=True)
            total.update(score)
    return total


def side_by_side(jobs: int, to: str) -> None:
    """Many Jobs and one upgrade: `whatif` beside `replay --diff` of the same trace."""
    about = json.loads((_MANY / "about.json").read_text())
    own, lines = _jobs_and_lines(_MANY / "watch.jsonl.zst")
    with TemporaryDirectory() as folder:
        trace = str(Path(folder) / "trace")
        command = ["import", "watch", "-", "-o", trace, "--kubernetes-version", about["gitVersion"]]
        importing = subprocess.Popen(
            [sys.executable, "-m", "tracekit", *command],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        with cast("IO[bytes]", importing.stdin) as pipe:
            for line in laid_out(_MANY / "watch.jsonl.zst", lines * -(-jobs // own)):
                pipe.write(line.encode())
        importing.wait()
        print(f"{about['gitVersion']} → {to}, {own * -(-jobs // own):,} Jobs")
        first: Used | None = None
        for name, arguments in (
            ("replay --diff", ["replay", "--diff", trace]),
            (f"replay --diff {to}", ["replay", "--diff", trace, "--kubernetes-version", to]),
            (f"whatif {to}", ["whatif", trace, "--kubernetes-version", to]),
        ):
            ran, took = run(arguments)
            if took is None:
                print(f"{name}: failed: {ran.stderr[-300:]}")
                continue
            first = first or took
            print(
                f"{name:24} {took.cpu_s:8.1f} s CPU {took.cpu_s / first.cpu_s:6.2f} x "
                f"{took.wall_s:8.1f} s {took.rss_mib:6,} MiB {took.rss_mib / first.rss_mib:6.2f} x "
                f"{len(ran.stdout.splitlines()):8,} lines",
                flush=True,
            )


def _jobs_and_lines(log: Path) -> tuple[int, int]:
    jobs = lines = 0
    for row in json_lines(log):
        lines += 1
        jobs += row["resource"] == "jobs" and row["type"] == "ADDED"
    return jobs, lines


def main() -> int:
    """Print the table pair by pair, or the two side by side; 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", action="append", type=Path, help="imported traces of a family")
    parser.add_argument("--jobs", type=int, help="time and memory with so many Jobs instead")
    parser.add_argument("--to", default="v1.36.3", help="the version of the upgrade")
    options = parser.parse_args()
    if options.jobs:
        side_by_side(options.jobs, options.to)
        return 0
    print(
        f"{'A → B':<34} {'Jobs':>5} {'right of told':>16} {'right of changed':>16} "
        f"{'or in draws':>16} {'of these told':>16} {'forks calibrated':>16} {'left out':>8}"
    )
    total = Score()
    with TemporaryDirectory() as folder:
        named = [given(path) for path in options.folder or ()]
        for records in named or shipped(Path(folder)):
            if any(True for _ in permutations(records, 2)):
                total.update(measure(records))
    print(total.row("all"))
    print(total.sure())
    print(f"Changed and not told: {total.unreported()}")
    print(*sorted(total.wrong), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
