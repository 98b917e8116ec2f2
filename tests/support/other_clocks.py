"""A record as it would be if the clocks of those who write it were set otherwise.

Controllers and kubelets write times of their own clocks: a Lease's renewTime, a status's times, an
Event's. Times in `metadata` are of the API server that handled the write. A controller's waits are
differences of times of its own clock, so that nothing that it did becomes wrong where its clock is
ahead: it would have waited no longer. But a CronJob's slots are times of the clock itself: what its
controller did just before one it would have done after it, and otherwise, so that no recorder can
have seen such a CronJob so. A clock of a controller that is behind, or of a kubelet that is ahead
of the controllers', is no view: the controller would have acted later than it did.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from tests.support.erasures import Row
from tracekit.base.kube.timestamps import NS_PER_S

#: Times that a status holds, at any depth, for whoever writes it.
_STATUS_TIMES = frozenset(
    {
        "startTime", "completionTime", "lastTransitionTime", "lastProbeTime", "lastSuccessfulTime",
        "startedAt", "finishedAt",
    }
)  # fmt: skip
_EVENT_TIMES = ("firstTimestamp", "lastTimestamp", "eventTime")
_LEASE_TIMES = ("renewTime", "acquireTime")
_KUBELET = "kubelet"
_WRITING_NS = NS_PER_S // 4  # from a sync's look at its clock to its last write, and to its row
_HEX_DIGITS = 16  # of an Event's name: when its first occurrence was, by the clock of who tells it

Object = dict[str, Any]


def writers_ahead(
    rows: Sequence[Row],
    _chance: random.Random,
    *,
    by_ns: int,
    controllers: bool = True,
    kubelets: bool = True,
) -> list[Row]:
    """The clocks of controllers, of kubelets or of both are ahead by so much.

    CronJobs with a write less than that before a slot are left out: their Jobs stay. So are Jobs,
    with their pods and Events, and CronJobs of such, whose pods would have ended in another order.
    """
    not_so = set(_served_before_slots(rows, by_ns)) if controllers else set()
    jobs, crons = _ended_otherwise(rows, by_ns) if kubelets else (set[str](), set[str]())
    return [
        _ahead(row, by_ns, controllers=controllers, kubelets=kubelets)
        for row in rows
        if not (row["resource"] == "cronjobs" and _named(row["object"]) in not_so)
        and not (row["resource"] == "cronjobs" and _uid(row["object"]) in crons)
        and not (row["resource"] == "jobs" and _uid(row["object"]) in jobs)
        and not (row["resource"] == "pods" and _owner(row["object"]) in jobs)
        and not (row["resource"] == "events" and _of(row["object"]) in jobs)
    ]


def _ended_otherwise(rows: Sequence[Row], by_ns: int) -> tuple[set[str], set[str]]:
    """The uids of Jobs whose pods would have ended in another order, and of their CronJobs.

    A pod that succeeds by its kubelet's clock ends the back-off after one that was deleted before
    it ended, and so failed as its deletion was asked for, by the API server's clock.
    """
    succeeded: dict[str, set[int]] = defaultdict(set)
    deleted: dict[str, set[int]] = defaultdict(set)
    owners = {}
    for row in rows:
        obj, status = row["object"], row["object"].get("status") or {}
        if row["resource"] == "jobs":
            owners[_uid(obj)] = _owner(obj)
        elif row["resource"] == "pods" and (job := _owner(obj)):
            going = obj["metadata"].get("deletionTimestamp")
            if status.get("phase") == "Succeeded":
                succeeded[job] |= set(_ends(status))
            elif going and status.get("phase") != "Failed":
                grace_s = obj["metadata"].get("deletionGracePeriodSeconds") or 0
                deleted[job].add(_at_ns(going) - grace_s * NS_PER_S)
    jobs = {
        job
        for job, times in succeeded.items()
        for end, gone in product(times, deleted[job])
        if (end < gone, end > gone) != (end + by_ns < gone, end + by_ns > gone)
    }
    return jobs, {owners[job] for job in jobs if owners.get(job)}


def _ends(status: Object) -> Iterator[int]:
    for container in status.get("containerStatuses") or ():
        at = ((container.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if at:
            yield _at_ns(at)


def _at_ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * NS_PER_S


def _uid(obj: Object) -> str:
    return str(obj.get("metadata", {}).get("uid", ""))


def _of(event: Object) -> str:
    return str((event.get("involvedObject") or event.get("regarding") or {}).get("uid", ""))


def _owner(obj: Object) -> str:
    """The uid of the first owner; empty without one."""
    owners = obj.get("metadata", {}).get("ownerReferences") or ()
    return str(owners[0].get("uid", "")) if owners else ""


def _served_before_slots(rows: Sequence[Row], by_ns: int) -> Iterator[tuple[str, str]]:
    """The CronJobs, by namespace and name, that were served less than that before a slot.

    Slots lie on whole minutes, or so many seconds after the CronJob's creation (`@every`).
    """
    slots: dict[tuple[str, str], tuple[int, int]] = {}  # any, and how far they are apart
    statuses: dict[tuple[str, str], Object] = {}
    for row in rows:
        obj = row["object"]
        if "uid" not in obj.get("metadata", {}):
            continue
        named, written = _named(obj), row["type"] != "LIST"
        if row["resource"] == "cronjobs":
            slots[named] = _slots(obj)
            status = obj.get("status") or {}
            written = written and statuses.setdefault(named, status) != status
            statuses[named] = status
        elif row["resource"] == "jobs":
            owners = [o["name"] for o in obj["metadata"].get("ownerReferences", ())]
            named = (named[0], owners[0] if owners else "")
            written = row["type"] in ("ADDED", "DELETED") or "deletionTimestamp" in obj["metadata"]
        if written and named in slots:
            first_ns, apart_ns = slots[named]
            if -(row["recv"] - first_ns) % apart_ns <= by_ns + _WRITING_NS:
                yield named


def _slots(cron_job: Object) -> tuple[int, int]:
    every = re.fullmatch(r"@every (\d+)s", cron_job["spec"]["schedule"].strip())
    if every is None:
        return 0, 60 * NS_PER_S
    created = datetime.fromisoformat(cron_job["metadata"]["creationTimestamp"])
    return int(created.timestamp()) * NS_PER_S, int(every[1]) * NS_PER_S


def _named(obj: Object) -> tuple[str, str]:
    meta = obj.get("metadata", {})
    return meta.get("namespace", ""), meta.get("name", "")


def _ahead(row: Row, by_ns: int, *, controllers: bool, kubelets: bool) -> Row:
    obj = row["object"]
    match row["resource"]:
        case "jobs" | "cronjobs" if controllers and "status" in obj:
            changed = {**obj, "status": _shifted(obj["status"], by_ns, _STATUS_TIMES)}
        case "pods" if kubelets and "status" in obj:
            changed = {**obj, "status": _shifted(obj["status"], by_ns, _STATUS_TIMES)}
        case "leases" if controllers and _of_controllers(obj):
            changed = {**obj, "spec": _shifted(obj["spec"], by_ns, _LEASE_TIMES)}
        case "events" if kubelets if _tells(obj) == _KUBELET else controllers:
            changed = _event_ahead(obj, by_ns)
        case _:
            return row
    return {**row, "object": changed}


def _of_controllers(obj: Object) -> bool:
    """Whether it is a Lease of a leader; API servers keep some of their own."""
    name = obj.get("metadata", {}).get("name", "apiserver-")  # a bookmark has a spec and no name
    return "spec" in obj and not name.startswith("apiserver-")


def _tells(obj: Object) -> str:
    source = obj.get("source") or {}
    return str(source.get("component") or obj.get("reportingComponent") or "")


def _event_ahead(obj: Object, by_ns: int) -> Object:
    if "metadata" not in obj or "reason" not in obj:
        return obj
    of, _, told = obj["metadata"]["name"].rpartition(".")
    name = obj["metadata"]["name"]
    if len(told) == _HEX_DIGITS:
        name = f"{of}.{int(told, 16) + by_ns:x}"
    return {
        **_shifted(obj, by_ns, _EVENT_TIMES),
        "metadata": {**obj["metadata"], "name": name},
    }


def _shifted(value: Any, by_ns: int, names: Sequence[str] | frozenset[str]) -> Any:
    """A value with the times of these names moved, at any depth."""
    if isinstance(value, dict):
        return {
            key: moved(inner, by_ns)
            if key in names and isinstance(inner, str)
            else _shifted(inner, by_ns, names)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_shifted(inner, by_ns, names) for inner in value]
    return value


def moved(text: str, by_ns: int) -> str:
    """A time as objects hold it, later by so much, in as many digits as before."""
    digits = len(text.partition(".")[2]) - 1 if "." in text else 0
    at = datetime.fromisoformat(text) + timedelta(microseconds=by_ns / 1000)
    whole = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{f'{at.microsecond:06d}'[:digits]}Z" if digits else f"{whole}Z"


def api_server_ahead(
    rows: Sequence[Row], _chance: random.Random, *, by_ns: int, every: int
) -> list[Row]:
    """Every so-many-th write goes by an API server whose clock is ahead.

    Times that controllers decide by stay as one server set them: the pods of a Job are ranked by
    creationTimestamp, a pod that is deleted has failed at its deletionTimestamp, and a CronJob's
    schedule begins with its own creation.
    """
    known: dict[str, _Written] = {}
    out = []
    for row in rows:
        meta = row["object"].get("metadata") or {}
        if "uid" not in meta:
            out.append(row)
            continue
        ahead = int(meta["resourceVersion"]) % every == 0
        written = known.setdefault(meta["uid"], _Written())
        changed = written.next(meta, by_ns if ahead else 0, row["resource"])
        out.append({**row, "object": {**row["object"], "metadata": changed}})
    return out


class _Written:
    """Which API server set each time in an object's metadata."""

    def __init__(self) -> None:
        self._by_ns: dict[str, tuple[object, int]] = {}

    def next(self, meta: Mapping[str, Any], by_ns: int, resource: str) -> Object:
        """The metadata of the next revision, written by a server that is ahead by so much."""
        changed = dict(meta)
        if resource not in ("pods", "cronjobs"):
            self._time(changed, "creationTimestamp", by_ns)
            self._time(changed, "deletionTimestamp", by_ns)
        entries = []
        for entry in meta.get("managedFields") or ():
            name = "/".join(
                str(entry.get(key, ""))
                for key in ("manager", "operation", "subresource", "apiVersion")
            )
            at = entry.get("time")  # who only loses fields to another keeps it
            shift = self._since(name, at, by_ns)
            entries.append({**entry, "time": moved(at, shift)} if at else entry)
        if entries:
            changed["managedFields"] = entries
        return changed

    def _time(self, meta: Object, field: str, by_ns: int) -> None:
        if meta.get(field):
            meta[field] = moved(meta[field], self._since(field, meta[field], by_ns))

    def _since(self, name: str, value: object, by_ns: int) -> int:
        """By how much the server was ahead that wrote this value first."""
        before = self._by_ns.get(name)
        if before is None or before[0] != value:
            self._by_ns[name] = before = (value, by_ns)
        return before[1]
