"""Rows of a watch log, changed by a test, as the product takes them in: imported, read and judged.

They are held in memory; that a trace on disk is judged alike has a test among the planted lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from tests.support.known_keys import judging_known_keys_once
from tests.support.traces import about
from tracekit.base.coverage import Scope
from tracekit.check.verdict import Judgement
from tracekit.cli.trace_options import parse_feature_gates, parse_version
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.format.schema import NAMES
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.watch import WatchImporter
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.table_reader import in_file_order, read_held
from tracekit.trace.writing.writer import TraceWriter


class _Held(TraceWriter):
    """Keeps what it would write, where it can."""

    def close(self, *, compact: bool = False) -> None:
        del compact
        if self._buffer.rows == self.next_seq:
            self.rows = self._buffer.take()
        else:  # a new list looks into what was written before it
            self.flush()
            self.rows = TraceReader(self.path).table(NAMES)
        self.abandon()


@dataclass
class _Lines:
    rows: Iterable[Mapping[str, Any]]
    name: str = "watch.jsonl"
    fragment: bytes = b""
    problem: str | None = None

    def blocks(self, size: int) -> Iterator[bytes]:
        del size
        yield b"\n".join(orjson.dumps(row) for row in self.rows)


def held(
    rows: Iterable[Mapping[str, Any]], name: str | Path, scope: Scope | None = None
) -> TraceReader:
    """A trace of these rows, which about.json of `name` says what it is of.

    `scope`: what its lists asked for, where they do not say it; None: what the rows show.
    """
    facts = about(name)
    header = TraceHeader(
        kubernetes_version=parse_version(facts["gitVersion"]),
        feature_gates=parse_feature_gates(facts["feature_gates"]),
    )
    with TemporaryDirectory() as folder:
        writer = _Held(Path(folder) / "trace", header, session={"source": "import watch"})
        result = ImportResult(scope=scope)
        WatchImporter(lambda: writer, result).run([_Lines(rows)])
        return read_held(in_file_order(writer.rows), writer.header, writer.path)


@contextmanager
def judge_of(
    rows: Iterable[Mapping[str, Any]],
    name: str | Path,
    *,
    process_zone: str | None = None,
    scope: Scope | None = None,
) -> Iterator[Judge]:
    """The judge of a trace of these rows."""
    reader = held(rows, name, scope)
    yield Judge(reader, resolve_era(reader, None, None, process_zone))


def judgements_of(
    rows: Iterable[Mapping[str, Any]], name: str | Path, *, process_zone: str | None = None
) -> list[Judgement]:
    """What is said of all controllers; of keys that are as they were in other rows, once."""
    reader = held(rows, name)
    with judging_known_keys_once(reader):
        return Judge(reader, resolve_era(reader, None, None, process_zone)).report().judgements


def divergences_of(rows: Iterable[Mapping[str, Any]], name: str | Path) -> list[Judgement]:
    """What all controllers are told to have done against their rules."""
    return [judgement for judgement in judgements_of(rows, name) if judgement.divergent]
