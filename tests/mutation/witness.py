"""Which real trace contradicts a mutant: the Job or CronJob at which it diverges.

    python -m tests.mutation.witness            # every row, every shipped trace: half an hour
    python -m tests.mutation.witness 'gate X'   # one row

writes `witnesses.json` beside this file: for each row the trace and the object that give a
divergence when the row is turned over, or null where no shipped trace does.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants, rows
from tests.support.traces import ALL, TRACES, import_log
from tracekit.check.diff.cronjob import CronJobJudge
from tracekit.check.diff.trace import judge_groups
from tracekit.check.diff.ttl import TtlJudge
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.feed import COLUMNS, histories
from tracekit.judge.judged import resolve_era
from tracekit.judge.run_context import run_context_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.era import Era

STORE = Path(__file__).with_name("witnesses.json")
#: Both sides of each pair of traces/upgrades, asked where no larger trace is a witness.
SIDES = sorted(str(p.parent.relative_to(TRACES)) for p in TRACES.glob("upgrades/*/*/about.json"))
#: Parts of real records, by their paths from the repository's root: some were kept as witnesses.
PARTS = sorted(
    str(p.parent.relative_to(TRACES.parent))
    for kept in ("witnesses", "replay")
    for p in (TRACES.parent / "tests" / "data" / kept).glob("*/about.json")
)

#: Upgrades of which each side has some three quarters of its cluster's revisions for rows: what was
#: cut out kept no controller busy, so that silence counts. The recording had asked for all
#: namespaces, which the rows of one that are left cannot show.
NEARLY_WHOLE = {
    "every-after-restart",
    "every-drifts",
    "labels-lose-jobs",
    "template-labels-changed",
}


@dataclass(frozen=True, slots=True)
class Witness:
    """A trace and an object of it: `job NS/NAME`, `cronjob NS/NAME` or `ttl`."""

    trace: str
    object: str


class Trial:
    """One shipped trace, before which mutants are tried."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        place = TRACES.parent / name if name in PARTS else TRACES / name
        self.reader: TraceReader = import_log(
            place / "watch.jsonl.zst",
            folder,
            place,
            "all" if place.parent.name in NEARLY_WHOLE else None,
        )
        self.era: Era = resolve_era(self.reader, None, None)

    @cached_property
    def _groups(self) -> list:  # type: ignore[type-arg]
        return list(self.reader.groups(COLUMNS))

    def contradicts(self, mutant: Mutant, only: str | None = None) -> str | None:
        """The object of the trace, or `only` that one, at which the mutant diverges."""
        kind, _, key = (only or "").partition(" ")
        found = None
        if mutant.job is not None and kind in ("", "job"):
            found = self._job(mutant, key)
        if found is None and mutant.cron_job is not None and kind in ("", "cronjob", "ttl"):
            found = self._cron_job(mutant, kind, key)
        return found

    def _job(self, mutant: Mutant, key: str) -> str | None:
        assert mutant.job is not None
        context = run_context_of(self.reader).watching("jobs", "pods")
        groups = self._groups
        if key:
            namespace, _, name = key.partition("/")
            groups = [
                g for g in self.reader.groups(COLUMNS, namespace=namespace) if g.job in (None, name)
            ]
        for judged in judge_groups(iter(groups), mutant.job, context):
            if any(judgement.divergent for judgement in judged.judgements):
                history = judged.replay.history
                return f"job {history.namespace}/{history.name}"
        return None

    def _cron_job(self, mutant: Mutant, kind: str, key: str) -> str | None:
        assert mutant.cron_job is not None
        context = run_context_of(self.reader)
        cron_jobs = CronJobJudge(CronRunner(mutant.cron_job), context.watching("jobs", "cronjobs"))
        ttl = TtlJudge(mutant.cron_job, context.watching("jobs"))
        for history in histories(cron_jobs.passing(self._groups)):
            cron_jobs.job(history)
            ttl.job(history)
        for judgement in cron_jobs.report() if kind != "ttl" else ():
            name = f"{judgement.object.namespace}/{judgement.object.name}"
            if judgement.divergent and key in ("", name):
                return f"cronjob {name}"
        if not key and any(judgement.divergent for judgement in ttl.report()):
            return "ttl"
        return None


def search(wanted: list[str]) -> dict[str, Witness | None]:
    """A witness for each row, the first of the shipped traces that gives one."""
    found: dict[str, Witness | None] = dict.fromkeys(wanted)
    with tempfile.TemporaryDirectory() as scratch:
        for name in (*sorted(ALL, key=_size), *SIDES, *PARTS):
            trial = Trial(name, Path(scratch) / name.replace("/", "_"))
            for row in (row for row in wanted if found[row] is None):
                for mutant in mutants(trial.era, row):
                    at = trial.contradicts(mutant)
                    if at is not None:
                        found[row] = Witness(name, at)
                        sys.stderr.write(f"{row}: {name}, {at}\n")
                        break
    return found


def _size(name: str) -> int:
    return (TRACES / name / "watch.jsonl.zst").stat().st_size


def load() -> dict[str, Witness | None]:
    """What was found last."""
    stored = json.loads(STORE.read_text())
    return {row: Witness(**value) if value else None for row, value in stored.items()}


def main() -> None:
    """Search for all rows, or for those that are named, and keep what was found."""
    known = load() if STORE.exists() else {}
    wanted = sys.argv[1:] or rows()
    known |= search(wanted)
    document = {
        row: {"trace": w.trace, "object": w.object} if (w := known.get(row)) else None
        for row in rows()
    }
    STORE.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
