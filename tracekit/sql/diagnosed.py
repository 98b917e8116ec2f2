"""The findings of a trace: the facts that they are decided from, asked of the views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa

from tracekit.answers.admission import Admission, admission_of
from tracekit.answers.event_index import ALREADY_ACTIVE, QUEUE_STOPPED, QUEUE_WAITS
from tracekit.answers.facts import facts_of
from tracekit.answers.judgements import Judgements, Listed
from tracekit.answers.pauses import Gap
from tracekit.answers.quotas import Quota, quota_of
from tracekit.answers.trace_model import (
    COLUMNS,
    FOREIGN_OWNER,
    KEYS,
    REFUSED_CREATION,
    STREAMS,
    Facts,
    Keyed,
)
from tracekit.base.collecting import collecting_rarely
from tracekit.base.coverage import Coverage
from tracekit.base.cron import Generation
from tracekit.base.errors import TracekitError
from tracekit.base.kube.actors import name_of
from tracekit.base.kube.events import MAKERS
from tracekit.base.kube.stored import object_of
from tracekit.check.verdict import Judgement
from tracekit.judge.verdict_table import ORDER
from tracekit.sql.computed import coverage_of_source, era_of
from tracekit.sql.kept_judgements import VERDICT_COLUMNS, KeptJudgements
from tracekit.sql.node_events import node_events
from tracekit.sql.preemptors import preemptors
from tracekit.sql.shown_texts import shown_in
from tracekit.sql.suspensions import suspensions
from tracekit.trace.format.model import STATE_TYPES
from tracekit.trace.reading.lazy_rows import lazy_rows
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.release import Release

if TYPE_CHECKING:
    from tracekit.sql.session import Session


@collecting_rarely()
def facts_from(
    session: Session,
    known: Sequence[Judgement] | None = None,
    *,
    gaps: Sequence[Gap] | None = None,
    release: Release | None = None,
    coverage: Coverage | None = None,
    end_ns: int = 0,
) -> Facts:
    """What the findings look at, out of a session over one trace.

    Over a part of one, held in memory: with the verdicts about it, and what the whole tells.
    """
    not_judged = None if known is not None else not_judged_because(session)
    around = surroundings(session, gaps=gaps, release=release, coverage=coverage, end_ns=end_ns)
    judgements: Judgements = Listed(known or ())
    if known is None and not not_judged:
        judgements = KeptJudgements(verdicts_in(session), misfit_of(session))
    return facts_of(
        _states(session),
        ticks=ticks_of(session),
        judgements=judgements,
        not_judged=not_judged,
        logs=logs_in(session) if around["streams"].get("logs") else (),
        **around,
    )


def surroundings(
    session: Session,
    *,
    gaps: Sequence[Gap] | None = None,
    release: Release | None = None,
    coverage: Coverage | None = None,
    end_ns: int = 0,
) -> dict[str, Any]:
    """What facts have beside objects and verdicts: it is the same for each part of a trace."""
    there = _RowsThere(session)
    first_ns, last_ns = there.span()
    calls = there.has(type="CALL")
    shown = list(shown_in(session)) if calls else []
    seen = _coverage(session) if coverage is None else coverage
    are_nodes_there = there.has(stream="events") or there.has(stream="nodes")
    # A log of requests goes on after the last write, with refused ones.
    seen_ns = seen.end_ns if seen.timed else 0
    return {
        "gaps": (_gaps(session) if there.has(type="GAP") else []) if gaps is None else gaps,
        "streams": there.by_stream(),
        "problems": list(session.problems),
        "generation": _generation(session),
        "container_notes": _container_notes(session) if there.has(stream="pods") else {},
        "refused_calls": session.rows(_REFUSED_CALLS) if calls else [],
        "bare_deletions": session.rows(_BARE_DELETIONS) if calls else [],
        "refused_again": session.rows(_REFUSED_AGAIN) if calls else [],
        "shown": shown,
        "suspended_by": suspensions(session),
        "preemptors": preemptors(session) if there.has(stream="events") else {},
        "node_events": node_events(session, shown) if are_nodes_there else {},
        "started_from": _started_from(session) if there.has(stream="jobs") else {},
        "admissions": _admissions(session) if there.has(stream="workloads") else {},
        "quotas": _quotas(session) if there.has(stream="resourcequotas") else {},
        "terminating": _terminating(session) if there.has(stream="namespaces") else {},
        "namespace_deleters": _deleters(session) if there.has(stream="namespaces") else {},
        "release": _release(session) if release is None else release,
        "coverage": seen,
        "first_ns": 1 << 62 if first_ns is None else first_ns,
        "end_ns": max(end_ns, last_ns or 0, seen_ns),
    }


class _RowsThere:
    """How many rows of each stream and type there are, and when they were received.

    Each other question reads columns of all rows: it is asked only where it can find something.
    """

    def __init__(self, session: Session) -> None:
        self._kinds = session.rows(
            "SELECT stream, type, count(*) AS n, min(recv_ns) AS first, max(recv_ns) AS last "
            "FROM internal._rows GROUP BY stream, type ORDER BY stream, type"
        )

    def has(self, **wanted: str) -> bool:
        """Whether there is a row with that stream or type."""
        return any(wanted.items() <= kind.items() for kind in self._kinds)

    def by_stream(self) -> dict[str, int]:
        """How many rows each stream has; the times in which it was not seen are none."""
        found: Counter[str] = Counter()
        for kind in self._kinds:
            if kind["stream"] is not None and kind["type"] != "GAP":
                found[kind["stream"]] += kind["n"]
        return dict(found)

    def span(self) -> tuple[int | None, int | None]:
        """When the first and the last state of an object was received."""
        kinds = [k for k in self._kinds if k["type"] in STATE_TYPES and k["stream"] in STREAMS]
        first = min((k["first"] for k in kinds if k["first"] is not None), default=None)
        return first, max((k["last"] for k in kinds if k["last"] is not None), default=None)


# Messages of a container's state and the state before have no column: the raw text of a pod's last
# revision has them. Of a failed pod it is read only where a container left one.
_LAST_OF_PODS = """
WITH ends AS (SELECT uid, max(_order) AS last FROM internal._states WHERE stream = 'pods'
              GROUP BY uid)
SELECT s.seq FROM internal._states AS s JOIN ends ON s.uid = ends.uid AND s._order = last
WHERE s.stream = 'pods'
  AND (s.phase = 'Failed' OR (s.type <> 'DELETED' AND s.phase NOT IN ('Succeeded', 'Failed'))
       OR (s.phase = 'Succeeded' AND s.restarts > 0))
"""
_NOTED = r"""
SELECT uid, raw FROM internal._states
WHERE stream = 'pods' AND seq IN (SELECT unnest($seqs)) AND (phase <> 'Failed'
  OR regexp_matches(raw, '"terminated"\s*:\s*\{[^{}]*"message"'))
"""
_REFUSED_CALLS = """
SELECT stream, namespace, name, job, cronjob, recv_ns, code, reason, message, verb,
       actor AS username
FROM internal._rows
WHERE type = 'CALL' AND (((reason = 'Invalid' OR code IN (400, 403))
       AND stream IN ('jobs', 'cronjobs'))
  OR (verb = 'create' AND stream IN ('pods', 'jobs') AND code >= 400 AND code NOT IN (409, 429))
  OR (verb IN ('patch', 'update') AND stream = 'pods' AND code >= 400
      AND code NOT IN (404, 409, 429))
  OR (verb = 'create' AND stream IN ('jobs', 'cronjobs') AND code = 409
      AND reason = 'AlreadyExists'))
ORDER BY recv_ns
"""
_BARE_DELETIONS = """
SELECT stream, namespace, name, recv_ns, actor, actor_agent FROM internal._rows AS r
WHERE type = 'CALL' AND verb = 'delete' AND code < 400 AND stream IN ('jobs', 'cronjobs')
  AND name IS NOT NULL AND actor IS NOT NULL
  AND NOT EXISTS (
    FROM internal._states AS s
    WHERE s.stream = r.stream AND s.namespace = r.namespace AND s.name = r.name
  )
ORDER BY recv_ns
"""
# Evictions that were refused, and conflicts of writes, each with the time at which the same was
# done after all: the pod was being deleted, or the user's next write of that kind of the object
# came through. An eviction answered 404 or 409, or 429 by the API server's own queues, is none.
_REFUSED_AGAIN = """
WITH refused AS (
  SELECT stream, namespace, name, uid, job, recv_ns, code, message, verb, actor, actor_agent
  FROM internal._rows
  WHERE type = 'CALL' AND (
    (stream = 'pods' AND verb = 'create/eviction' AND code >= 400 AND code NOT IN (404, 409)
     AND (code <> 429 OR message ILIKE '%disruption budget%'))
    OR (stream IN ('jobs', 'cronjobs') AND code = 409 AND reason = 'Conflict'
        AND (verb LIKE 'update%' OR verb LIKE 'patch%')))
), gone AS (
  SELECT stream, namespace, name, recv_ns FROM internal._rows
  WHERE (stream IN ('pods', 'jobs', 'cronjobs') AND type = 'DELETED')
     OR (stream = 'pods' AND (deleted_ns IS NOT NULL
                              OR (verb = 'create/eviction' AND coalesce(code, 0) < 400)))
), wrote AS (
  SELECT stream, namespace, name, actor, verb, recv_ns FROM internal._rows
  WHERE stream IN ('jobs', 'cronjobs') AND coalesce(code, 0) < 400 AND actor IS NOT NULL
)
SELECT r.* EXCLUDE (actor, actor_agent), r.actor AS username, r.actor_agent AS agent,
       least(gone.recv_ns, wrote.recv_ns) AS done_ns
FROM refused AS r
ASOF LEFT JOIN gone ON r.stream = gone.stream AND r.namespace = gone.namespace
  AND r.name = gone.name AND r.recv_ns < gone.recv_ns
ASOF LEFT JOIN wrote ON r.stream = wrote.stream AND r.namespace = wrote.namespace
  AND r.name = wrote.name AND r.actor = wrote.actor AND r.verb = wrote.verb
  AND r.recv_ns < wrote.recv_ns
ORDER BY r.recv_ns
"""
_DELETERS = """
SELECT name, actor, actor_agent FROM internal._states
WHERE stream = 'namespaces' AND verb LIKE 'delete%' AND actor IS NOT NULL ORDER BY _order DESC
"""
# Of what is still there at the end: its last state.
_AT_THE_END = """
WITH ends AS (SELECT uid, max(_order) AS last FROM internal._states WHERE stream = $stream
              GROUP BY uid)
SELECT {columns} FROM internal._states AS s
JOIN ends ON s.uid = ends.uid AND s._order = ends.last
WHERE s.stream = $stream AND s.type <> 'DELETED' ORDER BY s._order
"""
_WORKLOADS = _AT_THE_END.format(columns="s.owner_uid, s.raw")
_QUOTAS = _AT_THE_END.format(columns="s.namespace, s.name, s.spec, s.status")
# `kubectl create job --from` names the CronJob as an owner, and not as the controller.
_STARTED_FROM = """
SELECT DISTINCT uid, [o.name FOR o IN owners IF o.kind = 'CronJob'][1] AS cronjob
FROM internal._states
WHERE stream = 'jobs' AND annotations LIKE '%"cronjob.kubernetes.io/instantiate"%'
"""
_TERMINATING = """
SELECT name, min(coalesce(deleted_ns, recv_ns)) AS at_ns FROM internal._states
WHERE stream = 'namespaces' AND (deleted_ns IS NOT NULL OR type = 'DELETED') GROUP BY name
"""


def _started_from(session: Session) -> dict[str, str]:
    """By uid: the CronJob that a Job was started from by hand."""
    rows = session.rows(_STARTED_FROM)
    return {row["uid"]: row["cronjob"] for row in rows if row["uid"] and row["cronjob"]}


def _deleters(session: Session) -> dict[str, str]:
    """Who asked for the deletion of namespaces."""
    rows = session.rows(_DELETERS)
    return {row["name"]: name_of(row["actor"], row["actor_agent"]) or "" for row in rows}


def _terminating(session: Session) -> dict[str, int]:
    """By namespace: when its deletion was asked for."""
    return {row["name"]: row["at_ns"] for row in session.rows(_TERMINATING)}


def _admissions(session: Session) -> dict[str, Admission]:
    """By the uid of its owner: the last state of its Workload; of slices, the one that waits."""
    found: dict[str, Admission] = {}
    for row in session.rows(_WORKLOADS, stream="workloads"):
        try:
            document = orjson.loads(row["raw"] or "{}")
        except ValueError:
            continue
        owner = row["owner_uid"]
        if owner and isinstance(document, dict):
            one = admission_of(document)
            found[owner] = max(found.get(owner, one), one, key=_weight)
    return found


def _weight(seen: Admission) -> int:
    """Of slices of an elastic Job, which tells most of why it waits: an evicted, a waiting one."""
    true = {kind for kind, condition in seen.conditions.items() if condition.status}
    if "Finished" in true:
        return 0
    return 3 if "Evicted" in true else 1 if "Admitted" in true else 2


def _quotas(session: Session) -> dict[str, list[Quota]]:
    """By namespace: the last state of each ResourceQuota that is there."""
    found: dict[str, list[Quota]] = {}
    for row in session.rows(_QUOTAS, stream="resourcequotas"):
        quota = quota_of(row["name"] or "", object_of(row["spec"]), object_of(row["status"]))
        if quota is not None:
            found.setdefault(row["namespace"] or "", []).append(quota)
    return found


def _container_notes(session: Session) -> dict[str, list[dict[str, Any]]]:
    """By pod: for what each container waits, how it ended before, and what it left at its end."""
    found: dict[str, list[dict[str, Any]]] = {}
    # Which revisions these are is asked first: texts of all of them need not be read.
    seqs = [seq for (seq,) in session.tuples(_LAST_OF_PODS)]
    for row in session.rows(_NOTED, seqs=seqs) if seqs else ():
        try:
            status = orjson.loads(row["raw"] or "{}").get("status") or {}
            found[row["uid"]] = [
                _note(container)
                for name in ("containerStatuses", "initContainerStatuses")
                for container in status.get(name) or ()
            ]
        except (ValueError, AttributeError, TypeError):
            continue  # the typed columns say what could be read of it
    return found


def _note(container: dict[str, Any]) -> dict[str, Any]:
    waiting = (container.get("state") or {}).get("waiting") or {}
    before = (container.get("lastState") or {}).get("terminated") or {}
    last = (container.get("state") or {}).get("terminated") or before
    return {
        "name": container.get("name"),
        "message": waiting.get("message"),
        "exit_code": before.get("exitCode"),
        "ended": before.get("reason"),
        "left": last.get("message"),
    }


_STREAMS = ", ".join(f"'{name}'" for name in STREAMS)
#: Most Events tell of what the rows of objects tell better, and no rule asks for them. It asks for
#: those that have the values of one of these.
ASKED_EVENTS: tuple[Mapping[str, Sequence[str]], ...] = (
    {"involved_kind": ("Pod",)},
    {"reason": (REFUSED_CREATION, FOREIGN_OWNER)},
    {"involved_kind": ("Job", "CronJob", "PersistentVolumeClaim"), "event_type": ("Warning",)},
    {"involved_kind": ("Job",), "reason": (QUEUE_STOPPED,)},
    {"involved_kind": ("CronJob",), "reason": (ALREADY_ACTIVE,)},
    {"involved_kind": ("Workload",), "reason": QUEUE_WAITS},
    {"involved_kind": MAKERS, "event_type": ("Warning",)},
)


def _events() -> str:
    """The condition that a row is no Event, or one that is asked for."""
    kinds = (
        " AND ".join(f"{column} IN ('{_OR.join(values)}')" for column, values in kind.items())
        for kind in ASKED_EVENTS
    )
    return f"(stream <> 'events' OR ({') OR ('.join(kinds)}))"


#: Between texts of a list.
_OR = "', '"


def _states(session: Session) -> Iterator[Keyed]:
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    query = f"SELECT {names} FROM internal._states WHERE stream IN ({_STREAMS}) AND {_events()}"  # noqa: S608 - our own names
    return lazy_rows([session.columns(query)], KEYS)


class Spaces(NamedTuple):
    """Namespaces from one on until before another, in the order of their names; None: no bound."""

    first: str | None = None
    until: str | None = None

    @property
    def where(self) -> str:
        """The condition that something lies in one of them."""
        # No name comes before all others.
        until = "true" if self.until is None else "namespace < $until"
        if self.first is None:
            return f"(namespace IS NULL OR {until})"
        return f"namespace >= $first AND {until}"

    @property
    def values(self) -> dict[str, str]:
        """What the condition names."""
        return {name: value for name, value in self._asdict().items() if value is not None}


ALL_SPACES = Spaces()


def ticks_of(session: Session, spaces: Spaces = ALL_SPACES) -> list[dict[str, Any]]:
    """What became of each time at which a CronJob was due, by time."""
    session.compute("cron_ticks")
    query = (
        f"SELECT * FROM internal._cron_ticks WHERE {spaces.where} "  # noqa: S608 - our own names
        "ORDER BY due_ns, namespace, cronjob"
    )
    return session.rows(query, **spaces.values)


def logs_in(session: Session, spaces: Spaces = ALL_SPACES) -> list[dict[str, Any]]:
    """What containers that ended had said."""
    query = (
        f"SELECT namespace, pod, container, exit_code, text, gap FROM logs WHERE {spaces.where} "  # noqa: S608
        "ORDER BY seen_at, pod, container"
    )
    return session.rows(query, **spaces.values)


def _gaps(session: Session) -> list[Gap]:
    return [
        Gap(row["stream"] or "", row["gap_from_ns"] or 0, row["gap_until_ns"], row["gap_reason"])
        for row in session.rows(
            "SELECT stream, gap_from_ns, gap_until_ns, gap_reason FROM internal._rows "
            "WHERE type = 'GAP' ORDER BY gap_from_ns"
        )
    ]


def not_judged_because(session: Session) -> str | None:
    """Have the verdicts, for `verdicts_in`; else why the trace cannot be judged."""
    try:
        session.compute("verdicts")
    except TracekitError as error:
        return str(error).removesuffix("; `tracekit diagnose` says what it tells")
    return None


def verdicts_in(
    session: Session, spaces: Spaces = ALL_SPACES, more: str = "true", **values: Any
) -> pa.Table:
    """The verdicts about objects of some namespaces, of which more is asked, by time."""
    names = ", ".join(VERDICT_COLUMNS)
    query = (
        f"SELECT {names} FROM internal._verdicts WHERE {spaces.where} AND {more} "  # noqa: S608
        f"ORDER BY {', '.join(ORDER)}"
    )
    return session.columns(query, **spaces.values, **values)


def misfit_of(session: Session) -> str:
    """How the record as a whole contradicts the rules, as its verdicts say; empty: it does not."""
    return next((source.misfit for source in session.sources if source.misfit), "")


def _coverage(session: Session) -> Coverage:
    return coverage_of_source(session.sources[0]) if session.sources else Coverage()


def _release(session: Session) -> Release:
    """The release that the control plane runs, the newest one where nothing tells."""
    try:
        reader = session.sources[0].reader()
        era = era_of(reader, session.rules)
    except (TracekitError, IndexError):
        return Release()
    said = session.rules.kubernetes_version or reader.header.kubernetes_version
    return Release.of(era, is_said=bool(said))


def _generation(session: Session) -> Generation:
    """Which cron library the control plane was built with; the newer one where nothing tells."""
    if not session.sources:
        return Generation.GEN3
    source = session.sources[0]
    try:
        era = era_of(source.reader(), session.rules)
    except TracekitError:
        return Generation.GEN3
    return CronJobEra.of(era).generation
