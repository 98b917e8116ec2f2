"""Who else holds a Job or its pods: queueing systems and owners, by labels and finalizers.

Each row of `QUEUES` is from that system's own documentation; the label's value is the queue's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tracekit.answers.evidence import Evidence
from tracekit.answers.trace_model import Job
from tracekit.answers.words import agreeing
from tracekit.base.escaping import for_shell


class Holder(Struct, frozen=True):
    """Who suspends and resumes a Job, by what that is known, and where to look for its reasons."""

    name: str
    what: str
    look: str
    evidence: Evidence


class _Queue(Struct, frozen=True):
    label: str
    system: str
    #: What kubectl lists in the Job's namespace, in which the system says why it waits.
    kind: str


QUEUES = (
    _Queue("kueue.x-k8s.io/queue-name", "Kueue", "workloads.kueue.x-k8s.io"),
    _Queue("volcano.sh/queue-name", "Volcano", "podgroups.scheduling.volcano.sh"),
    _Queue("scheduling.volcano.sh/queue-name", "Volcano", "podgroups.scheduling.volcano.sh"),
    _Queue("kai.scheduler/queue", "KAI Scheduler", "podgroups.scheduling.run.ai"),
)
#: Kinds that own Jobs and suspend and resume them by their own spec, with what kubectl calls them.
_OWNERS = {
    "JobSet": "jobsets.jobset.x-k8s.io",
    "AppWrapper": "appwrappers.workload.codeflare.dev",
    "TrainJob": "trainjobs.trainer.kubeflow.org",
}


def holder_of(job: Job) -> Holder | None:
    """Who but a user decides whether the Job is suspended; None where nothing tells of anybody."""
    row, space = job.last.row, for_shell(job.namespace)
    if (kind := _OWNERS.get(row["owner_kind"] or "")) is not None:
        owner = f"{row['owner_kind']} {row['owner_name']}"
        look = f"kubectl -n {space} describe {kind} {for_shell(row['owner_name'] or '')}"
        return Holder(owner, "its owner", look, Evidence.STATUS)
    for queue in QUEUES:
        name = job.labels.get(queue.label)
        if isinstance(name, str) and name:
            look = f"kubectl -n {space} describe {queue.kind}"
            return Holder(queue.system, f"queue {name}", look, Evidence.STATUS)
    return None


#: By the domain of a finalizer: the system whose it is, and the controller that takes it off.
#: Upstream: kueue, pkg/controller/jobs/pod (PodFinalizer) and apis/kueue (ResourceInUseFinalizer);
#: argo-workflows, workflow/common (FinalizerPodStatus); argo-cd and its gitops-engine (of hooks).
_THEIRS = {
    "argocd.argoproj.io": ("Argo CD", "argocd-application-controller"),
    "kueue.x-k8s.io": ("Kueue", "kueue-controller-manager"),
    "workflows.argoproj.io": ("Argo Workflows", "workflow-controller"),
}


def domain_of(finalizer: str) -> str:
    """Whose finalizer it is: the domain of `DOMAIN/NAME`, or of `NAME.DOMAIN`; "" if it has none.

    Where the domain is that of a known system, or below it, it is that one.
    """
    qualified, slash, _ = finalizer.partition("/")
    ours = next((d for d in _THEIRS if f".{qualified}".endswith(f".{d}")), None)
    if ours is not None or slash:
        return ours or qualified
    _, dot, rest = qualified.partition(".")
    return "" if not dot else rest if "." in rest else qualified


def controller_of(domain: str) -> str:
    """The controller that takes off the finalizers of a domain, by its own name where known."""
    system, controller = _THEIRS.get(domain, ("", ""))
    return f"{system} ({controller})" if system else f"the controller of {domain}"


def goes_when(finalizers: Sequence[str], *, only: bool = False) -> str:
    """What has to become of the finalizers that hold something, and by whom where that is known."""
    goes = "It goes only when" if only else "It goes when"
    said = f"{goes} {agreeing('is', finalizers)} taken off"
    domains = dict.fromkeys(map(domain_of, finalizers))
    theirs = [controller_of(domain) for domain in domains if domain in _THEIRS]
    if not theirs:
        return f"{said}." if only else f"{said}: by whoever set that finalizer."
    return f"{said}, which {' and '.join(theirs)} does: see whether that runs, and its log."
