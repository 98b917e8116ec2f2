"""Who suspended what is suspended at the end: by the audit log, else by managedFields."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import orjson

from tracekit.answers.evidence import Evidence, Suspension
from tracekit.base.kube.actors import controller_of
from tracekit.base.kube.field_changes import managers
from tracekit.base.kube.timestamps import parse_rfc3339

if TYPE_CHECKING:
    from tracekit.sql.session import Session

_SUSPENDED = """
WITH ends AS (SELECT uid, max(_order) AS last FROM internal._states
              WHERE stream IN ('jobs', 'cronjobs') GROUP BY uid),
suspended AS (SELECT s.uid, s.raw FROM internal._states AS s
              JOIN ends ON s.uid = ends.uid AND s._order = ends.last
              WHERE s.type <> 'DELETED' AND s.spec LIKE '%"suspend":true%')
"""
_ENDS = f"{_SUSPENDED} SELECT uid, raw FROM suspended"  # noqa: S608 - our own words
_HISTORIES = (
    f"{_SUSPENDED} SELECT h.uid, h.recv_ns, h.actor, h.actor_agent, h.spec "  # noqa: S608 - as above
    "FROM internal._states AS h JOIN suspended ON h.uid = suspended.uid ORDER BY h.uid, h._order"
)


def suspensions(session: Session) -> dict[str, Suspension]:
    """By uid: who set spec.suspend of each Job and CronJob that is suspended at the end."""
    raw = {row["uid"]: row["raw"] for row in session.rows(_ENDS)}
    if not raw:
        return {}
    found: dict[str, Suspension] = {}
    for uid, rows in groupby(session.rows(_HISTORIES), key=lambda row: row["uid"]):
        seen = _by_audit([*rows])
        if seen is not None:
            found[uid] = seen
        elif (owner := _by_managers(raw[uid])) is not None:
            found[uid] = owner
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
    who = controller_of(since["actor"], since["actor_agent"]) or since["actor"]
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
