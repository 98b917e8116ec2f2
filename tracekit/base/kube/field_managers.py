"""Who wrote an object, by the field managers that its metadata names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Upstream's own field manager of the controller manager.
KUBE_CONTROLLER_MANAGER: Final = "kube-controller-manager"
#: Field managers under which distributions run the controller manager.
CONTROLLER_MANAGERS: Final = frozenset(
    {
        KUBE_CONTROLLER_MANAGER,
        "hyperkube",
        "k3s",
        "rke2",
        "kubelite",
        "controller-manager",
        "cluster-policy-controller",
    }
)


def is_certainly_foreign(metadata: Mapping[str, Any]) -> bool:
    """Whether an object names who wrote it, its status apart, and no controller manager did."""
    entries = metadata.get("managedFields")
    if not isinstance(entries, list) or not entries:
        return False
    names = {
        entry.get("manager")
        for entry in entries
        if isinstance(entry, dict) and entry.get("subresource") != "status"
    }
    return bool(names) and not names & CONTROLLER_MANAGERS
