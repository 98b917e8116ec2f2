"""Audit entries for tests: as an API server writes them, and the shipped logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import zstandard

from tests.support.watchlog import REPOSITORY
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.trace.format.model import TraceHeader

TRACES = REPOSITORY / "traces"
SECOND = 1_000_000_000
START_NS = 1_795_239_761 * SECOND
CONTROLLER = "system:serviceaccount:kube-system:job-controller"
AGENT = "kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/unknown"
_GROUPS = {"pods": "", "jobs": "batch", "cronjobs": "batch", "namespaces": ""}


def header_of(name: str) -> TraceHeader:
    """What about.json says of a shipped log that the log itself does not."""
    about = json.loads((TRACES / name / "about.json").read_text())
    gates = about.get("feature_gates") or ""
    pairs = (pair.partition("=") for pair in gates.split(",") if pair)
    return TraceHeader(feature_gates={gate: value == "true" for gate, _, value in pairs})


def shipped(name: str) -> list[bytes]:
    """The lines of a shipped audit log."""
    path = TRACES / name / "audit.jsonl.zst"
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read().splitlines()


def entry(
    verb: str,
    resource: str,
    name: str | None,
    *,
    at_s: float = 0.0,
    took_s: float = 0.005,
    response: Any = None,
    request: Any = None,
    subresource: str = "",
    code: int = 200,
    user: str = CONTROLLER,
    agent: str = AGENT,
    level: str = "RequestResponse",
    stage: str = "ResponseComplete",
    uri: str = "",
    audit_id: str | None = None,
) -> dict[str, Any]:
    """One audit event that was answered `at_s` seconds after the start."""
    at_ns = START_NS + int(at_s * SECOND)
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": level,
        "auditID": audit_id or f"{verb}-{resource}-{name}-{subresource}-{at_s}",
        "stage": stage,
        "requestURI": uri,
        "verb": verb,
        "user": {"username": user},
        "userAgent": agent,
        "objectRef": {
            "resource": resource,
            "namespace": "ns",
            "apiGroup": _GROUPS.get(resource, ""),
        },
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": format_rfc3339(at_ns - int(took_s * SECOND)),
        "stageTimestamp": format_rfc3339(at_ns),
    }
    if name is not None:
        event["objectRef"]["name"] = name
    if subresource:
        event["objectRef"]["subresource"] = subresource
    if request is not None:
        event["requestObject"] = request
    if response is not None:
        event["responseObject"] = response
    return event


def write(path: Path, entries: list[dict[str, Any]]) -> Path:
    """A log of these entries."""
    path.write_bytes(
        b"".join(json.dumps(e, separators=(",", ":")).encode() + b"\n" for e in entries)
    )
    return path
