"""Who is behind a request: the user name, or what the client adds to its user agent.

kube-controller-manager gives every controller a client of its own. With
--use-service-account-credentials (what kubeadm and the providers set) each has a user; without it
all share one and only the end of the user agent tells them apart.

Upstream: cmd/kube-controller-manager/app (rootClientBuilder, clientBuilder),
k8s.io/controller-manager/pkg/clientbuilder.
"""

from __future__ import annotations

from typing import Final

#: Ends pods, and deletes none that others did not.
KUBELET: Final = "kubelet"
#: A user that is a program: NAMESPACE:NAME follows.
SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_SERVICE_ACCOUNT = f"{SERVICE_ACCOUNT}kube-system:"
_MANAGER_USERS = frozenset({"system:kube-controller-manager"})
_MANAGER_AGENTS = ("kube-controller-manager/", "hyperkube/", "k3s/", "rke2/", "kubelite/")

#: Who ends a pod, by the reason of its condition DisruptionTarget, its status or an Event.
#: Upstream: staging/src/k8s.io/api/core/v1/types.go, the scheduler's preemption, and the Events of
#: the scheduler (Preempted), and of the taint manager and node controller before conditions came.
DISRUPTERS: Final = {
    "PreemptionByScheduler": "kube-scheduler",
    "Preempted": "kube-scheduler",
    "DeletionByTaintManager": "taint-eviction-controller",
    "TaintManagerEviction": "taint-eviction-controller",
    "NodeControllerEviction": "node-lifecycle-controller",
    "EvictionByEvictionAPI": "eviction",
    "DeletionByPodGC": "pod-garbage-collector",
    "TerminationByKubelet": KUBELET,
    "NodeShutdown": KUBELET,
    "Evicted": KUBELET,
    "Preempting": KUBELET,
}


def name_of(user: str | None, agent: str | None) -> str | None:
    """Who made a request: the controller by its name, else the user; None if nothing tells."""
    return controller_of(user, agent) or user


def controller_of(user: str | None, agent: str | None) -> str | None:
    """The controller's name, like `job-controller`; "" if it is certainly none; None if unknown."""
    if user is None:
        return None
    if user.startswith(_SERVICE_ACCOUNT):
        return user.removeprefix(_SERVICE_ACCOUNT)
    agent = agent or ""
    if user not in _MANAGER_USERS and not agent.startswith(_MANAGER_AGENTS):
        return ""
    last = agent.rpartition("/")[2].removeprefix(_SERVICE_ACCOUNT)
    if last.endswith("-controller") or last in ("generic-garbage-collector", "cronjob-controller"):
        return last
    return None if not last or last[0].isalnum() else ""
