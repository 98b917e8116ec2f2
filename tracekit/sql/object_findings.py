"""The findings about one object, decided from its own rows: the same as of the whole trace.

What only the whole tells (a backlog, the five costliest Jobs) is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.answers.findings.advice import advice
from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.model import Family, Finding, Severity
from tracekit.answers.pauses import Gap, Pause
from tracekit.base.coverage import Coverage
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.check.verdict import Judgement
from tracekit.judge.fact_cache import cached_coverage, cached_fact
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.release_bugs import Bug, KnownBug

#: Verdicts are told as steps, what is about the record not of one object.
_ELSEWHERE = (Family.DIVERGENCE, Family.RECORD)


def findings_about_job(
    reader: TraceReader,
    mine: pa.Table,
    session: Session,
    namespace: str,
    name: str,
    judgements: Sequence[Judgement],
    *,
    end_ns: int,
    bugs: Mapping[Bug, KnownBug],
) -> list[Finding]:
    """The findings about a Job, worst first.

    `mine` are its rows, of all columns, and `session` is one over them; `judgements` are those
    about it.
    """
    gaps = [Gap(gap.stream, gap.from_ns or 0, gap.until_ns, gap.reason) for gap in reader.gaps()]

    def around() -> Surroundings:
        return _surroundings(reader, gaps, end_ns)

    known = cached_fact(reader.snapshot, "surroundings", Surroundings, around)
    with ExitStack() as stack:
        if words := _words_about(reader, namespace, name, mine):
            rows = pa.concat_tables([mine, *words]).unify_dictionaries()
            session = stack.enter_context(closing(Session([], held={"": rows})))
        facts = facts_from(
            session,
            judgements,
            gaps=gaps,
            bugs=bugs,
            coverage=cached_coverage(reader),
            end_ns=max(end_ns, known.end_ns),
        )
    facts.led_but_for(known.pauses)
    facts.terminating = known.terminating
    facts.first_ns = min(facts.first_ns, known.first_ns)
    facts.streams = {**known.streams, **facts.streams}
    facts.is_whole = False
    return findings_about("Job", namespace, name, diagnose(facts))


class Surroundings(Struct, frozen=True):
    """What is about every Job of a trace: who led, and the namespaces that were being deleted."""

    pauses: list[Pause]
    terminating: dict[str, int]
    streams: dict[str, int]
    #: Of these rows, Unix ns.
    first_ns: int
    end_ns: int


def _surroundings(reader: TraceReader, gaps: Sequence[Gap], end_ns: int) -> Surroundings:
    leases = reader.table(NAMES, streams=["leases"], namespace=CONTROLLER_MANAGER_LEASE_NAMESPACE)
    rows = pa.concat_tables([leases, reader.table(NAMES, streams=["namespaces"])])
    with closing(Session([], held={"": rows.unify_dictionaries()})) as session:
        facts = facts_from(session, (), gaps=gaps, bugs={}, coverage=Coverage(), end_ns=end_ns)
    return Surroundings(
        facts.pauses,
        dict(facts.terminating),
        dict(facts.streams),
        facts.first_ns or 1 << 62,
        facts.end_ns,
    )


_ABOUT = ("involved_uid", "involved_kind", "involved_name")


def _words_about(reader: TraceReader, namespace: str, name: str, mine: pa.Table) -> list[pa.Table]:
    """The Events about what a Job has: a row of an Event belongs to a Job only if it is about it.

    These are its pods, those of its name that nobody listed, its Workload, and its claims.
    """
    uids = pc.unique(mine.filter(pc.equal(mine["stream"], "pods"))["uid"])
    # Most Events of a namespace are about others: their text is read only where one is not.
    events = reader.table(_ABOUT, streams=["events"], namespace=namespace)
    if not pc.any(_is_about(events, name, uids)).as_py():
        return []
    events = reader.table(NAMES, streams=["events"], namespace=namespace)
    return [events.filter(_is_about(events, name, uids))]


def _is_about(events: pa.Table, name: str, uids: pa.Array) -> pa.ChunkedArray:
    kinds, names = (events[column].cast(pa.string()) for column in _ABOUT[1:])
    unlisted = pc.and_(pc.equal(kinds, "Pod"), pc.starts_with(names, f"{name}-"))
    queued = pc.and_(pc.equal(kinds, "Workload"), pc.starts_with(names, f"job-{name}-"))
    claims = pc.equal(kinds, "PersistentVolumeClaim")
    found = pc.is_in(events["involved_uid"], uids)
    for others in (unlisted, queued, claims):
        found = pc.or_(found, pc.fill_null(others, fill_value=False))
    return found


def findings_about(
    kind: str, namespace: str, name: str, findings: Sequence[Finding]
) -> list[Finding]:
    """Those of some findings that have this object among others, worst first."""
    place = (kind, namespace, name)
    return [
        finding
        for finding in findings
        if finding.rule.family not in _ELSEWHERE
        and any((t.kind, t.namespace, t.name) == place for t in finding.objects)
    ]


def finding_lines(findings: Sequence[Finding], name: str) -> list[tuple[str, bool]]:
    """Lines on findings about one object, and whether each begins one."""
    lines: list[tuple[str, bool]] = []
    for finding in findings:
        case = next(case for case in finding.cases if case.target.name == name)
        thread = f" (#{finding.thread})" if finding.thread else ""
        lines.append((f"{finding.severity.value} {finding.id}: {case.claim}{thread}", True))
        lines.append((case.detail, False))
        if finding.severity is not Severity.INFO:
            lines.append((f"do: {advice(finding)}", False))
    return lines
