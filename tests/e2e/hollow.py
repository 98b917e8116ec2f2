"""A real scheduler and real kubelets without machines, and what befalls nodes.

The kubelets are kubemark's: all of a kubelet's code on a fake runtime whose containers end as the
plan of their pod says (`controlplane/hollow`). One node is drained, one is tainted NoExecute, pods
of a high priority push others out, one node is lost and comes back with the taint out-of-service
or is deleted. A graceful shutdown of a node needs systemd, which a hollow node has not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.e2e.api import ApiError, RawObject, namespaced
from tests.e2e.build import HOLLOW_NODE, NODE_PROGRAMS, SCHEDULER, ensure
from tests.e2e.cluster import CONTROLLERS, Cluster
from tests.e2e.scene import JOBS, pod_template

NODES = ("hollow-1", "hollow-2", "hollow-3")
MAX_PODS = 40  # of a node; what a Job of high priority wants beyond that pushes others out
SCHEDULER_USER = "system:kube-scheduler"
MORE_CONTROLLERS = ("nodelifecycle", "taint-eviction-controller", "disruption")
LOST_SECONDS = 8  # from the last heartbeat to a node that is not ready
DRAIN_WAITS_SECONDS = 20  # for a pod that runs: one that is pending is deleted without a condition
PUSHED_OUT = 6  # pods of low priority that must go for those of high priority
_OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}

log = logging.getLogger(__name__)


def with_nodes(make: Callable[..., Cluster]) -> Callable[..., Cluster]:
    """Make clusters that know the users of a scheduler and of nodes, and soon miss a node."""

    def made(*, kcm_flags: list[str], **given: Any) -> Cluster:
        flags = [f"--node-monitor-grace-period={LOST_SECONDS}s", "--node-monitor-period=1s"]
        tolerated = ("unreachable", "not-ready")
        cluster = make(
            kcm_flags=[*kcm_flags, *flags],
            api_flags=[f"--default-{what}-toleration-seconds=3" for what in tolerated],
            controllers=(*CONTROLLERS, *MORE_CONTROLLERS),
            **given,
        )
        for user in (SCHEDULER_USER, *(f"system:node:{name}" for name in NODES)):
            cluster.add_user(user, ("system:masters",))
        return cluster

    return made


class HollowNodes:
    """A scheduler and some nodes beside a cluster, with what befalls them for a time."""

    def __init__(self, cluster: Cluster, seconds: float) -> None:
        """`seconds` is how long Jobs are made; what befalls nodes ends before."""
        self._cluster = cluster
        self._seconds = seconds
        self._admin = cluster.api("admin", agent="e2e-nodes", patient=True)
        self._programs = ensure(cluster.version, NODE_PROGRAMS)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._befall, daemon=True)
        self.errors: Counter[str] = Counter()

    def start(self) -> None:
        """Start the programs, wait until all nodes are ready, and let things befall them."""
        config = self._cluster.kubeconfig(SCHEDULER_USER)
        arguments = [
            *(str(self._programs / SCHEDULER), f"--kubeconfig={config}"),
            *("--leader-elect=false", "--secure-port=0"),
        ]
        self._cluster.add_process(SCHEDULER, arguments, lambda: True)
        for name in NODES:
            self._start_node(name)
        self._thread.start()

    def stop(self) -> None:
        """Let nothing more befall the nodes; they end with the cluster."""
        self._stopped.set()
        self._thread.join(60)

    def _start_node(self, name: str) -> None:
        arguments = [
            *(str(self._programs / HOLLOW_NODE), f"--name={name}", f"--max-pods={MAX_PODS}"),
            f"--kubeconfig={self._cluster.kubeconfig(f'system:node:{name}')}",
        ]
        self._cluster.add_process(name, arguments, lambda: self._ready(name))

    def _ready(self, name: str) -> bool:
        conditions = self._admin.get(_node(name))["status"].get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    # What befalls nodes

    def _befall(self) -> None:
        """Everything once, in turns, as long as Jobs are made."""
        turns: list[Callable[[], None]] = [
            partial(self._drain, NODES[0]),
            partial(self._taint, NODES[1]),
            self._preempt,
            partial(self._lose, NODES[2], deleted=False),
            partial(self._drain, NODES[1]),
            partial(self._lose, NODES[2], deleted=True),
        ]
        ends_at = time.monotonic() + self._seconds
        for turn in turns:
            if self._stopped.wait(8) or time.monotonic() > ends_at:
                return
            try:
                log.info("nodes: %s", getattr(turn, "func", turn).__name__)
                turn()
            except (ApiError, OSError) as error:
                self.errors[f"{type(error).__name__}: {error}"] += 1

    def _drain(self, name: str) -> None:
        """What kubectl drain does, once something runs there, and uncordon after a while."""
        waits_until = time.monotonic() + DRAIN_WAITS_SECONDS
        while time.monotonic() < waits_until and not self._stopped.wait(0.2):
            if any(pod["status"]["phase"] == "Running" for pod in self._pods_on(name)):
                break
        self._admin.patch(_node(name), {"spec": {"unschedulable": True}})
        for pod in self._pods_on(name):
            meta = pod["metadata"]
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            }
            with _gone_already():
                where = namespaced("pods", meta["namespace"], meta["name"], "eviction")
                self._admin.create(where, body)
        self._stopped.wait(5)
        self._admin.patch(_node(name), {"spec": {"unschedulable": None}})

    def _taint(self, name: str) -> None:
        taint = {"key": "e2e.tracekit.dev/away", "effect": "NoExecute"}
        self._admin.patch(_node(name), {"spec": {"taints": [taint]}})
        self._stopped.wait(6)
        self._admin.patch(_node(name), {"spec": {"taints": None}})

    def _preempt(self) -> None:
        """A Job of high priority that wants more room than there is."""
        body: RawObject = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        }
        with _gone_already():
            self._admin.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        there = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t-nodes"}}
        with _gone_already():
            self._admin.create("/api/v1/namespaces", there)
        free = MAX_PODS * len(NODES) - sum(len(self._pods_on(name)) for name in NODES)
        count = max(1, free) + PUSHED_OUT
        template = pod_template({"run": 4}, labels={"app": "urgent"})
        template["spec"]["priorityClassName"] = "urgent"
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "urgent"},
            "spec": {"parallelism": count, "completions": count, "template": template},
        }
        self._admin.create(namespaced(JOBS, "t-nodes"), job)

    def _lose(self, name: str, *, deleted: bool) -> None:
        """Kill a node's kubelet; after a while its pods are given up, and it comes back."""
        self._cluster.kill(name)
        self._stopped.wait(LOST_SECONDS + 8)
        if deleted:
            self._admin.delete(_node(name))
            self._stopped.wait(5)
        else:
            taints = self._admin.get(_node(name))["spec"].get("taints", [])
            self._admin.patch(_node(name), {"spec": {"taints": [*taints, _OUT_OF_SERVICE]}})
            self._stopped.wait(24)  # the collector of pods looks every 20 s
            self._admin.patch(_node(name), {"spec": {"taints": taints}})
        self._start_node(name)

    def _pods_on(self, name: str) -> list[RawObject]:
        """The pods of a node that have not ended."""
        found = self._admin.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={name}"})
        return [p for p in found["items"] if p["status"].get("phase") in ("Pending", "Running")]


def _node(name: str) -> str:
    return f"/api/v1/nodes/{name}"


@contextmanager
def _gone_already() -> Iterator[None]:
    """What is gone needs no eviction, and what is there need not be made."""
    try:
        yield
    except ApiError as error:
        if error.status not in (404, 409, 429):
            raise
