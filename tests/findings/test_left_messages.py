"""What containers, the kubelet and the runtime left as words: the cause stands in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.findings.situations import (
    ON_FAILURE,
    RUNNING,
    SUSPENDED,
    UID,
    Asked,
    Object,
    at,
    check_first_screen,
    container,
    cron,
    disrupted,
    ended,
    event,
    failed,
    job,
    of_cron,
    pod,
    unschedulable,
    waiting,
)
from tracekit import Trace
from tracekit.answers.findings.diagnosis import Wanted, diagnose
from tracekit.answers.trace_model import Facts

CREATING = container("main", waiting("ContainerCreating"))
RUNTIME = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc "
    "create failed: unable to start container process: exec: "
)


def left(code: int, message: str, reason: str = "Error") -> Object:
    found = ended(code, reason)
    found["terminated"]["message"] = message
    return found


def said(kind: str, reason: str, message: str, number: int, **more: Any) -> Object:
    """An Event of that pod or Job, one of several."""
    found = event(kind, reason, message) | more
    found["metadata"] = {**found["metadata"], "name": f"e-{number}", "uid": f"e-{number}"}
    return found


def asked_of_ends() -> Mapping[str, Asked]:
    stored = disrupted("TerminationByKubelet")
    stored["status"]["conditions"][0]["message"] = (
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
    )
    indexes = failed("MaxFailedIndexesExceeded")
    indexes["spec"].update(completionMode="Indexed", completions=10, maxFailedIndexes=2)
    indexes["status"].update(failed=3, failedIndexes="1,4,7")
    again = container("main", waiting("CrashLoopBackOff"), 4, left(3, "x\nno route to db:5432\n"))
    restarted = job({"backoffLimit": 4, "template": {
        "metadata": {"labels": {UID: "j-1"}},
        "spec": {**ON_FAILURE, "containers": [{"name": "main", "image": "i:1"}]}}},
        failed()["status"])  # fmt: skip
    return {
        "the runtime says why it did not begin": Asked(
            (failed(), pod("Failed", container("main", left(
                128, RUNTIME + '"/app/run.sh": permission denied: unknown', "StartError")))),
            ('"/app/run.sh": permission denied', "chmod +x"), ("Read the logs",)),
        "a program's own last line": Asked(
            (failed(), pod("Failed", container("main", left(
                1, "Traceback (most recent call last):\nKeyError: 'DATABASE_URL'\n")))),
            ("container main of work-a: KeyError: 'DATABASE_URL'", "Read the logs")),
        "a program that cannot open its own file": Asked(
            (failed(), pod("Failed", container("main", left(2, "open /x: permission denied")))),
            ("open /x: permission denied", "Read the logs"), ("chmod",)),
        "another architecture": Asked(
            (failed(), pod("Failed", container("main", left(1, "exec /app: exec format error")))),
            ("exec format error", "kubernetes.io/arch")),
        "again and again": Asked(
            (job(status={"active": 1}), pod("Running", again)),
            ("it left: no route to db:5432",)),
        "killed by a liveness probe": Asked(
            (failed(), pod("Failed", container("main", ended(137))),
             said("Pod", "Killing", "Container main failed liveness probe, will be restarted", 1)),
            ("Event Killing: Container main failed liveness probe", "startupProbe"),
            ("SIGKILL without OOMKilled",)),
        "a readiness probe kills nobody": Asked(
            (failed(), pod("Failed", container("main", ended(137))),
             said("Pod", "Unhealthy", "Readiness probe failed: connection refused", 1)),
            ("SIGKILL without OOMKilled",), ("Readiness", "startupProbe")),
        "ephemeral storage": Asked(
            (failed(), stored),
            ("ephemeral local storage usage exceeds", "Raise that limit, or let it write less"),
            ("ignore DisruptionTarget",)),
        "more indexes than it may lose": Asked(
            (indexes,), ("failed indexes: 1,4,7 of 10, maxFailedIndexes 2",)),
        "restarted until the limit, and deleted": Asked(
            (restarted, said("Pod", "BackOff", "Back-off restarting failed container main", 1,
                             count=12, lastTimestamp=at("09:06"))),
            ("restarted more often than backoffLimit allows", "work-a (12 times)")),
        "another Job's pod": Asked(
            (restarted, said("Pod", "BackOff", "Back-off restarting failed container main", 1)
             | {"involvedObject": {"kind": "Pod", "name": "work-b-12345", "namespace": "app",
                                   "uid": "p-9"}}),
            ("TK409",), ("BackOff",)),
    }  # fmt: skip


def asked_of_starts() -> Mapping[str, Asked]:
    multi = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other-0'
    timeout = "Unable to attach or mount volumes: timed out waiting for the condition"
    webhook = (
        "Error creating: Internal error occurred: failed calling webhook "
        '"validate.kyverno.svc-fail": failed to call webhook: Post '
        '"https://kyverno-svc.kyverno.svc:443/validate/fail?timeout=10s": context deadline exceeded'
    )
    return {
        "a volume that another pod has": Asked(
            (job(status={"active": 1}), pod("Pending", CREATING),
             said("Pod", "FailedAttachVolume", multi, 1),
             said("Pod", "FailedMount", timeout, 2, lastTimestamp=at("09:40"), count=22)),
            ("already used by pod(s) other-0", "ReadWriteMany")),
        "a volume that was attached since": Asked(
            (job(status={"active": 1}), pod("Pending", CREATING),
             said("Pod", "FailedAttachVolume", multi, 1),
             said("Pod", "SuccessfulAttachVolume", "AttachVolume.Attach succeeded", 2),
             said("Pod", "FailedMount", timeout, 3)),
            ("timed out waiting",), ("Multi-Attach",)),
        "a long message keeps its end": Asked(
            (job(status={"active": 0}), event("Job", "FailedCreate", webhook)),
            ("context deadline exceeded",)),
        "a volume of some nodes, a taint of the others": Asked(
            (job(status={"active": 1}), unschedulable(
                "0/12 nodes are available: 3 node(s) had volume node affinity conflict, 9 node(s) "
                "had untolerated taint {dedicated: gpu}.")),
            ("olerate the taint", "free a node where its volume is")),
        "a volume of a full node": Asked(
            (job(status={"active": 1}), unschedulable(
                "0/1 nodes are available: 1 node(s) had volume node affinity conflict.")),
            ("Free a node where its volume is",), ("cannot be changed",)),
    }  # fmt: skip


def asked_of_others() -> Mapping[str, Asked]:
    """What autoscalers, queues, provisioners and users say or did."""
    claimed = job({"template": {"metadata": {"labels": {UID: "j-1"}}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "i:1"}],
        "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}}},
        {"active": 1})  # fmt: skip
    unbound = unschedulable("0/3 nodes are available: pod has unbound immediate "
                            "PersistentVolumeClaims.")  # fmt: skip
    no_class = said("Pod", "ProvisioningFailed", 'storageclass "fast" not found', 1) | {
        "involvedObject": {"kind": "PersistentVolumeClaim", "name": "data", "namespace": "app",
                           "uid": "v-1"}}  # fmt: skip
    queued = job({"suspend": True}, {"conditions": [SUSPENDED]},
                 labels={"kueue.x-k8s.io/queue-name": "team-a"})  # fmt: skip
    waits = said("Pod", "Pending", "couldn't assign flavors: insufficient unused quota", 1) | {
        "type": "Normal", "involvedObject": {"kind": "Workload", "name": "job-work-3f2a1",
                                             "namespace": "app", "uid": "w-1"}}  # fmt: skip
    other = {**waits, "message": "not this one", "involvedObject": {
        **waits["involvedObject"], "name": "job-work-two-3f2a1"}}  # fmt: skip
    early = {"deletionTimestamp": at("09:05"), "deletionGracePeriodSeconds": 30}
    after = {"deletionTimestamp": "2026-05-04T09:06:30Z", "deletionGracePeriodSeconds": 30}
    times = cron({"schedule": "* * * * *"}, {"lastScheduleTime": at("07:00")})
    return {
        "Karpenter": Asked(
            (job(status={"active": 1}), unschedulable("0/5 nodes are available: 5 Insufficient "
                                                      "nvidia.com/gpu."),
             said("Pod", "FailedScheduling", 'Failed to schedule pod, incompatible with nodepool '
                  '"default", no instance type satisfied resources', 1)),
            ("autoscaler: Failed to schedule pod, incompatible with nodepool",)),
        "a StorageClass that is missing": Asked(
            (claimed, unbound, no_class),
            ('claim data: ProvisioningFailed: storageclass "fast" not found',)),
        "another pod has the claim": Asked(
            (job(status={"active": 1}), unschedulable(
                "0/3 nodes are available: 1 node has pod using PersistentVolumeClaim with the same "
                "name and ReadWriteOncePod access mode.")),
            ("lets one pod use it",)),
        "a queue without quota": Asked(
            (queued, waits, other), ("insufficient unused quota", "job-work-3f2a1"),
            ("not this one",)),
        "a queue that preempted it": Asked(
            (queued, said("Job", "Stopped", "Preempted to accommodate a workload", 1)),
            ("Event Stopped of Job work: Preempted to accommodate",)),
        "a pod that somebody deleted": Asked(
            (failed(), pod("Failed", container("main", ended(143)), meta=early)),
            ("its pods were deleted while they ran", "by whom is not told", "tracekit import audit")),
        "a pod that its failed Job deleted": Asked(
            (failed(), pod("Failed", container("main", ended(143)), meta=after)),
            ("TK409",), ("deleted while they ran",)),
        "a lifecycle hook": Asked(
            (job(status={"active": 1}), pod("Running", container("main", waiting(
                "PostStartHookError", "command exited with 127")))),
            ("command exited with 127", "lifecycle hook")),
        "a deadline, and a pod that no node took": Asked(
            (failed("DeadlineExceeded"),
             said("Pod", "FailedScheduling", "0/5 nodes are available: 5 Insufficient cpu.", 1)),
            ("Event FailedScheduling of pod work-a (9 times): 0/5 nodes",)),
        "etcd": Asked(
            (job(status={"active": 0}),
             event("Job", "FailedCreate", "Error creating: etcdserver: request timed out")),
            ("did not answer in time", "tries again by itself")),
        "many missed starts": Asked(
            (times, of_cron("TooManyMissedTimes", "too many missed start times: 180")),
            ("more than 100 starts were missed", "Since 1.21")),
    }  # fmt: skip


ASKED = {**asked_of_ends(), **asked_of_starts(), **asked_of_others()}
LOOK = pod("Running", container("main", RUNNING), meta={"name": "other", "uid": "p-8",
                                                        "ownerReferences": []})  # fmt: skip


@pytest.mark.parametrize("case", [
    "restarted until the limit, and deleted", "a StorageClass that is missing",
    "a queue without quota", "a deadline, and a pod that no node took", "Karpenter",
])  # fmt: skip
def test_explain_says_the_same(case: str, trace: str, facts: Facts) -> None:
    place = f"app-{list(ASKED).index(case)}"
    (found,) = (
        case for finding in diagnose(facts, Wanted(namespace=place)) for case in finding.cases
        if case.target.kind == "Job"
    )  # fmt: skip
    (explained,) = Trace(trace).explain("work", namespace=place).findings
    assert explained["text"].endswith(found.claim)
    assert [case["detail"] for case in explained["evidence"]] == [found.detail]


@pytest.mark.parametrize("case", ASKED)
def test_what_is_said_first(case: str, facts: Facts) -> None:
    check_first_screen(ASKED, case, facts)
