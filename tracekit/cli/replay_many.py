"""`tracekit replay` of many traces: what is asked about each, and how the answers are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, TextIO

import pyarrow as pa
from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.base.time_input import TimeRange
from tracekit.cli.many import Document, without
from tracekit.judge.fact_cache import cached_coverage
from tracekit.judge.judged import Asked, Judge, open_under
from tracekit.report.documents import write_document, write_lines
from tracekit.report.replay import SCHEMA_VERSION, diff_document
from tracekit.report.rows import write_listing
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.namespaces import lacks_namespace
from tracekit.versions.overrides import AskedRules

OUTPUTS: Final = ("table", "json", "jsonl")


class ReplayQuestion(Struct, frozen=True):
    """What is asked about each trace."""

    run: ClassVar[str] = "replay"

    rules: AskedRules
    namespace: str | None
    controllers: tuple[str, ...] | None
    within: TimeRange
    around_damage: bool
    no_limits: bool

    def answer(self, word: str) -> Document:
        """The verdicts of a trace as one document."""
        if self.namespace is not None and lacks_namespace(word, self.namespace):
            return without(self.namespace)
        reader = open_under(self.rules, word, around_damage=self.around_damage)
        judge = Judge.under(self.rules, reader)
        controllers = None if self.controllers is None else list(self.controllers)
        if self.namespace is not None and self.namespace not in judge.objects.namespaces:
            return without(self.namespace)
        asked = Asked(self.namespace, None, controllers, self.within)
        try:
            found = judge.tally(asked)
        except UsageError as error:
            if not asked.part:
                raise
            return {"left_out": str(error)}  # nothing of that part was recorded in this trace
        document = {"problems": reader.problems, **diff_document(found, judge.era)}
        if found.decided or found.divergences or found.misfit:
            return document
        lacks = lacks_states(reader)
        return {**document, "lacks": lacks} if lacks else document


def lacks_states(reader: TraceReader) -> str:
    """Why a trace in which nothing was judged cannot be, "" if it might have been."""
    if any(map(cached_coverage(reader).has, ("jobs", "cronjobs"))):
        return ""
    return (
        "nothing of the trace can be judged: it has no states of Jobs or CronJobs; `tracekit "
        "timeline` shows what it has, and `kubectl get cronjobs,jobs,pods,events -A -o json` "
        "prints what it lacks"
    )


def write_many(documents: Sequence[dict[str, Any]], output: str, out: TextIO) -> None:
    """Print what was found of each trace."""
    if output == "json":
        answered = {"schema_version": SCHEMA_VERSION, "traces": list(documents)}
        write_document(answered, out)
    elif output == "jsonl":
        write_lines(documents, out)
    elif output == "table":
        rows = [row for document in documents if (row := _row(document)) is not None]
        write_listing(pa.Table.from_pylist(rows, _COLUMNS), out)
    else:
        raise UsageError(f"several traces are printed with -o {', '.join(OUTPUTS)}")


_COLUMNS: Final = pa.schema(
    [
        ("trace", pa.string()),
        *((name, pa.int64()) for name in ("observations", "actions", "explained", "divergences")),
        ("note", pa.string()),
    ]
)


def _row(document: dict[str, Any]) -> dict[str, Any]:
    if "summary" not in document:
        note = document.get("left_out") or document["error"]
        return {"trace": document["trace"], "note": note}
    cells = list(_cells(document))
    return {
        "trace": document["trace"],
        "observations": document["observations"],
        "actions": sum(count for _, count in cells),
        "explained": sum(count for verdict, count in cells if verdict.startswith("match")),
        "divergences": len(document["divergences"]),
        "note": document["misfit"] or document.get("lacks"),
    }


def _cells(document: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for actions in document["summary"].values():
        for verdicts in actions.values():
            yield from verdicts.items()
