"""A trace's rows as a lie needs to see them, and the one way to change them.

`Record` indexes the rows once (they are never changed); `Edit` collects replacements, drops and
insertions and renders new rows. A row that is put between two others needs a resourceVersion
between theirs: where none is free, the whole trace is renumbered, which keeps every comparison.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]

OBSERVATIONS = ("LIST", "ADDED", "MODIFIED", "DELETED")
FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
JOB_CONTROLLER = "job-controller"
NS_PER_S = 10**9


@dataclass(frozen=True, slots=True)
class Lie:
    """What was planted, and what a diff should say of it."""

    kind: str
    controller: str  # job, cronjob, ttl
    namespace: str
    name: str
    description: str
    actions: tuple[str, ...]  # kinds of action that may be reported
    verdicts: tuple[str, ...]  # verdicts that are fair
    rv: str = ""  # resourceVersion of the first row that was changed, before the change
    also: tuple[str, ...] = ()  # other keys that the change touches as well
    #: Empty where no admissible behaviour explains the record; else how one could.
    doubt: str = ""

    @property
    def key(self) -> str:
        """The work-queue key of the object lied about."""
        return f"{self.namespace}/{self.name}"


def copy_of(value: Any) -> Any:
    """A deep copy of JSON data."""
    if isinstance(value, Mapping):
        return {key: copy_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_of(item) for item in value]
    return value


def shifted(text: str, seconds: float) -> str:
    """An RFC 3339 time, moved."""
    moment = datetime.fromisoformat(text) + timedelta(seconds=seconds)
    return moment.isoformat().replace("+00:00", "Z")


def stamp(recv_ns: int) -> str:
    """The whole second in which a row was received, as the API writes times."""
    moment = datetime(1970, 1, 1) + timedelta(seconds=recv_ns // NS_PER_S)  # noqa: DTZ001
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def new_uid(rng: random.Random) -> str:
    """A random uid of version 4."""
    text = f"{rng.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def new_suffix(rng: random.Random) -> str:
    """A random name suffix in the API server's alphabet."""
    return "".join(rng.choices("bcdfghjklmnpqrstvwxz2456789", k=5))


@dataclass(slots=True)
class Life:
    """The rows of one object, in the order of the store."""

    record: Record
    uid: str
    namespace: str
    name: str
    rows: list[int] = field(default_factory=list)
    _versions: list[int] = field(default_factory=list)
    _writes: list[int] | None = None

    def obj(self, position: int) -> dict[str, Any]:
        """The object at one position of the life."""
        found: dict[str, Any] = self.record.rows[self.rows[position]]["object"]
        return found

    def kind(self, position: int) -> str:
        """The event type of the row."""
        return str(self.record.rows[self.rows[position]]["type"])

    def rv(self, position: int) -> int:
        """The resourceVersion of the row."""
        return int(self.obj(position)["metadata"]["resourceVersion"])

    def recv(self, position: int) -> int:
        """The receive time of the row."""
        return int(self.record.rows[self.rows[position]]["recv"])

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def deleted(self) -> bool:
        """Whether the record shows the end of the object."""
        return self.kind(-1) == "DELETED"

    def objects(self) -> Iterator[dict[str, Any]]:
        """Every state."""
        return (self.obj(position) for position in range(len(self.rows)))

    def position_at(self, rv: int) -> int:
        """Position of the last row at or below `rv`, or -1."""
        if not self._versions:
            self._versions = [self.rv(p) for p in range(len(self.rows))]
        return bisect_left(self._versions, rv + 1) - 1


class JobLife(Life):
    """The rows of one Job."""

    __slots__ = ()

    def status(self, position: int) -> dict[str, Any]:
        """The status at one position."""
        found: dict[str, Any] = self.obj(position).get("status") or {}
        return found

    def writes(self) -> list[int]:
        """Positions at which the status changed."""
        if self._writes is None:
            self._writes = [
                p
                for p in range(1, len(self.rows))
                if self.kind(p) == "MODIFIED" and self.status(p) != self.status(p - 1)
            ]
        return self._writes

    def write_after(self, position: int) -> int:
        """Position of the next status write after this one, or the length."""
        return next((p for p in self.writes() if p > position), len(self.rows))

    @property
    def spec(self) -> dict[str, Any]:
        """The first spec."""
        found: dict[str, Any] = self.obj(0)["spec"]
        return found

    def by_others(self, position: int) -> bool:
        """Whether managedFields name the writer of that revision, and not the controller manager."""
        old, new = (
            self.obj(p)["metadata"].get("managedFields", ()) for p in (position - 1, position)
        )
        writers = {entry["manager"] for entry in new if entry not in old}
        return bool(writers) and "kube-controller-manager" not in writers

    def condition(self, position: int, kind: str) -> dict[str, Any] | None:
        """A condition that is True at that position."""
        return next(
            (
                c
                for c in self.status(position).get("conditions", ())
                if c["type"] == kind and c["status"] == "True"
            ),
            None,
        )

    def finished_at(self) -> int | None:
        """Position of the write with the terminal condition."""
        for p in self.writes():
            if self.condition(p, "Complete") or self.condition(p, "Failed"):
                return p
        return None

    def pods(self) -> list[Life]:
        """The pods that this Job owned at any time, by their first row."""
        return self.record.pods_by_owner.get(self.uid, [])

    def events(self) -> list[int]:
        """Rows of the Job controller's Events about this Job."""
        return self.record.events_by_uid.get(self.uid, [])


def owner_uid(obj: Mapping[str, Any]) -> str | None:
    """The uid of the controlling owner."""
    for ref in obj["metadata"].get("ownerReferences", ()):
        if ref.get("controller"):
            return str(ref["uid"])
    return None


def finalized(obj: Mapping[str, Any]) -> bool:
    """Whether the pod carries the tracking finalizer."""
    return FINALIZER in obj["metadata"].get("finalizers", ())


def deleting(obj: Mapping[str, Any]) -> bool:
    """Whether a deletionTimestamp is set."""
    return "deletionTimestamp" in obj["metadata"]


def phase(obj: Mapping[str, Any]) -> str:
    """The pod's phase."""
    return str(obj.get("status", {}).get("phase", ""))


def terminal(obj: Mapping[str, Any]) -> bool:
    """Whether the pod has finished."""
    return phase(obj) in ("Succeeded", "Failed")


def ready(obj: Mapping[str, Any]) -> bool:
    """Whether the pod is Ready."""
    return any(
        c["type"] == "Ready" and c["status"] == "True"
        for c in obj.get("status", {}).get("conditions", ())
    )


def active(obj: Mapping[str, Any]) -> bool:
    """Neither finished nor being deleted."""
    return not terminal(obj) and not deleting(obj)


class Record:
    """The rows of one trace, indexed."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.jobs: list[JobLife] = []
        self.cronjobs: list[Life] = []
        self.pods: dict[str, Life] = {}
        self.pods_by_owner: dict[str, list[Life]] = defaultdict(list)
        self.events_by_uid: dict[str, list[int]] = defaultdict(list)
        lives: dict[str, Life] = {}
        for i, row in enumerate(rows):
            if row["type"] not in OBSERVATIONS:
                continue
            meta = row["object"]["metadata"]
            if row["resource"] in ("jobs", "pods", "cronjobs"):
                life = lives.get(meta["uid"])
                if life is None:
                    make = JobLife if row["resource"] == "jobs" else Life
                    life = make(self, meta["uid"], meta["namespace"], meta["name"])
                    lives[meta["uid"]] = life
                    if isinstance(life, JobLife):
                        self.jobs.append(life)
                    elif row["resource"] == "pods":
                        self.pods[life.uid] = life
                    else:
                        self.cronjobs.append(life)
                life.rows.append(i)
            elif row["resource"] == "events":
                involved = row["object"]["involvedObject"]
                self.events_by_uid[involved.get("uid", "")].append(i)
        for life in lives.values():
            life.rows.sort(key=lambda i: (int(rows[i]["object"]["metadata"]["resourceVersion"]), i))
        for pod in self.pods.values():
            for uid in {owner_uid(obj) for obj in pod.objects()} - {None}:
                self.pods_by_owner[str(uid)].append(pod)
        self.versions = sorted(
            {self.rv_of(i) for i, r in enumerate(rows) if r["type"] in OBSERVATIONS}
        )
        self.end_ns = max((row["recv"] for row in rows), default=0)
        self.uids = lives
        #: Receive times between which the controller manager changed hands.
        self.handovers: list[tuple[int, int]] = []
        holder, held_ns = "", 0
        for row in rows:
            if row["resource"] == "leases" and row["type"] in OBSERVATIONS:
                obj = row["object"]
                now = obj.get("spec", {}).get("holderIdentity") or ""
                if obj["metadata"]["name"] != "kube-controller-manager" or not now:
                    continue
                if holder and now != holder:
                    self.handovers.append((held_ns, row["recv"]))
                holder, held_ns = now, row["recv"]

    def handover_near(self, at_ns: int, reach_ns: int) -> bool:
        """Whether another controller manager took over around that time."""
        return any(a - reach_ns <= at_ns <= b + reach_ns for a, b in self.handovers)

    def rv_of(self, i: int) -> int:
        """The resourceVersion of a row with an object."""
        return int(self.rows[i]["object"]["metadata"]["resourceVersion"])

    def job_events(self, job: JobLife, reason: str) -> list[int]:
        """Rows of the Events with this reason."""
        return [
            i
            for i in job.events()
            if self.rows[i]["object"]["reason"] == reason and self.rows[i]["type"] != "DELETED"
        ]

    def pod_event(self, job: JobLife, reason: str, pod: str) -> list[int]:
        """Rows of the Events with this reason that name the pod."""
        return [
            i
            for i in self.job_events(job, reason)
            if self.rows[i]["object"]["message"].endswith(f"pod: {pod}")
        ]

    def events_naming(self, pod: Life, job_uid: str | None) -> list[int]:
        """Every Event row about the pod, or about its Job with the pod's name."""
        found = list(self.events_by_uid.get(pod.uid, ()))
        for i in self.events_by_uid.get(job_uid or "", ()):
            if pod.name in str(self.rows[i]["object"].get("message", "")):
                found.append(i)
        return found


class Edit:
    """Changes to the rows of one record."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.replaced: dict[int, dict[str, Any]] = {}
        self.dropped: set[int] = set()
        #: (resourceVersion as a fraction, receive time, counter, row)
        self.inserted: list[tuple[Fraction, int, int, dict[str, Any]]] = []

    def row(self, i: int) -> dict[str, Any]:
        """A private copy of row `i`, to be changed."""
        if i not in self.replaced:
            self.replaced[i] = copy_of(self.record.rows[i])
        return self.replaced[i]

    def obj(self, i: int) -> dict[str, Any]:
        """A private copy of the object in row `i`."""
        found: dict[str, Any] = self.row(i)["object"]
        return found

    def drop(self, rows: Iterable[int]) -> None:
        """Take rows out of the record."""
        self.dropped.update(rows)

    def change(
        self, life: Life, first: int, until: int | None, change: Callable[[dict[str, Any]], None]
    ) -> None:
        """Apply a change to the objects of a life from one position to another."""
        for i in life.rows[first:until]:
            change(self.obj(i))

    def insert(self, row: Row, rv: Fraction, recv_ns: int) -> dict[str, Any]:
        """Put a copy of a row at a resourceVersion that may lie between two others."""
        new = copy_of(row)
        new["recv"] = recv_ns
        self.inserted.append((rv, recv_ns, len(self.inserted), new))
        found: dict[str, Any] = new["object"]
        return found

    def insert_beside(self, row: Row, i: int, *, ns: int = 1_000_000) -> dict[str, Any]:
        """Put a copy of a row just after (`ns` > 0) or just before row `i`."""
        at = self.record.rv_of(i)
        if ns < 0:
            at = self.record.versions[bisect_left(self.record.versions, at) - 1]
        place = at + Fraction(len(self.inserted) + 1, 1000)
        return self.insert(row, place, self.record.rows[i]["recv"] + ns)

    def move(self, rows: list[int], delta_ns: int) -> None:
        """Move rows in time; each takes the place in the store that its new time has.

        Times in the objects that are not before the first of the rows move as well.
        """
        rows = sorted(rows, key=self.record.rv_of)
        moved = set(rows)
        old = self.record.rows
        others = sorted(
            (row["recv"], self.record.rv_of(i))
            for i, row in enumerate(old)
            if row["type"] in OBSERVATIONS and row["resource"] != "events" and i not in moved
        )
        window = (
            stamp(min(old[i]["recv"] for i in rows) - NS_PER_S // 2),
            "9999",
        )
        last = Fraction(0)
        for i in rows:
            row = self.row(i)
            recv = row["recv"] + delta_ns
            place = bisect_left(others, (recv, 0))
            below = max((entry[1] for entry in others[max(0, place - 50) : place]), default=0)
            last = max(Fraction(below), last) + Fraction(1, 10**6)
            _shift_times(row, delta_ns, window)
            self.drop([i])
            self.insert(row, last, recv)

    def rows(self) -> list[Row]:
        """The changed trace."""
        old = self.record.rows
        kept = [self.replaced.get(i, row) for i, row in enumerate(old) if i not in self.dropped]
        if not self.inserted:
            return kept
        factor, numbers = self._numbers(kept)
        result = [_renumbered(row, factor) for row in kept] if factor > 1 else kept
        order = sorted(range(len(self.inserted)), key=lambda n: numbers[n])
        for n in order:
            row = self.inserted[n][3]
            if factor > 1:
                row = _renumbered(row, factor)
            row["object"]["metadata"]["resourceVersion"] = str(numbers[n])
            result.insert(_place(result, row, numbers[n]), row)
        return result

    def _numbers(self, kept: list[Row]) -> tuple[int, list[int]]:
        """By how much to spread all resourceVersions, and those of the insertions."""
        used = sorted({_rv(row) for row in kept if row["type"] in OBSERVATIONS})
        order = sorted(range(len(self.inserted)), key=lambda n: self.inserted[n][:3])
        for factor in (1, 16, 256, 4096):
            numbers = [0] * len(order)
            last = 0
            for n in order:
                below = int(self.inserted[n][0])
                above = bisect_left(used, below + 1)
                ceiling = used[above] * factor if above < len(used) else 1 << 80
                last = max(below * factor, last) + 1
                if last >= ceiling:
                    break
                numbers[n] = last
            else:
                return factor, numbers
        raise AssertionError("no resourceVersion is free")


def _rv(row: Row) -> int:
    return int(row["object"]["metadata"]["resourceVersion"])


def _place(rows: list[Row], row: dict[str, Any], rv: int) -> int:
    """Where an inserted row arrives: by time, but in the order of its own stream."""
    low, high = 0, len(rows)
    for i, other in enumerate(rows):
        if other["resource"] != row["resource"] or other["type"] not in OBSERVATIONS:
            continue
        if _rv(other) < rv:
            low = i + 1
            row["recv"] = max(row["recv"], other["recv"])
        elif high == len(rows):
            high = i
    high = max(low, high)
    return next((i for i in range(low, high) if rows[i]["recv"] > row["recv"]), high)


def _times(factor: int, text: str) -> str:
    return str(int(text) * factor) if text.isdigit() else text


def _renumbered(row: Row, factor: int) -> dict[str, Any]:
    """The row with every resourceVersion multiplied; shares what it does not change."""
    obj = dict(row["object"])
    if "resourceVersion" in obj:
        obj["resourceVersion"] = _times(factor, obj["resourceVersion"])
    if "metadata" in obj:
        obj["metadata"] = meta = dict(obj["metadata"])
        if "resourceVersion" in meta:
            meta["resourceVersion"] = _times(factor, meta["resourceVersion"])
    involved = obj.get("involvedObject")
    if involved and "resourceVersion" in involved:
        version = _times(factor, involved["resourceVersion"])
        obj["involvedObject"] = {**involved, "resourceVersion": version}
    refs = (obj.get("status") or {}).get("active") if row["resource"] == "cronjobs" else None
    if refs:
        numbered = [
            {**ref, "resourceVersion": _times(factor, ref.get("resourceVersion", ""))}
            for ref in refs
        ]
        obj["status"] = {**obj["status"], "active": numbered}
    return {**row, "object": obj}


def _shift_times(row: dict[str, Any], delta_ns: int, window: tuple[str, str]) -> None:
    """Move the times in an object that lie in the window of the rows that move."""
    seconds = round(delta_ns / NS_PER_S)

    def walk(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in list(items):
            if isinstance(item, (dict, list)):
                if key != "managedFields":
                    walk(item)
            elif (
                isinstance(item, str)
                and (str(key).endswith(("Time", "Timestamp")) or key == "finishedAt")
                and window[0] <= item <= window[1]
            ):
                value[key] = shifted(item, seconds)

    walk(row["object"])


def spread(rows: Iterable[Row], factor: int) -> list[Row]:
    """The same trace with every resourceVersion multiplied: room between any two."""
    return [_renumbered(row, factor) for row in rows]


def pick(rng: random.Random, candidates: Iterable[Any]) -> Any:
    """One of the candidates, or None."""
    found = list(candidates)
    return rng.choice(found) if found else None


def told(
    kind: str,
    job: Life,
    description: str,
    actions: Iterable[str],
    verdicts: Iterable[str] = ("different", "missing", "extra"),
    *,
    rv: int = 0,
    doubt: str = "",
    controller: str = "job",
    also: Iterable[str] = (),
) -> Lie:
    """The description of a lie about one object."""
    return Lie(
        kind,
        controller,
        job.namespace,
        job.name,
        description,
        tuple(actions),
        tuple(verdicts),
        str(rv or job.rv(0)),
        tuple(also),
        doubt,
    )
