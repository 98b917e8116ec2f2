"""What the account of an object begins with: what came of it, and what `diagnose` says of it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from tracekit.report.narrative import Narrative
from tracekit.trace.format.schema import NAMES
from tracekit.versions.release import Release

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracekit.answers.model import Finding
    from tracekit.judge.judged import Judge
    from tracekit.sql.session import Session
    from tracekit.trace.reading.reader import TraceReader
    from tracekit.versions.overrides import AskedRules


class Concluded(NamedTuple):
    """A sentence, and the findings about the object."""

    opening: str
    #: Each with whether it begins one.
    lines: list[tuple[str, bool]]
    findings: list[dict[str, Any]]


def concluded(
    trace: str,
    reader: TraceReader,
    narrative: Narrative,
    judge: Judge,
    rules: AskedRules,
    whole: Callable[[AskedRules], Session],
) -> Concluded:
    """Both, of an object whose account is there; `whole` gives a session over all of the trace.

    `trace`: what the reader calls it, for commands. DuckDB and the rules of the findings are slow
    to import, and what comes of them is kept: they are imported where it is made.
    """
    from tracekit.report.findings import finding_document  # noqa: PLC0415 - see above
    from tracekit.sql.object_findings import finding_lines  # noqa: PLC0415

    place = (narrative.kind, narrative.namespace, narrative.name)
    if narrative.kind == "Job":
        opening, found = _of_job(reader, narrative, judge, rules)
    else:
        opening, found = _of_cronjob(narrative, whole(rules))
    documents = [finding_document(finding, trace) for finding in found]
    return Concluded(opening, finding_lines(found, *place, trace), documents)


def _of_cronjob(narrative: Narrative, session: Session) -> tuple[str, list[Finding]]:
    from tracekit.report.conclusion import conclusion  # noqa: PLC0415
    from tracekit.sql.findings import findings_of  # noqa: PLC0415
    from tracekit.sql.object_findings import findings_about  # noqa: PLC0415

    place = (narrative.kind, narrative.namespace, narrative.name)
    return conclusion(session, narrative), findings_about(*place, findings_of(session))


def _of_job(
    reader: TraceReader, narrative: Narrative, judge: Judge, rules: AskedRules
) -> tuple[str, list[Finding]]:
    """Its own rows tell both, which are few."""
    from tracekit.report.conclusion import conclusion  # noqa: PLC0415
    from tracekit.sql.object_findings import findings_about_job  # noqa: PLC0415
    from tracekit.sql.session import Session  # noqa: PLC0415

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
