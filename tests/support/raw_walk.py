"""What plain walks over the JSON lines of a shipped trace say: counts to hold the SQL views against.

Nothing here goes through the trace format or DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.support.traces import TRACES, json_lines

_STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")


@dataclass
class Pod:
    """A pod that a Job owned: its newest object, and when things were first received."""

    job: str
    added_ns: int | None = None
    bound_ns: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    gone_ns: int | None = None
    rv: int = -1
    object: dict[str, Any] = field(default_factory=dict)
    deleted: bool = False

    @property
    def until_ns(self) -> int | None:
        """When it ended, or was gone."""
        return self.ended_ns or self.gone_ns

    @property
    def phase(self) -> str:
        """The newest phase."""
        return str(self.object["status"].get("phase"))


@dataclass
class Owner:
    """A Job or CronJob: its revisions as (receipt, type, object), in order of revision."""

    revisions: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)

    @property
    def last(self) -> dict[str, Any]:
        """The newest object."""
        return self.revisions[-1][2]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.last["metadata"]["name"])


@dataclass
class Walk:
    """All of a trace that the questions of a postmortem need."""

    pods: dict[str, Pod] = field(default_factory=dict)
    jobs: dict[str, Owner] = field(default_factory=dict)
    cronjobs: dict[str, Owner] = field(default_factory=dict)
    end_ns: int = 0

    def pods_of(self, job: str) -> list[Pod]:
        """The pods of a Job."""
        return [pod for pod in self.pods.values() if pod.job == job]

    def finish(self, job: str) -> tuple[int, str] | None:
        """When its Complete or Failed was first received, and which."""
        for at_ns, _, obj in self.jobs[job].revisions:
            kind = finished(obj)
            if kind:
                return at_ns, kind
        return None


def finished(job: dict[str, Any]) -> str | None:
    """Complete or Failed, if the Job is."""
    for condition in job.get("status", {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["type"])
    return None


@cache
def walk(name: str) -> Walk:
    """Walk over a shipped trace once."""
    found = Walk()
    orphans: dict[str, list[tuple[int, str, dict[str, Any]]]] = {}
    for line in json_lines(TRACES / name / "watch.jsonl.zst"):
        found.end_ns = max(found.end_ns, line["recv"])
        if line["type"] not in _STATES:
            continue
        row = (line["recv"], line["type"], line["object"])
        uid = line["object"]["metadata"]["uid"]
        if line["resource"] == "jobs":
            found.jobs.setdefault(uid, Owner()).revisions.append(row)
        elif line["resource"] == "cronjobs":
            found.cronjobs.setdefault(uid, Owner()).revisions.append(row)
        elif line["resource"] == "pods":
            orphans.setdefault(uid, []).append(row)
    for uid, rows in orphans.items():
        pod = _pod(rows)
        if pod is not None:
            found.pods[uid] = pod
    for owners in (found.jobs, found.cronjobs):
        for owner in owners.values():
            owner.revisions.sort(key=lambda r: (_rv(r[2]), r[1] == "DELETED"))
    return found


def _rv(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _pod(rows: list[tuple[int, str, dict[str, Any]]]) -> Pod | None:
    owners = [
        owner["uid"]
        for _, _, obj in rows
        for owner in obj["metadata"].get("ownerReferences", ())
        if owner["kind"] == "Job" and owner.get("controller")
    ]
    if not owners:
        return None
    pod = Pod(owners[-1])
    for at_ns, kind, obj in rows:
        status = obj.get("status", {})
        if kind == "ADDED":
            pod.added_ns = pod.added_ns or at_ns
        if obj["spec"].get("nodeName"):
            pod.bound_ns = pod.bound_ns or at_ns
        if status.get("startTime") and kind != "LIST":
            pod.started_ns = pod.started_ns or at_ns
        if status.get("phase") in ("Succeeded", "Failed"):
            pod.ended_ns = pod.ended_ns or at_ns
        if kind == "DELETED":
            pod.gone_ns = at_ns
        pod.deleted |= kind == "DELETED" or "deletionTimestamp" in obj["metadata"]
        if _rv(obj) >= pod.rv:
            pod.rv, pod.object = _rv(obj), obj
    return pod
