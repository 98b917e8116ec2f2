"""What findings look at, out of a reader and judgements that somebody has already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tracekit.eras.cronjob import CronJobEra
from tracekit.eras.era import Era
from tracekit.errors import TracekitError
from tracekit.findings.facts import COLUMNS, Facts, Gap, Row, facts_of
from tracekit.sql.session import Session
from tracekit.trace.format.model import STATE_TYPES
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.copying import copy_row, rows_of
from tracekit.trace.writing.writer import TraceWriter
from tracekit.verdict import Judgement

_STATES = sorted(STATE_TYPES)


def facts_from_reader(reader: TraceReader, judgements: Sequence[Judgement], era: Era) -> Facts:
    """The facts of a trace that may be in memory only; ticks as the view cron_ticks has them."""
    rows = [row for part in reader.batches(COLUMNS, types=_STATES) for row in part.to_pylist()]
    return facts_of(
        rows,
        ticks=_ticks(reader, rows),
        judgements=judgements,
        not_judged=None,
        gaps=[Gap(gap.stream, gap.from_ns or 0, gap.until_ns, gap.reason) for gap in reader.gaps()],
        streams={s.stream: s.rows for s in reader.streams() if s.stream},
        problems=reader.problems,
        generation=CronJobEra.of(era).generation,
    )


def _ticks(reader: TraceReader, rows: Iterable[Row]) -> Sequence[Row]:
    """What became of each time at which a CronJob was due."""
    if not any(row["stream"] == "cronjobs" for row in rows):
        return ()
    with TemporaryDirectory(prefix="tracekit-") as folder:
        path = Path(folder) / "trace"
        with TraceWriter(path, reader.header) as writer:
            for row in rows_of(reader):
                copy_row(writer, row)
        session = Session([path])
        try:
            session.table("SELECT 1 FROM cron_ticks LIMIT 0")
            return session.rows(
                "SELECT * FROM internal._cron_ticks ORDER BY due_ns, namespace, cronjob"
            )
        except TracekitError:
            return ()
        finally:
            session.close()
