"""Where the judgements of a trace go, one after the other or many at a time."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from tracekit.verdict import Judgement


class Sink(Protocol):
    """What becomes of the judgements of a trace, one after the other."""

    def job(self, job: tuple[str, str]) -> None:
        """A Job is judged, as (namespace, name)."""

    def take(self, judgement: Judgement) -> None:
        """A judgement, as it is unless its Job comes again."""

    def take_rows(self, rows: pa.Table) -> None:
        """Judgements without divergences, as `verdict_table.kept_table` has them."""

    def again(self, jobs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Judgements of these Jobs change now that all is known; which of them shall come again."""

    def change(self, before: Judgement, after: Judgement) -> None:
        """A judgement of a Job that comes again, as it was taken and as it is; maybe the same."""
