"""Histories straight from the rows of a watch log, without a trace in between: for fast tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tracekit.kube.selectors import selector_matches
from tracekit.kube.timestamps import parse_rfc3339
from tracekit.kube.views import (
    JobView,
    OwnerRef,
    PodView,
    job_from_raw,
    owner_refs,
    pod_from_raw,
)
from tracekit.replay.history import EventRow, History, Manager, Revision, build_history
from tracekit.replay.run_context import Outage, RunContext

Row = Mapping[str, Any]
STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")


@dataclass(slots=True)
class RawEvidence:
    """Looks things up in the raw object."""

    raw: Mapping[str, Any]

    def managers(self) -> tuple[Manager, ...]:
        return tuple(
            Manager(
                entry.get("manager", ""),
                entry.get("operation", ""),
                entry.get("subresource", ""),
                parse_rfc3339(entry.get("time") or ""),
            )
            for entry in self.raw["metadata"].get("managedFields", ())
        )

    def pod_spec(self) -> Mapping[str, Any]:
        return {key: value for key, value in self.raw["spec"].items() if key != "nodeName"}

    def generate_name(self) -> str:
        name: str = self.raw["metadata"].get("generateName", "")
        return name

    def owners(self) -> tuple[OwnerRef, ...]:
        return owner_refs(self.raw["metadata"])


def event_of(row: Row, seq: int) -> EventRow:
    raw, meta = row["object"], row["object"]["metadata"]
    involved = raw["involvedObject"]
    return EventRow(
        seq=seq,
        recv_ns=row["recv"],
        type=row["type"],
        name=meta["name"],
        uid=meta["uid"],
        rv=int(meta["resourceVersion"]),
        involved_uid=involved.get("uid", ""),
        involved_rv=int(involved.get("resourceVersion") or 0),
        event_type=raw.get("type", ""),
        reason=raw.get("reason", ""),
        message=raw.get("message", ""),
        count=raw.get("count") or 1,
        component=(raw.get("source") or {}).get("component", ""),
    )


def histories_of(rows: Iterable[Row]) -> tuple[list[History], RunContext]:
    """The history of every Job of the rows, and what the rows as a whole say."""
    jobs: dict[tuple[str, str], list[Revision[JobView]]] = defaultdict(list)
    pods: dict[str, list[Revision[PodView]]] = defaultdict(list)
    events: dict[tuple[str, str], list[EventRow]] = defaultdict(list)
    owned: dict[tuple[str, str], set[str]] = defaultdict(set)
    orphans: dict[str, set[str]] = defaultdict(set)
    holders: list[tuple[int, str]] = []
    ending: dict[str, int] = {}
    end_ns = 0
    for seq, row in enumerate(rows):
        end_ns = max(end_ns, row["recv"])
        if row["type"] not in STATES:
            continue
        raw = row["object"]
        evidence = RawEvidence(raw)
        match row["resource"]:
            case "jobs":
                job = job_from_raw(raw)
                revision = Revision(job.rv, row["recv"], seq, row["type"], job, evidence)
                jobs[job.namespace, job.name].append(revision)
            case "pods":
                pod = pod_from_raw(raw)
                pods[pod.uid].append(Revision(pod.rv, row["recv"], seq, row["type"], pod, evidence))
                if pod.controller is None:
                    orphans[pod.namespace].add(pod.uid)
                elif pod.controller.kind == "Job":
                    owned[pod.namespace, pod.controller.name].add(pod.uid)
            case "events" if row["type"] != "DELETED":
                involved = raw["involvedObject"]
                if involved.get("kind") == "Job":
                    events[involved["namespace"], involved["name"]].append(event_of(row, seq))
            case "leases" if raw["metadata"]["name"] == "kube-controller-manager":
                holders.append((row["recv"], raw["spec"].get("holderIdentity", "")))
            case "namespaces" if raw["metadata"].get("deletionTimestamp"):
                ending.setdefault(raw["metadata"]["name"], int(raw["metadata"]["resourceVersion"]))
    found = []
    for key, revisions in jobs.items():
        selectors = {r.view.uid: r.view.spec.selector for r in revisions}.values()
        adoptable = {
            uid
            for uid in orphans[key[0]]
            if any(selector_matches(s, r.view.labels) for s in selectors for r in pods[uid])
        }
        mine = [
            Revision(r.rv, r.recv_ns, r.seq, r.type, r.view, r.evidence)
            for uid in sorted(owned[key] | adoptable)
            for r in pods[uid]
        ]
        found.append(build_history(*key, revisions, mine, events[key]))
    restarts = tuple(
        Outage(before_ns, at_ns, "another controller manager took over")
        for (before_ns, before), (at_ns, holder) in pairwise(holders)
        if before and holder and before != holder
    )
    return found, RunContext(end_ns, restarts, namespaces_ending=ending)
