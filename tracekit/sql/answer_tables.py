"""Tables of a trace's findings, causes, endings, waits: the same answers as `tracekit diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.tables import cause_rows, ending_rows, finding_rows, wait_rows
from tracekit.sql.computed_schemas import CAUSE_SCHEMA, ENDING_SCHEMA, FINDING_SCHEMA, WAIT_SCHEMA
from tracekit.sql.diagnosed import facts_from

if TYPE_CHECKING:
    from tracekit.sql.session import Session
    from tracekit.sql.sources import Source


def answers_of(source: Source, session: Session) -> dict[str, pa.Table]:
    """The rows of a trace by table, out of a session over that trace alone."""
    called = source.called
    facts = facts_from(session)
    findings = diagnose(facts)
    rows = {
        "_findings": (FINDING_SCHEMA, finding_rows(findings, called)),
        "_causes": (CAUSE_SCHEMA, cause_rows(findings, called)),
        "_endings": (ENDING_SCHEMA, ending_rows(facts, findings)),
        "_waits": (WAIT_SCHEMA, wait_rows(facts, findings, called)),
    }
    return {
        table: pa.Table.from_pylist([{"trace": source.name, **row} for row in found], schema)
        for table, (schema, found) in rows.items()
    }
