"""The lease that the processes of kube-controller-manager hold in turn.

Upstream: pkg/controlplane/controller/leaderelection, cmd/kube-controller-manager/app/options
(--leader-elect-resource-name, --leader-elect-resource-namespace).
"""

from __future__ import annotations

from typing import Final

CONTROLLER_MANAGER_LEASE: Final = "kube-controller-manager"
CONTROLLER_MANAGER_LEASE_NAMESPACE: Final = "kube-system"
#: A lease that is not renewed for so long has no holder (--leader-elect-lease-duration's default).
LEASE_DURATION_NS: Final = 15_000_000_000
