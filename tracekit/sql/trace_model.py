"""What findings look at, out of a reader and judgements that somebody has already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from msgspec.structs import replace

from tracekit.answers.facts import facts_of
from tracekit.answers.judgements import Listed
from tracekit.answers.pauses import Gap
from tracekit.answers.trace_model import COLUMNS, KEYS, Facts, Keyed, Row
from tracekit.base.coverage import Coverage
from tracekit.check.verdict import Judgement
from tracekit.sql.diagnosed import ticks_of
from tracekit.sql.session import Session
from tracekit.trace.format.header import write_header
from tracekit.trace.format.model import LOG_DIR, STATE_TYPES
from tracekit.trace.format.schema import NAMES
from tracekit.trace.format.segments import write_segment
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.lazy_rows import lazy_rows
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import Era
from tracekit.versions.overrides import AskedRules
from tracekit.versions.release import Release

_STATES = sorted(STATE_TYPES)
#: Of zstd: the rows are read once, and thrown away.
_LEVEL = 1


def facts_from_reader(
    reader: TraceReader,
    judgements: Sequence[Judgement],
    era: Era,
    coverage: Coverage | None = None,
) -> Facts:
    """The facts of a trace that may be in memory only; ticks as the view cron_ticks has them.

    `coverage`: that of the record, where it has more rows than the reader.
    """
    rows = [*lazy_rows(reader.batches(COLUMNS, types=_STATES), KEYS)]
    return facts_of(
        rows,
        ticks=_ticks(reader, era, rows),
        judgements=Listed(judgements),
        not_judged=None,
        gaps=[Gap(gap.stream, gap.from_ns or 0, gap.until_ns, gap.reason) for gap in reader.gaps()],
        streams={s.stream: s.rows for s in reader.streams() if s.stream},
        problems=reader.problems,
        generation=CronJobEra.of(era).generation,
        release=Release.of(era),
        coverage=coverage_of(reader) if coverage is None else coverage,
    )


def _ticks(reader: TraceReader, era: Era, rows: Iterable[Keyed]) -> Sequence[Row]:
    """What became of each time at which a CronJob was due, by the rules of the era."""
    if not any(stream == "cronjobs" for _, stream, *_ in rows):
        return ()
    with TemporaryDirectory(prefix="tracekit-") as folder:
        _write(reader, Path(folder))
        rules = AskedRules(
            str(era.version), process_zone=era.process_zone, search_all=era.search_all
        )
        session = Session([folder], rules=rules)
        try:
            return ticks_of(session)
        finally:
            session.close()


def _write(reader: TraceReader, trace: Path) -> None:
    """The rows with the columns that they have, for DuckDB to read."""
    table = reader.table(NAMES)
    seqs = pa.array(range(table.num_rows), table.schema.field("seq").type)
    table = table.set_column(table.schema.get_field_index("seq"), table.schema.field("seq"), seqs)
    (trace / LOG_DIR).mkdir()
    write_segment(trace, table, first=0, last=table.num_rows - 1, level=_LEVEL)
    write_header(trace, replace(reader.header, sealed_from=None))
