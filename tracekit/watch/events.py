"""News as Kubernetes Events of the object that they are about: at most one for each finding.

An Event's name is made of what it tells, and the server takes a name once. So what was told before,
by this process or by one that was here before it, is there already and not written again; no right
but `create` is needed for that. It holds for as long as the server keeps Events (an hour, if nobody
says otherwise); what happened longer ago is not written at all.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE, CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.watch.news import News
from tracekit.watch.outbox import Outbox

COMPONENT = "tracekit"
#: How long an API server keeps Events (`--event-ttl`).
KEPT_NS = 3600 * NS_PER_S
_MESSAGE_CHARS = 1024  # more is refused where an Event is of events.k8s.io
_NAME_CHARS = 236  # of the 253 of a name, without the dot and the digits after it
_API_VERSIONS = {"Lease": "coordination.k8s.io/v1"}
_BATCH = "batch/v1"

Document = dict[str, Any]
#: Creates an Event in a namespace; False if there is one of this name. Raises `NotSent`.
Create = Callable[[str, Document], bool]


class ClusterEvents(Outbox):
    """Writes an Event for each finding about an object."""

    what = "Event"

    def __init__(
        self, create: Create, *, clock_ns: Callable[[], int] = time.time_ns, **pause: float
    ) -> None:
        super().__init__(**pause)
        self._create = create
        self._clock_ns = clock_ns
        #: Names that the server has, and of when what they tell is.
        self._there: dict[str, int] = {}
        #: Of those that were taken: so many it had already.
        self.repeated = 0
        #: Too long ago to be written.
        self.old = 0

    def post(self, news: News) -> None:
        """Have it written soon, unless that was done, or is too long ago to be known."""
        now_ns = self._clock_ns()
        if news.at_ns <= now_ns - KEPT_NS:
            self.old += 1
            return
        self._there = {n: at_ns for n, at_ns in self._there.items() if at_ns > now_ns - KEPT_NS}
        name = name_of(news)
        if name not in self._there:
            self._there[name] = news.at_ns
            super().post(news)

    def send(self, news: News) -> None:
        """Write it, once."""
        document = event_of(news)
        if not self._create(document["metadata"]["namespace"], document):
            self.repeated += 1

    def results(self) -> dict[str, int]:
        """How many came to what."""
        return {
            "written": self.sent - self.repeated,
            "repeated": self.repeated,
            "old": self.old,
            "failed": self.failed,
        }


def name_of(news: News) -> str:
    """The name of its Event: one for each kind of finding about an object.

    There is only one lease and one controller: another time is another finding.
    """
    _, where = _place(news)
    at_ns = news.at_ns if where["kind"] == "Lease" else 0
    words = (news.id, news.kind, where["namespace"], where["name"], news.uid, at_ns)
    digest = hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()
    return f"{where['name'][:_NAME_CHARS]}.{digest[:16]}"


def event_of(news: News) -> Document:
    """The Event that tells it, as the core API has it."""
    namespace, where = _place(news)
    message = f"{news.text} ({news.why})"
    if len(message) > _MESSAGE_CHARS:
        message = f"{message[: _MESSAGE_CHARS - 1]}…"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name_of(news), "namespace": namespace},
        "involvedObject": where,
        "type": "Normal" if news.severity == "info" else "Warning",
        "reason": news.id,
        "message": message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": format_rfc3339(news.at_ns),
        "lastTimestamp": format_rfc3339(news.at_ns),
        "count": 1,
    }


def _place(news: News) -> tuple[str, dict[str, str]]:
    """The namespace of its Event and the object of it; a controller is known by its lease."""
    kind, namespace, name = news.kind, news.namespace, news.name
    if kind not in ("Job", "CronJob"):
        kind, namespace = "Lease", CONTROLLER_MANAGER_LEASE_NAMESPACE
        name = CONTROLLER_MANAGER_LEASE
    where = {
        "apiVersion": _API_VERSIONS.get(kind, _BATCH),
        "kind": kind,
        "namespace": namespace,
        "name": name,
    }
    return namespace, where | ({"uid": news.uid} if news.uid else {})
