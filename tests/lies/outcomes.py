"""Lies about what became of a pod: the controller's answer stays, and is wrong for it."""

from __future__ import annotations

import random
from typing import Any

from .pods import created_pods
from .record import (
    Edit,
    JobLife,
    Lie,
    Record,
    deleting,
    finalized,
    phase,
    pick,
    shifted,
    terminal,
    told,
)
from .specs import ACTIONS, ENDINGS, ended


def _finished_pods(record: Record) -> list[tuple[JobLife, Any, int]]:
    found = []
    for job, pod in created_pods(record):
        for p in range(1, len(pod.rows)):
            if terminal(pod.obj(p)) and finalized(pod.obj(p)) and not terminal(pod.obj(p - 1)):
                found.append((job, pod, p))
    return found


def outcome_flipped(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod that succeeded failed, or the other way round."""
    finished = _finished_pods(record)
    # One that was not answered by the end may not have been got to.
    answered = [c for c in finished if any(c[0].rv(w) > c[1].rv(c[2]) for w in c[0].writes())]
    choice = pick(rng, answered)
    if choice is None:
        return None
    job, pod, p = choice
    old = pod.obj(p)["status"]["phase"]
    new = "Failed" if old == "Succeeded" else "Succeeded"
    code = 1 if new == "Failed" else 0

    def change(obj: dict[str, Any]) -> None:
        obj["status"]["phase"] = new
        for status in obj["status"].get("containerStatuses", ()):
            done = status.get("state", {}).get("terminated")
            if done:
                done["exitCode"] = code
                done["reason"] = "Error" if code else "Completed"

    edit.change(pod, p, None, change)
    what = f"pod {pod.name} is {new} instead of {old}"
    return told("pod-outcome-flipped", job, what, ACTIONS, rv=pod.rv(p))


def exit_code(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A failed pod exited with another code than the policy's rule names."""
    choices = [
        (j, pod, p)
        for j, pod, p in _finished_pods(record)
        if (j.spec.get("podFailurePolicy") or {}).get("rules")
        and pod.obj(p)["status"]["phase"] == "Failed"
    ]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, p = choice

    def change(obj: dict[str, Any]) -> None:
        for status in obj["status"].get("containerStatuses", ()):
            done = status.get("state", {}).get("terminated")
            if done:
                done["exitCode"] = 99

    edit.change(pod, p, None, change)
    what = f"pod {pod.name} exited with code 99"
    doubt = "no rule may care for the code of this pod"
    return told("pod-exit-code", job, what, ACTIONS, rv=pod.rv(p), doubt=doubt)


def never_ready(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod that the status counts as ready never was."""
    choices = []
    for job, pod in created_pods(record):
        ready_rows = [
            p
            for p in range(len(pod.rows))
            if any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in pod.obj(p)["status"].get("conditions", ())
            )
        ]
        if not ready_rows:
            continue
        counted = [
            w
            for w in job.writes()
            if job.rv(w) > pod.rv(ready_rows[0])
            and (job.status(w).get("ready") or 0) == (job.status(w).get("active") or 0) > 0
            and (p := pod.position_at(job.rv(w))) in ready_rows
            and not deleting(pod.obj(p))
        ]
        if counted:
            choices.append((job, pod))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod = choice

    def change(obj: dict[str, Any]) -> None:
        for condition in obj["status"].get("conditions", ()):
            if condition["type"] == "Ready":
                condition["status"] = "False"

    edit.change(pod, 0, None, change)
    return told("pod-never-ready", job, f"pod {pod.name} was never ready", ACTIONS, rv=pod.rv(0))


def _restarts(obj: dict[str, Any]) -> int:
    return sum(s.get("restartCount", 0) for s in obj["status"].get("containerStatuses", ()))


def _failures_alone(job: JobLife) -> bool:
    """Whether so many pods had failed, or were deleted by others, as end a Job without restarts."""
    ending = next(p for p in job.writes() if any(job.condition(p, kind) for kind in ENDINGS))
    rv, failed = job.rv(ending), 0
    for pod in job.pods():
        at = pod.position_at(rv)
        if at >= 0 and not job.record.pod_event(job, "SuccessfulDelete", pod.name):
            obj = pod.obj(at)
            failed += phase(obj) == "Failed" or (deleting(obj) and phase(obj) != "Succeeded")
    return failed > (job.spec.get("backoffLimit") or 0)


def fewer_restarts(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The containers never restarted, and yet the back-off limit ends the Job."""
    choices = [
        job
        for job in record.jobs
        if ended("BackoffLimitExceeded")(job)
        and job.spec["template"]["spec"].get("restartPolicy") == "OnFailure"
        and any(_restarts(obj) for pod in job.pods() for obj in pod.objects())
        and not _failures_alone(job)
    ]
    job = pick(rng, choices)
    if job is None:
        return None
    for pod in job.pods():
        for i in pod.rows:
            for status in edit.obj(i)["status"].get("containerStatuses", ()):
                status["restartCount"] = 0
    what = "the containers of its pods never restarted"
    return told("pod-fewer-restarts", job, what, ACTIONS)


def finish_later(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A failed pod's containers finished 8 s later: its replacement comes too early."""
    choices = []
    for job, pod, p in _finished_pods(record):
        if pod.obj(p)["status"]["phase"] != "Failed":
            continue
        later = [q for j, q in created_pods(record) if j is job and q.rv(0) > pod.rv(p)]
        if later and later[0].recv(0) - pod.recv(p) > 6 * 10**9 and len(job.pods()) < 4:
            choices.append((job, pod, p))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, p = choice

    def change(obj: dict[str, Any]) -> None:
        for status in obj["status"].get("containerStatuses", ()):
            done = status.get("state", {}).get("terminated")
            if done and done.get("finishedAt"):
                done["finishedAt"] = shifted(done["finishedAt"], 8)
        for condition in obj["status"].get("conditions", ()):
            if condition.get("lastTransitionTime"):
                condition["lastTransitionTime"] = shifted(condition["lastTransitionTime"], 8)

    edit.change(pod, p, None, change)
    what = f"the containers of failed pod {pod.name} finished 8 s later"
    doubt = "a node's clock may be ahead"
    return told("pod-finish-later", job, what, ACTIONS, rv=pod.rv(p), doubt=doubt)


KINDS = {
    "pod-outcome-flipped": outcome_flipped,
    "pod-exit-code": exit_code,
    "pod-never-ready": never_ready,
    "pod-fewer-restarts": fewer_restarts,
    "pod-finish-later": finish_later,
}
