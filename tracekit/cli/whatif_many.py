"""What `whatif` asks of a trace; of many traces, each is a task, and the answers are a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, TextIO

import pyarrow as pa
from msgspec import Struct

from tracekit.answers.whatif.answers import Answers, severity_of
from tracekit.answers.whatif.changes import parse_settings
from tracekit.answers.whatif.cron_changes import parse_cron_settings
from tracekit.answers.whatif_traces import (
    Running,
    Selected,
    Settings,
    Target,
    answer_all,
    target_era,
)
from tracekit.base.errors import UsageError
from tracekit.base.time_input import TimeRange
from tracekit.cli.many import Document, without
from tracekit.judge.judged import resolve_era
from tracekit.model.process.manager import ManagerFlags
from tracekit.report.documents import write_document, write_lines
from tracekit.report.rows import write_listing
from tracekit.report.whatif_document import ORDER, SCHEMA_VERSION, document
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.namespaces import lacks_namespace
from tracekit.versions.era import Era

OUTPUTS: Final = ("table", "json", "jsonl")


class WhatIfQuestion(Struct, frozen=True, kw_only=True):
    """The other rules, and whose Jobs they are asked about."""

    run: ClassVar[str] = "whatif"

    versions: tuple[str, ...]
    feature_gates: str | None
    settings: tuple[str, ...]
    cron_settings: tuple[str, ...]
    kube_api_qps: int | None
    concurrent_job_syncs: int | None
    draws: int
    from_version: str | None
    from_feature_gates: str | None
    namespace: str | None
    selector: str | None
    within: TimeRange
    no_limits: bool

    def check(self) -> None:
        """Raise unless something is to be otherwise, as it can be."""
        named = (self.versions, self.feature_gates, self.settings, self.cron_settings)
        flags = (self.kube_api_qps, self.concurrent_job_syncs)
        if not any(named) and all(flag is None for flag in flags):
            raise UsageError(
                "name what is to be otherwise: --kubernetes-version v1.36.3, --feature-gates, "
                "--set, --set-cron, --kube-api-qps or --concurrent-job-syncs"
            )
        self._changes()

    def answers(
        self,
        reader: TraceReader,
        tell_warnings: Callable[[Era], None],
        *,
        job: str | None = None,
        lanes: bool = False,
    ) -> list[Answers]:
        """What each target would have done with the Jobs of a trace."""
        recorded = resolve_era(reader, self.from_version, self.from_feature_gates)
        tell_warnings(recorded)
        targets = []
        for version in self.versions or (None,):
            target = target_era(reader, recorded, Target(version, self.feature_gates))
            tell_warnings(target)
            targets.append(target)
        selected = self._selected(job)
        running = Running(target_flags=self._flags(), draws=self.draws, lanes=lanes)
        return answer_all(reader, recorded, targets, selected, self._changes(), running)

    def answer(self, word: str) -> Document:
        """The answers about one trace as a document; none where it has no such Jobs."""
        if self.namespace is not None and lacks_namespace(word, self.namespace):
            return without(self.namespace)
        reader = TraceReader(word)
        warnings: list[str] = []
        try:
            found = self.answers(reader, lambda era: warnings.extend(era.warnings))
        except UsageError as error:
            if not self._selected(None).part:
                raise
            return {"left_out": str(error)}
        return {"problems": reader.problems, "warnings": warnings, **document(found)}

    def _selected(self, job: str | None) -> Selected:
        return Selected(self.namespace, job, self.selector, self.within)

    def _changes(self) -> Settings:
        return Settings(parse_settings(self.settings), parse_cron_settings(self.cron_settings))

    def _flags(self) -> ManagerFlags | None:
        if self.kube_api_qps is None and self.concurrent_job_syncs is None:
            return None
        burst = self.kube_api_qps * 3 // 2 if self.kube_api_qps is not None else None
        return ManagerFlags(self.kube_api_qps, burst, self.concurrent_job_syncs)


def write_many(documents: Sequence[Document], output: str, out: TextIO) -> None:
    """Print what was answered about each trace."""
    if output == "json":
        write_document({"schema_version": SCHEMA_VERSION, "traces": list(documents)}, out)
    elif output == "jsonl":
        write_lines(documents, out)
    else:
        rows = [row for found in documents for row in _rows(found)]
        write_listing(pa.Table.from_pylist(rows, _COLUMNS), out)


def fails_somewhere(documents: Sequence[Document], fail_on: str) -> bool:
    """Whether a Job or a CronJob of some trace differs as badly as that, or worse."""
    limit = severity_of(fail_on)
    return any(
        count and severity_of(verdict) >= limit
        for found in documents
        for target in _targets(found)
        for counts in (target["counts"], target["cronjob_counts"])
        for verdict, count in counts.items()
    )


_COLUMNS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("trace", "from", "to")),
        *((name, pa.int64()) for name in ORDER),
        ("note", pa.string()),
    ]
)


def _targets(found: Document) -> list[dict[str, Any]]:
    """The answers of one trace, of each target its own."""
    if "counts" in found:
        return [found]
    targets: list[dict[str, Any]] = found.get("matrix", [])
    return targets


def _rows(found: Document) -> Iterator[dict[str, Any]]:
    """A row for each target: Jobs and CronJobs by class."""
    targets = _targets(found)
    if not targets:
        yield {"trace": found["trace"], "note": found.get("left_out") or found["error"]}
    for target in targets:
        yield {
            "trace": found["trace"],
            "from": target["from"]["kubernetes_version"],
            "to": target["to"]["kubernetes_version"],
            **{name: target["counts"][name] + target["cronjob_counts"][name] for name in ORDER},
        }
