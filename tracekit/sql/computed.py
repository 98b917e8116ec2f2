"""Rows that SQL cannot make: verdicts by replaying the trace, cron ticks by the schedule.

Verdicts are kept on this machine (`tracekit.judge.verdict_cache`) under a digest of all that they
follow from: the trace's content, the rules, the code. Nothing that a trace brings along is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from tracekit.base.coverage import Coverage
from tracekit.judge.verdict_cache import verdicts_key
from tracekit.judge.verdict_table import VERDICT_SCHEMA, CachedVerdicts, load_verdicts, misfit_in
from tracekit.sql.catalog import COMPUTED, definition, parts_for
from tracekit.sql.computed_schemas import (
    CAUSE_SCHEMA,
    COVERAGE_SCHEMA,
    ENDING_SCHEMA,
    FINDING_SCHEMA,
    NOTE_SCHEMA,
    TICK_SCHEMA,
    WAIT_SCHEMA,
)
from tracekit.sql.sources import Source
from tracekit.versions.overrides import AskedRules

SCHEMAS = {
    "_verdicts": VERDICT_SCHEMA,
    "_cron_ticks": TICK_SCHEMA,
    "_schedule_notes": NOTE_SCHEMA,
    "_coverage": COVERAGE_SCHEMA,
    "_findings": FINDING_SCHEMA,
    "_endings": ENDING_SCHEMA,
    "_waits": WAIT_SCHEMA,
    "_causes": CAUSE_SCHEMA,
}
#: Those that tell what `diagnose` does.
ANSWERS = ("_findings", "_causes", "_endings", "_waits")
#: The views and macros that those are made from.
READ = {
    "_verdicts": "",
    "_cron_ticks": "leaders, internal._states, finished_condition",
    "_schedule_notes": "internal._cronjobs, jobs",
    "_coverage": "",
    **dict.fromkeys(ANSWERS, ""),
}

_NAMED = re.compile(r"\w+")
#: A query that names one of these, or a view that does, takes rows of the traces.
_TAKE_ROWS = frozenset({"_rows", "_ends", "trace_end"})


def takes_only_verdicts(query: str) -> bool:
    """Whether all that a query takes of the traces is their verdicts."""
    texts = [query, *(definition(part) for part in parts_for(query))]
    words = {word.lower() for text in texts for word in _NAMED.findall(text)}
    tables = {COMPUTED[word] for word in words & COMPUTED.keys()}
    return tables == {"_verdicts"} and not words & _TAKE_ROWS


if TYPE_CHECKING:
    import duckdb

    from tracekit.trace.reading.reader import TraceReader
    from tracekit.versions.era import Era


def era_of(reader: TraceReader, asked: AskedRules) -> Era:
    """The rules that the trace is judged by."""
    from tracekit.judge.judged import resolve_era  # noqa: PLC0415 - the engine is slow to import

    return resolve_era(reader, *asked.era)


def verdicts(
    source: Source,
    asked: AskedRules,
    before_judging: Callable[[int], None] | None = None,
) -> CachedVerdicts | pa.Table | None:
    """Every judgement of the trace, from the cache if it was judged before.

    None where a part of the trace cannot be believed: what it held would count as never done.
    """
    snapshot = source.snapshot
    if source.is_damaged:
        _note_damage(source)
        return None
    if snapshot is None or not source.files:
        return None  # nothing of it is wanted
    from tracekit.trace.reading.reader import TraceReader  # noqa: PLC0415 - with the engine

    reader = TraceReader(snapshot)
    era = era_of(reader, asked)
    source.warnings = era.warnings
    key = verdicts_key(snapshot, *asked.era)
    found: CachedVerdicts | pa.Table | None = load_verdicts(key)
    if found is None:
        from tracekit.judge.judged import Judge  # noqa: PLC0415 - the engine is slow to import

        found = Judge(reader, era, kept_as=key, before_judging=before_judging).verdicts()
    source.misfit = misfit_in(found)
    return found


def _note_damage(source: Source) -> None:
    note = f"{source.path} gets no verdicts: what it has lost would count as never done"
    if note not in source.notes:
        source.notes.append(note)


def named(table: pa.Table, name: str) -> pa.Table:
    """The table under the name that the trace has in this session."""
    return table.set_column(0, "trace", pa.array([name] * table.num_rows, pa.string()))


def cron_ticks(
    connection: duckdb.DuckDBPyConnection, source: Source, asked: AskedRules
) -> pa.Table:
    """Every due time of every CronJob of the trace, and what became of it."""
    from tracekit.sql.ticks import ticks_of  # noqa: PLC0415 - the engine is slow to import

    header = source.header
    zone = asked.process_zone or str(header.scope.get("process_zone") or "UTC")
    version = asked.kubernetes_version or header.kubernetes_version
    return ticks_of(connection, source.name, version, zone, coverage_of_source(source))


def coverage_of_source(source: Source) -> Coverage:
    """Where and when the streams of a trace were seen."""
    from tracekit.judge.fact_cache import cached_coverage  # noqa: PLC0415 - few queries ask

    return Coverage() if source.snapshot is None else cached_coverage(source.reader())


def coverage(source: Source) -> pa.Table:
    """The same as rows: one for each time in which a stream was seen."""
    rows = [
        {
            "trace": source.name,
            "stream": span.stream,
            "scope": str(span.scope),
            "namespaces": None if span.scope.namespaces is None else sorted(span.scope.namespaces),
            "selector": span.scope.selector,
            "from_ns": span.from_ns,
            "until_ns": span.until_ns,
        }
        for span in coverage_of_source(source).spans
    ]
    return pa.Table.from_pylist(rows, COVERAGE_SCHEMA)


def schedule_notes(
    connection: duckdb.DuckDBPyConnection, source: Source, asked: AskedRules
) -> pa.Table:
    """What `cron lint` says of the schedule of every CronJob of the trace."""
    from tracekit.sql.schedule_notes import notes_of_trace  # noqa: PLC0415 - its readers are slow to import

    header = source.header
    version = asked.kubernetes_version or header.kubernetes_version
    return notes_of_trace(connection, source.name, version, asked.process_zone)
