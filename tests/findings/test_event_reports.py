"""Situations told by Events, each made here: of nodes, and where Events are all that there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import (
    RUNNING,
    SUSPENDED,
    UID,
    Asked,
    Object,
    alone,
    at,
    check_first_screen,
    container,
    disrupted,
    ended,
    event,
    failed,
    job,
    pod,
    said_at_ten,
    unschedulable,
    waiting,
)
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.answers.trace_model import Facts

FREED: Object = {"finalizers": []}


def of(kind: str, name: str, reason: str, message: str, clock: str, **more: Any) -> Object:
    """An Event at one time about an object, of type Warning unless more is said."""
    space = {} if kind == "Node" else {"namespace": "app"}
    uid = {"work-a": "p-1", "work": "j-1"}.get(name, f"u-{name}")
    found = event("Pod", reason, message)
    found["metadata"] = {**found["metadata"], "name": f"{name}.{reason}", "uid": f"{name}-{reason}",
                         "namespace": space.get("namespace", "default"),
                         "creationTimestamp": at(clock)}  # fmt: skip
    about = {"kind": kind, "name": name, "uid": name if kind == "Node" else uid, **space}
    return found | {"involvedObject": about, "count": 1, "firstTimestamp": at(clock),
                    "lastTimestamp": at(clock), **more}  # fmt: skip


def of_node(node: str, reason: str, clock: str, message: str = "") -> Object:
    said = message or f"Node {node} status is now: {reason}"
    return of("Node", node, reason, said, clock, type="Normal")


def on(node: str, found: Object) -> Object:
    found["spec"]["nodeName"] = node
    found["metadata"]["finalizers"] = []
    return found


def evicted(message: str) -> Object:
    return pod("Failed", reason="Evicted", message=message, meta=FREED)


def on_fargate() -> Object:
    """A pod that a profile selected, and that has no node."""
    labels = {UID: "j-1", "eks.amazonaws.com/fargate-profile": "old"}
    return pod("Pending", spec={"nodeName": None, "schedulerName": "fargate-scheduler"},
               meta={"labels": labels})  # fmt: skip


def by_fargate(message: str) -> Object:
    return of("Pod", "work-a", "FailedScheduling", message, "09:02")


def workload_evicted() -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "j-1",
             "controller": True}  # fmt: skip
    admitted = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "admitted",
                "lastTransitionTime": at("09:00")}  # fmt: skip
    evicted = {"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout",
               "message": "Exceeded the PodsReady timeout", "lastTransitionTime": at("09:10")}  # fmt: skip
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": "job-work-1a2b3", "namespace": "app", "uid": "w-1",
                     "resourceVersion": "400", "creationTimestamp": at("09:00"),
                     "ownerReferences": [owner]},
        "spec": {"queueName": "ml", "active": True}, "status": {"conditions": [admitted, evicted]},
    }  # fmt: skip


def indexed(*before: Object) -> Object:
    """A Job of two indexes that failed, with a policy for exit code 42, after other rules."""
    found = failed("FailedIndexes")
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
    found["spec"].update(completionMode="Indexed", completions=2, parallelism=2,
                         backoffLimitPerIndex=3, backoffLimit=2147483647,
                         podFailurePolicy={"rules": [*before, rule]})  # fmt: skip
    found["status"].update(failedIndexes="1", completedIndexes="0")
    return found


def of_index(index: int) -> Object:
    key = "batch.kubernetes.io/job-completion-index"
    return {"name": f"work-{index}-x", "uid": f"p-{index}", "finalizers": [],
            "labels": {UID: "j-1", key: str(index)}, "annotations": {key: str(index)}}  # fmt: skip


OUT_OF_MEMORY = "System OOM encountered, victim process: python3, pid: 4242"
KILLED = container("main", ended(137))
CRASHED = container("main", ended(255, "Unknown"))

#: By situation; Events of nodes have no namespace, so that each has nodes of its own.
ASKED = {
    "cloud-platform#7254, a disk that is full": Asked(
        (failed(), on("disk-1", disrupted("TerminationByKubelet")),
         of_node("disk-1", "NodeHasDiskPressure", "09:04"),
         of_node("disk-1", "EvictionThresholdMet", "09:03", "Attempting to reclaim storage")),
        ("TK403", "Events of node disk-1: NodeHasDiskPressure at 2026-05-04 09:04:00Z, Eviction",
         "do: Free the disk of node disk-1", "podFailurePolicy ignore"), ()),
    "kubernetes#96363, a node that was lost": Asked(
        (failed(), on("lost-1", disrupted("DeletionByTaintManager")),
         of_node("lost-1", "NodeNotReady", "09:01")),
        ("TK403", "Events of node lost-1: NodeNotReady at 2026-05-04 09:01:00Z",
         "See why node lost-1 was lost"), ("requests and a priority",)),
    "a node that was well again before": Asked(
        (failed(), on("well-1", disrupted("DeletionByTaintManager")) | {"status": {
            **disrupted("DeletionByTaintManager")["status"], "conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
                 "lastTransitionTime": at("09:05")}]}},
         of_node("well-1", "NodeNotReady", "08:01"), of_node("well-1", "NodeReady", "08:03")),
        ("TK403", "on node well-1"), ("Events of node",)),
    "a node without memory": Asked(
        (failed(), on("oom-1", pod("Failed", KILLED)),
         of_node("oom-1", "SystemOOM", "09:05", OUT_OF_MEMORY)),
        ("TK401", "failed with exit code 137", f"SystemOOM at 2026-05-04 09:05:00Z ({OUT_OF_MEMORY})",
         "Node oom-1 had no memory left"), ("SIGKILL without OOMKilled",)),
    "a node without memory half an hour before": Asked(
        (failed(), on("oom-2", pod("Failed", KILLED)),
         of_node("oom-2", "SystemOOM", "08:35", OUT_OF_MEMORY)),
        ("TK401", "SIGKILL without OOMKilled"), ("Events of node",)),
    "an error of its own on a node without memory": Asked(
        (failed(), on("oom-3", pod("Failed", container("main", ended(3)))),
         of_node("oom-3", "SystemOOM", "09:05", OUT_OF_MEMORY)),
        ("TK401", "failed with exit code 3"), ("Events of node",)),
    "a node that was rebooted": Asked(
        (failed(), on("boot-1", pod("Failed", CRASHED)), of_node("boot-1", "Rebooted", "09:05")),
        ("TK401", "exit code 255", "Events of node boot-1: Rebooted", "See who rebooted"), ()),
    "a spot instance, no pod left": Asked(
        (failed(),
         of("Pod", "work-x2x4z", "Scheduled", "Successfully assigned app/work-x2x4z to spot-1",
            "09:00", type="Normal"),
         of_node("spot-1", "SpotInterruption", "09:03", "Spot Interruption event received.")),
        ("TK409", "Events of node spot-1: SpotInterruption at 2026-05-04 09:03:00Z",
         "The instance was taken back"), ()),
    "a node that does not answer, for its memory": Asked(
        (job(), on("mute-1", pod("Running", container("main", RUNNING), conditions=[
            {"type": "Ready", "status": "False"}])),
         of("Pod", "work-a", "NodeNotReady", "Node is not ready", "09:30"),
         of_node("mute-1", "SystemOOM", "09:28", OUT_OF_MEMORY)),
        ("TK441", "Events of node mute-1: SystemOOM at 2026-05-04 09:28:00Z"), ()),
    "airflow, a pod of no Job on such a node": Asked(
        (on("oom-4", alone("Failed", KILLED)),
         of_node("oom-4", "SystemOOM", "09:05", OUT_OF_MEMORY)),
        ("TK451", "Events of node oom-4: SystemOOM", "Node oom-4 had no memory left"), ()),
    "operate-first/apps#1352, refused for pressure": Asked(
        (failed(), evicted("Pod The node had condition: [DiskPressure]. ")),
        ("TK403", "the kubelet refused its pods, as its node was under pressure (Evicted)",
         "Free what the node lacks"), ("were evicted", "create it anew")),
    "a pod that waits after one that was refused": Asked(
        (job(None, {"failed": 1}), evicted("x"), unschedulable(
            "0/3 nodes are available: 3 Insufficient cpu.") | {"metadata": {
                **unschedulable("")["metadata"], "name": "work-b", "uid": "p-2"}}),
        ("TK411", "has pods that no node takes (Unschedulable)"), ("beside others",)),
    "agent-toolkit#10, a volume that another pod has, and a deadline": Asked(
        (failed("DeadlineExceeded"),
         of("Pod", "work-x2x4z", "FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume '
            "is already used by pod(s) agent-0", "09:01"),
         of("Pod", "work-x2x4z", "FailedMount", "Unable to attach or mount volumes: timed out waiting "
            "for the condition", "09:03")),
        ("TK408", "Event FailedAttachVolume of pod work-x2x4z: Multi-Attach", "Free the volume"), ()),
    "containers-roadmap#2654, a Fargate profile that goes": Asked(
        (job(), on_fargate(), by_fargate("Misconfigured Fargate Profile: fargate profile old blocked "
                                         "for new launches due to: it is in DELETING status")),
        ("TK411", "DELETING status", "what the message names of the Fargate profile"),
        ("requests, node selector",)),
    "containers-roadmap#807, nothing is said of it": Asked(
        (job(), on_fargate()),
        ("TK411", "no scheduler has looked at its pods (schedulerName fargate-scheduler)",
         "See whether Fargate profile old is there and ACTIVE"), ("runs and serves",)),
    "containers-roadmap#1890, no node in time": Asked(
        (job(), on_fargate(), by_fargate("Pod provisioning timed out (will retry) for pod: app/work-a")),
        ("TK411", "It is tried again by itself"), ("requests, node selector",)),
    "terraform-aws-eks#2864, no profile selects it": Asked(
        (job(), unschedulable("0/2 nodes are available: 2 node(s) had untolerated taint "
                              "{eks.amazonaws.com/compute-type: fargate}.")),
        ("TK411", "Let a Fargate profile select the pod"), ("Tolerate the taint",)),
    "containers-roadmap#1890, a limit that is no request": Asked(
        (failed(), pod("Failed", container("main", {"terminated": {
            **ended(128, "StartError")["terminated"], "message": "failed to create shim task: OCI "
            "runtime create failed: error setting cgroup config: write cpu.cfs_quota_us: invalid "
            "argument"}}), meta=FREED)),
        ("TK401", "Let requests.cpu and limits.cpu of each container be equal"), ()),
    "kubernetes#80286, a node that takes no more volumes": Asked(
        (job(), pod("Pending", container("main", waiting("ContainerCreating"))),
         of("Pod", "work-a", "FailedAttachVolume", 'AttachVolume.Attach failed for volume "pvc-1" : '
            "rpc error: AttachmentLimitExceeded", "09:01")),
        ("TK428", "The node has as many volumes as it can"), ("describe pv",)),
    "kueue#14811, evicted and admitted": Asked(
        (job({"suspend": True}, {"active": 0, "startTime": None, "conditions": [SUSPENDED]},
             labels={"kueue.x-k8s.io/queue-name": "ml"}), workload_evicted()),
        ("TK413", "Kueue (queue ml) has evicted it (PodsReadyTimeout), and its Workload has its quota",
         "since 2026-05-04 09:10:00Z", "do not become ready in time"), ("has admitted its Workload",)),
    "airflow#56693, a pod that is scaled down once its Job is Complete": Asked(
        (job(None, {"active": 0, "succeeded": 1, "completionTime": at("09:06"), "conditions": [
            {"type": "Complete", "status": "True", "lastTransitionTime": at("09:06")}]}),
         of("Pod", "work-x2x4z", "ScaleDown", "deleting pod for node scale down", "09:20",
            type="Normal")),
        ("TK435", "Event ScaleDown of pod work-x2x4z", "does not run again"), ("TK450",)),
    "an Indexed Job whose index others ended": Asked(
        (job({"completionMode": "Indexed", "completions": 2, "parallelism": 2}),
         pod("Running", container("main", RUNNING)),
         of("Pod", "work-1-x2x4z", "TaintManagerEviction", "Marking for deletion Pod app/work-1-x2x4z",
            "09:20", type="Normal")),
        ("INFO TK450", "went on after the taint-eviction-controller ended pods of it", "work-1-x2x4z"), ()),
    "an index that a policy does not try again": Asked(
        (indexed(), pod("Failed", container("main", ended(42)), meta=of_index(1)),
         pod("Succeeded", container("main", ended(0, "Completed")), meta=of_index(0))),
        ("TK410", "index 1: 1 pod, exit code 42, not tried again by a FailIndex rule",
         "backoffLimitPerIndex 3"), ()),
    "an index whose exit code an earlier rule counts": Asked(
        (indexed({"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [7]}}),
         pod("Failed", container("main", ended(42)), meta=of_index(1)),
         pod("Succeeded", container("main", ended(0, "Completed")), meta=of_index(0))),
        ("TK410", "index 1: 1 pod, exit code 42 (backoffLimitPerIndex 3)"), ("not tried again",)),
    "volcano, a gang that does not fit": Asked(
        (job(), unschedulable("3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 "
                              "minAvailable; Pending: 3 Unschedulable")),
        ("TK411", "Its scheduler places all pods of a group or none"), ("Uncordon",)),
    "autoscaler, a group that is as large as it may be": Asked(
        (job(), unschedulable("0/3 nodes are available: 3 Insufficient memory."),
         of("Pod", "work-a", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size "
            "reached", "09:02", type="Normal")),
        ("TK411", "Raise the node group's maximum size. Or: ask for less"), ()),
    "gke, no machine of that kind": Asked(
        (job(), unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
         of("Pod", "work-a", "FailedScaleUp", "Node scale up in zones a associated with this pod "
            "failed: GCE out of resources.", "09:02")),
        ("TK411", "The provider gives no such machine now"), ()),
    "test-infra#13039, a name that is in use": Asked(
        (job(), pod("Pending", container("main", waiting("ContainerCreating"))),
         of("Pod", "work-a", "FailedCreatePodSandBox", 'Conflict. The container name "/k8s_POD_x" is '
            "already in use by container", "09:02")),
        ("TK428", "Look at the node's container runtime"), ("Repair what",)),
    "what hindered an unseen pod at first": Asked(
        (failed("DeadlineExceeded"),
         of("Pod", "work-x2x4z", "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.",
            "09:01"),
         of("Pod", "work-x2x4z", "Started", "Started container main", "09:03", type="Normal")),
        ("TK408",), ("Insufficient cpu",)),
    "a deadline, and a pod that had ended when somebody looked": Asked(
        (failed("DeadlineExceeded"), pod("Failed", container("main", ended(143)), meta=FREED)),
        ("TK408", "it ran longer than activeDeadlineSeconds"), ("TK406", "before a pod ran")),
    "two Jobs that are being deleted": Asked(
        tuple(job(name=name, uid=f"j-{name}", deletionTimestamp=at("09:05"),
                  finalizers=["foregroundDeletion"]) for name in ("one", "two")),
        ("TK412 2 Jobs", "were asked to go, and are held by the finalizer"), ()),
}  # fmt: skip


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)


LIMIT = of("Job", "load", "BackoffLimitExceeded", "Job has reached the specified backoff limit",
           "09:07")  # fmt: skip
AGAIN = "Back-off restarting failed container main in pod load-x2x4z_app(1)"
PLACED = of("Pod", "load-x2x4z", "Scheduled", "Successfully assigned app/load-x2x4z to n1", "09:00",
            type="Normal")  # fmt: skip
#: By situation: Events that are all that was listed, what is said first, and what is not said.
EVENTS: dict[str, tuple[tuple[Object, ...], tuple[str, ...], tuple[str, ...]]] = {
    "a container that is begun again": (
        (of("Pod", "load-x2x4z", "BackOff", AGAIN, "09:01", count=12), LIMIT),
        ("WARNING TK443 Job app/load: was told of as failed (BackoffLimitExceeded)",
         "Event BackOff of pod load-x2x4z (12 times)", "kubectl logs -n app load-x2x4z --previous"),
        ("TK445", "TK906")),
    "an image, and a deadline": (
        (of("Pod", "load-x2x4z", "Failed", 'Failed to pull image "r/x:1": manifest unknown', "09:01"),
         of("Pod", "load-x2x4z", "BackOff", 'Back-off pulling image "r/x:1"', "09:05"),
         of("Job", "load", "DeadlineExceeded", "Job was active longer than specified", "09:06")),
        ("TK443", "(DeadlineExceeded)", "manifest unknown", "Correct the image's name or tag"), ()),
    "an index of a Job": (
        (of("Pod", "load-3-x2x4z", "BackOff", AGAIN, "09:01"), LIMIT),
        ("TK443", "of pod load-3-x2x4z"), ("TK445",)),
    "a pod of another Job": (
        (of("Pod", "load-big-x2x4z", "BackOff", AGAIN, "09:01"), LIMIT),
        ("TK443 Job app/load", "TK445 Pod app/load-big-x2x4z"), ()),
    "what hindered it at first": (
        (of("Pod", "load-x2x4z", "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.",
            "08:50"), PLACED, of("Pod", "load-x2x4z", "BackOff", AGAIN, "09:05"), LIMIT),
        ("TK443", "Event BackOff of pod load-x2x4z"), ("Insufficient cpu",)),
    "a node that was lost": (
        (PLACED, of_node("n1", "NodeNotReady", "09:01"),
         of("Pod", "load-x2x4z", "TaintManagerEviction", "Marking for deletion Pod app/load-x2x4z",
            "09:06", type="Normal"), LIMIT),
        ("TK443", "the taint-eviction-controller ended load-x2x4z (Event TaintManagerEviction: ",
         "Events of node n1: NodeNotReady", "See why node n1 was lost"), ("TK445",)),
    "a node that was lost, of a pod that nobody saw placed": (
        (of_node("n2", "NodeNotReady", "09:01"),
         of("Pod", "load-x2x4z", "NodeControllerEviction", "Marking for deletion Pod load-x2x4z from "
            "Node n2", "09:06", type="Normal"), LIMIT),
        ("TK443", "Events of node n2: NodeNotReady", "See why node n2 was lost"), ("TK445",)),
    "a pod that gave way on a node without memory": (
        (of_node("n3", "SystemOOM", "09:01", "System OOM encountered"),
         of("Pod", "fresh-abd", "Preempted", "Preempted by pod 1-2-3 on node n3", "09:03",
            type="Normal")),
        ("WARNING TK445 Pod app/fresh-abd: was ended by the kube-scheduler",
         "Events of node n3: SystemOOM"), ("Node n3:",)),
    "airflow#59626, a pod that gave way": (
        (of("Pod", "fresh-abc", "Preempted", "Preempted by a pod on node n7", "09:03", type="Normal"),),
        ("WARNING TK445 Pod app/fresh-abc: was ended by the kube-scheduler, as an Event tells (Preempted)",
         "priorityClassName"), ()),
    "karpenter#651, a pod that Karpenter took": (
        (of("Pod", "load-x2x4z", "Evicted", "Evicted pod: Underutilized", "09:03", type="Normal"), LIMIT),
        ("TK443", "Karpenter ended load-x2x4z (Event Evicted: Evicted pod: Underutilized)",
         'Set karpenter.sh/do-not-disrupt: "true" in the pod template'), ("TK445",)),
    "a pod that the cluster autoscaler took": (
        (of("Pod", "load-x2x4z", "ScaleDown", "deleting pod for node scale down", "09:03", type="Normal"),),
        ("TK445 Pod app/load-x2x4z: was ended by the cluster autoscaler", "safe-to-evict"), ()),
    "memory of a node that a kubelet lacked": (
        (of("Pod", "load-x2x4z", "Evicted", "The node was low on resource: memory.", "09:03"),),
        ("TK445 Pod app/load-x2x4z: was ended by the kubelet", "resources.requests"), ("autoscaler",)),
    "a deletion that was cancelled": (
        (of("Pod", "fresh-abc", "TaintManagerEviction", "Cancelling deletion of Pod app/fresh-abc",
            "09:03", type="Normal"),), (), ("TK445",)),
    "a node alone": (
        (of_node("n1", "SystemOOM", "09:05", OUT_OF_MEMORY),),
        ("INFO TK445 Node n1: was told of with SystemOOM", OUT_OF_MEMORY), ()),
    "logs that Fargate does not ship": (
        (of("Pod", "load-x2x4z", "LoggingDisabled", "Disabled logging because aws-logging configmap "
            "was not found", "09:03"),), ("INFO TK445 Pod",), ("WARNING",)),
    "kubernetes#106540, a pod that began late": (
        (of("Pod", "load-x2x4z", "FailedCreatePodSandBox", "context deadline exceeded", "09:01"),
         of("Pod", "load-x2x4z", "Started", "Started container main", "09:08", type="Normal")),
        ("INFO TK445 Pod", "it began after that"), ("WARNING",)),
    "kubernetes#36311, too many missed starts": (
        (of("CronJob", "tick", "FailedNeedsStart", "too many missed start time (> 100)", "09:01"),),
        ("WARNING TK445 CronJob app/tick", "Set startingDeadlineSeconds"), ("Print what",)),
    "a run that waits for the one before": (
        (of("CronJob", "tick", "JobAlreadyActive", "Not starting job because prior execution is "
            "running", "09:01", type="Normal"),),
        ("INFO TK445 CronJob app/tick: did not start, as the run before had not ended",
         "See why that run has not ended"), ()),
}  # fmt: skip


@pytest.mark.parametrize("situation", EVENTS)
def test_what_events_alone_say_first(situation: str, run, tmp_path: Path) -> None:  # noqa: F811
    items, says, not_said = EVENTS[situation]
    out = said_at_ten(
        run,
        tmp_path / "events.json",
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
    )
    assert [text for text in says if text not in out] == [], out
    assert [text for text in not_said if text in out] == [], out


def test_advice_that_its_cause_has_given_is_not_repeated(run, tmp_path: Path) -> None:  # noqa: F811
    """TK410 beneath TK422: the same index, the same log."""
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2,
            "backoffLimitPerIndex": 1, "backoffLimit": 2147483647}  # fmt: skip
    items = [failed("FailedIndexes")]
    items[0]["spec"].update(spec)
    for name, index, code in ("a", 0, 0), ("b", 1, 3), ("c", 1, 3):
        meta = {"name": f"work-{name}", "uid": f"p-{name}", "finalizers": [],
                "labels": {UID: "j-1", "batch.kubernetes.io/job-completion-index": str(index)},
                "annotations": {"batch.kubernetes.io/job-completion-index": str(index)}}  # fmt: skip
        items.append(
            pod("Failed" if code else "Succeeded", container("main", ended(code)), meta=meta)
        )
    out = said_at_ten(
        run,
        tmp_path / "list.json",
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
    )
    assert out.count("look at its input") == 1
    assert "TK410" in out
    assert "do: see TK422." in out


def test_explain_tells_of_the_node_of_its_pod(run, tmp_path: Path) -> None:  # noqa: F811
    """The Event lies in another namespace than the Job, of which alone rows are read."""
    items = ASKED["a node without memory"].objects
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    out = " ".join(run("explain", str(file), "work", "--at", at("10:00"))[1].split())
    assert "Events of node oom-1: SystemOOM at 2026-05-04 09:05:00Z" in out


TABLE = """NAMESPACE  LAST SEEN  TYPE     REASON                OBJECT          MESSAGE
app        9m         Warning  BackOff               pod/load-x2x4z  Back-off restarting failed container
app        5m         Warning  BackoffLimitExceeded  job/load        Job has reached the specified limit
app        2m         Normal   Preempted             pod/fresh-abc   Preempted by pod 11-22 on node n7
app        2m         Normal   Scheduled             pod/other-abc   Successfully assigned app/other-abc
"""


def test_a_table_of_events_says_why_a_job_failed(run, tmp_path: Path) -> None:  # noqa: F811
    out = said_at_ten(run, tmp_path / "events.txt", TABLE)
    assert "TK443 Job app/load: was shown as failed (BackoffLimitExceeded)" in out
    assert "Event BackOff of pod load-x2x4z: Back-off restarting failed container, at about" in out
    assert "kubectl logs -n app load-x2x4z --previous" in out
    assert (
        "TK445 Pod app/fresh-abc: was ended by the kube-scheduler, as an Event tells (Preempted)"
        in out
    )
    assert "TK445 Pod app/load-x2x4z" not in out
    assert "other-abc" not in out


DESCRIBED = """Name:         drv-1
Namespace:    spark
Node:         n1/10.0.0.1
Status:       Failed
Reason:       Evicted
Message:      The node was low on resource: memory. Container driver was using 3Gi, request is 1Gi
IP:           10.0.0.3
Containers:
  driver:
    Image:          i:1
    State:          Terminated
      Reason:       Error
      Exit Code:    137
    Ready:          False
    Restart Count:  0
"""


def test_an_evicted_pod_is_no_error_of_its_container(run, tmp_path: Path) -> None:  # noqa: F811
    out = said_at_ten(run, tmp_path / "pod.txt", DESCRIBED)
    assert "TK444 Pod spark/drv-1: was shown as Evicted" in out
    assert "resources.requests" in out
    assert "kubectl logs" not in out


def test_who_scaled_a_node_down_is_told_of_a_pod_of_a_workflow(run, tmp_path: Path) -> None:  # noqa: F811
    """argo-workflows#5321."""
    going = {"deletionTimestamp": at("09:05"), "deletionGracePeriodSeconds": 30}
    found = [
        ("ADDED", alone("Running", container("main", RUNNING), owner="Workflow")),
        ("ADDED", of("Pod", "work-a", "ScaleDown", "deleting pod for node scale down", "09:04",
                     type="Normal")),
        ("MODIFIED", alone("Running", container("main", RUNNING), owner="Workflow", meta=going)),
        ("DELETED", alone("Running", container("main", RUNNING), owner="Workflow", meta=going)),
    ]  # fmt: skip
    for number, (_, state) in enumerate(found):
        state["metadata"]["resourceVersion"] = str(200 + number)
    out = said_at_ten(
        run,
        tmp_path / "watch.json",
        "".join(json.dumps({"type": kind, "object": o}) + "\n" for kind, o in found),
    )
    assert "WARNING TK451 Pod app/work-a: was deleted while it ran: a disruption (ScaleDown)" in out


RUNNER = {"karpenter.sh/do-not-disrupt": "true"}


@pytest.mark.parametrize(
    ("annotations", "advice"),
    [
        (RUNNER, 'Its pods have karpenter.sh/do-not-disrupt: "true" already'),
        ({}, 'Set karpenter.sh/do-not-disrupt: "true" in the pod\'s annotations'),
    ],
)
def test_who_took_a_pod_without_a_job_is_told(
    run, tmp_path: Path, annotations: Object, advice: str  # noqa: F811
) -> None:  # fmt: skip
    """karpenter-provider-aws#8276."""
    mine = disrupted("EvictionByEvictionAPI")
    mine["metadata"].update(ownerReferences=[], finalizers=[], labels={}, annotations=annotations)
    said = of("Pod", "work-a", "Evicted", "Evicted pod: Expired", "09:05", type="Normal")
    out = said_at_ten(
        run,
        tmp_path / "pods.json",
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [mine, said]}),
    )
    assert "Karpenter took work-a off its node (Event Evicted, 2026-05-04 09:05:00Z: " in out
    assert advice in out


def test_who_ended_a_described_pod_its_events_tell(run, tmp_path: Path) -> None:  # noqa: F811
    """karpenter#701."""
    out = said_at_ten(run, tmp_path / "pod.txt", GOING)
    assert "Karpenter ended train-7mx4k (Event Evicted: Evicted pod: Underutilized)" in out
    assert 'do: Set karpenter.sh/do-not-disrupt: "true"' in out


GOING = """Name:         train-7mx4k
Namespace:    ml
Node:         n1/10.0.0.1
Status:       Terminating (lasts 41s)
Controlled By:  Job/train
Containers:
  train:
    State:          Running
    Ready:          True
Events:
  Type     Reason     Age   From               Message
  ----     ------     ----  ----               -------
  Normal   Evicted    71s   karpenter          Evicted pod: Underutilized
  Normal   Killing    71s   kubelet            Stopping container train
"""


def test_a_policy_of_its_own_is_not_advised_to_a_job(run, tmp_path: Path) -> None:  # noqa: F811
    """Its pods gave way, and nobody saw them."""
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    items = [
        job({"podFailurePolicy": {"rules": [rule]}}, {"active": 1}),
        pod("Running", container("main", RUNNING), meta={"name": "work-x2x4z"}),
        of(
            "Pod",
            "work-q4q4z",
            "Preempted",
            "Preempted by a pod on node n7",
            "09:03",
            type="Normal",
        ),
    ]
    out = said_at_ten(
        run,
        tmp_path / "list.json",
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
    )
    assert "TK450 Job app/work: went on after the kube-scheduler ended pods of it" in out
    assert "its podFailurePolicy decides whether that counts" in out
    assert "Let a podFailurePolicy ignore" not in out


def test_explain_tells_of_a_job_by_events_alone(run, tmp_path: Path) -> None:  # noqa: F811
    """No version is asked for: there is nothing that its rules could judge."""
    items = EVENTS["a container that is begun again"][0]
    file = tmp_path / "events.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    code, out, err = run("explain", str(file), "load", "--at", at("10:00"))
    assert "warning TK443: was told of as failed (BackoffLimitExceeded)" in out
    assert "kubectl logs -n app load-x2x4z --previous" in out
    assert (code, "--kubernetes-version" in err) == (0, False)


NODES = """NAMESPACE  LAST SEEN  TYPE     REASON                OBJECT          MESSAGE
default    50m        Normal   NodeNotReady          node/n7         Node n7 status is now: NodeNotReady
app        44m        Normal   Scheduled             pod/load-x2x4z  Successfully assigned app/load-x2x4z to n7
app        43m        Normal   TaintManagerEviction  pod/load-x2x4z  Marking for deletion Pod app/load-x2x4z
default    11m        Warning  SystemOOM             node/n9         System OOM encountered, victim process: py
app        9m         Warning  WorkflowFailed        workflow/nightly  child 'x' errored
app        8m         Warning  FailedCreate          deployment/web  no matter
"""


def test_a_table_of_events_tells_of_nodes(run, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "events.txt"
    file.write_text(NODES)
    code, out, err = run("diagnose", str(file), "--at", at("10:00"))
    out = " ".join(out.split())
    assert "TK445 Pod app/load-x2x4z: was ended by the taint-eviction-controller" in out
    assert "Events of node n7: NodeNotReady at 2026-05-04 09:10:00Z" in out
    assert "INFO TK445 Node n9: was shown with SystemOOM" in out
    assert "Node n9 had no memory left" in out
    assert "TK445 Workflow app/nightly: was shown with the warning WorkflowFailed" in out
    assert "TK445 Node n7" not in out
    assert "Deployment" not in out
    assert "Events about other kinds, left out" in err
    assert (code, "as of 2026-05-04T10:00:00Z" in err) == (0, True)


def test_rows_of_events_without_their_head_are_read(run, tmp_path: Path) -> None:  # noqa: F811
    """tektoncd-operator#1223: what `kubectl get events -A | grep` leaves."""
    denied = (
        'Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest": '
        "runAsNonRoot != true"
    )
    out = said_at_ten(
        run,
        tmp_path / "events.txt",
        f"ops   4s          Warning   FailedCreate     job/prune-1     {denied}\n",
    )
    assert "WARNING TK445 Job ops/prune-1: was shown with the warning FailedCreate" in out
    assert "pod-security.kubernetes.io/enforce" in out
