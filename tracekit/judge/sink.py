"""Where the judgements of a trace go, one after the other or many at a time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tracekit.check.diff.report import DiffReport
from tracekit.check.verdict import Judgement
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
