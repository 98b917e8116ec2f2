"""Situations of batch work out of several trackers, each made here: what `diagnose` says first."""

from __future__ import annotations

import pytest

from tests.findings.test_public_reports import (
    LOOK,
    NO_PODS,
    ON_FAILURE,
    RUNNING,
    Asked,
    Object,
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

FREE = {"finalizers": []}
MESH = {"containers": [{"name": "main", "image": "i:1"}, {"name": "linkerd-proxy", "image": "p:1"}]}
NOT_THERE = "The container could not be located when the pod was terminated"


def lost() -> Object:
    """How a container ends that its kubelet no longer found."""
    return {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": NOT_THERE,
                           "startedAt": None, "finishedAt": None}}  # fmt: skip


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
}  # fmt: skip


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return facts_from(Session([imported(ASKED, tmp_path_factory.mktemp("batch"), LOOK)]))


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)
