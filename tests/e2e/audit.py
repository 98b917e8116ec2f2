"""What the API server's own audit log says, to hold a record of the watch streams against it."""

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import zstandard

RECORDED = ("pods", "jobs", "cronjobs")  # the resources audited with their response objects
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"

Revision = tuple[str, str, str]  # resource, uid, resourceVersion


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines file, compressed or not."""
    with path.open("rb") as raw:
        source = zstandard.ZstdDecompressor().stream_reader(raw) if path.suffix == ".zst" else raw
        for line in io.BufferedReader(source):
            if line.strip():
                yield orjson.loads(line)


def written_revisions(audit: Path) -> set[Revision]:
    """Return every revision of a pod, job or cronjob that a successful write answered with."""
    found = set()
    for entry in lines(audit):
        target, answer = entry.get("objectRef", {}), entry.get("responseObject") or {}
        meta = answer.get("metadata") or {}
        code = entry.get("responseStatus", {}).get("code", 500)
        is_object = answer.get("kind") in ("Pod", "Job", "CronJob")
        stored = is_object and "resourceVersion" in meta  # else it was gone when it was answered
        if code < 300 and target.get("resource") in RECORDED and stored:
            found.add((str(target["resource"]), str(meta["uid"]), str(meta["resourceVersion"])))
    return found


def seen_revisions(watch: Path) -> set[Revision]:
    """Return every revision that a watch log holds, listed or watched."""
    found = set()
    for line in lines(watch):
        if line["resource"] in RECORDED and line["type"] in (
            *("LIST", "ADDED", "MODIFIED", "DELETED"),
        ):
            meta = line["object"]["metadata"]
            found.add((line["resource"], meta["uid"], meta["resourceVersion"]))
    return found


def writes(audit: Path, user: str = JOB_CONTROLLER) -> Counter[str]:
    """Count the successful writes of one user by verb and resource."""
    counted: Counter[str] = Counter()
    for entry in lines(audit):
        if entry["user"]["username"] == user and entry["responseStatus"]["code"] < 300:
            target = entry["objectRef"]
            what = "/".join(filter(None, (target["resource"], target.get("subresource"))))
            counted[f"{entry['verb']} {what}"] += 1
    return counted
