"""Small watch logs for tests: lines as a recorder writes them, objects as an API server does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SHARED_TRACES = REPOSITORY.parent / "shared" / "traces"
START_NS = 1_795_239_761_000_000_000
CLUSTER_UID = "aacd9dd9-cb46-4eb1-810c-6c45fcff334a"


def line(
    resource: str, row_type: str, obj: dict[str, Any], *, at_ns: int | None = START_NS
) -> bytes:
    """One line of a watch log, without the line break."""
    envelope: dict[str, Any] = {} if at_ns is None else {"recv": at_ns}
    envelope |= {"resource": resource, "type": row_type, "object": obj}
    return json.dumps(envelope, separators=(",", ":")).encode()


def job(name: str = "three", rv: int = 10, **status: Any) -> dict[str, Any]:
    """A Job; its uid follows from its name."""
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": str(rv),
            "generation": 1,
            "creationTimestamp": "2026-11-21T05:42:42Z",
            "labels": {"b": "2", "a": "1"},
        },
        "spec": {"parallelism": 2, "completions": 3},
        "status": status,
    }


def pod(name: str = "three-x", rv: int = 11, job_name: str = "three") -> dict[str, Any]:
    """A running Pod of a Job."""
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job_name,
        "uid": f"uid-{job_name}",
        "controller": True,
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "generateName": f"{job_name}-",
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": str(rv),
            "creationTimestamp": "2026-11-21T05:42:43Z",
            "ownerReferences": [owner],
            "finalizers": ["batch.kubernetes.io/job-tracking"],
        },
        "spec": {"containers": [{"name": "main"}], "nodeName": "node-1"},
        "status": {"phase": "Running", "startTime": "2026-11-21T05:42:44Z"},
    }


def namespace(name: str = "kube-system", uid: str = CLUSTER_UID, rv: int = 4) -> dict[str, Any]:
    """A Namespace."""
    metadata = {"name": name, "uid": uid, "resourceVersion": str(rv)}
    return {"metadata": metadata, "status": {"phase": "Active"}}


def listed(resource: str, rv: int, *objects: dict[str, Any], at_ns: int = START_NS) -> list[bytes]:
    """A whole list of a resource."""
    bound = {"resourceVersion": str(rv)}
    return [
        line(resource, "LIST_BEGIN", bound, at_ns=at_ns),
        *(line(resource, "LIST", obj, at_ns=at_ns) for obj in objects),
        line(resource, "LIST_END", bound, at_ns=at_ns),
    ]


def small_log() -> list[bytes]:
    """Lists, a job with a pod that comes and goes, bookmarks."""
    return [
        *listed("namespaces", 5, namespace()),
        *listed("jobs", 5),
        *listed("pods", 5),
        line("jobs", "ADDED", job(rv=10), at_ns=START_NS + 1),
        line("pods", "ADDED", pod(rv=11), at_ns=START_NS + 2),
        line("jobs", "MODIFIED", job(rv=12, active=1, ready=0), at_ns=START_NS + 3),
        line("pods", "DELETED", pod(rv=13), at_ns=START_NS + 4),
        line("jobs", "BOOKMARK", {"metadata": {"resourceVersion": "14"}}, at_ns=START_NS + 5),
    ]


def write_log(path: Path, lines: list[bytes]) -> Path:
    """Put the lines into a file."""
    path.write_bytes(b"".join(item + b"\n" for item in lines))
    return path
