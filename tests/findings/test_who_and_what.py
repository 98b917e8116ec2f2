"""Public reports, each made here, that asked who did it, or what to change, or of Events alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import Object, at, container, ended, event, job, pod
from tests.findings.test_event_reports import EVENTS, OUT_OF_MEMORY, of, of_node
from tests.findings.test_tracker_reports import ADMIN, MANAGER, asked, deleted_by
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture


def listed(folder: Path, *items: Object) -> str:
    file = folder / "list.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def logged(folder: Path, lines: list[Object]) -> str:
    file = folder / "audit.log"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def said(run: Any, *words: str) -> str:  # noqa: F811
    return " ".join(run(*words)[1].split())


#### A pod of which Events alone are there ####

TAKEN = (
    of("Pod", "load-x2x4z", "Scheduled", "Successfully assigned app/load-x2x4z to n1", "09:00",
       type="Normal"),
    of("Pod", "load-x2x4z", "Evicted", "The node was low on resource: memory.", "09:10", count=3,
       firstTimestamp=at("09:09")),
    of_node("n1", "SystemOOM", "09:09", OUT_OF_MEMORY),
)  # fmt: skip


@pytest.mark.parametrize("key", ["load-x2x4z", "app/load-x2x4z", "pod/load-x2x4z"])
def test_explain_tells_of_a_pod_by_events_alone(run, tmp_path: Path, key: str) -> None:  # noqa: F811
    out = said(run, "explain", listed(tmp_path, *TAKEN), key, "--at", at("10:00"))
    assert out.startswith(
        "Pod app/load-x2x4z warning TK445: was ended by the kubelet, as an Event tells (Evicted)"
    )
    assert "Events of node n1: SystemOOM" in out
    assert "2026-05-04 09:00:00.000 c said Scheduled Successfully assigned" in out
    assert "2026-05-04 09:09:00.000 c said Evicted (Warning)" in out
    assert "3 times, last at 2026-05-04 09:10:00Z" in out
    assert out.endswith("how it stood, and what it ran, is unknown.")


def test_such_a_pod_stands_for_its_job(run, tmp_path: Path) -> None:  # noqa: F811
    items = EVENTS["a container that is begun again"][0]
    out = said(run, "explain", listed(tmp_path, *items), "load-x2x4z", "--at", at("10:00"))
    assert out.startswith("Job app/load warning TK443")


def test_a_name_of_which_nothing_tells_is_an_error(run, tmp_path: Path) -> None:  # noqa: F811
    code, out, err = run("explain", listed(tmp_path, *TAKEN), "other-abc", "--at", at("10:00"))
    assert (code, out, "no Job, CronJob or pod 'other-abc'" in err) == (2, "", True)


#### Who deleted it ####


def by_namespace() -> list[Object]:
    """A Job that goes with its namespace, which somebody deletes."""
    lines = deleted_by("dora")[:4]
    ending = {"kind": "Namespace", "apiVersion": "v1", "metadata": {
        "name": "app", "uid": "ns-1", "resourceVersion": "104",
        "deletionTimestamp": "2026-05-04T09:09:59Z"}, "status": {"phase": "Terminating"}}  # fmt: skip
    gone = asked("delete", job(), ADMIN, "09:09:59", 104)
    gone["objectRef"] = {"resource": "namespaces", "namespace": "app", "name": "app",
                         "apiVersion": "v1"}  # fmt: skip
    gone["responseObject"] = ending
    made = job(None, {"active": 0, "startTime": None})
    manager = f"{MANAGER}namespace-controller"
    all_ = asked("delete", made, manager, "09:10:00", 105) | {"verb": "deletecollection"}
    all_["objectRef"] = {"resource": "jobs", "namespace": "app", "apiGroup": "batch",
                         "apiVersion": "v1"}  # fmt: skip
    all_["responseObject"] = {"kind": "JobList", "apiVersion": "batch/v1", "items": [made],
                              "metadata": {"resourceVersion": "106"}}  # fmt: skip
    return [*lines, gone, all_]


def test_who_deleted_the_namespace_is_said_of_its_jobs(run, tmp_path: Path) -> None:  # noqa: F811
    """splunk-forwarder-operator#472."""
    out = said(run, "diagnose", logged(tmp_path, by_namespace()), "--kubernetes-version", "v1.27.4")
    assert (
        "TK447 Job app/work: was deleted before it ended, by the namespace controller, as its "
        f"namespace was deleted by {ADMIN}"
    ) in out
    assert f"do: Ask {ADMIN} why" in out


@pytest.mark.parametrize(
    ("user", "advice"),
    [
        (ADMIN, f"do: Ask {ADMIN} why"),
        ("system:serviceaccount:nw:ops", "do: See the log of system:serviceaccount:nw:ops at that"),
    ],
)
def test_who_is_known_is_not_asked_for(run, tmp_path: Path, user: str, advice: str) -> None:  # noqa: F811
    """nodewright#470."""
    out = said(
        run, "diagnose", logged(tmp_path, deleted_by(user)), "--kubernetes-version", "v1.30.4"
    )
    assert f"TK447 Job app/work: was deleted before it ended, by {user}" in out
    assert advice in out
    assert "Without an audit log" not in out


def test_a_log_without_bodies_says_who_deleted_jobs(run, tmp_path: Path) -> None:  # noqa: F811
    """argo-cd#15058."""
    lines = []
    for number in range(5):
        line = asked("delete", job(name=f"work-{number}"), ARGO, f"09:1{number}:00", 120 + number)
        lines.append(
            {k: v for k, v in line.items() if k != "responseObject"} | {"level": "Metadata"}
        )
    code, out, _ = run("diagnose", logged(tmp_path, lines), "--kubernetes-version", "v1.30.4")
    out = " ".join(out.split())
    assert code == 0
    assert f"INFO TK463 5 Jobs in app: deletion was asked for by {ARGO}" in out
    assert "the bodies of the answers are needed" in out


ARGO = "system:serviceaccount:argocd:argocd-application-controller"


#### What Kueue waits for ####


def slice_of(name: str, kind: str, status: str, message: str) -> Object:
    """One of two Workloads of an elastic Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "j-1",
             "controller": True}  # fmt: skip
    condition = {"type": kind, "status": status, "reason": "Pending", "message": message,
                 "lastTransitionTime": at("09:10")}  # fmt: skip
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": name, "namespace": "app", "uid": f"w-{name}", "resourceVersion": "400",
                     "creationTimestamp": at("09:00"), "ownerReferences": [owner]},
        "spec": {"queueName": "ml", "active": True}, "status": {"conditions": [condition]},
    }  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
def test_what_a_gate_of_kueue_waits_for_its_workload_says(
    run, tmp_path: Path, *, turned: bool  # noqa: F811
) -> None:  # fmt: skip
    """kueue#6969: of two slices the one that waits tells, whichever is listed first."""
    gated = pod("Pending", spec={
        "nodeName": None, "schedulingGates": [{"name": "kueue.x-k8s.io/elastic-job"}]}, conditions=[
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}])  # fmt: skip
    slices = [slice_of("old", "Admitted", "True", "admitted"),
              slice_of("new", "QuotaReserved", "False", "insufficient unused quota for cpu")]  # fmt: skip
    items = [job(), gated, *(slices[::-1] if turned else slices)]
    out = said(run, "diagnose", listed(tmp_path, *items), "--kubernetes-version", "v1.33.4")
    assert (
        "TK428 Job app/work: waits for scheduling gates: kueue.x-k8s.io/elastic-job: Kueue has "
        "reserved no quota for it (since 2026-05-04 09:10:00Z)"
    ) in out
    assert "Workload new: condition QuotaReserved: Pending: insufficient unused quota" in out
    assert "do: It waits for its turn" in out


#### What to change ####

DENIED = (
    'Error creating: pods "work-pzwsn" is forbidden: violates PodSecurity "restricted:latest": '
    "runAsNonRoot != true (pod or containers {} must set securityContext.runAsNonRoot=true)"
)
LACKS = (
    'Error creating: pods "work-x" is forbidden: failed quota: q: must specify limits.cpu for: '
    "main,istio-proxy; limits.memory for: istio-proxy"
)
NO_SIDECARS = (
    'Error creating: Pod "work-x" is invalid: [spec.initContainers[1].lifecycle: Forbidden: may '
    "not be set for init containers without restartPolicy=Always, spec.initContainers[1]."
    "readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always]"
)


@pytest.mark.parametrize(
    ("message", "says", "not_said"),
    [
        (DENIED.format('"k8tz"'), "The template has no container k8tz", "Give the pod template"),
        (DENIED.format('"main"'), "Give the pod template the securityContext", "has no container"),
        (DENIED.format('"main", "k8tz"'), "that the webhook is of). Give the pod template", "container main,"),
        (LACKS, "The template has no container istio-proxy: an", "no container main"),
        (NO_SIDECARS, "A native sidecar lost its restartPolicy", "create it without"),
    ],
    ids=["home-ops#11969", "its own", "both", "of a quota", "istio#52245"],
)  # fmt: skip
def test_a_container_that_is_put_in_is_not_looked_for_in_the_template(
    run, tmp_path: Path, message: str, says: str, not_said: str  # noqa: F811
) -> None:  # fmt: skip
    refused = event("Job", "FailedCreate", message)
    out = said(run, "diagnose", listed(tmp_path, job(status={"active": 0}), refused))
    assert "WARNING TK405 Job app/work: cannot start" in out
    assert says in out
    assert not_said not in out


#### An end that was reported late ####


@pytest.mark.parametrize(("until", "is_said"), [("09:20:30", False), ("09:22:00", True)])
def test_a_pod_is_uncounted_from_when_its_end_was_reported(
    run, tmp_path: Path, until: str, *, is_said: bool  # noqa: F811
) -> None:  # fmt: skip
    """A kubelet that was away reports at 09:20 what ended at 09:05."""
    lines = deleted_by("dora")[:4]
    over = pod("Failed", container("main", ended(1)))
    counted = job(annotations={"seen": "yes"})
    lines += [
        asked("patch", over, "system:node:n1", "09:20:00", 110, "status"),
        asked("patch", over | {"metadata": {**over["metadata"], "annotations": {"seen": "yes"}}},
              "labeler", until, 111),
        asked("patch", counted, "labeler", until, 112),
    ]  # fmt: skip
    out = said(run, "diagnose", logged(tmp_path, lines), "--kubernetes-version", "v1.30.4")
    assert ("TK439" in out) == is_said, out
