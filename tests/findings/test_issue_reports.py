"""Situations out of issues of kubernetes and others, each made here: what `diagnose` says first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.findings.situations import (
    LOOK,
    PROXY,
    RUNNING,
    UID,
    Asked,
    Object,
    at,
    check_first_screen,
    container,
    disrupted,
    ended,
    event,
    failed,
    imported,
    job,
    pod,
)
from tracekit.answers.endings import refused_when
from tracekit.answers.trace_model import Facts
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session
from tracekit.versions.era import Era
from tracekit.versions.release import Release

NO_DEVICE = "Allocate failed due to no healthy devices present, which is unexpected"
DONE = container("main", ended(0, "Completed"))
FREE = {"finalizers": []}


def complete(active: int = 0) -> Object:
    """A Complete Job, whose status counts so many active pods."""
    condition = {"type": "Complete", "status": "True", "lastTransitionTime": at("09:06"),
                 "lastProbeTime": at("09:06")}  # fmt: skip
    status = {"active": active, "succeeded": 1, "completionTime": at("09:06")}
    return job(None, {**status, "conditions": [condition]})


def counting(found: Object, active: int) -> Object:
    """The Job with so many active pods in its status."""
    found["status"]["active"] = active
    return found


def refused(*containers: Object) -> Object:
    """A pod that its kubelet refused."""
    return pod(
        "Failed", *containers, reason="UnexpectedAdmissionError", message=NO_DEVICE, meta=FREE
    )


def second(**meta: Any) -> Object:
    return pod("Running", container("main", RUNNING), meta={"name": "work-b", "uid": "p-2", **meta})


def of_index(index: int, letter: str, code: int) -> Object:
    """A pod of an index of the Job, that ended so."""
    reason, phase = ("Error", "Failed") if code else ("Completed", "Succeeded")
    labels = {UID: "j-1", "batch.kubernetes.io/job-name": "work",
              "batch.kubernetes.io/job-completion-index": str(index)}  # fmt: skip
    return pod(phase, container("main", ended(code, reason)), meta={
        "name": f"work-{index}-{letter}", "uid": f"p-1{index}{letter}", "labels": labels,
        "annotations": {"batch.kubernetes.io/job-completion-index": str(index)}, **FREE})  # fmt: skip


def by_index() -> Object:
    """A Job with a limit for each index, that index 1 failed."""
    found = failed("FailedIndexes")
    found["spec"].update(completionMode="Indexed", completions=2, backoffLimitPerIndex=1)
    found["status"].update(completedIndexes="0", failedIndexes="1", succeeded=1, failed=2)
    return found


RETRIED = job(status={"failed": 1})
ASKED = {
    "kubernetes#64037": Asked(
        (complete(1), pod("Succeeded", DONE, meta=FREE)),
        ("TK449", "is Complete, and its status still counts 1 active pod (#64037)",
         "no pod of it that has not ended is there", "go by the condition Complete"),
        ("kubectl delete", "See whether a pod runs")),
    "kubernetes#98741": Asked(
        (counting(failed(), 1),),
        ("TK449", "is Failed, and its status still counts 1 active pod", "go by the condition")),
    "kubernetes#108292": Asked(
        (complete(), second(**FREE)),
        ("WARNING TK449", "is Complete, and a pod of it has not ended", "work-b: Running on node n1",
         "kubectl delete pod -n app", "work-b"), ("counts toward",)),
    "a pod that goes with its Job": Asked(
        (complete(), second(deletionTimestamp=at("10:00"), **FREE)), (), ("TK449",)),
    "kubernetes#117955, a success that is refused": Asked(
        (failed(), refused(DONE)),
        ("TK409", "refused its pods after they had succeeded", "The work is done",
         "1.31.1"), ("no container ran",)),
    "kubernetes#117955, counted before": Asked(
        (complete(), refused(DONE)),
        ("INFO TK450", "refused after they had succeeded", "the Job is Complete all the same"),
        ("TK449", "retry")),
    "kubernetes#124345, a pod that ran is refused": Asked(
        (failed(), refused(container("main", ended(137)))),
        ("TK409", "it does so with pods that run when it begins anew"), ("no container ran",)),
    "kubernetes#125579, retried": Asked(
        (RETRIED, refused(), second()),
        ("INFO TK450", "went on after the kubelet refused pods of it", "backoffLimit 6",
         "device plugin"), ("2026-11",)),
    "evicted, and retried": Asked(
        (RETRIED, disrupted("EvictionByEvictionAPI"), second()),
        ("INFO TK450", "went on after a disruption: its pods were evicted (EvictionByEvictionAPI)",
         "each counts toward backoffLimit 6"), ("TK403",)),
    "karpenter-provider-aws#6394": Asked(
        (failed(), disrupted("DeletionByPodGC")),
        ("WARNING TK403", "deleted by the pod garbage collector", "see who took the node away",
         "karpenter.sh/do-not-disrupt"), ("requests and a priority",)),
    "an index that used up its own limit": Asked(
        (by_index(), of_index(0, "a", 0), of_index(1, "a", 3), of_index(1, "b", 3)),
        ("WARNING TK422", "kubectl logs -n app", "work-1-b -c main",
         "backoffLimitPerIndex 1 lets the other indexes go on"), ("keeps one index from",)),
    "a deadline that passed before a pod had a node, which is gone": Asked(
        (failed("DeadlineExceeded"), event(
            "Pod", "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.") | {
                "firstTimestamp": at("09:01"), "lastTimestamp": at("09:05")}),
        ("WARNING TK408", "Event FailedScheduling of pod work-a", "Ask for less"),
        ("Raise activeDeadlineSeconds",)),
    "descheduler#932": Asked(
        (failed(), disrupted("EvictionByEvictionAPI"), event(
            "Pod", "PodLifeTime", "pod eviction from n1 node by sigs.k8s.io/descheduler")),
        ("WARNING TK403", "the descheduler took work-a off its node (Event PodLifeTime",
         "out of the descheduler's policy"), ("requests and a priority",)),
    "descheduler, an eviction that was refused": Asked(
        (failed(), disrupted("EvictionByEvictionAPI"), event(
            "Pod", "EvictionFailed", "pod eviction from n1 node by sigs.k8s.io/descheduler failed: "
            "total eviction limit exceeded (1)")),
        ("WARNING TK403",), ("the descheduler took",)),
    "gardener#2882": Asked(
        (failed(), disrupted("EvictionByEvictionAPI"), event(
            "Pod", "EvictedByVPA", "Pod was evicted by VPA Updater to apply resource "
            "recommendation.")),
        ("WARNING TK403", "the VerticalPodAutoscaler took work-a off its node",
         "updatePolicy.updateMode"), ("requests and a priority",)),
    "a pod of a lost node, after its Job": Asked(
        (complete(), second(deletionTimestamp=at("09:11"), **FREE)),
        ("WARNING TK449", "a pod of it that was deleted does not go", "If n1 is gone for good",
         "should be gone since 2026-05-04 09:11:00Z"), ()),
    "a count beside a pod that is being deleted": Asked(
        (complete(1), second(deletionTimestamp=at("10:00"), **FREE)), (), ("no pod of it",)),
    "retried, with a limit for each index": Asked(
        (job({"completionMode": "Indexed", "backoffLimitPerIndex": 1}, {"failed": 1}),
         disrupted("EvictionByEvictionAPI"), second()),
        ("INFO TK450",), ("counts toward backoffLimit",)),
    "a finalizer of somebody else, after its Job": Asked(
        (complete(), pod("Succeeded", DONE, meta={
            "deletionTimestamp": at("09:11"), "finalizers": ["example.com/lock"]})),
        ("INFO TK449", "It goes when example.com/lock is taken off"), ("--force",)),
    "kubernetes#116042": Asked(
        (complete(), pod("Succeeded", container("main", ended(0, "OOMKilled")), meta=FREE)),
        ("INFO TK453", "is Complete though container main was killed for its memory",
         "ended with exit code 0", "no failure of the Job"), ("TK402",)),
    "killed and restarted, and Complete": Asked(
        (complete(), pod("Succeeded", container("main", ended(0, "Completed"), 2,
                                                ended(137, "OOMKilled")), meta=FREE)),
        ("INFO TK453", "main was restarted (2 restarts)"), ("exit code",)),
    "a sidecar that is killed": Asked(
        (job(), pod("Running", container("main", RUNNING),
                    container("proxy", RUNNING, 1, ended(137, "OOMKilled")), spec=PROXY)),
        ("INFO TK453", "goes on though container proxy"), ("TK402",)),
    "a container that was restarted for another reason": Asked(
        (complete(), pod("Succeeded", container("main", ended(0, "Completed"), 1, ended(1)),
                         meta=FREE)), (), ("TK453",)),
    "kubernetes#71772": Asked(
        (job(name="other", uid="j-7"), pod("Succeeded", DONE, meta=FREE)),
        ("INFO TK423", "work-a: is still there, and its Job is gone", "Job work, is not among",
         "garbage collector"), ("WARNING TK423",)),
    "keptn#154, a pod that runs": Asked(
        (job(name="other", uid="j-7"), second(**FREE)),
        ("WARNING TK423", "is still running, and its Job is gone", "kubectl delete pod"), ()),
}  # fmt: skip


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)


def test_of_a_job_alone_it_is_not_said_that_its_pods_are_gone(tmp_path: Path) -> None:
    alone = {"Jobs alone": Asked((failed(),), (
        "TK409", "Nobody looked at its pods", "kubectl logs -n app-0 -l job-name=work"),
        ("went before",))}  # fmt: skip
    facts = facts_from(Session([imported(alone, tmp_path, LOOK)]))
    check_first_screen(alone, "Jobs alone", facts)


@pytest.mark.parametrize(("version", "advised"), [("1.28.15", False), ("1.29.0", True)])
def test_no_limit_is_advised_that_the_release_does_not_have(
    version: str, advised: bool, tmp_path: Path,
) -> None:  # fmt: skip
    unlimited = by_index()
    del unlimited["spec"]["backoffLimitPerIndex"]
    advice = "backoffLimitPerIndex keeps one index from failing the Job"
    says = advice if advised else "Read its log"
    asked = {"one": Asked(
        (unlimited, of_index(0, "a", 0), of_index(1, "a", 3), of_index(1, "b", 3)),
        ("TK422", says), () if advised else (advice,))}  # fmt: skip
    facts = facts_from(Session([imported(asked, tmp_path, LOOK)]))
    facts = replace(facts, release=Release.of(Era.resolve(version)))
    check_first_screen(asked, "one", facts)


@pytest.mark.parametrize(("ready", "told"), [(0, True), (1, False), (None, False)])
def test_a_job_alone_tells_that_none_of_its_pods_is_ready(
    ready: int | None, told: bool, tmp_path: Path,
) -> None:  # fmt: skip
    says = ("INFO TK411", "has 1 active pod, and none that is ready", "1 h 0 min after its start",
            "kubectl get pods -n app-0 -l job-name=work")  # fmt: skip
    asked = Asked((job(status={"ready": ready}),), says if told else (), () if told else ("TK411",))
    facts = facts_from(Session([imported({"one": asked}, tmp_path, LOOK)]))
    check_first_screen({"one": asked}, "one", facts)


def test_of_pods_that_nobody_looked_at_nothing_is_said(tmp_path: Path) -> None:
    alone = {"Jobs alone": Asked(
        (counting(failed(), 1),), ("whether one runs is not known", "kubectl get pods -n app-0"))}  # fmt: skip
    facts = facts_from(Session([imported(alone, tmp_path, LOOK)]))
    check_first_screen(alone, "Jobs alone", facts)


def test_of_a_refused_pod_that_ran_it_is_not_said_that_no_container_did() -> None:
    """The refusal took the statuses of its containers away; the record saw it Running."""
    last = SimpleNamespace(row={"containers": []})
    for ran, said in ((True, "pods that run"), (False, "no container ran")):
        assert said in refused_when([SimpleNamespace(last=last, exit=None, ran_at_all=ran)])  # type: ignore[list-item]
