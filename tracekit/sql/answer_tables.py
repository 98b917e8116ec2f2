"""Tables of a trace's findings, causes, endings, waits: the same answers as `tracekit diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tracekit.answers.tables import cause_rows, ending_rows, finding_rows, wait_rows
from tracekit.sql.computed import SCHEMAS
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.findings import diagnosis_of, findings_of

if TYPE_CHECKING:
    from tracekit.sql.session import Session
    from tracekit.sql.sources import Source


#: Made of the findings alone, which are kept; the others are told of each object.
_FOUND = ("_findings", "_causes")


def answers_of(source: Source, session: Session, table: str) -> dict[str, pa.Table]:
    """The rows of one table of a trace, and of those that are made with it, by table.

    `session` is one over that trace alone.
    """
    called = source.called
    if table in _FOUND:
        findings = findings_of(session)
        rows = {
            "_findings": finding_rows(findings, called),
            "_causes": cause_rows(findings, called),
        }
    else:
        facts = facts_from(session)
        findings = diagnosis_of(session, facts).findings()
        rows = {
            "_endings": ending_rows(facts, findings),
            "_waits": wait_rows(facts, findings, called),
        }
    return {
        name: pa.Table.from_pylist([{"trace": source.name, **row} for row in found], SCHEMAS[name])
        for name, found in rows.items()
    }
