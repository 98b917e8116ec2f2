"""TK456: pods whose containers have all ended, which the kubelet has not told of the pod."""

from __future__ import annotations

from tracekit.answers.endings import coded
from tracekit.answers.harm import HOLDS
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.waits import PodWait
from tracekit.answers.words import clock, in_kubectl
from tracekit.base.escaping import for_shell

UNENDED = Rule(
    "TK456", "a pod whose containers have all ended, and its phase has not", Severity.WARNING,
    "At the end of the record all containers of an unfinished Job's pod have ended for good for 5 "
    "minutes or more, and the grace period, and its phase is still Running or Pending: the Job "
    "counts phases, which the kubelet writes.",
    "A kubelet that is about to tell it.",
    "Read the kubelet's log on the pod's node, and see whether that node is up.", 69774, rank=9,
    losses=HOLDS,
)  # fmt: skip


def unended(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    """The case of a Job that waits for such pods."""
    first = found[0]
    pod, as_of_ns = first.pod, facts.as_of(job.namespace, "pods")
    node = str(pod.last.row["node_name"] or "")
    code = first.exit_code or 0
    on = f" on {node}" if node else ""
    return Case(
        UNENDED, job.target,
        f"waits for a pod whose containers have all ended, and its phase is still {pod.phase}",
        first.since_ns, as_of_ns,
        f"as of {clock(as_of_ns)}, {pod.name}{on}: {first.message} ended with exit code "
        f"{coded(code)} at {clock(first.since_ns)}",
        job.cronjob,
        evidence={"pods": [wait.pod.name for wait in found], "exit_code": code},
        todo=f"Read the kubelet's log{on} of that pod, and see whether that node is up: kubectl "
             f"describe node {for_shell(node) if node else 'NODE'}. kubectl delete pod "
             f"{in_kubectl(job.namespace, pod.name)} ends it; the Job may run that work again.",
    )  # fmt: skip
