"""Situations of batch work out of several trackers, each made here: what `diagnose` says first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.test_public_reports import (
    LIMITED,
    LOOK,
    NO_PODS,
    ON_FAILURE,
    RUNNING,
    Asked,
    Object,
    at,
    check_first_screen,
    container,
    cron,
    ended,
    event,
    failed,
    imported,
    job,
    of_cron,
    pod,
    waiting,
)
from tracekit.answers.trace_model import Facts
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session

FREE: Object = {"finalizers": []}
MESH = {"containers": [{"name": "main", "image": "i:1"}, {"name": "linkerd-proxy", "image": "p:1"}]}
NOT_THERE = "The container could not be located when the pod was terminated"


def lost() -> Object:
    """How a container ends that its kubelet no longer found."""
    return {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": NOT_THERE,
                           "startedAt": None, "finishedAt": None}}  # fmt: skip


NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
           "lastTransitionTime": at("09:00"),
           "message": "0/3 nodes are available: 3 Insufficient memory."}  # fmt: skip
DONE = container("wait", ended(0, "Completed"))


def alone(
    phase: str, *containers: Object, owner: str = "", labels: Object | None = None, **more: Any
) -> Object:
    """A pod that no Job owns."""
    owners = [{"apiVersion": "v1", "kind": owner, "name": "up", "uid": "w-1", "controller": True}]
    meta = {"ownerReferences": owners if owner else [], "labels": labels or {}, "finalizers": [],
            **more.pop("meta", {})}  # fmt: skip
    return pod(phase, *containers, meta=meta, **more)


def not_created(message: str) -> tuple[Object, Object]:
    """A Job whose pods are refused with that message."""
    return job(None, NO_PODS), event("Job", "FailedCreate", f"Error creating: {message}")


ASKED = {
    "linkerd, work that failed beside its proxy": Asked(
        (job(), pod("Running", container("main", ended(1)), container("linkerd-proxy", RUNNING),
                    spec=MESH)),
        ("TK436", "has failed but for container linkerd-proxy", "main ended with exit code 1",
         "until then nothing is counted", "kubectl logs -n app-0 work-a -c main"),
        ("is done but for",)),
    "istio, work out of memory beside its proxy": Asked(
        (job(), pod("Running", container("main", ended(137, "OOMKilled")),
                    container("linkerd-proxy", RUNNING), spec=MESH)),
        ("TK436", "ended with exit code 137 (OOMKilled)"), ("SIGKILL",)),
    "work that is begun again beside its proxy": Asked(
        (job(), pod("Running", container("main", ended(1)), container("linkerd-proxy", RUNNING),
                    spec={**MESH, **ON_FAILURE})), (), ("TK436",)),
    "a container that the kubelet lost": Asked(
        (failed(), pod("Failed", container("main", lost()), meta=FREE)),
        ("TK409", "the kubelet lost its containers (ContainerStatusUnknown)", NOT_THERE[:40],
         "How it ended is not known"), ("SIGKILL", "exit code 137 (")),
    "a command that the image lacks, OnFailure": Asked(
        (job(), pod("Running", container("main", waiting("RunContainerError", "OCI runtime create "
            "failed: executable file not found in $PATH"), 2, ended(128, "StartError")),
            spec=ON_FAILURE)),
        ("TK428", "each try is a restart (2 so far)", "count toward backoffLimit 6"),
        ("never counts",)),
    "an API server that throttles": Asked(
        not_created("the server has received too many requests and has asked us to try again later "
                    "(post pods)"),
        ("TK405", "too many requests", "tries again by itself"), ("objects to",)),
    "kubernetes#64249, a quota that is not evaluated in time": Asked(
        not_created("Internal error occurred: resource quota evaluation timed out"),
        ("TK405", "did not answer in time"), ("Free the quota",)),
    "tekton, an init container's image": Asked(
        (job(), pod("Pending", container("main", waiting("PodInitializing")), initContainerStatuses=[
            container("prep", waiting("ImagePullBackOff", "prep:9: not found"))])),
        ("TK404", "init container prep of work-a"), ()),
    "a zone that the controller does not know": Asked(
        (cron({"timeZone": "Europe/Kyiv"}), of_cron("UnknownTimeZone", 'invalid timeZone: '
         '"Europe/Kyiv": unknown time zone Europe/Kyiv')),
        ("ERROR TK315", "its controller does not know its time zone", "Europe/Kyiv", "newer data"),
        ("TK316",)),
    "a deadline that was over": Asked(
        (cron({"startingDeadlineSeconds": 5}), of_cron("MissSchedule", "Missed scheduled time to "
         "start a job: Mon, 04 May 2026 09:05:00 +0000")),
        ("TK315", "later than startingDeadlineSeconds allows"), ()),
    "kubectl create job --from, and a deadline of 5 s": Asked(
        (cron({"startingDeadlineSeconds": 5}), of_cron("UnexpectedJob", "Saw a job that the "
         "controller did not create or forgot: work")),
        ("TK315", "the record does not tell why", "a start that is 5 s late is let go"),
        ("UnexpectedJob",)),
    "airflow#59083, a pod that no node takes": Asked(
        (alone("Pending", spec={"nodeName": None}, conditions=[NO_NODE],
               labels={"dag_id": "etl", "task_id": "load"}),),
        ("WARNING TK451", "no node takes it (Unschedulable)", "3 Insufficient memory",
         "since 2026-05-04 09:00:00Z", "DAG etl, task load", "Ask for less"),
        ("Job's template", "No findings")),
    "airflow#53015, an evicted pod": Asked(
        (alone("Failed", reason="Evicted", message="The node was low on resource: memory."),),
        ("TK451", "failed: a disruption ended it (Evicted)", "low on resource: memory"),
        ("backoffLimit",)),
    "argo-workflows, out of memory": Asked(
        (alone("Failed", container("main", ended(137, "OOMKilled")), DONE, owner="Workflow",
               spec=LIMITED),),
        ("TK451", "container main used more memory", "limits.memory 64Mi", "a pod of Workflow up"),
        ("backoffLimit",)),
    "tekton, a step that fails": Asked(
        (alone("Failed", container("step-build", ended(3)), owner="TaskRun"),),
        ("TK451", "failed with exit code 3", "kubectl logs -n app-14 work-a -c step-build"), ()),
    "spark-operator, a driver whose image does not come": Asked(
        (alone("Pending", container("main", waiting("ImagePullBackOff", "s:1: not found")),
               owner="SparkApplication"),),
        ("TK451", "cannot pull its image i:1", "a pod of SparkApplication up",
         "Correct the image's name"), ("None",)),
    "argo-workflows, a pod that its finalizer holds": Asked(
        (alone("Running", container("main", RUNNING), meta={
            "deletionTimestamp": at("09:20"), "deletionGracePeriodSeconds": 0,
            "finalizers": ["workflows.argoproj.io/status"]}),),
        ("TK451", "is being deleted and does not go", "when workflows.argoproj.io/status is taken"),
        ("--force",)),
    "a pod of a service": Asked(
        (alone("Failed", container("main", ended(3)), owner="ReplicaSet"),), (), ("TK451",)),
    "a pod that is to run for ever": Asked(
        (alone("Failed", container("main", ended(3)), spec={"restartPolicy": "Always"}),), (),
        ("TK451",)),
    "kubernetes#92570, airflow#67332": Asked(
        (alone("Running", container("main", RUNNING), labels={
            "batch.kubernetes.io/job-name": "work"}),),
        ("WARNING TK452", "has no owner: its Job is gone", "labels of Job work",
         "propagationPolicy"), ("118834",)),
    "two pods on two dead nodes, both to be deleted": Asked(
        (job({"parallelism": 2, "completions": 2}, NO_PODS), *(
            pod("Running", container("main", RUNNING), spec={"nodeName": f"n{number}"}, meta={
                "name": f"work-{number}", "uid": f"p-{number}", "deletionTimestamp": at("09:20"),
                "deletionGracePeriodSeconds": 30}) for number in (1, 2))),
        ("TK430", "If n1, n2 are gone for good: kubectl delete pod -n app-20 work-1 work-2 --force",
         "give those nodes the taint"), ()),
}  # fmt: skip


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return facts_from(Session([imported(ASKED, tmp_path_factory.mktemp("batch"), LOOK)]))


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)
