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
#: Where each kubelet keeps a Lease by the name of its node, which it renews every 10 s (upstream:
#: pkg/kubelet/util/nodelease.go, staging/src/k8s.io/component-helpers/apimachinery/lease).
NODE_LEASE_NAMESPACE: Final = "kube-node-lease"
