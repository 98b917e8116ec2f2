"""Requests that made no state that is known: what a watch can never show."""

from __future__ import annotations

from typing import Any

from tracekit.trace.format.model import Call, Origin
from tracekit.trace.importers.audit.entry import Entry, as_logged, document
from tracekit.trace.importers.audit.placing import verb_of


def call_of(stream: str, entry: Entry, obj: dict[str, Any] | None, why: str) -> Call:
    """The row for a request; `obj` is the object that it was about, as it was known then."""
    ref = entry.ref
    request = document(entry.request) if obj is None else None
    about = obj if obj is not None else request
    meta = about.get("metadata") if about is not None else None
    meta = meta if isinstance(meta, dict) else {}
    name = (ref.name if ref is not None else None) or _text(meta.get("name"))
    owner = _controller(meta)
    job = cronjob = None
    if stream == "jobs":
        job = name or _text(meta.get("generateName"))
        cronjob = owner.get("name") if owner.get("kind") == "CronJob" else None
    elif stream == "cronjobs":
        cronjob = name
    elif owner.get("kind") == "Job":
        job = owner.get("name")
    answer = entry.answer
    at_ns = entry.at_ns or 0
    return Call(
        stream=stream,
        recv_ns=at_ns,
        raw=as_logged(entry),
        origin=Origin(
            not_before_ns=entry.received_ns,
            actor=entry.username or None,
            actor_agent=entry.agent,
            verb=verb_of(entry),
        ),
        namespace=(ref.namespace if ref is not None else None) or _text(meta.get("namespace")),
        name=name,
        uid=_text(meta.get("uid")),
        job=_text(job),
        cronjob=_text(cronjob),
        code=entry.code,
        reason=(answer.reason if answer is not None else None) or why,
        message=answer.words if answer is not None else None,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _controller(meta: dict[str, Any]) -> dict[str, Any]:
    owners = meta.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            return owner
    return {}
