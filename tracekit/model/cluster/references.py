"""Owner references and finalizers in the metadata of raw objects, made and taken away."""

from __future__ import annotations

from typing import Any

from tracekit.model.cluster.store import Raw


def controller_reference(api_version: str, kind: str, name: str, uid: str) -> Raw:
    """The reference to the controller of an object (apimachinery: metav1.NewControllerRef)."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def drop_owner(obj: Raw, uid: str) -> None:
    """Take the references to an owner away."""
    meta = obj["metadata"]
    _set(meta, "ownerReferences", [r for r in meta.get("ownerReferences", ()) if r["uid"] != uid])


def drop_finalizer(obj: Raw, finalizer: str) -> None:
    """Take a finalizer away."""
    meta = obj["metadata"]
    _set(meta, "finalizers", [name for name in meta.get("finalizers", ()) if name != finalizer])


def _set(meta: Raw, field: str, left: list[Any]) -> None:
    """A list that is empty is left out, as the API leaves it out."""
    if left:
        meta[field] = left
    else:
        meta.pop(field, None)
