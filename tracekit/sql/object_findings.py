"""The findings about one object, decided from its own rows: the same as of the whole trace.

Whether the controller was behind is asked of all Jobs only where something of this one hangs on it;
the five costliest Jobs are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.answers.facts import facts_of
from tracekit.answers.findings.advice import advice_of
from tracekit.answers.findings.controllers import STALE_NS, Spells, backlog_spells
from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.findings.jobs import NOT_BEGUN, WAITING
from tracekit.answers.findings.leaders import says_nobody_leads
from tracekit.answers.findings.overruns import OVERRUN
from tracekit.answers.findings.uncounted import UNCOUNTED
from tracekit.answers.judgements import Listed
from tracekit.answers.model import Case, Family, Finding, Severity, Target
from tracekit.answers.node_events import NodeEvent
from tracekit.answers.pauses import Gap, Pause
from tracekit.answers.trace_model import COLUMNS, KEYS, Facts
from tracekit.base.coverage import Coverage
from tracekit.base.cron import Generation
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.check.verdict import Judgement
from tracekit.judge.fact_cache import cached_coverage, cached_fact
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session
from tracekit.trace.format.model import STATE_TYPES
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.lazy_rows import lazy_rows
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.release import Release

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
    release: Release,
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
            release=release,
            coverage=cached_coverage(reader),
            end_ns=max(end_ns, known.end_ns),
        )
    facts.led_but_for(known.pauses)
    facts.terminating = known.terminating
    facts.namespace_deleters = known.namespace_deleters
    facts.node_events = known.node_events
    facts.first_ns = min(facts.first_ns, known.first_ns)
    facts.streams = {**known.streams, **facts.streams}
    _add_owners(facts, reader, namespace)
    facts.is_whole = False
    found = diagnose(facts)
    if _hangs_on_a_backlog(facts, found):
        facts.backlogs = cached_fact(
            reader.snapshot, "backlogs", Spells, lambda: _spells(reader, gaps, known)
        )
        facts.is_whole = True
        found = diagnose(facts)
    unfinished = any(job.ended_ns is None and job.gone_ns is None for job in facts.jobs)
    return findings_about("Job", namespace, name, found, is_at_work=unfinished)


def _add_owners(facts: Facts, reader: TraceReader, namespace: str) -> None:
    """Give the Jobs their CronJobs, as far as these are there."""
    wanted = {s.row["owner_uid"] for job in facts.jobs if job.cronjob for s in job.states}
    if not wanted:
        return
    rows = reader.table(COLUMNS, streams=["cronjobs"], namespace=namespace)
    uids = pa.array(sorted(wanted - {None}), pa.string())
    mine = rows.filter(pc.is_in(rows["uid"].cast(pa.string()), uids))
    facts.cronjobs = facts_of(
        lazy_rows([mine], KEYS), ticks=(), judgements=Listed(()), not_judged=None, gaps=(),
        streams={}, problems=(), generation=Generation.GEN3,
    ).cronjobs  # fmt: skip
    if not mine.num_rows:  # whether they were listed at all, also where none was
        listed = reader.table(("type",), streams=["cronjobs"]).num_rows
        facts.streams = {**facts.streams, "cronjobs": listed}


def _hangs_on_a_backlog(facts: Facts, found: Sequence[Finding]) -> bool:
    """Whether what is said of a Job depends on whether its controller was behind."""
    if any(finding.id in _OF_A_LATE_CONTROLLER for finding in found):
        return True
    return any(
        j.lag_ns >= STALE_NS
        for job in facts.jobs
        for j in facts.judgements.lagged(job.namespace, job.name)
    )


#: Findings that say something else where the controller was behind.
_OF_A_LATE_CONTROLLER: Final = frozenset(
    rule.id for rule in (NOT_BEGUN, WAITING, UNCOUNTED, OVERRUN)
)
#: Of all that a record has: when Jobs waited for their controller follows from these.
_WAITERS: Final = ("jobs", "pods")


def _spells(reader: TraceReader, gaps: Sequence[Gap], known: Surroundings) -> Spells:
    """When many waited for the Job controller, by the rows of all Jobs."""
    facts = facts_of(
        lazy_rows(reader.batches(COLUMNS, streams=_WAITERS, types=sorted(STATE_TYPES)), KEYS),
        ticks=(), judgements=Listed(()), not_judged=None, gaps=gaps, streams={}, problems=(),
        generation=Generation.GEN3, coverage=cached_coverage(reader), end_ns=known.end_ns,
    )  # fmt: skip
    facts.led_but_for(known.pauses)
    return backlog_spells(facts)


class Surroundings(Struct, frozen=True):
    """What is about every Job of a trace: who led, namespaces that were being deleted, nodes."""

    pauses: list[Pause]
    terminating: dict[str, int]
    namespace_deleters: dict[str, str]
    node_events: dict[str, list[NodeEvent]]
    streams: dict[str, int]
    #: Of these rows, Unix ns.
    first_ns: int
    end_ns: int


def _surroundings(reader: TraceReader, gaps: Sequence[Gap], end_ns: int) -> Surroundings:
    leases = reader.table(NAMES, streams=["leases"], namespace=CONTROLLER_MANAGER_LEASE_NAMESPACE)
    others = reader.table(NAMES, streams=["namespaces"])
    nodes = reader.table(NAMES, streams=["nodes"])
    rows = pa.concat_tables([leases, others, nodes, *_words_about_nodes(reader)])
    with closing(Session([], held={"": rows.unify_dictionaries()})) as session:
        facts = facts_from(
            session, (), gaps=gaps, release=Release(), coverage=Coverage(), end_ns=end_ns
        )
    return Surroundings(
        facts.pauses,
        dict(facts.terminating),
        dict(facts.namespace_deleters),
        {node: list(events) for node, events in facts.node_events.items()},
        dict(facts.streams),
        facts.first_ns or 1 << 62,
        facts.end_ns,
    )


#: Where the Events about what has no namespace are (upstream: client-go, tools/record).
_OF_NO_NAMESPACE: Final = "default"


def _words_about_nodes(reader: TraceReader) -> list[pa.Table]:
    def about(columns: Sequence[str]) -> tuple[pa.Table, pa.ChunkedArray]:
        events = reader.table(columns, streams=["events"], namespace=_OF_NO_NAMESPACE)
        return events, pc.equal(events["involved_kind"].cast(pa.string()), "Node")

    if not pc.any(about(("involved_kind",))[1]).as_py():
        return []
    events, are_wanted = about(NAMES)
    return [events.filter(are_wanted)]


_ABOUT = ("involved_uid", "involved_kind", "involved_name")


def _words_about(reader: TraceReader, namespace: str, name: str, mine: pa.Table) -> list[pa.Table]:
    """The Events about what a Job has: a row of an Event belongs to a Job only if it is about it.

    These are its pods, those of its name that nobody listed, its Workload, and its claims.
    """
    uids = pc.unique(mine.filter(pc.equal(mine["stream"], "pods"))["uid"])
    found = _workload_of(reader, namespace, mine)
    # Most Events of a namespace are about others: their text is read only where one is not.
    events = reader.table(_ABOUT, streams=["events"], namespace=namespace)
    if not pc.any(_is_about(events, name, uids)).as_py():
        return found
    events = reader.table(NAMES, streams=["events"], namespace=namespace)
    return [*found, events.filter(_is_about(events, name, uids))]


def _workload_of(reader: TraceReader, namespace: str, mine: pa.Table) -> list[pa.Table]:
    """The rows of Kueue's Workload of the Job, or of its owner."""
    queued = reader.table(NAMES, streams=["workloads"], namespace=namespace)
    jobs = mine.filter(pc.equal(mine["stream"], "jobs"))
    owners = pa.concat_arrays([pc.unique(jobs[c]).cast(pa.string()) for c in ("uid", "owner_uid")])
    own = queued.filter(pc.is_in(queued["owner_uid"].cast(pa.string()), owners.drop_null()))
    return [own] if own.num_rows else []


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
    kind: str, namespace: str, name: str, findings: Sequence[Finding], *, is_at_work: bool = True
) -> list[Finding]:
    """Those of some findings that have this object among others, worst first.

    That nobody leads is about each that is at work: until somebody does, nothing becomes of it.
    """
    return [
        finding
        for finding in findings
        if finding.rule.family not in _ELSEWHERE
        and (
            any(_is_of(target, kind, namespace, name) for target in finding.objects)
            or any(_is_pod_of(case, kind, namespace, name) for case in finding.cases)
            or (is_at_work and says_nobody_leads(finding.cases[0]))
        )
    ]


def _is_of(target: Target, kind: str, namespace: str, name: str) -> bool:
    return (target.kind, target.namespace, target.name) == (kind, namespace, name)


def _is_pod_of(case: Case, kind: str, namespace: str, name: str) -> bool:
    """Whether it is about a pod of that Job, which is not in the record itself."""
    pod = case.target.kind == "Pod" and case.target.namespace == namespace
    return pod and kind == "Job" and case.evidence.get("job") == name


def finding_lines(
    findings: Sequence[Finding], kind: str, namespace: str, name: str, trace: str
) -> list[tuple[str, bool]]:
    """Lines on findings about one object, and whether each begins one.

    `trace`: what the reader calls the trace, for commands.
    """
    lines: list[tuple[str, bool]] = []
    for finding in findings:
        mine = (case for case in finding.cases if _is_of(case.target, kind, namespace, name))
        case = next(mine, finding.cases[0])
        thread = f" (#{finding.thread})" if finding.thread else ""
        lines.append((f"{finding.severity.value} {finding.id}: {case.claim}{thread}", True))
        lines.append((case.detail, False))
        if finding.severity is not Severity.INFO:
            lines.append((f"do: {advice_of(case, trace)}", False))
    return lines
