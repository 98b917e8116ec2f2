"""What to do about what the scheduler and the kubelet say: by the words of their messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

_Table = tuple[tuple[tuple[str, ...], str], ...]

#: Of the scheduler's message, PodScheduled or FailedScheduling, looked for in this order.
ANEW: Final = "A running Job's template cannot be changed: delete the Job and create it anew."
_SCHEDULER: Final[_Table] = (
    (("unbound immediate PersistentVolumeClaims", "didn't find available persistent volumes",
      "binding volumes: "),
     ("Find out why the claim is not bound: kubectl describe pvc (its StorageClass, its "
     "provisioner, a volume in another zone).")),
    (("tasks in gang", "pod group is not ready", "sibling pods"),
     ("Its scheduler places all pods of a group or none: make room for all of them (minAvailable, "
      "minMember), or let fewer do; kubectl describe podgroup says more.")),
    (("ReadWriteOncePod",),
     ("Another pod holds the claim, whose access mode lets one pod use it: end that pod, or use "
     "ReadWriteOnce or ReadWriteMany.")),
    (("resource claim", "resourceclaim", "ResourceClaim"),
     ("Look at the claim: kubectl describe resourceclaim (its template, its DeviceClass, and "
     "whether the controller manager may create it).")),
    (("cannot allocate all claims",),
     ("Free a device that the claim asks for, or ask for another: kubectl get resourceslices "
     "shows what the drivers offer.")),
    (("not supported on Fargate",),
     ("Take out of the pod what Fargate does not run, or let no Fargate profile select it. "
     f"{ANEW}")),
    (("Misconfigured Fargate Profile",),
     ("Mend what the message names of the Fargate profile (its pod execution role, its subnets; "
      "one that is being deleted takes no pods: create another). Its scheduler does not come back "
      "to this pod: delete it, and its maker creates another (a Job counts it toward "
      "backoffLimit).")),
    (("launch any Fargate pods",), "Ask AWS support to let the account launch Fargate pods."),
    (("Pod provisioning timed out",),
     ("It is tried again by itself. See whether the subnets of the Fargate profile have addresses "
      "left, and reach the cluster's API server and the registry (NAT gateway, VPC endpoints).")),
    (("limit on the number of Fargate", "Fargate capacity"),
     "Raise the account's limit, wait for capacity, or let nodes run it; Fargate may not retry."),
    (("bound to non-existent pv", 'persistentvolume "'),
     ("The volume that its claim is bound to is gone: restore it, or create the claim anew "
     "(kubectl describe pvc).")),
    (("no nodes available to schedule pods",),
     "The cluster has no node: add one, or see why its autoscaler adds none."),
    # Of a claim that is there. That an ended pod uses its claims is pvcprotection's reading.
    (('" is being deleted',),
     ("Somebody deleted that claim. It goes when no pod that has a node names it, ended ones "
     "included: kubectl describe pvc lists them (Used By). Delete those, then create it anew.")),
    (("waiting for ephemeral volume controller",),
     ("The controller manager makes that claim for the pod: the pod's Events say why it cannot "
     "(kubectl describe pod); else see whether its ephemeral volume controller runs.")),
    (("pod is not owner",),
     "Delete or rename the claim that the message names: it was not made for this pod."),
    (("persistentvolumeclaim",), "Create the PersistentVolumeClaim that the message names."),
)  # fmt: skip
#: Each of these may hold some of the nodes: all that the message names are said.
_NODES: Final[_Table] = (
    (("volume node affinity conflict",),
     "free a node where its volume is: it is bound to a zone or node"),
    (("enough free storage",), "free storage of the claim's class on the nodes, or ask for less"),
    (("exceed max volume count",), "free volumes on the nodes, or add a node"),
    (("were unschedulable",), "uncordon a node (kubectl uncordon)"),
    (("free ports",), "free the hostPort"),
    (("Too many pods", "Insufficient pods"), "free or add a node: its pods' number is the limit"),
)  # fmt: skip
#: The same, where the pod itself has to change, which its Job's template does not allow.
_POD: Final[_Table] = (
    (("Insufficient ",), "ask for less of what is insufficient, free it or add a node"),
    (("node affinity/selector", "didn't match node selector", "MatchNodeSelector"),
      "correct nodeSelector or affinity"),
    (("didn't match pod affinity", "didn't satisfy existing pods anti-affinity",
      "didn't match pod anti-affinity", "MatchInterPodAffinity"),
     "relax pod affinity or anti-affinity"),
    (("topology spread constraints",), "relax topologySpreadConstraints"),
)  # fmt: skip
#: By these the runtime's message about a process is told from the program's own.
_RUNTIME: Final = ("unable to start container process", "OCI runtime", "starting container process",
                   "exec format error", "failed to create shim task")  # fmt: skip
#: Of a container whose process could not be begun.
_START: Final[_Table] = (
    (("exec format error",),
     ("Build the image for the node's architecture, or select nodes by kubernetes.io/arch; a "
     "script needs its interpreter in its first line.")),
    (("executable file not found", "no such file or directory", "not found in $PATH"),
     ("Correct .command and .args: the image has no such file (or the interpreter that a script "
     "names is not there, or its lines end with CR LF).")),
    (("permission denied",),
     "Let the container's user execute what the message names (chmod +x in the image)."),
    (("no space left",), "Free the node's disk."),
    (("cpu.cfs_quota_us", "cpu.max: invalid argument"),
     ("Let requests.cpu and limits.cpu of each container be equal (on Fargate they must be): its "
      "limit does not fit into that of the pod.")),
    (("Cannot allocate memory", "cannot allocate memory"),
     "Raise resources.limits.memory: the process could not even be begun with that."),
)  # fmt: skip
#: Of an image that the registry does not give to who asks.
_UNREAD: Final = (
    "Give the pod or its ServiceAccount an imagePullSecret that may read it (or correct the "
    "image's name: a registry says the same of images that it has not)."
)
#: Of the message of a container whose image does not come.
_PULL: Final[_Table] = (
    (("pull policy of Never",),
     "Load the image onto the node, or let imagePullPolicy be IfNotPresent."),
    (("toomanyrequests", "rate limit"),
     "The registry limits pulls: authenticate, use a mirror, or wait; the kubelet tries again."),
    (("unauthorized", "authentication required", "denied", "403 Forbidden", "401"),
     _UNREAD),
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
    (("no space left",), "Free the node's disk: kubectl describe node tells of its pressure."),
    (("too many open files",), "Raise the node's limits (inotify, file handles), or free it."),
    (("list of registered CSI drivers", "does not contain driver"),
     ("Look at that CSI driver's DaemonSet: its plugin is not registered on the node (it is not "
     "there, has only begun, or fails).")),
    (("failed to sync configmap cache", "failed to sync secret cache", "not registered"),
     ("It goes by itself: the kubelet has not read the object yet. If it stays so, see whether the "
     "object is there and the kubelet reaches the API server.")),
    (("InvalidVolume.NotFound", "code = NotFound desc = volume", "code = NotFound desc = Volume"),
     "The volume behind the claim is gone: restore it, or create the claim anew."),
    (("failed to get sandbox runtime", "no runtime for"),
     "Set up the runtime that its RuntimeClass names on the node, or select nodes that have it."),
    (("hostPath type check failed",),
     "Let the node have that path, or correct the volume's hostPath and its type."),
    (("failed to prepare subPath",), "Correct the subPath: the volume must have what it names."),
    (("AccessDenied", "PermissionDenied"),
     "Give the pod's ServiceAccount, or the driver, the right that the message names."),
    (("executable file not found",),
     "Correct the container's command: the image has no such file."),
    (("PostStartHookError", "PreStartHookError", "lifecycle hook"),
     "Correct the container's lifecycle hook: the container is killed when its command fails."),
    (("AttachmentLimitExceeded", "ttachment limit exceeded", "maximum number of volumes",
      "max volumes already attached"),
     ("The node has as many volumes as it can: free volumes on it, or delete the pod, so that "
      "another may be put elsewhere; kubectl get csinode shows the limit that its driver tells.")),
    (("Multi-Attach", "already exclusively attached", "already used by"),
     ("Free the volume: end the pod that has it, or let both run on one node; a volume that "
     "several nodes use needs the access mode ReadWriteMany.")),
    (("couldn't find key", "non-existent config key", "references non-existent"),
     "Add the key that the message names, or correct the reference to it."),
    (("failed to assign an IP address", "no available IP", "no IP addresses available",
      "IP pool", "range is full"),
     "The network has no address left for the node: free addresses, or enlarge the subnet."),
    (("network plugin", "cni", "CNI", "subnet.env", "failed to setup network", "set up sandbox"),
     "Repair the network plugin on the node."),
    (("Connection timed out", "No route to host"),
     "See whether the node reaches the volume's server."),
    (("not found", "doesn't exist", "no such secret"),
     "Create what the message names, or correct the reference to it."),
    (("runAsNonRoot", "run as non-root", "is non-numeric"),
     "Set runAsUser to a user that is not root (a number), or build the image with one."),
    (("no such file or directory",),
     "Correct the container's command: the image has no such file."),
    (("permission denied",), "Let the container's user execute or read what the message names."),
    (("context deadline exceeded", "failed to reserve container name",
      "failed to reserve sandbox name", "is already in use by container", "DeadlineExceeded"),
     "Look at the node's container runtime and disk: it does not answer in time."),
    (("timed out waiting for the condition", "failed to attach", "AttachVolume"),
     "Look at the volume: kubectl describe pv, volumeattachments, and its driver's log."),
    (("access denied", "mount failed"), "Let the node mount it: its exports, rights and options."),
)  # fmt: skip


PROBE_ADVICE: Final = (
    "Give the probe more time (timeoutSeconds, failureThreshold, a startupProbe), or let the "
    "container answer it."
)
_TAINT: Final = re.compile(r"taints? \{([^:}]+)")
#: Taints that the node lifecycle controller, cloud providers, autoscalers and agents of the node
#: set: no pod of a Job that tolerates them would run there. Upstream: k8s.io/api/core/v1
#: (well_known_taints.go), cluster-autoscaler/utils/taints, karpenter's pkg/apis/v1 (taints.go), and
#: the documentation of Cilium and of the EBS CSI driver.
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
    "ToBeDeletedByClusterAutoscaler": "wait for another node: the cluster autoscaler takes this "
    "one away",
    "karpenter.sh/disrupted": "wait for another node: Karpenter takes this one away",
    "karpenter.sh/disruption": "wait for another node: Karpenter takes this one away",
    "karpenter.sh/unregistered": "wait: that node is about to join",
    "eks.amazonaws.com/compute-type": "let a Fargate profile select the pod (its namespace and "
    "labels, asked when it is created: then delete the pod), or add nodes that are not Fargate's",
    "node.cilium.io/agent-not-ready": "bring up Cilium's agent on the node",
    "ebs.csi.aws.com/agent-not-ready": "bring up the EBS CSI driver's agent on the node",
}


def _of_taints(message: str) -> tuple[list[str], list[str]]:
    """What helps against the taints that a message names: of the node, and of the pod."""
    names = dict.fromkeys(name.strip() for name in _TAINT.findall(message))
    nodes = [_OF_NODES[name] for name in names if name in _OF_NODES]
    if any(name not in _OF_NODES for name in names) or (not names and "taint" in message):
        return nodes, ["tolerate the taint or take it off a node"]
    return nodes, []


def _all(table: _Table, message: str) -> Iterator[str]:
    return (todo for words, todo in table if any(word in message for word in words))


def _first(table: _Table, message: str) -> str | None:
    return next(_all(table, message), None)


def of_scheduler(message: str, *, of_job: bool = True) -> str:
    """What lets the scheduler place a pod, of a Job or of its own, of which it says that."""
    advice_of = _first(_SCHEDULER, message)
    if advice_of is not None:
        return advice_of
    nodes, pod = _of_taints(message)
    pod += _all(_POD, message)
    found = dict.fromkeys((*nodes, *pod, *_all(_NODES, message)))
    if not found:
        return (
            "Give the pod what the scheduler misses: its requests, node selector and "
            "tolerations, or a node that fits."
        )
    text = "; or ".join(found)
    template = ""
    if pod:
        template = (
            f" {ANEW}"
            if of_job
            else " A pod's spec cannot be changed: let whoever made it create it anew."
        )
    return f"{text[0].upper()}{text[1:]}.{template}"


#: Of the kubelet's refusal of a pod that was bound to it.
_REFUSAL: Final[_Table] = (
    (("NodeAffinity", "NodeName", "TaintToleration", "NodeUnschedulable"),
     ("Allow a retry (backoffLimit above 0): the node's labels or taints changed after the pod was "
     "bound, or its kubelet had only begun and did not know them yet.")),
    (("AppArmor", "Sysctl", "PodOS", "TopologyAffinity"),
     ("Prepare the nodes for what the message names, or select those that have it; another try on "
     "this node ends alike.")),
    (("device", "nvidia.com/", "Allocate failed"),
     ("Allow a retry (backoffLimit above 0), and look at the device plugin on that node: it lost "
     "devices, or the kubelet had just begun.")),
)  # fmt: skip


#: Upstream: kubernetes#126343, and the changelogs of those releases.
READMITTED: Final = (
    "Kubelets before 1.28.14, 1.29.9, 1.30.5, 1.31.1 and 1.32 refuse ended pods when they begin "
    "anew: upgrade the nodes."
)
#: With this reason the pod garbage collector marks a running pod whose Node object is gone; where a
#: node is out of service it sets no condition. Upstream: pkg/controller/podgc.
BY_POD_GC: Final = "DeletionByPodGC"
#: Upstream: the FAQ of cluster-autoscaler, the docs of Karpenter (Disruption).
NODE_TAKEN: Final = (
    "Let a podFailurePolicy ignore DisruptionTarget, and see who took the node away. An autoscaler "
    "leaves it while a pod of it has the annotation "
    'cluster-autoscaler.kubernetes.io/safe-to-evict: "false" (Karpenter: karpenter.sh/'
    'do-not-disrupt: "true").'
)
NOT_LOCATED: Final = (
    "How it ended is not known: the kubelet writes exit code 137 where it no longer finds a "
    "container. See what became of the node then (kubectl describe node, the log of its kubelet): "
    "a reboot, a container runtime that began anew, a disk that was cleared."
)
GATED: Final = "Let the controller that set the gate take it off the pod."
DONE_AGAIN: Final = "The work is done; a retry does it again."


def of_refusal(reason: str, message: str) -> str:
    """What helps where the kubelet refused a pod for that reason, with that message."""
    return _first(_REFUSAL, f"{reason} {message}") or (
        "Allow a retry (backoffLimit above 0); free the node, or keep other pods off it."
    )


#: Of Kueue's message on a Workload that has no quota.
_QUEUE: Final[_Table] = (
    (("maximum capacity", "exceeds the maximum"),
     "It asks for more than its ClusterQueue can ever give: ask for less, or raise nominalQuota."),
    (("unavailable in ClusterQueue",),
     "Give the ClusterQueue a resource group with that resource, or do not ask for it."),
    (("PodsReady",),
     "Look why its pods do not become ready in time; else raise waitForPodsReady.timeout."),
    (("Pending the preemption",),
     ("It waits until what Kueue preempts for it has ended: look which Workloads are Evicted and "
      "still run (kubectl get workloads.kueue.x-k8s.io -A), and why they do not end.")),
    (("unused quota", "insufficient quota"),
     "It waits for its turn: end what holds the quota, or raise nominalQuota or borrowing."),
    (("topology",), "No domain of the topology has room for it: free nodes, or ask for less."),
    (("untolerated taint", "node affinity", "nodeSelector"),
     "Let the pods tolerate the flavor's taint, or select a flavor's nodes."),
    (("LocalQueue",),
     ("Create or start the LocalQueue that the label kueue.x-k8s.io/queue-name names, or correct "
      "that label: of a suspended Job it may be changed.")),
    (("ClusterQueue",), "Create, mend or start the ClusterQueue: kubectl describe clusterqueue."),
)  # fmt: skip


def of_queue(message: str) -> str | None:
    """What gives a Workload its quota that Kueue says that of; None where nobody knows."""
    return _first(_QUEUE, message)


def of_pull(message: str, secrets: str | None = None) -> str:
    """What lets an image come whose pull ends with that, where those pull secrets are missing."""
    found = _first(_PULL, message)
    if secrets is not None and found in (None, _UNREAD):
        return (
            f"Create {secrets} in the pod's namespace (kubectl create secret docker-registry), or "
            "correct imagePullSecrets of the pod or of its ServiceAccount."
        )
    return found or "Check the image's name, its tag and the pull secret."


def of_eviction(message: str) -> str | None:
    """What keeps a kubelet from evicting a pod, of which it says that; None of other evictions."""
    if "The node had condition: " in message:
        return (
            "Free what the node lacks (kubectl describe node; DiskPressure: images, logs and "
            "emptyDirs), and allow a retry (backoffLimit above 0): the scheduler puts pods "
            "elsewhere once the node has its taint."
        )
    if "low on resource" in message:
        return (
            "Let it ask for what it uses (resources.requests): who uses more than that goes first."
        )
    limited = any(word in message for word in ("emptyDir", "EmptyDir", "ephemeral"))
    return "Raise that limit, or let it write less." if limited and "exceed" in message else None


#: A container that was killed for its memory, which has a limit.
MORE_MEMORY: Final = "Raise resources.limits.memory, or let the work need less."
#: One that has none: what ran out is the node's memory, or that of all of the pod.
_NODE_MEMORY: Final = (
    "It has no memory limit of its own, so its node, or its pod as a whole, had no memory left: "
    "ask for what it needs (resources.requests.memory), so that it runs where there is room, or "
    "let the work need less."
)


def of_memory(limit: str | None) -> str:
    """What helps a container that was killed for its memory, by `endings.memory_limit`."""
    return _NODE_MEMORY if limit == "" else MORE_MEMORY


_NO_COMMAND: Final = (
    "See that the image has what .command and .args name, executable and in its PATH, and scripts "
    "the right line ends and interpreter."
)
#: What an exit code tells by convention; from 129 on it is 128 and the number of a signal.
_BY_EXIT: Final = {
    126: _NO_COMMAND,
    127: _NO_COMMAND,
    132: "SIGILL: the processor of its node lacks an instruction that the image uses: build it for "
    "less, or select nodes that have it (nodeAffinity).",
    134: "SIGABRT: the program ended itself (a failed assertion, an allocator, a runtime without "
    "memory): its last lines say why.",
    135: "SIGBUS: often shared memory that is full: mount an emptyDir with medium Memory for it; "
    "or a mapped file that became shorter.",
    136: "SIGFPE: the program divided by zero: see its input.",
    137: "SIGKILL without OOMKilled: see who ended it (Events Killing, Preempted, Evicted; the "
    "node's kernel log for a child process); a grace period that was too short ends so.",
    139: "SIGSEGV: a fault of the program or of a library that it loads, not of the cluster: run "
    "it again with core dumps or a debugger, and see whether the image fits its node (another "
    "processor, another C library).",
    141: "SIGPIPE: what read its output went away first; in a shell `set -o pipefail` tells it.",
    143: "SIGTERM: see who asked the pod to end (its Events, the audit log); a program that ends "
    "well on SIGTERM has exit code 0.",
}


def of_exits(codes: Collection[int]) -> str | None:
    """What to look for where containers ended with these codes; None where they tell nothing."""
    found = {_BY_EXIT.get(code) for code in codes}
    return found.pop() if len(found) == 1 else None


def of_start(message: str) -> str | None:
    """What lets a container's process begin of which the runtime says that; None: something else.

    A program may say the same of its own files: then the advice is none.
    """
    begun = any(word in message for word in _RUNTIME)
    return _first(_START, message) if begun else None


def of_kubelet(message: str) -> str:
    """What lets a container start whose pod's kubelet says that."""
    return _first(_KUBELET, message) or (
        "Repair what the message names: kubectl describe pod tells more."
    )


#: Reasons of Events that tell why a pod has not begun.
NOT_BEGUN: Final = ("FailedScheduling", "Failed", "FailedMount", "FailedAttachVolume",
                    "FailedMapVolume", "FailedCreatePodSandBox")  # fmt: skip


def of_pod_event(reason: str, message: str) -> str | None:
    """What to do about an Event of type Warning about a pod; None: its log tells."""
    if reason == "FailedScheduling":
        return of_scheduler(message)
    if "pull" in message.lower() and reason in ("Failed", "BackOff"):
        return of_pull(message)
    return None if reason == "BackOff" else of_kubelet(message)


def against_sidecar(what: str) -> str:
    """What lets a pod end that a container beside its work keeps; `what` such pods are of."""
    return (
        "Make it a native sidecar (an init container with restartPolicy Always), let the main "
        f"container end it, or keep what injects it away from {what}."
    )
