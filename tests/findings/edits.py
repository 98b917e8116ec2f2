"""Changes to the log of a real control plane that make what no shipped trace shows."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Row = dict[str, Any]
NS_PER_S = 10**9
STATES = ("LIST", "ADDED", "MODIFIED", "DELETED")
TROUBLES = "v1.36.3-troubles"


def _name(row: Row) -> str:
    return str(row["object"].get("metadata", {}).get("name", ""))


def _job_of(row: Row) -> str:
    owners = row["object"].get("metadata", {}).get("ownerReferences", ())
    involved = row["object"].get("involvedObject", {}).get("name", "")
    return next((str(o["name"]) for o in owners), str(involved))


def without_run(rows: list[Row]) -> list[Row]:
    """The first Job of CronJob strict was never there, nor what came of it."""
    jobs = sorted(n for r in rows if (n := _name(r)).startswith("strict-") and _is(r, "jobs"))
    gone = jobs[0]
    return [r for r in rows if gone not in (_name(r), _job_of(r))]


def _is(row: Row, resource: str) -> bool:
    return row["resource"] == resource and row["type"] in STATES


def deaf(rows: list[Row]) -> list[Row]:
    """The status of Job overrun never tells that its pod is ready."""
    changed = []
    for row in rows:
        if _is(row, "jobs") and _name(row) == "overrun" and row["object"].get("status"):
            changed.append(deepcopy(row))
            changed[-1]["object"]["status"]["ready"] = 0
        else:
            changed.append(row)
    return changed


def short(rows: list[Row]) -> list[Row]:
    """The record ends 8 s after the first Job, in the midst of back-off."""
    first = min(r["recv"] for r in rows if r["type"] == "ADDED" and r["resource"] == "jobs")
    return [r for r in rows if r["recv"] < first + 8 * NS_PER_S]


def without_streams(rows: list[Row]) -> list[Row]:
    """Nobody recorded Events and Leases."""
    return [r for r in rows if r["resource"] not in ("events", "leases")]


def slow_clock(rows: list[Row]) -> list[Row]:
    """The recorder's clock is two minutes behind."""
    return [{**r, "recv": r["recv"] - 120 * NS_PER_S} for r in rows]


def interrupted(rows: list[Row]) -> list[Row]:
    """Ten seconds of Jobs and pods are missing; then the streams are listed anew."""
    first = min(r["recv"] for r in rows if r["type"] == "ADDED" and r["resource"] == "jobs")
    from_ns, until_ns = first + 4 * NS_PER_S, first + 14 * NS_PER_S
    found: list[Row] = []
    known: dict[str, dict[str, Row]] = {"jobs": {}, "pods": {}}
    listed = False
    for row in rows:
        resource = row["resource"]
        if resource in known and row["type"] in STATES and row["recv"] < until_ns:
            uid = row["object"]["metadata"]["uid"]
            if row["type"] == "DELETED":
                known[resource].pop(uid, None)
            else:
                known[resource][uid] = row
        if resource in known and from_ns <= row["recv"] < until_ns:
            continue
        if row["recv"] >= until_ns and not listed:
            listed = True
            for name, objects in known.items():
                found += _relist(name, objects, until_ns)
        found.append(row)
    return found


def _relist(resource: str, objects: dict[str, Row], at_ns: int) -> list[Row]:
    newest = max(int(r["object"]["metadata"]["resourceVersion"]) for r in objects.values())
    bound = {"metadata": {"resourceVersion": str(newest)}, "resourceVersion": str(newest)}
    head = {"recv": at_ns, "resource": resource}
    return [
        {**head, "type": "NOTE", "object": {"error": "connection reset"}},
        {**head, "type": "LIST_BEGIN", "object": bound},
        *({**head, "type": "LIST", "object": r["object"]} for r in objects.values()),
        {**head, "type": "LIST_END", "object": bound},
    ]


def rewritten(rows: list[Row]) -> list[Row]:
    """At the end somebody writes CronJob strict six times, and changes nothing."""
    last = next(r for r in reversed(rows) if _is(r, "cronjobs") and _name(r) == "strict")
    end_ns = max(r["recv"] for r in rows)
    newest = max(
        int(r["object"]["metadata"].get("resourceVersion", 0)) for r in rows if r["type"] in STATES
    )
    found = list(rows)
    for number in range(1, 7):
        again = deepcopy(last) | {"type": "MODIFIED", "recv": end_ns + number * NS_PER_S}
        again["object"]["metadata"]["resourceVersion"] = str(newest + number)
        found.append(again)
    return found


EDITS = {
    "rewritten": (TROUBLES, rewritten),
    "without-run": (TROUBLES, without_run),
    "deaf": (TROUBLES, deaf),
    "short": (TROUBLES, short),
    "without-streams": (TROUBLES, without_streams),
    "slow-clock": (TROUBLES, slow_clock),
    "interrupted": (TROUBLES, interrupted),
}
