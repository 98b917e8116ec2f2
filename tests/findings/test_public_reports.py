"""More situations out of public reports, each made here: what `diagnose` says of it first.

By name: the tracker and thread that it was asked in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from tracekit.cli.import_ import import_
from tracekit.report.findings import text_lines
from tracekit.sql.diagnosed import findings_of
from tracekit.sql.session import Session

Object = dict[str, Any]
UID = "batch.kubernetes.io/controller-uid"
RUNNING = {"running": {"startedAt": "2026-05-04T09:01:00Z"}}
PROXY = {"containers": [{"name": "main", "image": "i:1"}, {"name": "proxy", "image": "p:1"}]}
ON_FAILURE = {"restartPolicy": "OnFailure"}


def at(clock: str) -> str:
    return f"2026-05-04T{clock}:00Z"


def job(spec: Object | None = None, status: Object | None = None, **meta: Any) -> Object:
    template = {"metadata": {"labels": {UID: "j-1"}}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "i:1"}]}}  # fmt: skip
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "work", "namespace": "app", "uid": "j-1", "resourceVersion": "100",
                     "creationTimestamp": at("09:00"), **meta},
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 6, "suspend": False,
                 "completionMode": "NonIndexed", "selector": {"matchLabels": {UID: "j-1"}},
                 "template": template, **(spec or {})},
        "status": {"startTime": at("09:00"), "active": 1, "ready": 0, "terminating": 0,
                   "uncountedTerminatedPods": {}, **(status or {})},
    }  # fmt: skip


def failed(reason: str = "BackoffLimitExceeded") -> Object:
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": reason,
         "lastTransitionTime": at("09:06"), "lastProbeTime": at("09:06")}
        for kind in ("FailureTarget", "Failed")
    ]  # fmt: skip
    return job({"backoffLimit": 0}, {"active": 0, "failed": 1, "conditions": conditions})


def pod(phase: str, *containers: Object, spec: Object | None = None, **status: Any) -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "j-1",
             "controller": True, "blockOwnerDeletion": True}  # fmt: skip
    meta = status.pop("meta", {})
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "work-a", "namespace": "app", "uid": "p-1", "resourceVersion": "200",
                     "creationTimestamp": at("09:00"), "ownerReferences": [owner],
                     "labels": {UID: "j-1", "batch.kubernetes.io/job-name": "work"},
                     "finalizers": ["batch.kubernetes.io/job-tracking"], **meta},
        "spec": {"restartPolicy": "Never", "nodeName": "n1",
                 "containers": [{"name": "main", "image": "i:1"}], **(spec or {})},
        "status": {"phase": phase, "startTime": at("09:00"), "containerStatuses": list(containers),
                   **status},
    }  # fmt: skip


def container(name: str, state: Object, restarts: int = 0, last: Object | None = None) -> Object:
    return {"name": name, "image": "i:1", "imageID": "", "ready": state is RUNNING,
            "restartCount": restarts, "state": state, "lastState": last or {}}  # fmt: skip


def ended(code: int, reason: str = "Error") -> Object:
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": at("09:01"),
                           "finishedAt": at("09:05")}}  # fmt: skip


def waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def disrupted(reason: str) -> Object:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": reason}
    return pod("Failed", container("main", ended(143)), conditions=[condition])


def event(kind: str, reason: str, message: str) -> Object:
    name, uid = ("work-a", "p-1") if kind == "Pod" else ("work", "j-1")
    return {
        "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message,
        "metadata": {"name": "e", "namespace": "app", "uid": "e-1", "resourceVersion": "300",
                     "creationTimestamp": at("09:02")},
        "involvedObject": {"kind": kind, "name": name, "namespace": "app", "uid": uid},
        "count": 9, "firstTimestamp": at("09:02"), "lastTimestamp": at("10:00"),
        "source": {"component": "c"},
    }  # fmt: skip


#: The time of the look, where no Event tells one.
LOOK = event("Pod", "Pulled", "") | {
    "involvedObject": {"kind": "Pod", "name": "other", "namespace": "app", "uid": "p-9"}
}


class Asked(NamedTuple):
    """What was there, what the first screen says, and what it must not say."""

    objects: tuple[Object, ...]
    says: tuple[str, ...]
    not_said: tuple[str, ...] = ()


NO_PODS = {"active": 0}
SUSPENDED = {"type": "Suspended", "status": "True", "reason": "JobSuspended",
             "lastTransitionTime": at("09:00"), "lastProbeTime": at("09:00")}  # fmt: skip
ASKED = {
    "istio#11045, kubernetes#73118": Asked(
        (job(), pod("Running", container("main", ended(0, "Completed")), container("proxy", RUNNING),
                    spec=PROXY)),
        ("TK436", "done but for container proxy", "main ended with exit code 0", "native sidecar")),
    "kueue#3936, kueue#1726": Asked(
        (job({"suspend": True}, {"active": 0, "startTime": None, "conditions": [SUSPENDED]},
             labels={"kueue.x-k8s.io/queue-name": "ml"}),),
        ("TK413", "Kueue"), ("kubectl patch job",)),
    "keda#5895": Asked(
        (job(), pod("Pending", container("main", waiting("ImagePullBackOff", "unauthorized: no")))),
        ("TK404", "unauthorized: no")),
    "karpenter#3594, karpenter#3778": Asked(
        (failed(), disrupted("EvictionByEvictionAPI")), ("TK403", "EvictionByEvictionAPI", "09:06")),
    "kubernetes#107720, preemption": Asked(
        (failed(), disrupted("PreemptionByScheduler")), ("TK403", "PreemptionByScheduler")),
    "AKS#477": Asked(
        (job(), pod("Pending", container("main", waiting("ContainerCreating"))),
         event("Pod", "FailedAttachVolume", "Multi-Attach error for volume pvc-1")),
        ("TK428", "Multi-Attach error", "Free the volume"), ("Create what the message names",)),
    "kueue MultiKueue, KEP-4368": Asked(
        (job({"managedBy": "kueue.x-k8s.io/multikueue"}, {"active": 0, "startTime": None}),),
        ("TK437", "managed by kueue.x-k8s.io/multikueue"), ("has not begun",)),
    "Pod Security": Asked(
        (job(None, NO_PODS), event("Job", "FailedCreate", 'violates PodSecurity "restricted:latest"')),
        ("TK405", "Pod Security", "securityContext"), ("quota",)),
    "istio webhook down": Asked(
        (job(None, NO_PODS), event("Job", "FailedCreate", 'failed calling webhook "x": timeout')),
        ("TK405", "webhook cannot be called", "Repair what serves the webhook"), ("quota",)),
    "airflow, OOM in place": Asked(
        (job(), pod("Running", container("main", waiting("CrashLoopBackOff"), 5,
                                         ended(137, "OOMKilled")), spec=ON_FAILURE)),
        ("TK429", "OOMKilled", "Raise resources.limits.memory")),
    "airflow, OOM": Asked(
        (failed(), pod("Failed", container("main", ended(137, "OOMKilled")))), ("TK402", "OOMKilled")),
    "parallelism 0": Asked((job({"parallelism": 0}, NO_PODS),), ("TK438", "parallelism is 0")),
    "invalid image name": Asked(
        (job(), pod("Pending", container("main", waiting("InvalidImageName", "invalid reference")))),
        ("TK404", "invalid reference")),
    "GKE, ephemeral storage": Asked(
        (failed(), pod("Failed", reason="Evicted", message="The node was low on resource: disk.")),
        ("TK403", "low on resource: disk")),
    "containerd StartError": Asked(
        (failed(), pod("Failed", container("main", ended(128, "StartError")))),
        ("TK401", "exit code 128 (StartError)")),
    "KEP-753, native sidecar": Asked(
        (job(), pod("Pending", container("main", waiting("PodInitializing")),
                    initContainerStatuses=[container("proxy", waiting("CrashLoopBackOff"), 7, ended(1))])),
        ("TK429", "init container proxy", "7 restarts")),
    "a finalizer of somebody else": Asked(
        (job(), pod("Running", container("main", RUNNING), meta={
            "deletionTimestamp": at("09:11"), "deletionGracePeriodSeconds": 30,
            "finalizers": ["batch.kubernetes.io/job-tracking", "example.com/lock"]})),
        ("TK430", "example.com/lock")),
    "kueue topology gate": Asked(
        (job(), pod("Pending", spec={"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]})),
        ("TK428", "kueue.x-k8s.io/topology"), ("Unschedulable",)),
}  # fmt: skip


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, tmp_path: Path) -> None:
    asked = ASKED[thread]
    log, out = tmp_path / "list.json", tmp_path / "trace"
    log.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [*asked.objects, LOOK]})
    )
    words = [str(log), "-o", str(out), "--kubernetes-version", "v1.33.4"]
    result = CliRunner().invoke(import_, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    lines = list(text_lines(findings_of(Session([str(out)]))))
    screen = " ".join(" ".join(lines[:24]).split())
    assert [text for text in asked.says if text not in screen] == [], screen
    assert [text for text in asked.not_said if text in screen] == [], screen
