"""Who wrote each object, and which fields changed by it: revisions beside those before them.

The order of evidence: the request in the audit log; what tells of a deletion (`deletions`); the
entry of managedFields that is new or newer. Where none names anybody the record does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any, Final

import orjson
from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.base.kube.actors import controller_of
from tracekit.base.kube.field_changes import (
    FieldChange,
    Manager,
    changes,
    managers,
    owners,
    set_fields,
    writers,
)
from tracekit.base.kube.field_managers import CONTROLLER_MANAGERS
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.base.kube.views import JOB_TRACKING_FINALIZER
from tracekit.base.suggest import hint
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.sql.session import Session

_UNTRACKED: Final = "inferred: the finalizer is the Job controller's"
_KINDS: Final = {
    "pods": "Pod", "jobs": "Job", "cronjobs": "CronJob", "namespaces": "Namespace",
    "resourcequotas": "ResourceQuota", "nodes": "Node", "limitranges": "LimitRange",
    "priorityclasses": "PriorityClass", "replicasets": "ReplicaSet", "configmaps": "ConfigMap",
    "serviceaccounts": "ServiceAccount",
}  # fmt: skip


class Edit(Struct, frozen=True):
    """One write to an object, or one request that made none."""

    #: When it was received, ns since 1970; of an entry of managedFields, when it was made.
    at_ns: int | None
    kind: str
    namespace: str
    name: str
    resource_version: int | None
    #: create, update, patch, delete, with the subresource after a slash; `set`: some time before.
    verb: str
    #: The user, the controller or the field manager; None: the record does not tell.
    actor: str | None
    #: All names by which the actor may be asked for.
    names: tuple[str, ...]
    #: From what the actor is known; empty: it is not.
    evidence: str
    fields: tuple[FieldChange, ...] = ()
    #: Of a request that was refused or changed nothing: the HTTP status, and the server's message.
    code: int | None = None
    message: str = ""
    #: Of a request that was done, and of which the log has no body: what it changed is not known.
    is_bare: bool = False


# Events tell of others' writes; leases are written every few seconds.
_WHICH: Final = """
  s.stream NOT IN ('events', 'leases')
  AND ($namespace::VARCHAR IS NULL OR s.namespace = $namespace)
  AND ($name::VARCHAR IS NULL OR s.name = $name)
  AND ($stream::VARCHAR IS NULL OR s.stream = $stream)
"""
_COUNT: Final = f"SELECT count(*) AS n FROM internal._states AS s WHERE {_WHICH}"  # noqa: S608
# Of a time: the objects that were written then, from the revision before it on.
_STATES: Final = f"""
WITH written AS (
  SELECT uid, max(recv_ns) FILTER (recv_ns < $from_ns) AS before_ns FROM internal._states AS s
  WHERE {_WHICH} AND s.recv_ns <= $until_ns GROUP BY uid HAVING max(recv_ns) >= $from_ns
)
SELECT s.stream, s.type, s.namespace, s.name, s.uid, s.rv, s.recv_ns, s.raw, s.actor, s.actor_agent,
       s.verb, s.cronjob, s.job
FROM internal._states AS s
WHERE {_WHICH} AND hash(s.uid) % $parts = $part
  AND ($is_all OR s.recv_ns <= $until_ns AND EXISTS (
    FROM written AS w WHERE w.uid = s.uid AND s.recv_ns >= coalesce(w.before_ns, $from_ns)
  ))
ORDER BY s.stream, s.namespace, s.name, s.uid, s._order, s.seq
"""  # noqa: S608 - the conditions stand above
_CALLS: Final = """
SELECT stream, namespace, name, recv_ns, actor, actor_agent, verb, code, reason, message
FROM internal._rows
WHERE type = 'CALL' AND actor IS NOT NULL
  AND coalesce(stream, '') NOT IN ('events', 'leases')
  AND ($namespace::VARCHAR IS NULL OR namespace = $namespace)
  AND ($name::VARCHAR IS NULL OR name = $name)
  AND ($stream::VARCHAR IS NULL OR stream = $stream)
  AND recv_ns BETWEEN $from_ns AND $until_ns
ORDER BY recv_ns, seq
"""
#: So many revisions are sorted at a time, for all that they say lies in memory then.
_AT_A_TIME: Final = 25_000
_NEVER_NS: Final = 2**63 - 1
_DELETIONS: Final = (
    "SELECT uid, deleted_by, actor, delete_evidence FROM deletions WHERE uid IS NOT NULL"
)


def edits_of(
    session: Session,
    *,
    namespace: str | None = None,
    name: str | None = None,
    stream: str | None = None,
    refused_only: bool = False,
    times: TimeRange = ALWAYS,
) -> Iterator[Edit]:
    """Every write that the record tells of, object by object, then the requests that made none.

    Args:
        session: One trace.
        namespace: Only objects of this namespace.
        name: Only objects of this name.
        stream: Only objects of this plural resource, like "cronjobs".
        refused_only: Leave out what was written.
        times: Only what was written then; what managedFields tell of the time before an object
            was first seen is left out where it is not ALWAYS.
    """
    where: dict[str, str | int | None] = {"namespace": namespace, "name": name, "stream": stream}
    ends = {
        "from_ns": 0 if times.from_ns is None else times.from_ns,
        "until_ns": _NEVER_NS if times.until_ns is None else times.until_ns,
    }
    if not refused_only:
        for edit in _of_states(session, where, ends, is_all=not times):
            if not times or (not edit.verb.startswith("set") and times.holds(edit.at_ns or 0)):
                yield edit
    for row in session.each_row(_CALLS, **where, **ends):
        yield _call(row)


def _of_states(
    session: Session, where: dict[str, Any], ends: dict[str, int], *, is_all: bool
) -> Iterator[Edit]:
    # Who deleted what is told of all objects at once: only where one was.
    deletions = cache(lambda: {row["uid"]: row for row in session.rows(_DELETIONS)})
    (count,) = session.rows(_COUNT, **where)
    parts = count["n"] // _AT_A_TIME + 1
    for part in range(parts):
        rows = session.each_row(_STATES, **where, **ends, is_all=is_all, parts=parts, part=part)
        for _, states in groupby(rows, key=_object):
            yield from _of_object(states, deletions)


def _object(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["stream"], row["namespace"], row["name"], row["uid"]


def _of_object(
    states: Iterator[dict[str, Any]], deletions: Callable[[], Mapping[str, dict[str, Any]]]
) -> Iterator[Edit]:
    before: dict[str, Any] | None = None
    was_going = False
    for row in states:
        document = orjson.loads(row["raw"]) if row["raw"] else {}
        if not isinstance(document, dict):
            continue
        metadata = document.get("metadata")
        going = row["type"] == "DELETED" or (
            isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))
        )
        if before is None and row["type"] != "ADDED":
            yield from _set_before(row, document)
        if going and not was_going:
            yield _edit(row, *_deleter(row, deletions().get(row["uid"])), ())
        elif before is None:
            if row["type"] == "ADDED":
                yield _edit(row, "create", *_writer(row, managers(document)), ())
        elif row["type"] != "DELETED":
            yield from _update(row, before, document)
        before, was_going = document, going


def _update(row: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> Iterator[Edit]:
    fields = tuple(changes(before, after))
    if fields:
        own = writers(before, after) or owners(fields, after)
        status = bool(own) and all(entry.subresource == "status" for entry in own)
        by = _writer(row, own)
        if by[0] is None and _untracks(fields):
            by = ("job-controller", ("job-controller",), _UNTRACKED)
        yield _edit(row, "update/status" if status else "update", *by, fields)


_REVISIONS: Final = """
SELECT stream, namespace, name, recv_ns, rv, type, spec, raw, actor, actor_agent, verb, cronjob, job
FROM internal._states
WHERE stream = $stream AND namespace = $namespace AND name = $name ORDER BY seq
"""


def revisions_with_writers(
    session: Session, stream: str, namespace: str, name: str
) -> Iterator[dict[str, Any]]:
    """The revisions of an object: `recv_ns`, `rv`, `type`, `spec`, and `by`, who wrote it.

    `by` is what `edits_of` says of the same write; None for the first, and where nothing tells.
    """
    before: dict[str, Any] | None = None
    rows = session.rows(_REVISIONS, stream=stream, namespace=namespace, name=name)
    for row in rows:
        document = orjson.loads(row["raw"]) if row["raw"] else {}
        after = document if isinstance(document, dict) else {}
        edit = None if before is None else next(_update(row, before, after), None)
        names = ("recv_ns", "rv", "type", "spec")
        yield {**{n: row[n] for n in names}, "by": None if edit is None else edit.actor}
        before = after


def _untracks(fields: tuple[FieldChange, ...]) -> bool:
    """Whether nothing changed but that a finalizer of the Job controller went."""
    (field, *others) = fields
    old, new = ([] if side is None else side for side in (field.old, field.new))
    return (
        not others
        and field.path == ".metadata.finalizers"
        and isinstance(old, list)
        and [name for name in old if name != JOB_TRACKING_FINALIZER] == new
    )


def _set_before(row: dict[str, Any], document: dict[str, Any]) -> Iterator[Edit]:
    """What managedFields tell of the time before the object was first seen."""
    for entry in managers(document):
        verb = f"set/{entry.subresource}" if entry.subresource else "set"
        at_ns = parse_rfc3339(entry.time)
        fields = tuple(set_fields(entry, document))
        yield _edit({**row, "recv_ns": at_ns, "rv": None}, verb, *_manager(row, entry), fields)


def _writer(row: dict[str, Any], own: list[Manager]) -> tuple[str | None, tuple[str, ...], str]:
    """Who wrote a revision, all names of it, and from what that is known."""
    if row["actor"] is not None:
        return (*_user(row), "audit log")
    if len({entry.name for entry in own}) == 1:
        return _manager(row, own[-1])
    if own:  # two wrote between two looks
        names = tuple(sorted({entry.name for entry in own}))
        return " and ".join(names), names, "managedFields"
    return None, (), ""


def _manager(row: dict[str, Any], entry: Manager) -> tuple[str, tuple[str, ...], str]:
    said = f"managedFields: {entry.name}"
    if entry.name not in CONTROLLER_MANAGERS:
        return entry.name, (entry.name,), said
    controller = _by_rule(row, entry)
    return controller or entry.name, tuple(n for n in (controller, entry.name) if n), said


def _by_rule(row: dict[str, Any], entry: Manager) -> str | None:
    """Which controller of the manager writes this: only one does, as in the view `actions`."""
    if row["stream"] == "cronjobs":
        return "cronjob-controller" if entry.subresource == "status" else None
    if row["stream"] == "jobs":
        if entry.subresource == "status":
            return "job-controller"
        return "cronjob-controller" if row["cronjob"] else None
    return "job-controller" if row["stream"] == "pods" and row["job"] else None


def _user(row: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    user, agent = row["actor"], row["actor_agent"]
    controller = controller_of(user, agent)
    program = (agent or "").split("/")[0]
    names = tuple(dict.fromkeys(n for n in (controller, user, program) if n))
    return controller or user, names


def _deleter(
    row: dict[str, Any], deletion: dict[str, Any] | None
) -> tuple[str, str | None, tuple[str, ...], str]:
    if row["actor"] is not None and (row["verb"] or "").startswith("delete"):
        return ("delete", *_user(row), "audit log")
    if deletion is None:
        return "delete", None, (), ""
    if deletion["actor"] is not None:
        by_controller = deletion["deleted_by"] != "user"
        names = (
            (deletion["deleted_by"], deletion["actor"]) if by_controller else (deletion["actor"],)
        )
        return "delete", names[0], names, deletion["delete_evidence"]
    return "delete", deletion["deleted_by"], (deletion["deleted_by"],), deletion["delete_evidence"]


def _edit(
    row: dict[str, Any],
    verb: str,
    actor: str | None,
    names: tuple[str, ...],
    evidence: str,
    fields: tuple[FieldChange, ...],
) -> Edit:
    audited = row["verb"] if evidence == "audit log" and row["verb"] else verb
    return Edit(
        row["recv_ns"],
        _KINDS.get(row["stream"], row["stream"]),
        row["namespace"] or "",
        row["name"] or "",
        row["rv"],
        audited,
        actor,
        names,
        evidence,
        fields,
    )


#: How an importer's words begin for a request that was done, and of which the log has no body.
_BARE: Final = ("logged without", "a deletion of many", "the deletion of an object of which no")
#: From this HTTP status on a request was not done.
_NOT_DONE: Final = 400


def _call(row: dict[str, Any]) -> Edit:
    actor, names = _user(row)
    done = (row["code"] or 0) < _NOT_DONE
    is_bare = done and str(row["reason"] or "").startswith(_BARE)
    return Edit(
        row["recv_ns"],
        _KINDS.get(row["stream"], row["stream"] or ""),
        row["namespace"] or "",
        row["name"] or "",
        None,
        row["verb"] or "request",
        actor,
        names,
        "audit log",
        (),
        None if is_bare else row["code"],
        row["message"] or "",
        is_bare,
    )


def matching(name: str, edit: Edit) -> bool:
    """Whether an actor goes by the name, with or without what a service account's begins with."""
    asked = name.lower()
    return any(asked in (known.lower(), known.lower().rpartition(":")[2]) for known in edit.names)


_STREAMS: Final = {
    "job": "jobs", "jobs": "jobs", "cronjob": "cronjobs", "cronjobs": "cronjobs", "cj": "cronjobs",
    "pod": "pods", "pods": "pods", "po": "pods", "namespace": "namespaces", "ns": "namespaces",
    "node": "nodes", "nodes": "nodes", "quota": "resourcequotas", "resourcequota": "resourcequotas",
}  # fmt: skip


#: What tells of a write: a state, or somebody's request.
_WRITTEN: Final = (
    "stream NOT IN ('events', 'leases') "
    "AND (type IN ('ADDED', 'MODIFIED', 'DELETED', 'LIST') OR type = 'CALL' AND actor IS NOT NULL)"
)


_KEYS: Final = (
    "SELECT DISTINCT concat_ws('/', namespace, name) AS key FROM internal._rows "  # noqa: S608
    f"WHERE {_WRITTEN} AND stream <> 'pods' AND name IS NOT NULL"
)


def named_object(
    session: Session, text: str, namespace: str | None = None
) -> tuple[str | None, str, str | None]:
    """Namespace, name and stream of an object, as users name it: "ns/name", "name", "pod/name".

    Raises:
        UsageError: The trace has no such object.
    """
    first, slash, rest = text.partition("/")
    stream = _STREAMS.get(first.split(".")[0].lower()) if slash else None
    space, name = (namespace, rest) if stream else (first, rest) if slash else (namespace, text)
    if _is_there(session, space, name, stream):
        return space, name, stream
    if stream and namespace is None and _is_there(session, first, name, None):
        return first, name, None  # a namespace called `job`
    known = {row["key"] for row in session.rows(_KEYS)}
    wanted = f"{space}/{name}" if space else name
    names = known if space else {key.rpartition("/")[2] for key in known}
    raise UsageError(
        f"the trace has no object {text!r}{hint(wanted, names, '`tracekit jobs` lists its Jobs')}"
    )


def _is_there(session: Session, space: str | None, name: str, stream: str | None) -> bool:
    query = (
        f"SELECT 1 FROM internal._rows WHERE name = $name AND {_WRITTEN} "  # noqa: S608 - the same
        "AND ($namespace::VARCHAR IS NULL OR namespace = $namespace) "
        "AND ($stream::VARCHAR IS NULL OR stream = $stream) LIMIT 1"
    )
    return bool(session.rows(query, name=name, namespace=space, stream=stream))
