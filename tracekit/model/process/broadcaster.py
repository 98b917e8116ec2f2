"""The Event broadcaster: Events wait in a buffer, are correlated, and posted one after the other.

One goroutine for each controller. Events of one kind about one object that differ in their message
only are aggregated from the eleventh on (within ten minutes); one that was told before is patched
with a higher count; beyond 25 at once and one in five minutes per object they are dropped.

Upstream: client-go tools/record/event.go, events_cache.go.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.events import COMBINED, MAX_QUEUED, SpamBucket
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.model.cluster.api_server import ApiServer
from tracekit.model.cluster.statuses import time_text
from tracekit.model.cluster.store import Raw
from tracekit.model.process.client import Calls, Client
from tracekit.model.process.lifetime import Life

_AGGREGATE_MAX: Final = 10
_AGGREGATE_NS: Final = 600 * NS_PER_S


class Reference(NamedTuple):
    """The object that an Event is about."""

    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str
    rv: str

    @classmethod
    def to(cls, kind: str, api_version: str, view: JobView | CronJobView) -> Reference:
        """The reference to an object as a cache holds it."""
        return cls(kind, view.namespace, view.name, view.uid, api_version, str(view.rv))


class _Recorded(NamedTuple):
    about: Reference
    type: str
    reason: str
    message: str
    at_ns: int


@dataclass(slots=True)
class _Aggregate:
    messages: dict[str, None]
    last_ns: int


@dataclass(slots=True)
class _Known:
    name: str
    count: int
    first_ns: int


class Broadcaster:
    """The Events of one controller (`component`)."""

    def __init__(self, life: Life, server: ApiServer, client: Client, component: str) -> None:
        self._life = life
        self._server = server
        self._client = client
        self._component = component
        self._buffer: deque[_Recorded] = deque()
        self._posting = False
        self._last_ns = 0
        self._aggregates: dict[tuple[object, ...], _Aggregate] = {}
        self._known: dict[tuple[object, ...], _Known] = {}
        self._spam: dict[tuple[object, ...], SpamBucket] = {}

    def record(self, about: Reference, event_type: str, reason: str, message: str) -> None:
        """Take an Event; nobody waits for it."""
        # A name is made of the time: no two Events of a process have the same nanosecond.
        self._last_ns = max(self._last_ns + 1, self._life.now_ns)
        if len(self._buffer) >= MAX_QUEUED:
            return
        self._buffer.append(_Recorded(about, event_type, reason, message, self._last_ns))
        if not self._posting:
            self._posting = True
            self._life.task(self._post_all)

    def _post_all(self) -> None:
        calls = self._client.goroutine()
        while self._buffer:
            self._post(self._buffer.popleft(), calls)
        self._posting = False

    def _post(self, recorded: _Recorded, calls: Calls) -> None:
        message, key = self._aggregated(recorded)
        known = self._known.get(key)
        if known is not None:
            known.count += 1
        else:
            name = f"{recorded.about.name}.{recorded.at_ns:x}"
            known = self._known[key] = _Known(name, 1, recorded.at_ns)
        if self._is_spam(recorded):
            return
        if known.count > 1:
            reply = calls.call(lambda: self._patch(recorded, message, known))
            if reply:
                return
        calls.call(lambda: self._create(recorded, message, known))

    def _aggregated(self, recorded: _Recorded) -> tuple[str, tuple[object, ...]]:
        """The message to post, and the key under which repetitions are counted."""
        about = recorded.about
        group = (about.kind, about.namespace, about.name, about.uid, recorded.type, recorded.reason)
        known = self._aggregates.get(group)
        if known is None or recorded.at_ns - known.last_ns > _AGGREGATE_NS:
            known = self._aggregates[group] = _Aggregate({}, recorded.at_ns)
        known.messages[recorded.message] = None
        known.last_ns = recorded.at_ns
        if len(known.messages) < _AGGREGATE_MAX:
            return recorded.message, (*group, recorded.message)
        # The set grows no further than its bound: one of its messages is forgotten.
        known.messages.pop(next(iter(known.messages)))
        return f"{COMBINED}{recorded.message}", group

    def _is_spam(self, recorded: _Recorded) -> bool:
        about = recorded.about
        key = (about.kind, about.namespace, about.name, about.uid)
        now_ns = self._life.now_ns
        bucket = self._spam.setdefault(key, SpamBucket(now_ns))
        if not bucket.left_at(now_ns):
            return True
        bucket.spend(1)
        return False

    def _create(self, recorded: _Recorded, message: str, known: _Known) -> bool:
        about = recorded.about
        body: Raw = {
            "metadata": {"name": known.name, "namespace": about.namespace},
            "involvedObject": {
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
                "apiVersion": about.api_version,
                "resourceVersion": about.rv,
            },
            "reason": recorded.reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": time_text(known.first_ns),
            "lastTimestamp": time_text(recorded.at_ns),
            "count": known.count,
            "type": recorded.type,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        return self._server.create("events", body).ok

    def _patch(self, recorded: _Recorded, message: str, known: _Known) -> bool:
        def again(event: dict[str, Any]) -> None:
            event["count"] = known.count
            event["message"] = message
            event["lastTimestamp"] = time_text(recorded.at_ns)

        return self._server.change("events", recorded.about.namespace, known.name, again).ok
