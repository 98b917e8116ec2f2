"""Who suspended what is suspended at the end: by the audit log, else by managedFields."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import orjson

from tracekit.answers.evidence import Evidence, Suspension
from tracekit.base.kube.actors import name_of
from tracekit.base.kube.field_changes import managers
from tracekit.base.kube.timestamps import parse_rfc3339

if TYPE_CHECKING:
    from tracekit.sql.session import Session

_SUSPENDED = """
SELECT uid FROM internal._states WHERE stream IN ('jobs', 'cronjobs') GROUP BY uid
HAVING arg_max(type <> 'DELETED' AND coalesce(spec LIKE '%"suspend":true%', false), _order)
"""
_HISTORIES = """
SELECT uid, seq, recv_ns, actor, actor_agent, spec FROM internal._states
WHERE stream IN ('jobs', 'cronjobs') AND uid IN (SELECT unnest($uids)) ORDER BY uid, _order, seq
"""
#: Texts are long: only those that are needed are read.
_TEXTS = "SELECT uid, raw FROM internal._states WHERE seq IN (SELECT unnest($seqs))"


def suspensions(session: Session) -> dict[str, Suspension]:
    """By uid: who set spec.suspend of each Job and CronJob that is suspended at the end."""
    uids = [uid for (uid,) in session.tuples(_SUSPENDED) if uid is not None]
    if not uids:
        return {}
    found: dict[str, Suspension] = {}
    without: list[int] = []
    for uid, history in groupby(session.rows(_HISTORIES, uids=uids), key=lambda row: row["uid"]):
        rows = [*history]
        if (seen := _by_audit(rows)) is not None:
            found[uid] = seen
        else:
            without.append(rows[-1]["seq"])
    for row in session.rows(_TEXTS, seqs=without) if without else ():
        if (owner := _by_managers(row["raw"])) is not None:
            found[row["uid"]] = owner
    return found


def _suspended(spec: str | None) -> bool:
    return '"suspend":true' in (spec or "")


def _by_audit(rows: list[dict[str, Any]]) -> Suspension | None:
    """The request that set it, where the log of requests has it."""
    since = None
    for row in rows:
        if not _suspended(row["spec"]):
            since = None
        elif since is None:
            since = row
    if since is None or since["actor"] is None:
        return None
    who = name_of(since["actor"], since["actor_agent"])
    return Suspension(str(who), since["recv_ns"], Evidence.AUDIT)


def _by_managers(raw: str | None) -> Suspension | None:
    """The field manager that owns spec.suspend, and when it wrote last."""
    try:
        document = orjson.loads(raw or "{}")
    except ValueError:
        return None
    owners = []
    for entry in managers(document):
        spec = entry.fields.get("f:spec")
        if isinstance(spec, dict) and "f:suspend" in spec and entry.name:
            owners.append((parse_rfc3339(entry.time) or 0, entry.name))
    if not owners:
        return None
    at_ns, name = max(owners)
    return Suspension(name, at_ns or None, Evidence.MANAGED_FIELDS)
