"""Pods of Jobs in a list that has no Jobs, as `kubectl get pods,events -o yaml` prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.findings.situations import (
    LOOK,
    RUNNING,
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
    unschedulable,
    waiting,
)
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.answers.trace_model import Facts

_UNSEEN = "a pod of Job work, which was not looked at"
_OVER = {"deletionTimestamp": at("09:11"), "deletionGracePeriodSeconds": 0}


def deleted_space() -> Object:
    """The namespace of the first of those that are asked about: its deletion was asked for."""
    return {
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "app-0", "uid": "n-1", "resourceVersion": "77",
                     "creationTimestamp": at("08:00"), "deletionTimestamp": at("09:10")},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"},
    }  # fmt: skip


ASKED = {
    "kubernetes#108297": Asked(
        (pod("Failed", container("main", ended(137)), meta=_OVER), deleted_space()),
        ("WARNING TK204", "its namespace is being deleted since 2026-05-04 09:10:00Z", "was deleted, and is held by the tracking finalizer", "49 min 0 s ago",
         "kubectl get job -n app-0 work", "Once the Job is gone: kubectl patch pod"),
        ("TK451", "its Job work is gone")),
    "an image that is not there": Asked(
        (pod("Pending", container("main", waiting("ImagePullBackOff", "Back-off"))),
         event("Pod", "Failed", 'Failed to pull image "i:1": docker.io/library/i:1: not found')),
        ("WARNING TK451", "cannot pull its image i:1", "Correct the image's name", _UNSEEN)),
    "out of memory": Asked(
        (pod("Failed", container("main", ended(137, "OOMKilled"))),),
        ("WARNING TK451", "used more memory than it may", _UNSEEN)),
    "a node that does not come back": Asked(
        (pod("Running", container("main", RUNNING), meta={
            **_OVER, "deletionGracePeriodSeconds": 30}),),
        ("WARNING TK451", "is being deleted and does not go", "If n1 is gone for good"),
        ("job-tracking", "whoever set")),
    "no room": Asked(
        (unschedulable("0/3 nodes are available: 3 Insufficient cpu."),),
        ("WARNING TK451", "no node takes it", "delete the Job and create it anew"),
        ("which makes its Jobs",)),
    "evicted": Asked(
        (disrupted("EvictionByEvictionAPI"),),
        ("WARNING TK451", "a disruption ended it", "Its Job makes others"),
        ("Nothing creates it anew",)),
    "one that runs": Asked((pod("Running", container("main", RUNNING)),), (), ("TK451", "TK204")),
    "one that is done": Asked(
        (pod("Succeeded", container("main", ended(0, "Completed"))),), (), ("TK451", "TK204")),
}  # fmt: skip


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)


@pytest.mark.parametrize("thread", ["kubernetes#108297", "out of memory"])
def test_explain_says_of_their_job_what_diagnose_does(thread: str, trace: str, run) -> None:  # noqa: F811
    says = ASKED[thread].says
    out = " ".join(run("explain", trace, f"app-{list(ASKED).index(thread)}/work")[1].split())
    assert says[0].split()[1] in out
    assert says[1] in out
    assert "never the Job itself" in out


def test_explain_of_a_job_knows_that_pods_were_looked_at(run, tmp_path: Path) -> None:  # noqa: F811
    other = pod("Running", container("main", RUNNING), meta={"name": "other-a", "uid": "p-2"})
    other["metadata"]["ownerReferences"][0].update(name="other", uid="j-2")
    objects = (failed(), job(name="other", uid="j-2"), other)
    trace = imported({"one": Asked(objects, ())}, tmp_path, LOOK)
    for verb in (["diagnose", trace], ["explain", trace, "app-0/work"]):
        out = " ".join(run(*verb)[1].split())
        assert "went before anybody looked" in out
        assert "Nobody looked at its pods" not in out
