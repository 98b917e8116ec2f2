"""Verdicts for `tracekit sql`, judged trace by trace by an executor, and kept as parts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from tracekit.cli.many import Document, ask_executor
from tracekit.judge.judged import Judge, open_under
from tracekit.judge.verdict_table import VERDICT_SCHEMA, tables_of
from tracekit.sql.computed import named
from tracekit.sql.sources import Source
from tracekit.trace.format.limits import are_lifted
from tracekit.versions.overrides import AskedRules


class VerdictsQuestion(Struct, frozen=True):
    """By which rules the traces are judged."""

    run: ClassVar[str] = "verdicts"

    rules: AskedRules
    no_limits: bool

    def answer(self, word: str) -> Document:
        """The verdicts of a trace, as a Parquet file in base64."""
        reader = open_under(self.rules, word)
        judge = Judge.under(self.rules, reader)
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, VERDICT_SCHEMA, compression="zstd") as writer:
            for table in tables_of(judge.verdicts()):
                writer.write_table(table)
        table = base64.b64encode(sink.getvalue()).decode()
        return {"problems": reader.problems, "warnings": list(judge.era.warnings), "table": table}


class JudgedByExecutor(Struct, frozen=True):
    """Those whom the command line names."""

    processes: int | None
    scheduler: str | None
    parts: str | None

    def __call__(self, sources: Sequence[Source], rules: AskedRules) -> list[pa.Table]:
        """The verdicts of the traces; of one that cannot be judged none, and it says why."""
        wanted = [source for source in sources if not source.left_out and not source.is_damaged]
        if not wanted:
            return []
        documents = ask_executor(
            [source.word for source in wanted],
            VerdictsQuestion(rules, are_lifted()),
            processes=self.processes,
            scheduler=self.scheduler,
            parts=self.parts,
        )
        return [_taken(*pair) for pair in zip(wanted, documents, strict=True)]


def _taken(source: Source, document: Document) -> pa.Table:
    """The table of a document; what else it says is told of the trace."""
    for member in ("error", "unkept"):
        if member in document:
            source.unreadable.append(document[member])
    if "table" not in document:
        return VERDICT_SCHEMA.empty_table()
    source.warnings = tuple(document["warnings"])
    table = pq.read_table(pa.BufferReader(base64.b64decode(document["table"])))
    return named(table.cast(VERDICT_SCHEMA), source.name)
