"""Who made a write that a watch saw, by an audit log that has no bodies (Metadata level).

Such a log names who asked for what, when the request came and when it was answered; the revision
it does not tell. A row of the record is that request's if it shows the kind of change that it asked
for, at that time, of that object; a row that requests of several clients fit stays nobody's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.trace.format.model import Origin

Raw = dict[str, Any]
_Key = tuple[str, str, str | None]

#: A recorder's clock may be so far behind the API server's, and its watch so late.
_BEFORE_NS = NS_PER_S // 2
_AFTER_NS = 2 * NS_PER_S
_BAD_REQUEST = 400
#: What differs in every revision.
_NOTES = frozenset({"resourceVersion", "managedFields", "generation"})
_DELETES = frozenset({"delete", "deletecollection", "create/eviction"})
_WRITES = frozenset({"update", "patch"})
_BINDS = frozenset({"create/binding"})
_STATUS = frozenset({"update/status", "patch/status", "create/eviction"})
#: What a deletion with a time of grace writes into the metadata.
_MARK = ("deletionTimestamp", "deletionGracePeriodSeconds")
#: The columns of CALL rows that are kept.
COLUMNS = ("seq", "stream", "type", "recv_ns", "not_before_ns", "namespace", "name", "verb", "code",
           "actor", "actor_agent")  # fmt: skip


class Callers:
    """Requests of which a log has no bodies, by the object that they name."""

    def __init__(self, rows: Iterable[Raw]) -> None:
        """`rows`: those of the log's trace; only calls that were not refused count."""
        self._calls: defaultdict[_Key, list[Raw]] = defaultdict(list)
        self._before: dict[tuple[str, str, str], Raw] = {}
        #: Which rows of the log's trace are told by the record's.
        self.matched: set[int] = set()
        for row in rows:
            if row["type"] == "CALL" and row["actor"] and (row["code"] or 0) < _BAD_REQUEST:
                key = (row["stream"] or "", row["namespace"] or "", row["name"])
                self._calls[key].append({name: row[name] for name in COLUMNS})

    def __bool__(self) -> bool:
        return bool(self._calls)

    def name(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, Origin]]:
        """For each row of the record that one client alone can have written: by seq, who."""
        for row in rows:
            stream, space, name = row["stream"] or "", row["namespace"] or "", row["name"] or ""
            obj = _document(row["raw"])
            before = self._before.get((stream, space, name))
            if obj is not None:
                self._before[stream, space, name] = obj
            verbs = _verbs(row["type"], before, obj)
            fits = [call for call in self._near(row, stream, space, name) if call["verb"] in verbs]
            who = {(call["actor"], call["actor_agent"]) for call in fits}
            if len(who) != 1 or row["actor"] is not None:
                continue
            self.matched.update(call["seq"] for call in fits)
            user, agent = next(iter(who))
            came_ns = fits[0]["not_before_ns"] if len(fits) == 1 else None
            verb = fits[0]["verb"]
            yield (
                row["seq"],
                Origin(not_before_ns=came_ns, actor=user, actor_agent=agent, verb=verb),
            )

    def _near(self, row: Mapping[str, Any], *key: str) -> Iterator[Raw]:
        stream, space, name = key
        at_ns = row["recv_ns"] or 0
        # A name that the server made up is not in the request.
        names = (name, None) if row["type"] == "ADDED" else (name,)
        for known in names:
            for call in self._calls.get((stream, space, known), ()):
                came_ns = call["not_before_ns"] or call["recv_ns"]
                if came_ns - _BEFORE_NS <= at_ns <= call["recv_ns"] + _AFTER_NS:
                    yield call


def _document(text: str | None) -> Raw | None:
    found = orjson.loads(text) if text else None
    return found if type(found) is dict else None


def _verbs(row_type: str, before: Raw | None, obj: Raw | None) -> frozenset[str]:
    """The requests, as verb and subresource, that make such a change."""
    if row_type == "ADDED":
        return frozenset({"create"})
    if before is None or obj is None or row_type not in ("MODIFIED", "DELETED"):
        return frozenset()
    meta, old = _meta(obj), _meta(before)
    if row_type == "DELETED":
        # What a finalizer keeps goes with it; what nothing keeps, when it is deleted.
        found = _WRITES if old.get("finalizers") else _DELETES
    elif any(meta.get(name) != old.get(name) for name in _MARK):
        found = _DELETES
    elif _part(_part(obj, "spec"), "nodeName") != _part(_part(before, "spec"), "nodeName"):
        found = _BINDS
    else:
        status = _part(obj, "status") != _part(before, "status")
        rest = meta != old or _part(obj, "spec") != _part(before, "spec")
        found = (_WRITES if not status else frozenset()) if rest else _STATUS
    return found


def _part(obj: Any, name: str) -> Any:
    return obj.get(name) if type(obj) is dict else None


def _meta(obj: Raw) -> Raw:
    meta = _part(obj, "metadata")
    return {k: v for k, v in meta.items() if k not in _NOTES} if type(meta) is dict else {}
