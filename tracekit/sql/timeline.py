"""What happened in a time, in order: writes, pods' phases, Events, due times, leaders, gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from tracekit.answers.happening import Happening
from tracekit.answers.shown_steps import steps_of
from tracekit.base.kube.field_changes import FieldChange, shown
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.check.diff.cron_ticks import NEVER_DUE
from tracekit.sql.edits import Edit, edits_of
from tracekit.sql.session import Session
from tracekit.sql.shown_texts import shown_in

#: Streams whose edits are told by their fields.
_EDITED: Final = ("cronjobs", "namespaces", "nodes", "resourcequotas")
_VALUE_CHARS: Final = 80
_FIELDS: Final = 6
#: What its controller keeps in a status is told of the Jobs themselves.
_KEPT: Final = (".status.active", ".status.lastScheduleTime", ".status.lastSuccessfulTime")


#: What `{within}` stands for in the queries: where nothing is asked, nothing is left out.
_WITHIN: Final = """
  ($from_ns::BIGINT IS NULL OR epoch_ns({at}) >= $from_ns)
  AND ($until_ns::BIGINT IS NULL OR epoch_ns({at}) <= $until_ns)
  AND ($namespace::VARCHAR IS NULL OR namespace = $namespace)
"""
_PHASES: Final = """
SELECT epoch_ns(p.from_at) AS at_ns, p.namespace, p.job, p.pod, p.phase, a.node, a.exit_code,
       a.reason, a.message, a.ended_by
FROM (FROM pod_phases WHERE {within}) AS p
LEFT JOIN attempts AS a ON a.trace = p.trace AND a.pod_uid = p.pod_uid AND a.namespace = p.namespace
"""
_DELETIONS: Final = """
SELECT epoch_ns(deletion_at) AS at_ns, kind, namespace, name, job, deleted_by, actor,
       delete_evidence
FROM deletions WHERE kind = 'Pod' AND {within}
"""
#: Events that were only listed happened when they say so themselves, not when they were looked at.
_EVENTS: Final = """
SELECT epoch_ns(happened_at) AS at_ns, namespace, kind, object, job, cronjob, event_type, reason,
       message, count, component
FROM (
  SELECT *, CASE WHEN trace IN (
      SELECT trace FROM coverage WHERE stream = 'events' GROUP BY trace HAVING bool_and(is_look)
    ) THEN coalesce(least(last_at, seen_at), seen_at) ELSE seen_at END AS happened_at
  FROM k8s_events
) WHERE {within}
"""
_TICKS: Final = """
SELECT epoch_ns(due_at) AS at_ns, namespace, cronjob, outcome, policy, why
FROM cron_ticks WHERE outcome NOT IN ('started', 'pending') AND {within}
"""
_JOBS: Final = """
SELECT epoch_ns(h.seen_at) AS at_ns, h.namespace, h.job, h.rv, h.changes, a.actor
FROM (FROM job_history WHERE len(changes) > 0 AND {within}) AS h
LEFT JOIN (
  SELECT trace, seq, any_value(actor) AS actor FROM actions WHERE kind = 'Job' GROUP BY ALL
) AS a ON a.trace = h.trace AND a.seq = h.seq
"""
_LEADERS: Final = """
SELECT epoch_ns(from_at) AS at_ns, namespace, lease, holder, without_leader_s
FROM leaders WHERE lease IN ('kube-controller-manager', 'kube-scheduler')
"""
_GAPS: Final = (
    "SELECT stream, epoch_ns(from_at) AS from_ns, epoch_ns(until_at) AS until_ns, reason FROM gaps"
)
#: Each may be missing in an object that no API server has.
_NAMES: Final = ("namespace", "job", "pod", "kind", "name", "object", "cronjob")
_OWNERS: Final = "SELECT namespace, job, cronjob FROM jobs WHERE cronjob IS NOT NULL"


def timeline_of(
    session: Session,
    times: TimeRange = ALWAYS,
    *,
    namespace: str | None = None,
    key: tuple[str, str] | None = None,
) -> Iterator[Happening]:
    """All that happened in a time, in no order.

    Args:
        session: One trace.
        times: From when to when, by receipt; due times by themselves.
        namespace: Only what is in it, and what is in none.
        key: Namespace and name of a Job or CronJob: only what is about it, its Jobs and pods.
    """
    space = key[0] if key else namespace
    where = {"from_ns": times.from_ns, "until_ns": times.until_ns, "namespace": space}
    owners = {(r["namespace"], r["job"]): r["cronjob"] for r in session.rows(_OWNERS)}
    for found in _all(session, where, times, space):
        happening = found
        cronjob = found.cronjob or owners.get((found.namespace, found.job), "")
        if cronjob and not found.cronjob:
            happening = replace(found, cronjob=cronjob)
        if key is None or (
            happening.namespace == key[0] and key[1] in (happening.job, happening.cronjob)
        ):
            yield happening


def _all(
    session: Session, where: dict[str, Any], times: TimeRange, space: str | None
) -> Iterator[Happening]:
    edits: dict[tuple[str, str, int | None], Edit] = {}
    for edit in _edits(session, times, space):
        if edit.kind == "Job" and edit.code is None and not edit.is_bare:
            edits[edit.namespace, edit.name, edit.resource_version] = edit
        else:
            yield from _edited(edit)
    for row in _rows(session, _JOBS, "seen_at", where):
        yield _job(row, edits.get((row["namespace"], row["job"], row["rv"])))
    session.compute("cron_ticks")
    for query, at, reported in (
        (_PHASES, "from_at", _phase),
        (_DELETIONS, "deletion_at", _deletion),
        (_EVENTS, "happened_at", _event),
        (_TICKS, "due_at", _tick),
    ):
        for row in _rows(session, query, at, where):
            yield reported(row)
    yield from _shown(session, times, space)
    yield from _around(session, times)


def _shown(session: Session, times: TimeRange, space: str | None) -> Iterator[Happening]:
    """What kubectl printed for people, where that was imported."""
    for step in steps_of(list(shown_in(session))):
        if times.holds(step.at_ns) and space in (None, step.namespace):
            yield step


def _rows(
    session: Session, query: str, at: str, where: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    asked = query.replace("{within}", _WITHIN.replace("{at}", at))
    for row in session.each_row(asked, **where):
        yield {**row, **{name: row[name] or "" for name in _NAMES if name in row}}


def _edits(session: Session, times: TimeRange, space: str | None) -> Iterator[Edit]:
    """Writes then that are told by their fields, and requests that made none."""
    streams = [(stream, False) for stream in ("jobs", *_EDITED)]
    for stream, refused_only in (*streams, ("pods", True)):
        for edit in edits_of(
            session, namespace=space, stream=stream, refused_only=refused_only, times=times
        ):
            known = edit.at_ns is not None and not edit.verb.startswith("set")
            # What kubelets and controllers write into a status is told by others, or by nothing.
            known = known and not (edit.is_bare and edit.verb.endswith("/status"))
            if known and times.holds(edit.at_ns or 0):
                yield edit


def _around(session: Session, times: TimeRange) -> Iterator[Happening]:
    """What is about all objects: who leads, what was not seen."""
    for row in session.rows(_LEADERS):
        if row["at_ns"] is None or not times.holds(row["at_ns"]):
            continue
        pause = row["without_leader_s"]
        after = f", {pause:.1f} s after the holder before" if pause is not None else ""
        what = f"{row['holder']} leads{after}" if row["holder"] else "given up: nobody leads"
        yield Happening(row["at_ns"], "Lease", row["namespace"] or "", row["lease"] or "", what)
    for row in session.rows(_GAPS):
        start = row["from_ns"] if row["from_ns"] is not None else row["until_ns"]
        if start is not None and times.meets(start, row["until_ns"]):
            what = f"{row['stream']} were not seen from here on: {row['reason']}"
            yield Happening(start, "", "", "", what, is_trouble=True)


def _edited(edit: Edit) -> Iterator[Happening]:
    """A write that is told by its fields, or a request that was refused."""
    if edit.at_ns is None:
        return
    cronjob = edit.name if edit.kind == "CronJob" else ""
    job = edit.name if edit.kind == "Job" else ""
    if edit.code is not None:
        if edit.code < 400 or edit.code == 409:  # noqa: PLR2004 - a conflict is tried again
            return
        what = f"asked to {edit.verb}, refused ({edit.code}): {edit.message or 'no message'}"
        trouble = True
    elif edit.is_bare:
        what, trouble = f"{edit.verb} (what it changed is not logged)", False
        if edit.verb.startswith(("delete", "create")):
            what = edit.verb
    else:
        fields = [f for f in edit.fields if not f.path.startswith(_KEPT)]
        if edit.fields and not fields:
            return
        what, trouble = ": ".join(p for p in (edit.verb, fields_text(fields)) if p), False
    yield Happening(
        edit.at_ns, edit.kind, edit.namespace, edit.name, what, edit.actor, trouble, job, cronjob
    )


def fields_text(fields: list[FieldChange]) -> str:
    """The fields of a write in one line."""
    reported = [
        f"{f.path} {shown(f.old, _VALUE_CHARS)} → {shown(f.new, _VALUE_CHARS)}"
        for f in fields[:_FIELDS]
    ]
    more = [f"{len(fields) - _FIELDS} more fields"] if len(fields) > _FIELDS else []
    return ", ".join(reported + more)


def _job(row: dict[str, Any], edit: Edit | None) -> Happening:
    changed = list(row["changes"])
    fields = [f for f in edit.fields if not f.path.startswith(".status")] if edit else []
    if fields:
        changed = [c for c in changed if c not in ("spec", "labels", "annotations")]
        changed.append(fields_text(fields))
    who = (edit.actor if edit else None) or row["actor"]
    trouble = any("Failed" in change for change in changed)
    return Happening(
        row["at_ns"] or 0,
        "Job",
        row["namespace"],
        row["job"],
        ", ".join(changed),
        who,
        trouble,
        row["job"],
    )


def _phase(row: dict[str, Any]) -> Happening:
    phase = row["phase"]
    said = [phase]
    if phase == "Scheduled" and row["node"]:
        said = [f"Scheduled to {row['node']}"]
    if phase == "Failed":
        code = f"exit code {row['exit_code']}" if row["exit_code"] is not None else None
        said = [", ".join(p for p in ("Failed", code, row["reason"]) if p)]
        said += [row["message"].strip()] if row["message"] else []
    return Happening(
        row["at_ns"] or 0, "Pod", row["namespace"], row["pod"], ": ".join(said), None,
        phase == "Failed", row["job"],
    )  # fmt: skip


def _tick(row: dict[str, Any]) -> Happening:
    return Happening(
        row["at_ns"], "CronJob", row["namespace"], row["cronjob"],
        f"never due: {row['why']}" if row["policy"] == NEVER_DUE
        else f"due, not started ({row['outcome']}): {row['why']}",
        is_trouble=row["outcome"] != "suspended", cronjob=row["cronjob"],
    )  # fmt: skip


def _deletion(row: dict[str, Any]) -> Happening:
    who = row["deleted_by"]
    if who == "user" and row["actor"]:
        who = row["actor"]
    return Happening(
        row["at_ns"] or 0, row["kind"], row["namespace"], row["name"],
        f"deleted ({row['delete_evidence']})", who, job=row["job"],
    )  # fmt: skip


def _event(row: Mapping[str, Any]) -> Happening:
    times = f" ({row['count']} times)" if (row["count"] or 1) > 1 else ""
    what = f"Event {row['reason']}{times}: {row['message']}"
    return Happening(
        row["at_ns"] or 0, row["kind"], row["namespace"], row["object"], what,
        row["component"], row["event_type"] == "Warning", row["job"], row["cronjob"],
    )  # fmt: skip
