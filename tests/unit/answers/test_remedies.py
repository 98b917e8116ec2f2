"""What to do, by the words of the scheduler, the kubelet and the API server in public threads."""

from __future__ import annotations

import pytest

from tracekit.answers.refusals import refusal_advice, refusal_of
from tracekit.answers.remedies import of_kubelet, of_scheduler

_PODS = 'Error creating: pods "work-x" is forbidden: '
#: By thread, else the kind of trouble: the message, what is advised, and what is not.
KUBELET = {
    "ceph-csi#710, democratic-csi#270": (
        ('FailedMount MountVolume.MountDevice failed for volume "p": kubernetes.io/csi: '
        "attacher.MountDevice failed to create newCsiDriverClient: driver name rbd.csi.ceph.com "
        "not found in the list of registered CSI drivers"),
        "CSI driver's DaemonSet", "Create what"),
    "kubernetes#105204, karpenter-provider-aws#3755": (
        ('FailedMount MountVolume.SetUp failed for volume "k": object "app"/"kube-root-ca.crt" not '
        "registered"), "It goes by itself", "Create what"),
    "a configmap that is not read yet": (
        ('FailedMount MountVolume.SetUp failed for volume "c" : failed to sync configmap cache: '
        "timed out waiting for the condition"), "It goes by itself", "describe pv"),
    "a configmap that is missing": (
        'FailedMount MountVolume.SetUp failed for volume "c" : configmap "c" not found',
        "Create what the message names", "by itself"),
    "flannel without its subnet": (
        ("FailedCreatePodSandBox plugin failed: open /run/flannel/subnet.env: no such file or "
        "directory"), "Repair the network plugin", "command"),
    "a network without addresses": (
        ("FailedCreatePodSandBox failed to setup network for sandbox: add cmd: failed to assign an "
        "IP address to container"), "no address left", "Repair"),
    "a volume that is gone": (
        ('FailedAttachVolume AttachVolume.Attach failed for volume "p" : rpc error: code = NotFound '
        "desc = volume vol-1 not found"), "is gone", "Create what the message"),
    "a command that the image lacks": (
        ('RunContainerError OCI runtime create failed: exec: "foo": executable file not found in '
        "$PATH"), "Correct the container's command", "Create what"),
    "a full disk": (
        "CreateContainerError error unpacking image: no space left on device", "node's disk",
        "Repair"),
    "a runtime that the node lacks": (
        ('FailedCreatePodSandBox failed to get sandbox runtime: no runtime for "nvidia" is '
        "configured"), "Set up the runtime", "Repair"),
}  # fmt: skip
SCHEDULER = {
    "kubernetes#120756, kubernetes#92598": (
        '0/3 nodes are available: persistentvolumeclaim "data" is being deleted.',
        "describe pvc lists them",
        "Create the",
    ),
    "a claim of a generic ephemeral volume": (
        (
            "0/3 nodes are available: waiting for ephemeral volume controller to create the "
            'persistentvolumeclaim "work-a-scratch".'
        ),
        "The controller manager makes that claim",
        "Create the",
    ),
    "a claim that was there before its pod": (
        (
            '0/3 nodes are available: PVC "app/work-a-scratch" was not created for pod "app/work-a" '
            "(pod is not owner)."
        ),
        "Delete or rename the claim",
        "requests",
    ),
    "the cluster autoscaler": (
        (
            "0/3 nodes are available: 3 node(s) had untolerated taint "
            "{ToBeDeletedByClusterAutoscaler: 1700000000}."
        ),
        "Wait for another node",
        "olerate",
    ),
    "Karpenter": (
        "0/6 nodes are available: 6 node(s) had untolerated taint {karpenter.sh/disrupted: }.",
        "Karpenter takes this one away",
        "olerate",
    ),
    "Cilium": (
        (
            "0/5 nodes are available: 5 node(s) had untolerated taint "
            "{node.cilium.io/agent-not-ready: }."
        ),
        "Bring up Cilium's agent",
        "olerate",
    ),
    "no node": ("no nodes available to schedule pods", "has no node: add one", "tolerations"),
    "a volume that is gone": (
        (
            "0/3 nodes are available: 3 node(s) unavailable due to one or more pvc(s) bound to "
            "non-existent pv(s)."
        ),
        "volume that its claim is bound to is gone",
        "tolerations",
    ),
    "binding times out": (
        (
            'running PreBind plugin "VolumeBinding": binding volumes: timed out waiting for the '
            "condition"
        ),
        "describe pvc",
        "tolerations",
    ),
}
REFUSED = {
    "kubernetes#67761, argo-workflows#3217": (
        ('Error creating: Operation cannot be fulfilled on resourcequotas "q": the object has been '
        "modified; please apply your changes to the latest version and try again"),
        "It goes by itself", "Repair"),
    "kubernetes#119775, citationhunt#186": (
        ('Error creating job: jobs.batch "t-1" is forbidden: exceeded quota: q, requested: '
        "count/jobs.batch=1, used: count/jobs.batch=4, limited: count/jobs.batch=4"),
        "delete what has ended", "ask for less"),
    "a quota of what runs": (
        _PODS + "exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4",
        "Free the quota", "has ended"),
    "a quota of nothing": (
        _PODS + "exceeded quota: q, requested: count/pods=1, used: count/pods=0, limited: "
        "count/pods=0", "does not help", "has ended"),
    "OpenShift": (
        _PODS + "unable to validate against any security context constraint: [x]",
        "add-scc-to-user", "Repair"),
    "OpenShift, an operator": (
        _PODS + "cannot set blockOwnerDeletion if an ownerReference refers to a resource you "
        "can't set finalizers on: , <nil>", "update the finalizers", "Repair"),
    "an API server that does not answer": (
        'Error creating: Post "https://10.0.0.1:443/api/v1/pods": net/http: TLS handshake timeout',
        "tries again by itself", "objects to"),
    "a webhook that does not answer": (
        'Error creating: Internal error occurred: failed calling webhook "x": connection refused',
        "Repair what serves the webhook", "etcd"),
}  # fmt: skip


@pytest.mark.parametrize("thread", KUBELET)
def test_by_the_kubelets_words(thread: str) -> None:
    message, says, not_said = KUBELET[thread]
    assert says in of_kubelet(message)
    assert not_said not in of_kubelet(message)


@pytest.mark.parametrize("thread", SCHEDULER)
def test_by_the_schedulers_words(thread: str) -> None:
    message, says, not_said = SCHEDULER[thread]
    assert says in of_scheduler(message)
    assert not_said not in of_scheduler(message)


@pytest.mark.parametrize("thread", REFUSED)
def test_by_the_api_servers_words(thread: str) -> None:
    message, says, not_said = REFUSED[thread]
    assert says in refusal_advice(message), refusal_of(message)
    assert not_said not in refusal_advice(message)
