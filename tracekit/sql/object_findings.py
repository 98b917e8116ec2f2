"""The findings about one object, decided from its own rows: the same as of the whole trace.

What only the whole tells (a backlog, the five costliest Jobs) is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.model import Finding, Severity
from tracekit.answers.trace_model import Gap
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.check.verdict import Judgement
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.release_bugs import Bug, KnownBug

#: Verdicts are told as steps, what is about the record not of one object.
_ELSEWHERE = ("TK1", "TK9")


def findings_about_job(
    reader: TraceReader,
    namespace: str,
    name: str,
    judgements: Sequence[Judgement],
    *,
    end_ns: int,
    bugs: Mapping[Bug, KnownBug],
) -> list[Finding]:
    """The findings about a Job, worst first; `judgements` are those about it."""
    leases = reader.table(NAMES, streams=["leases"], namespace=CONTROLLER_MANAGER_LEASE_NAMESPACE)
    spaces = reader.table(NAMES, streams=["namespaces"])
    mine = reader.table(NAMES, namespace=namespace, job=name)
    rows = pa.concat_tables([mine, leases, spaces]).unify_dictionaries()
    gaps = [Gap(gap.stream, gap.from_ns or 0, gap.until_ns, gap.reason) for gap in reader.gaps()]
    with closing(Session([], held={"": rows})) as session:
        facts = facts_from(
            session, judgements, gaps=gaps, bugs=bugs, coverage=coverage_of(reader), end_ns=end_ns
        )
        facts.is_whole = False
    return findings_about("Job", namespace, name, diagnose(facts))


def findings_about(
    kind: str, namespace: str, name: str, findings: Sequence[Finding]
) -> list[Finding]:
    """Those of some findings that have this object among others, worst first."""
    place = (kind, namespace, name)
    return [
        finding
        for finding in findings
        if not finding.id.startswith(_ELSEWHERE)
        and any((t.kind, t.namespace, t.name) == place for t in finding.objects)
    ]


def told(findings: Sequence[Finding], name: str) -> list[tuple[str, bool]]:
    """Lines on findings about one object, and whether each begins one."""
    lines: list[tuple[str, bool]] = []
    for finding in findings:
        case = next(case for case in finding.cases if case.target.name == name)
        thread = f" (#{finding.thread})" if finding.thread else ""
        lines.append((f"{finding.severity.value} {finding.id}: {case.claim}{thread}", True))
        if finding.severity is not Severity.INFO:
            lines.append((case.detail, False))
    return lines
