"""TK453: containers killed for their memory, in a pod that did not fail by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tracekit.answers.endings import memory_limit, went_on
from tracekit.answers.findings import waiting
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.remedies import MORE_MEMORY, of_memory
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.answers.words import clock, counted, named

_OOM: Final = "OOMKilled"
KILLED_BESIDE = Rule(
    "TK453", "a container killed for its memory, and the Job went on", Severity.INFO,
    "A pod in phase Running or Succeeded, of a Job that did not fail, has a container whose state "
    "or last state is OOMKilled: it was restarted, it runs beside the others, or it ended with "
    "exit code 0, as one of its processes was killed and its first was not.",
    "The container's work may be whole all the same.",
    f"See in its log whether its work is whole. {MORE_MEMORY}", rank=65,
)  # fmt: skip


def killed_beside(facts: Facts, job: Job) -> Iterator[Case]:
    """The case, if the Job has such pods; why a Job failed or waits is told elsewhere."""
    found = [
        (pod, *killed)
        for pod in job.pods
        if pod.phase != "Failed" and (killed := _killed(facts, pod)) is not None
    ]
    if not found or not went_on(job) or (job.ended_ns is None and waiting.waits(facts, job)):
        return
    pod, container, code, at_ns, restarts = found[0]
    if restarts:
        how = f"was restarted ({counted(restarts, 'restart')})"
    elif code == 0:
        how = "ended with exit code 0: a process of it was killed, its first was not"
    else:
        how = f"ended with exit code {code}" if code is not None else "ended"
    stands = "is Complete" if job.ended_ns is not None else "goes on"
    yield Case(
        KILLED_BESIDE,
        job.target,
        f"{stands} though container {container} was killed for its memory (OOMKilled)",
        at_ns,
        at_ns,
        f"{named([entry[0].name for entry in found])}: {container} {how}, {clock(at_ns)}; that "
        "is no failure of the Job",
        job.cronjob,
        evidence={
            "pods": [entry[0].name for entry in found],
            "container": container,
            "exit_code": code,
            "restarts": restarts,
        },
        todo=f"See in its log whether its work is whole. {of_memory(memory_limit(pod, container))}",
    )


def _killed(facts: Facts, pod: Pod) -> tuple[str, int | None, int, int] | None:
    """The first such container: name, exit code, when it is known to have ended, restarts."""
    notes = {note.get("name"): note for note in facts.container_notes.get(pod.uid, ())}
    state = pod.end or pod.last
    for container in state.row["containers"] or ():
        name, code = str(container["name"]), container["exit_code"]
        at_ns = int(container["finished_ns"] or 0) or state.at_ns
        if container["state"] == "terminated" and container["reason"] == _OOM:
            return name, code, at_ns, 0
        note = notes.get(container["name"], {})
        if note.get("ended") == _OOM:
            at_ns = int(container["started_ns"] or 0) or state.at_ns
            return name, note.get("exit_code"), at_ns, int(container["restart_count"] or 0)
    return None
