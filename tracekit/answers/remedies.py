"""What to do about what the scheduler and the kubelet say: by the words of their messages."""

from __future__ import annotations

import re
from typing import Final

_Table = tuple[tuple[tuple[str, ...], str], ...]

#: Of the scheduler's message, PodScheduled or FailedScheduling, looked for in this order.
_SCHEDULER: Final[_Table] = (
    (("unbound immediate PersistentVolumeClaims", "didn't find available persistent volumes"),
     ("Find out why the claim is not bound: kubectl describe pvc (its StorageClass, its "
     "provisioner, a volume in another zone).")),
    (("persistentvolumeclaim",), "Create the PersistentVolumeClaim that the message names."),
    (("volume node affinity conflict",),
     "Its volume is bound to a zone or node without room: free a node there."),
    (("exceed max volume count",), "Free volumes on the nodes, or add a node."),
)  # fmt: skip
#: Each of these may hold some of the nodes: all that the message names are said.
_NODES: Final[_Table] = (
    (("Insufficient ",), "ask for less of what is insufficient, free it or add a node"),
    (("node affinity/selector", "didn't match node selector"), "correct nodeSelector or affinity"),
    (("didn't match pod affinity", "didn't satisfy existing pods anti-affinity",
      "didn't match pod anti-affinity"), "relax pod affinity or anti-affinity"),
    (("topology spread constraints",), "relax topologySpreadConstraints"),
    (("unschedulable", "were unschedulable"), "uncordon a node (kubectl uncordon)"),
    (("free ports",), "free the hostPort"),
    (("Too many pods",), "free or add a node: its pods' number is the limit"),
)  # fmt: skip
#: Of the message of a container whose image does not come.
_PULL: Final[_Table] = (
    (("pull policy of Never",),
     "Load the image onto the node, or let imagePullPolicy be IfNotPresent."),
    (("toomanyrequests", "rate limit"),
     "The registry limits pulls: authenticate, use a mirror, or wait; the kubelet tries again."),
    (("unauthorized", "authentication required", "denied", "403 Forbidden", "401"),
     ("Give the pod or its ServiceAccount an imagePullSecret that may read it (or correct the "
     "image's name: a registry says the same of images that it has not).")),
    (("no match for platform", "no matching manifest", "exec format"),
     "Build the image for the node's architecture, or select nodes by kubernetes.io/arch."),
    (("not found", "manifest unknown", "does not exist"), "Correct the image's name or tag."),
    (("no such host", "i/o timeout", "dial tcp", "connection refused", "x509", "TLS"),
     "Repair the node's way to the registry: DNS, proxy, firewall, certificates."),
    (("no space left",), "Free the node's disk."),
    (("invalid reference", "couldn't parse image"),
     "Correct the image's name: it is no valid reference."),
)  # fmt: skip
#: Of a container that cannot be created, or a volume that cannot be mounted.
_KUBELET: Final[_Table] = (
    (("Multi-Attach", "already exclusively attached", "already used by"),
     ("Free the volume: end the pod that has it, or let both run on one node; a volume that "
     "several nodes use needs the access mode ReadWriteMany.")),
    (("couldn't find key", "non-existent config key", "references non-existent"),
     "Add the key that the message names, or correct the reference to it."),
    (("failed to assign an IP address", "no available IP", "no IP addresses available",
      "IP pool", "range is full"),
     "The network has no address left for the node: free addresses, or enlarge the subnet."),
    (("network plugin", "cni", "CNI"), "Repair the network plugin on the node."),
    (("not found", "not registered", "doesn't exist", "no such secret"),
     "Create what the message names, or correct the reference to it."),
    (("runAsNonRoot", "run as non-root", "is non-numeric"),
     "Set runAsUser to a user that is not root (a number), or build the image with one."),
    (("executable file not found", "no such file or directory"),
     "Correct the container's command: the image has no such file."),
    (("permission denied",), "Let the container's user execute or read what the message names."),
    (("context deadline exceeded", "failed to reserve container name", "DeadlineExceeded"),
     "Look at the node's container runtime and disk: it does not answer in time."),
    (("timed out waiting for the condition", "failed to attach", "AttachVolume"),
     "Look at the volume: kubectl describe pv, volumeattachments, and its driver's log."),
    (("access denied", "mount failed"), "Let the node mount it: its exports, rights and options."),
)  # fmt: skip


_TAINT: Final = re.compile(r"taints? \{([^:}]+)")
#: Taints that the node lifecycle controller and cloud providers set: no pod of a Job that tolerates
#: them would run there. Upstream: k8s.io/api/core/v1 (well_known_taints.go).
_OF_NODES: Final = {
    "node.kubernetes.io/unreachable": "bring the node back: its kubelet does not report",
    "node.kubernetes.io/not-ready": "bring the node back: its kubelet is not ready",
    "node.kubernetes.io/network-unavailable": "bring up the node's network",
    "node.kubernetes.io/unschedulable": "uncordon a node (kubectl uncordon)",
    "node.kubernetes.io/memory-pressure": "free memory of the node",
    "node.kubernetes.io/disk-pressure": "free disk of the node",
    "node.kubernetes.io/pid-pressure": "end processes of the node: it has no ids left",
    "node.cloudprovider.kubernetes.io/uninitialized": "let the cloud provider set up the node",
    "node.cloudprovider.kubernetes.io/shutdown": "start the node: it is shut down",
}


def _of_taints(message: str) -> list[str]:
    """What helps against the taints that a message names: the node, or the pod, has to change."""
    names = dict.fromkeys(name.strip() for name in _TAINT.findall(message))
    found = [_OF_NODES[name] for name in names if name in _OF_NODES]
    if any(name not in _OF_NODES for name in names) or (not names and "taint" in message):
        found.append("tolerate the taint or take it off a node")
    return found


def _first(table: _Table, message: str) -> str | None:
    return next((todo for words, todo in table if any(w in message for w in words)), None)


def of_scheduler(message: str) -> str:
    """What lets the scheduler place a pod of which it says that."""
    advice_of = _first(_SCHEDULER, message)
    if advice_of is not None:
        return advice_of
    found = _of_taints(message)
    found += [
        todo for words, todo in _NODES
        if todo not in found and any(word in message for word in words)
    ]  # fmt: skip
    if not found:
        return (
            "Give the pod what the scheduler misses: its requests, node selector and "
            "tolerations, or a node that fits."
        )
    text = "; or ".join(found)
    template = (
        ""
        if set(found) <= set(_OF_NODES.values())
        else " A running Job's template cannot be changed: delete the Job and create it anew."
    )
    return f"{text[0].upper()}{text[1:]}.{template}"


def of_pull(message: str) -> str:
    """What lets an image come whose pull ends with that."""
    return _first(_PULL, message) or "Check the image's name, its tag and the pull secret."


def of_kubelet(message: str) -> str:
    """What lets a container start whose pod's kubelet says that."""
    return _first(_KUBELET, message) or (
        "Repair what the message names: kubectl describe pod tells more."
    )
