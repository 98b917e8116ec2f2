"""What the account of an object begins with: what came of it, and what `diagnose` says of it.

DuckDB and the rules of all findings are slow to import, and what comes of them is kept: who has it
does not import this room.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from tracekit.answers.model import Finding
from tracekit.judge.judged import Judge
from tracekit.report.conclusion import conclusion
from tracekit.report.findings import finding_document
from tracekit.report.narrative import Concluded, Narrative
from tracekit.sql.findings import findings_of
from tracekit.sql.object_findings import finding_lines, findings_about, findings_about_job
from tracekit.sql.session import Session
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.overrides import AskedRules
from tracekit.versions.release import Release


def concluded(
    trace: str,
    reader: TraceReader,
    narrative: Narrative,
    judge: Judge,
    rules: AskedRules,
    whole: Callable[[AskedRules], Session],
) -> Concluded:
    """Both, of an object whose account is there; `whole` gives a session over all of the trace.

    `trace`: what the reader calls it, for commands.
    """
    place = (narrative.kind, narrative.namespace, narrative.name)
    if narrative.kind == "Job":
        opening, found = _of_job(reader, narrative, judge, rules)
    else:
        session = whole(rules)
        opening = conclusion(session, narrative)
        found = findings_about(*place, findings_of(session))
    documents = [finding_document(finding, trace) for finding in found]
    return Concluded(opening, finding_lines(found, *place, trace), documents)


def _of_job(
    reader: TraceReader, narrative: Narrative, judge: Judge, rules: AskedRules
) -> tuple[str, list[Finding]]:
    """Its own rows tell both, which are few."""
    said = rules.kubernetes_version or reader.header.kubernetes_version
    mine = reader.table(NAMES, namespace=narrative.namespace, job=narrative.name)
    mine = mine.unify_dictionaries()
    with closing(Session([], held={"": mine})) as session:
        opening = conclusion(session, narrative)
        found = findings_about_job(
            reader,
            mine,
            session,
            narrative.namespace,
            narrative.name,
            narrative.judgements,
            end_ns=judge.run_context.end_ns,
            release=Release.of(judge.era, is_said=bool(said)),
        )
    return opening, found
