"""What situations are made of, and what `diagnose` says of each first.

A module that asks about some has them as `ASKED`; its fixture `trace` holds all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from tracekit.answers.findings.diagnosis import Wanted, diagnose
from tracekit.answers.trace_model import Facts
from tracekit.cli.import_ import import_
from tracekit.report.findings import text_lines

Object = dict[str, Any]
UID = "batch.kubernetes.io/controller-uid"
RUNNING = {"running": {"startedAt": "2026-05-04T09:01:00Z"}}
PROXY = {"containers": [{"name": "main", "image": "i:1"}, {"name": "proxy", "image": "p:1"}]}
ON_FAILURE = {"restartPolicy": "OnFailure"}
LIMITED = {
    "containers": [{"name": "main", "image": "i:1", "resources": {"limits": {"memory": "64Mi"}}}]
}


def at(clock: str) -> str:
    return f"2026-05-04T{clock}:00Z"


def said_at_ten(run: Any, file: Path, text: str) -> str:
    """What `diagnose` says, on one line, of a text that was looked at at 10:00."""
    file.write_text(text)
    return " ".join(run("diagnose", str(file), "--at", at("10:00"))[1].split())


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


def unschedulable(message: str) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": message}  # fmt: skip
    return pod("Pending", spec={"nodeName": None}, conditions=[condition])


def cron(spec: Object | None = None, status: Object | None = None, **meta: Any) -> Object:
    """A CronJob that is due every five minutes; of its schedule nothing is left at 10:00."""
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "i:1"}]}}}}  # fmt: skip
    return {
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "app", "uid": "c-1", "resourceVersion": "90",
                     "creationTimestamp": at("08:00"), **meta},
        "spec": {"schedule": "*/5 * * * *", "concurrencyPolicy": "Forbid", "suspend": False,
                 "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
                 "jobTemplate": template, **(spec or {})},
        "status": {"lastScheduleTime": at("09:00"), **(status or {})},
    }  # fmt: skip


def of_cron(reason: str, message: str) -> Object:
    """An Event about that CronJob."""
    about = {"kind": "CronJob", "name": "tick", "namespace": "app", "uid": "c-1"}
    return event("Job", reason, message) | {"involvedObject": about}


def set_by(manager: str, clock: str) -> list[Object]:
    return [{"manager": manager, "operation": "Update", "apiVersion": "batch/v1", "time": at(clock),
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:suspend": {}}}}]  # fmt: skip


def of_namespace(objects: tuple[Object, ...], place: str) -> list[Object]:
    """Those objects in a namespace of their own, with uids of their own."""
    text = json.dumps(objects).replace('"namespace": "app"', f'"namespace": "{place}"')
    return json.loads(re.sub(r'"([jpec]-[12])"', rf'"\1-{place}"', text))


def imported(asked: Mapping[str, Asked], folder: Path, look: Object) -> str:
    """A trace of all that is asked, in one list: each in a namespace of its own."""
    items = [look]
    for number, each in enumerate(asked.values()):
        items += of_namespace(each.objects, f"app-{number}")
    log, out = folder / "list.json", folder / "trace"
    log.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    words = [str(log), "-o", str(out), "--kubernetes-version", "v1.33.4"]
    result = CliRunner().invoke(import_, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(out)


def check_first_screen(asked: Mapping[str, Asked], thread: str, facts: Facts) -> None:
    """What `diagnose` says first of one of them is what it should be."""
    place = f"app-{list(asked).index(thread)}"
    lines = list(text_lines(diagnose(facts, Wanted(namespace=place))))
    screen = " ".join(" ".join(lines[:24]).split())
    assert [text for text in asked[thread].says if text not in screen] == [], screen
    assert [text for text in asked[thread].not_said if text in screen] == [], screen


def alone(
    phase: str, *containers: Object, owner: str = "", labels: Object | None = None, **more: Any
) -> Object:
    """A pod that no Job owns."""
    owners = [{"apiVersion": "v1", "kind": owner, "name": "up", "uid": "w-1", "controller": True}]
    meta = {"ownerReferences": owners if owner else [], "labels": labels or {}, "finalizers": [],
            **more.pop("meta", {})}  # fmt: skip
    return pod(phase, *containers, meta=meta, **more)
