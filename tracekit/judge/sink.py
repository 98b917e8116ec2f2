"""Where the judgements of a trace go, one after the other or many at a time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from tracekit.check.diff.report import DiffReport
from tracekit.check.verdict import Judgement
from tracekit.judge.misfit import Systematic
from tracekit.judge.verdict_table import built


class Sink(Protocol):
    """What becomes of the judgements of a trace, one after the other."""

    def misfit(self, why: str) -> None:
        """The record as a whole contradicts the rules, in sentences."""

    def job(self, job: tuple[str, str]) -> None:
        """A Job is judged, as (namespace, name)."""

    def take(self, judgement: Judgement) -> None:
        """A judgement, as it is unless its Job comes again."""

    def take_rows(self, rows: pa.Table) -> None:
        """Judgements without divergences, as `verdict_table.cached_table` has them."""

    def again(self, jobs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Judgements of these Jobs change now that all is known; which of them shall come again."""

    def change(self, before: Judgement, after: Judgement) -> None:
        """A judgement of a Job that comes again, as it was taken and as it is; maybe the same."""


@dataclass(slots=True)
class Kept:
    """Keeps all judgements of some controllers."""

    report: DiffReport
    controllers: Collection[str]

    def misfit(self, why: str) -> None:
        """Note that the record contradicts the rules."""
        if "job" in self.controllers:
            self.report.misfit = why

    def job(self, job: tuple[str, str]) -> None:
        """Note a Job."""
        if "job" in self.controllers:
            self.report.jobs.append(job)

    def take(self, judgement: Judgement) -> None:
        """Keep a judgement."""
        if judgement.controller in self.controllers:
            self.report.judgements.append(judgement)

    def take_rows(self, rows: pa.Table) -> None:
        """Build and keep judgements."""
        for judgement in built(rows):
            self.take(judgement)

    def again(self, jobs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Let go of what will come again."""
        self.report.judgements = [
            j for j in self.report.judgements if (j.object.namespace, j.object.name) not in jobs
        ]
        return jobs

    def change(self, _before: Judgement, after: Judgement) -> None:
        """Keep a judgement that comes again."""
        self.take(after)


@dataclass(slots=True)
class Counting:
    """Passes all on, and counts what contradicts the rules."""

    sink: Sink
    systematic: Systematic = field(default_factory=Systematic)

    def misfit(self, why: str) -> None:
        """Pass it on."""
        self.sink.misfit(why)

    def job(self, job: tuple[str, str]) -> None:
        """Pass it on."""
        self.sink.job(job)

    def take(self, judgement: Judgement) -> None:
        """Count and pass on."""
        self.systematic.take(judgement)
        self.sink.take(judgement)

    def take_rows(self, rows: pa.Table) -> None:
        """Count what they are of, and pass them on."""
        names = rows.select(["controller", "namespace", "name"]).group_by(
            ["controller", "namespace", "name"]
        )
        for row in names.aggregate([]).to_pylist():
            self.systematic.judged(row["controller"], row["namespace"] or "", row["name"] or "")
        self.sink.take_rows(rows)

    def again(self, jobs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Judgements that come again are counted again."""
        wanted = self.sink.again(jobs)
        self.systematic.again(wanted)
        return wanted

    def change(self, before: Judgement, after: Judgement) -> None:
        """Count and pass on."""
        self.systematic.take(after)
        self.sink.change(before, after)
