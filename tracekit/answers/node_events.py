"""What Events tell of nodes: by which reasons one is in trouble, and by which that is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct


class NodeEvent(Struct, frozen=True):
    """One reason of Events about a node, when it was first and last told (Unix ns), how often."""

    reason: str
    message: str
    first_ns: int
    last_ns: int
    times: int = 1
    #: Of what a condition of the node says instead, since `first_ns`: its type and status.
    condition: str = ""


class Trouble(Struct, frozen=True):
    """What became of a node by an Event, and what helps who lost pods by it; {node} is its name."""

    todo: str
    #: The reason of the Event by which that is over; empty of what happens at one moment.
    over: str = ""
    #: Whether it may end a process of a container, with an exit code and no word of why.
    kills: bool = False
    #: Whether the message says more than the reason.
    tells: bool = True


_AGAIN: Final = "let the work bear a second start (backoffLimit)"
_SPOT: Final = f"The instance was taken back: {_AGAIN}, or select nodes that are not spot."
_MEMORY: Final = (
    "Node {node} had no memory left: give its pods the memory that they use as requests "
    "(resources.requests.memory) and limits, so that fewer are put beside each other."
)
_KILLED: Final = (
    "The kernel killed a process for its memory: raise resources.limits.memory of the container, "
    "or, where it has none, its requests."
)
_DISK: Final = (
    "Free the disk of node {node} (images, logs, emptyDirs), and let pods ask for what they write "
    "(resources.requests.ephemeral-storage)."
)
_PIDS: Final = "End processes on node {node}, or set podPidsLimit of its kubelet."
_REBOOT: Final = f"See who rebooted node {{node}} (its system log), and {_AGAIN}."
_UNREADY: Final = (
    f"See why node {{node}} was lost: kubectl describe node {{node}}, its kubelet's log; {_AGAIN}."
)
_SCALED: Final = f"See who took node {{node}} away (an autoscaler, an upgrade), and {_AGAIN}."
_PLANNED: Final = f"The provider does maintenance on node {{node}}: {_AGAIN}."
_FAULT: Final = "Repair or replace node {node}: kubectl describe node {node}."

#: By reason, what tells most of the cause first. Upstream: pkg/kubelet/events (event.go),
#: pkg/controller/nodelifecycle, cloud-provider's controllers/nodelifecycle; of others:
#: node-problem-detector's config, cluster-autoscaler/core/scaledown, Karpenter's
#: pkg/controllers/interruption/events and node/termination, aws-node-termination-handler's
#: pkg/observability.
TROUBLES: Final = {
    "SpotInterruption": Trouble(_SPOT, kills=True),
    "SpotInterrupted": Trouble(_SPOT, kills=True),
    "PreemptScheduled": Trouble(_SPOT, kills=True),
    "InstanceTerminating": Trouble(_SCALED, kills=True),
    "InstanceStopping": Trouble(_SCALED, kills=True),
    "TerminateScheduled": Trouble(_PLANNED, kills=True),
    "RebootScheduled": Trouble(_PLANNED, kills=True),
    "RedeployScheduled": Trouble(_PLANNED, kills=True),
    "SystemOOM": Trouble(_MEMORY, kills=True),
    "OOMKilling": Trouble(_KILLED, kills=True),
    "NodeHasInsufficientMemory": Trouble(_MEMORY, over="NodeHasSufficientMemory", tells=False),
    "NodeHasDiskPressure": Trouble(_DISK, over="NodeHasNoDiskPressure", tells=False),
    "FreeDiskSpaceFailed": Trouble(_DISK),
    "NodeHasInsufficientPID": Trouble(_PIDS, over="NodeHasSufficientPID", tells=False),
    "KernelDeadlock": Trouble(_FAULT),
    "FilesystemIsReadOnly": Trouble(_FAULT),
    "Rebooted": Trouble(_REBOOT, kills=True, tells=False),
    "Shutdown": Trouble(_REBOOT.replace("rebooted", "shut down"), kills=True, tells=False),
    "ScaleDown": Trouble(_SCALED),
    "DisruptionTerminating": Trouble(_SCALED),
    "DeletingNode": Trouble(_SCALED),
    "RemovingNode": Trouble(_SCALED, tells=False),
    "NodeNotReady": Trouble(_UNREADY, over="NodeReady", tells=False),
    "EvictionThresholdMet": Trouble(_UNREADY),
    "NodeNotSchedulable": Trouble(_SCALED, over="NodeSchedulable", tells=False),
}
#: By type of a node's condition: the status that is well, and the reasons of the Events that tell
#: of any other and of that one. Upstream: pkg/kubelet/nodestatus/setters.go,
#: pkg/controller/nodelifecycle; node-problem-detector's config.
CONDITIONS: Final = {
    "Ready": ("True", "NodeNotReady", "NodeReady"),
    "MemoryPressure": ("False", "NodeHasInsufficientMemory", "NodeHasSufficientMemory"),
    "DiskPressure": ("False", "NodeHasDiskPressure", "NodeHasNoDiskPressure"),
    "PIDPressure": ("False", "NodeHasInsufficientPID", "NodeHasSufficientPID"),
    "KernelDeadlock": ("False", "KernelDeadlock", ""),
    "ReadonlyFilesystem": ("False", "FilesystemIsReadOnly", ""),
}


def by_condition(
    kind: str, status: str, message: str, since_ns: int, at_ns: int
) -> NodeEvent | None:
    """What a condition of a node that was seen at a time tells, as an Event would; None: nothing.

    What a node without a kubelet says of anything but Ready (Unknown) tells nothing more.
    """
    if kind not in CONDITIONS:
        return None
    well, bad, over = CONDITIONS[kind]
    if status == well:
        return NodeEvent(over, message, since_ns, since_ns) if over else None
    if status == "Unknown" and kind != "Ready":
        return None
    last_ns = max(since_ns, at_ns)
    return NodeEvent(bad, message, since_ns, last_ns, condition=f"{kind} {status}")


#: The taint of a node that was cordoned. Upstream: k8s.io/api/core/v1 well_known_taints.go.
CORDONED: Final = "node.kubernetes.io/unschedulable"


def cordoned(since_ns: int, at_ns: int) -> NodeEvent:
    """That a node which was seen at a time takes no new pods (spec.unschedulable)."""
    return NodeEvent(
        "NodeNotSchedulable", "", since_ns, max(since_ns, at_ns), condition="spec.unschedulable"
    )


#: By the key of a taint: the reason of the Events that tell the same. Upstream:
#: cluster-autoscaler/utils/taints, karpenter's pkg/apis/v1 (taints.go).
_TAINTS: Final = {
    "ToBeDeletedByClusterAutoscaler": "ScaleDown",
    "karpenter.sh/disrupted": "DisruptionTerminating",
    "karpenter.sh/disruption": "DisruptionTerminating",
}


def by_taint(key: str, since_ns: int | None, at_ns: int) -> NodeEvent | None:
    """What a taint of a node that was seen at a time tells; None: nothing."""
    if key == CORDONED:
        return cordoned(since_ns or at_ns, at_ns)
    if key not in _TAINTS:
        return None
    first_ns = since_ns or at_ns
    return NodeEvent(_TAINTS[key], "", first_ns, max(first_ns, at_ns), condition=f"taint {key}")


def lost_since(events: Sequence[NodeEvent]) -> NodeEvent | None:
    """By what it is known that a node does not answer, where that is not over."""
    lost = [event for event in events if event.reason == _LOST]
    back_ns = max((event.last_ns for event in events if event.reason == _BACK), default=0)
    last = max(lost, key=lambda event: event.last_ns, default=None)
    return last if last is not None and last.last_ns > back_ns else None


_LOST, _BACK = CONDITIONS["Ready"][1:]
#: All that is asked for.
REASONS: Final = (*TROUBLES, *sorted({t.over for t in TROUBLES.values() if t.over}))
