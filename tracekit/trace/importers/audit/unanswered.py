"""States that requests make whose answers a log does not hold: worked out from what was sent.

Providers' policies log what kubelets write of pods at level Request: the patch, not its outcome.
With the state before it, that is as good as the outcome, but for the revision.

Upstream: each kind's strategy (PrepareForUpdate in pkg/registry/core/pod, batch/job, batch/cronjob)
says what an update of the status, or of all else, leaves alone.
"""

from __future__ import annotations

from typing import Any

import orjson

from tracekit.trace.importers.audit.entry import Entry
from tracekit.trace.importers.audit.patches import UnknownOutcomeError, patched

Raw = dict[str, Any]

CREATE = "create"
_NODE = "system:node:"


def sent(entry: Entry) -> Any:
    """The body of the request; None where the log has none."""
    view = memoryview(entry.request)
    return orjson.loads(view) if view else None


def state_after(entry: Entry, body: Any, before: Raw | None) -> Raw:
    """The object after an update or a patch, without its revision.

    Raises:
        UnknownOutcomeError: It cannot be told, with the reason.
    """
    if body is None:
        raise UnknownOutcomeError(f"{entry.level} level")
    if entry.verb == "patch":
        if before is None:
            raise UnknownOutcomeError("the object before is not known")
        made = patched(
            before,
            body,
            uri=entry.request_uri,
            agent="kubelet/" if entry.username.startswith(_NODE) else entry.agent or "",
        )
    elif isinstance(body, dict) and metadata_of(body).get("uid") and entry.verb == "update":
        made = body
    else:
        raise UnknownOutcomeError("the body that was sent is not the whole object")
    subresource = entry.ref.subresource if entry.ref is not None else ""
    return _as_stored(made, before, of_status=subresource == "status")


def base_of(body: Any) -> str | None:
    """The revision that an update was made on, as it says itself."""
    revision = metadata_of(body).get("resourceVersion") if isinstance(body, dict) else None
    return revision if isinstance(revision, str) and revision else None


def without_status(body: Raw) -> Raw:
    """The object as it was before anybody wrote its status."""
    return {**body, "status": {}}


def metadata_of(obj: Raw | None) -> Raw:
    """The metadata of an object; none of what has none."""
    meta = obj.get("metadata") if obj is not None else None
    return meta if isinstance(meta, dict) else {}


def _as_stored(made: Raw, before: Raw | None, *, of_status: bool) -> Raw:
    """What the server makes of it: the part that the request is not about stays."""
    meta = {name: value for name, value in metadata_of(made).items() if value not in ([], {})}
    result = dict(made)
    if before is not None:
        old = metadata_of(before)
        meta["uid"] = old.get("uid")
        if of_status:
            result["spec"] = before.get("spec")
            if "generation" in old:
                meta["generation"] = old["generation"]
        else:
            if "status" in before:
                result["status"] = before["status"]
            if result.get("spec") != before.get("spec") and isinstance(old.get("generation"), int):
                meta["generation"] = old["generation"] + 1
    result["metadata"] = {**meta, "resourceVersion": ""}
    if made.get("kind") == "Pod":
        result["status"] = _pod_status(result.get("status"))
    return result


def _pod_status(status: Any) -> Any:
    """A pod's conditions show lastProbeTime even where nobody set it."""
    conditions = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(conditions, list):
        return status
    shown = [
        {"lastProbeTime": None, **item} if isinstance(item, dict) else item for item in conditions
    ]
    return {**status, "conditions": shown}
