"""Why a Job that Kueue holds waits, by its Workload; out of public issues, each made here.

Threads of kubernetes-sigs/kueue by number; conditions by upstream's apis and scheduler.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import LOOK, SUSPENDED, Object, at, job
from tests.findings.test_tracker_reports import first_screen
from tracekit.api.trace import Trace
from tracekit.sql.session import Session


def condition(kind: str, reason: str, message: str, *, holds: bool = True) -> Object:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason,
            "message": message, "lastTransitionTime": at("09:10")}  # fmt: skip


def workload(*conditions: Object, owner: str = "j-1", **status: Any) -> Object:
    """The Workload of the Job, with the pods that it repeats."""
    spec = status.pop("spec", {})
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": "job-work-1a2b3", "namespace": "app", "uid": "w-1",
                     "resourceVersion": "150", "creationTimestamp": at("09:00"),
                     "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "work",
                                          "uid": owner, "controller": True}]},
        "spec": {"queueName": "team", "active": True, "podSets": [{
            "name": "main", "count": 1, "template": {"spec": {"containers": [{
                "name": "main", "image": "i:1", "env": [{"name": "K", "value": "hush"}]}]}}}],
            **spec},
        "status": {"conditions": list(conditions), **status},
    }  # fmt: skip


HELD = job(
    {"suspend": True},
    {"active": 0, "startTime": None, "conditions": [SUSPENDED]},
    labels={"kueue.x-k8s.io/queue-name": "team"},
)
RESERVED = condition("QuotaReserved", "QuotaReserved", "Quota reserved in ClusterQueue cq")
FULL = (
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in "
    "flavor a100, 2 more needed"
)
TOO_GREAT = (
    "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, "
    "request > maximum capacity (9 > 5)"
)
EVICTED = condition("Evicted", "PodsReadyTimeout", "Exceeded the PodsReady timeout app/job-work")

#: By thread: the Workload, what the first screen says, what it does not say.
ASKED: dict[str, tuple[Object, tuple[str, ...], tuple[str, ...]]] = {
    "kueue#2391, no quota": (
        workload(condition("QuotaReserved", "Pending", FULL, holds=False)),
        ("TK413", "Kueue (queue team) has reserved no quota for it (since 2026-05-04 09:10:00Z)",
         "2 more needed", "end what holds the quota"), ("kubectl patch job", "maximum")),
    "more than there is": (
        workload(condition("QuotaReserved", "Pending", TOO_GREAT, holds=False)),
        ("(9 > 5)", "more than its ClusterQueue can ever give"), ("for its turn",)),
    "kueue#2096, no such queue": (
        workload(condition("QuotaReserved", "Inadmissible", "LocalQueue team doesn't exist",
                           holds=False)),
        ("LocalQueue team doesn't exist", "Create or start the LocalQueue"), ()),
    "a ClusterQueue that is not active": (
        workload(condition("QuotaReserved", "Inadmissible", "ClusterQueue cq is inactive",
                           holds=False)),
        ("ClusterQueue cq is inactive", "kubectl describe clusterqueue"), ()),
    "kueue#1726, kueue#3936, kueue#3140": (
        workload(RESERVED, condition("Admitted", "Admitted", "The workload is admitted")),
        ("has admitted its Workload and has not started the Job", "log of kueue-controller-manager"),
        ("reserved no quota",)),
    "kueue#5129, kueue#8089": (
        workload(RESERVED, admissionChecks=[
            {"name": "dws-prov", "state": "Pending", "message": "Max nodepool size reached"},
            {"name": "other", "state": "Ready", "message": "fine"}]),
        ("waits for admission check dws-prov (Pending)", "Max nodepool size reached",
         "kubectl get provisioningrequests"), ("fine",)),
    "kueue#3322": (
        workload(condition("QuotaReserved", "Pending", "The workload has failed admission checks",
                           holds=False),
                 condition("Evicted", "AdmissionCheck", "At least one admission check is false"),
                 admissionChecks=[{"name": "c", "state": "Retry", "message": ""}]),
        ("reserved no quota for it after it was evicted (AdmissionCheck)",
         "At least one admission check is false"), ()),
    "kueue#2732, kueue#14811": (
        workload(condition("QuotaReserved", "Pending", "Exceeded the PodsReady timeout", holds=False),
                 EVICTED),
        ("after it was evicted (PodsReadyTimeout)", "waitForPodsReady.timeout"), ()),
    "requeued too often": (
        workload(EVICTED | {"reason": "DeactivatedDueToRequeuingLimitExceeded"},
                 spec={"active": False}),
        ("has deactivated it after DeactivatedDueToRequeuingLimitExceeded",
         "workloads.kueue.x-k8s.io job-work-1a2b3 --type=merge"), ()),
    "a check that refuses": (
        workload(condition("Finished", "AdmissionChecksRejected", "Admission checks [c] are rejected")),
        ("takes its Workload for finished (AdmissionChecksRejected)", "created anew"), ()),
    "nobody has looked": (
        workload(), ("has not decided about its Workload", "kueue-controller-manager runs"), ()),
    "the Workload of another": (
        workload(condition("QuotaReserved", "Pending", FULL, holds=False), owner="j-9"),
        ("TK413", "Kueue holds it back (queue team)"), ("2 more needed",)),
}  # fmt: skip


def listed(folder: Path, *objects: Object) -> str:
    log = folder / "list.json"
    items = [LOOK, *objects]
    log.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(log)


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first_and_by_explain(thread: str, tmp_path: Path) -> None:
    found, says, not_said = ASKED[thread]
    screen = first_screen(tmp_path, "v1.33.4", listed(tmp_path, HELD, found))
    told = Trace(tmp_path / "trace").explain("work", namespace="app").findings
    explained = " ".join(
        " ".join(map(str, finding.values())) for finding in told if finding["id"] == "TK413"
    )
    for text in (screen, " ".join(explained.split())):
        assert [words for words in says if words not in text and words[:2] != "TK"] == [], text
        assert [words for words in not_said if words in text] == [], text


@pytest.mark.parametrize("thread", ["kueue#2391, no quota", "kueue#5129, kueue#8089"])
def test_the_view_of_waits_says_the_same(thread: str, tmp_path: Path) -> None:
    found, says, _ = ASKED[thread]
    first_screen(tmp_path, "v1.33.4", listed(tmp_path, HELD, found))
    with closing(Session([tmp_path / "trace"])) as session:
        rows = session.table("SELECT * FROM waits WHERE kind = 'Job'").to_pylist()
    told = " ".join(f"{r['finding']} {r['waits_for']}; {r['message']}; {r['advice']}" for r in rows)
    assert [words for words in says if words not in told] == [], told


def test_the_workload_of_its_jobset_counts(tmp_path: Path) -> None:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train",
             "uid": "s-1", "controller": True}  # fmt: skip
    child = HELD | {"metadata": HELD["metadata"] | {"ownerReferences": [owner], "labels": {}}}
    waits = workload(condition("QuotaReserved", "Pending", FULL, holds=False), owner="s-1")
    screen = first_screen(tmp_path, "v1.33.4", listed(tmp_path, child, waits))
    assert "Kueue (queue team) has reserved no quota for it" in screen


def test_what_a_workload_repeats_of_its_pods_is_not_kept(tmp_path: Path) -> None:
    first_screen(tmp_path, "v1.33.4", listed(tmp_path, HELD, workload(RESERVED)))
    rows = Trace(tmp_path / "trace").sql(
        "SELECT raw FROM observations WHERE stream = 'workloads' AND raw LIKE '%job-work%'"
    )
    texts = [str(row) for row in rows.fetchall()]
    assert len(texts) == 1
    assert "hush" not in texts[0]


def test_a_workload_of_the_scheduler_is_none_of_kueue(tmp_path: Path) -> None:
    other = workload(condition("QuotaReserved", "Pending", FULL, holds=False))
    other["apiVersion"] = "scheduling.k8s.io/v1alpha1"
    screen = first_screen(tmp_path, "v1.36.3", listed(tmp_path, HELD, other))
    assert "2 more needed" not in screen
