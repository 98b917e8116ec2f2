"""argo-cd#8586, airbyte#15202: a Job that somebody makes anew each time that its TTL has taken it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.findings.situations import UID, Object, container, ended, job, pod
from tests.findings.test_tracker_reports import MANAGER, asked, first_screen

ARGO = "system:serviceaccount:argocd:argocd-application-controller"


def run(number: int, user: str, ttl_by: str) -> list[Object]:
    """The lines of an audit log about one life of the Job, from its creation until it is gone."""
    minute, rv, uid = 3 * number, 100 + 20 * number, f"j-{number}"

    def at(clock: str) -> str:
        return f"2026-05-04T09:{minute + int(clock[0]):02}:{clock[2:]}Z"

    def line(verb: str, found: Object, by: str, clock: str, step: int, sub: str | None) -> Object:
        made = asked(verb, found, by, at(clock)[11:-1], rv + step, sub)
        made["responseObject"] = found | {"metadata": {
            **found["metadata"], "resourceVersion": str(rv + step)}}  # fmt: skip
        return made

    labels = {UID: uid, "controller-uid": uid, "job-name": "work",
              "batch.kubernetes.io/job-name": "work"}  # fmt: skip
    made = job({"ttlSecondsAfterFinished": 5}, uid=uid, creationTimestamp=at("0:00"))
    made["spec"]["template"]["metadata"]["labels"] = labels
    made["spec"]["selector"] = {"matchLabels": {UID: uid}}
    begun = pod("Pending", spec={"nodeName": None}, meta={
        "name": f"work-{'bcdf'[number]}2x4z", "uid": f"p-{number}", "generateName": "work-",
        "labels": labels, "creationTimestamp": at("0:00")})  # fmt: skip
    begun["metadata"]["ownerReferences"][0]["uid"] = uid
    exit_ = ended(0, "Completed")
    exit_["terminated"].update(startedAt=at("0:01"), finishedAt=at("1:00"))
    over = pod("Succeeded", container("main", exit_), meta=begun["metadata"], startTime=at("0:00"))
    free = over | {"metadata": {k: v for k, v in over["metadata"].items() if k != "finalizers"}}
    status = {"startTime": at("0:00"), "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    complete = [{"type": "Complete", "status": "True", "lastTransitionTime": at("1:02"),
                 "lastProbeTime": at("1:02")}]  # fmt: skip
    done = {**status, "succeeded": 1, "completionTime": at("1:02"), "conditions": complete}
    counted = {**status, "uncountedTerminatedPods": {"succeeded": [f"p-{number}"]}}
    dying = {"deletionTimestamp": at("1:07"), "deletionGracePeriodSeconds": 0}
    controller, collector = f"{MANAGER}job-controller", f"{MANAGER}generic-garbage-collector"
    held = made | {"status": done, "metadata": {
        **made["metadata"], **dying, "finalizers": ["foregroundDeletion"]}}  # fmt: skip
    gone = made | {"status": done, "metadata": {**made["metadata"], **dying}}
    return [
        line("create", made | {"status": {}}, user, "0:00", 0, None),
        line("create", begun, controller, "0:00", 1, None),
        line("update", made | {"status": {**status, "active": 1}}, controller, "0:00", 2, "status"),
        line("patch", over, "system:node:n1", "1:01", 3, "status"),
        line("update", made | {"status": counted}, controller, "1:02", 4, "status"),
        line("patch", free, controller, "1:02", 5, None),
        line("update", made | {"status": done}, controller, "1:02", 6, "status"),
        line("delete", held, ttl_by, "1:07", 7, None),
        line("delete", free | {"metadata": {**free["metadata"], **dying}}, collector, "1:07", 8,
             None),
        line("patch", gone, collector, "1:08", 9, None),
    ]  # fmt: skip


TTL = f"{MANAGER}ttl-after-finished-controller"


@pytest.mark.parametrize(
    ("times", "user", "ttl_by", "says", "not_said"),
    [
        (
            3,
            ARGO,
            TTL,
            ("WARNING TK459", f"is made anew by {ARGO}", "3 times", "make it a hook"),
            (),
        ),
        (3, "ci", TTL, ("WARNING TK459", "is made anew by ci", "its absence"), ("Argo CD",)),
        (2, ARGO, TTL, (), ("TK459",)),
        (3, ARGO, ARGO, (), ("TK459",)),
    ],
    ids=["by Argo CD", "by somebody", "once more", "deleted by who makes it"],
)
def test_what_is_said_first(
    times: int, user: str, ttl_by: str, says: tuple[str, ...], not_said: tuple[str, ...],
    tmp_path: Path,
) -> None:  # fmt: skip
    lines = [line for number in range(times) for line in run(number, user, ttl_by)]
    log = tmp_path / "audit.log"
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    screen = first_screen(tmp_path, "v1.30.4", str(log))
    assert [text for text in says if text not in screen] == [], screen
    assert [text for text in not_said if text in screen] == [], screen
