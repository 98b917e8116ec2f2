"""Situations out of issues of several trackers, each made here: what `diagnose` says of it first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.findings.situations import (
    LOOK,
    NO_PODS,
    RUNNING,
    UID,
    Object,
    at,
    container,
    cron,
    disrupted,
    ended,
    event,
    failed,
    job,
    of_cron,
    pod,
    set_by,
    unschedulable,
    waiting,
)
from tracekit.cli.import_ import import_
from tracekit.report.findings import text_lines
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session

CRON_OWNER = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "c-1",
              "controller": True}  # fmt: skip


def by_taint(number: int) -> Object:
    """A pod that the taint manager deleted, one of several of a Job."""
    found = disrupted("DeletionByTaintManager")
    found["metadata"].update(name=f"work-{number}", uid=f"p-{number}", finalizers=[])
    found["status"]["containerStatuses"] = []
    return found


def runs(count: int) -> list[Object]:
    """Runs of a CronJob, one a minute, none of which has a node."""
    found = []
    for number in range(count):
        name, uid, when = f"tick-{29630000 + number}", f"r-{number}", at(f"09:{number:02}")
        run = job(name=name, uid=uid, creationTimestamp=when, ownerReferences=[CRON_OWNER])
        waits = unschedulable("0/3 nodes are available: 3 Insufficient cpu.")
        waits["metadata"].update(name=f"{name}-a", uid=f"q-{number}", creationTimestamp=when)
        waits["metadata"]["ownerReferences"][0].update(name=name, uid=uid)
        waits["metadata"]["labels"] = {UID: uid, "batch.kubernetes.io/job-name": name}
        found += [run, waits]
    return found


def crowd(count: int, state: Object = RUNNING) -> list[Object]:
    """Runs of a CronJob, one each five minutes, each with a pod."""
    found = []
    for number in range(count):
        name, uid, when = f"tick-{29630000 + 5 * number}", f"r-{number}", at(f"09:{5 * number:02}")
        run = job(name=name, uid=uid, creationTimestamp=when, ownerReferences=[CRON_OWNER])
        work = pod("Running" if state is RUNNING else "Pending", container("main", state))
        work["metadata"].update(name=f"{name}-a", uid=f"q-{number}", creationTimestamp=when)
        work["metadata"]["ownerReferences"][0].update(name=name, uid=uid)
        work["metadata"]["labels"] = {UID: uid, "batch.kubernetes.io/job-name": name}
        found += [run, work]
    return found


def allowing(active: int = 0) -> Object:
    named = [{"apiVersion": "batch/v1", "kind": "Job", "name": f"tick-{n}", "namespace": "app",
              "uid": f"r-{n}"} for n in range(active)]  # fmt: skip
    status = {"lastScheduleTime": at("09:55"), **({"active": named} if named else {})}
    return cron({"concurrencyPolicy": "Allow"}, status)


SAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def scaled_down(
    name: str,
    uid: str,
    reason: str = "ScaleDown",
    message: str = "deleting pod for node scale down",
) -> Object:
    """An autoscaler's Event about a pod."""
    return event("Pod", reason, message) | {
        "involvedObject": {"kind": "Pod", "name": name, "namespace": "app", "uid": uid}}  # fmt: skip


def annotated(found: Object, annotations: Object, *, of_pods: bool) -> Object:
    meta = found["spec"]["template"]["metadata"] if of_pods else found["metadata"]
    meta["annotations"] = annotations
    return found


def side_by_side(count: int) -> list[Object]:
    """A Job with two pods at a time and backoffLimit 3, of which all failed."""
    found = failed()
    found["spec"].update(parallelism=2, completions=2, backoffLimit=3)
    found["status"]["failed"] = count
    pods = [
        pod("Failed", container("main", ended(1)), meta={
            "name": f"work-{n}", "uid": f"p-{n}", "creationTimestamp": at(f"09:0{n // 2}"),
            "finalizers": []})
        for n in range(1, count + 1)
    ]  # fmt: skip
    return [found, *pods]


def second(**meta: Any) -> Object:
    return pod("Running", container("main", RUNNING), meta={
        "name": "work-b", "uid": "p-2", "creationTimestamp": at("09:03"), **meta})  # fmt: skip


GOING = {"deletionTimestamp": at("09:11"), "deletionGracePeriodSeconds": 0}
FREED = {"finalizers": []}
COMPLETE = {"active": 0, "succeeded": 1, "completionTime": at("09:06"), "conditions": [
    {"type": "Complete", "status": "True", "lastTransitionTime": at("09:06"),
     "lastProbeTime": at("09:06")}]}  # fmt: skip
DONE = container("main", ended(0, "Completed"))
NATIVE = {"initContainers": [{"name": "proxy", "image": "p:1", "restartPolicy": "Always"}]}
TWO = {"containers": [{"name": "main", "image": "i:1"}, {"name": "proxy", "image": "p:1"}]}


def killed_later(reason: str) -> Object:
    """How a sidecar ends that is killed once the main container has failed."""
    found = ended(137, reason)
    found["terminated"]["finishedAt"] = at("09:06")
    return found


def ignored(count: int) -> list[Object]:
    """A Job whose podFailurePolicy ignores evictions, all of whose pods were evicted."""
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    pods = [disrupted("EvictionByEvictionAPI") for _ in range(count)]
    for number, found in enumerate(pods):
        found["metadata"].update(name=f"work-{number}", uid=f"p-{number}", finalizers=[])
    spec = {"parallelism": count, "completions": count, "podFailurePolicy": {"rules": [rule]}}
    return [job(spec, NO_PODS), *pods]


def behind_forbid(*found: Object, **of_job: Any) -> list[Object]:
    """A CronJob (Forbid) whose one run has not ended, and what there is of that run."""
    active = {"active": [{"apiVersion": "batch/v1", "kind": "Job", "name": "work",
                          "namespace": "app", "uid": "j-1"}]}  # fmt: skip
    spec, status = of_job.pop("spec", None), of_job.pop("status", None)
    return [cron(None, active), job(spec, status, ownerReferences=[CRON_OWNER], **of_job), *found]


SUSPENDED = {"active": 0, "startTime": None, "conditions": [
    {"type": "Suspended", "status": "True", "reason": "JobSuspended",
     "lastTransitionTime": at("09:00"), "lastProbeTime": at("09:00")}]}  # fmt: skip


#: By thread: the objects, the release, what the first screen says, and what it does not say.
ASKED: dict[str, tuple[list[Object], str, tuple[str, ...], tuple[str, ...]]] = {
    "optscale#568": (
        [job(), unschedulable("0/1 nodes are available: 1 node(s) had untolerated taint "
                              "{node.kubernetes.io/unreachable: }.")],
        "v1.30.4", ("TK411", "Bring the node back"), ("Tolerate the taint", "cannot be changed")),
    "spotinst-kubernetes-helm-charts#29": (
        [job(), unschedulable("0/9 nodes are available: 3 node(s) had taint {CriticalAddonsOnly: "
                              "true}, that the pod didn't tolerate, 6 node(s) didn't match node "
                              "selector.")],
        "v1.19.11", ("Tolerate the taint", "correct nodeSelector"), ("Bring the node back",)),
    "kubernetes#90550": (
        [job({"activeDeadlineSeconds": 40}), pod("Running", container("main", RUNNING))],
        "v1.14.6",
        ("TK424", "activeDeadlineSeconds 40 was over at 2026-05-04 09:00:40Z",
         "not ended as of 2026-05-04 10:00:00Z"), ()),
    "kubernetes#95794, longhorn#1903": (
        [job(None, {"active": 0, "failed": 5}), *(by_taint(number) for number in range(1, 6))],
        "v1.30.4", ("TK414", "5 failed pods (DeletionByTaintManager)"), ("exit code",)),
    "citationhunt#186, kubernetes#119775": (
        [cron(), of_cron("FailedCreate", "jobs.batch is forbidden: exceeded quota: q, requested: "
                         "count/jobs.batch=1, used: count/jobs.batch=4")],
        "v1.27.4", ("TK315", "exceeded quota", "11 times due"), ()),
    "karmada#527, a CronJob of an exported Job": (
        [cron({"jobTemplate": {"spec": {"template": {
            "metadata": {"labels": {"controller-uid": "7ade", "job-name": "pi"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i:1"}]}}}}})],
        "v1.33.4", ("ERROR TK317", "each of its Jobs must be refused (422)",
                    "spec.template.metadata.labels[controller-uid]: '7ade' is not the uid",
                    "kubectl edit cronjob -n app tick", "11 times due"), ()),
    "prefixed labels, which 1.26 does not ask for": (
        [cron({"jobTemplate": {"spec": {"template": {
            "metadata": {"labels": {"batch.kubernetes.io/job-name": "pi"}}, "spec": {}}}}})],
        "v1.26.4", ("TK315",), ("TK317",)),
    "a label of the jobTemplate that is none": (
        [cron({"jobTemplate": {"metadata": {"labels": {"team": "a b"}}, "spec": {}}})],
        "v1.33.4", ("TK317", "metadata.labels[team]: 'a b' is no valid label value"), ()),
    "a Job that is refused at each tick": (
        [cron(), of_cron("FailedCreate", 'Error creating job: Job.batch "tick-29630005" is invalid: '
                         "[spec.template.spec.containers[0].resources.requests: Invalid value: "
                         '"2": must be less than or equal to cpu limit of 1, spec.x: Required '
                         "value]")],
        "v1.33.4", ("ERROR TK317", "its Jobs are refused (422): spec.template.spec.containers[0]",
                    "must be less than or equal to cpu limit of 1 Event, ", "11 times due"), ()),
    "a JobSet whose Jobs are refused": (
        [job(), event("Job", "JobCreationFailed", 'Job.batch "train-0" is invalid: spec.template.'
                      "spec.containers[0].image: Required value") | {"involvedObject": {
                          "kind": "JobSet", "name": "train", "namespace": "app", "uid": "s-1"}}],
        "v1.33.4", ("ERROR TK317 JobSet app/train", "containers[0].image: Required value"), ()),
    "a quota that one pod is too great for": (
        [job(None, NO_PODS), event("Job", "FailedCreate", 'Error creating: pods "work-x" is '
            "forbidden: exceeded quota: team, requested: requests.cpu=500m,requests.memory=8Gi, "
            "used: requests.cpu=0,requests.memory=0, limited: requests.cpu=4,"
            "requests.memory=4096Mi")],
        "v1.33.4", ("TK405", "one pod asks for more than its quota has in all",
                    "(requests.memory 8Gi, it has 4096Mi)", "does not help"), ("Free the quota or",)),
    "a quota that is used up": (
        [job(None, NO_PODS), event("Job", "FailedCreate", 'Error creating: pods "work-x" is '
            "forbidden: exceeded quota: team, requested: requests.memory=4Gi, used: "
            "requests.memory=1Gi, limited: requests.memory=4Gi")],
        "v1.33.4", ("TK405", "Free the quota or"), ("in all",)),
    "a LimitRange": (
        [job(None, NO_PODS), event("Job", "FailedCreate", 'Error creating: pods "work-x" is '
            "forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi")],
        "v1.33.4", ("TK405", "it can never be admitted", "kubectl describe limitrange"), ()),
    "autoscaler#7095, buildkite/agent-stack-k8s#235": (
        [failed(), disrupted("EvictionByEvictionAPI"), scaled_down("work-a", "p-1")],
        "v1.28.3", ("TK403", "the cluster autoscaler took work-a off its node (Event ScaleDown",
                    'Set cluster-autoscaler.kubernetes.io/safe-to-evict: "false"',
                    "spec.template.metadata.annotations"), ("podFailurePolicy",)),
    "autoscaler#4813": (
        [annotated(failed(), SAFE, of_pods=True), pod("Failed", container("main", ended(143))),
         scaled_down("work-a", "p-1")],
        "v1.21.5", ("TK401", "the cluster autoscaler took work-a off its node",
                    'Its pods have cluster-autoscaler.kubernetes.io/safe-to-evict: "false" already',
                    "see its log for this node"), ("Set cluster",)),
    "autoscaler#1497, no pod left": (
        [annotated(failed(), SAFE, of_pods=False), scaled_down("work-x2x4z", "p-7")],
        "v1.13.5", ("TK409", "the cluster autoscaler took work-x2x4z off its node",
                    "stands on the Job, where the cluster autoscaler does not look"), ()),
    "reformatters#945, karpenter#701": (
        [failed(), disrupted("EvictionByEvictionAPI"),
         scaled_down("work-a", "p-1", "Evicted", "Evicted pod: Underutilized")],
        "v1.33.4", ("TK403", "Karpenter took work-a off its node", "Evicted pod: Underutilized",
                    'Set karpenter.sh/do-not-disrupt: "true"'), ()),
    "karpenter#1168, karpenter-provider-aws#5786": (
        [annotated(failed(), {"karpenter.sh/do-not-disrupt": "true"}, of_pods=True),
         disrupted("EvictionByEvictionAPI"),
         scaled_down("work-a", "p-1", "Evicted", "Evicted pod: Forceful Termination")],
        "v1.33.4", ("TK403", 'Its pods have karpenter.sh/do-not-disrupt: "true" already',
                    "not where a node expires"), ()),
    "kubernetes#130683": (
        [job(), pod("Running", container("main", RUNNING)), second()],
        "v1.30.4", ("TK202", "has 2 pods that live, and wants 1", "work-b since 2026-05-04 09:03",
                    "safe to run twice", "(#130683)"), ()),
    "two pods that parallelism 2 wants": (
        [job({"parallelism": 2, "completions": 2}, {"active": 2}),
         pod("Running", container("main", RUNNING)), second()],
        "v1.30.4", (), ("TK202",)),
    "kubernetes#60735": (
        side_by_side(7), "v1.18.1",
        ("TK401", "7 pods", "backoffLimit 3 (parallelism 2: pods that run side by side"), ()),
    "two pods on two dead nodes": (
        [job({"parallelism": 2, "completions": 2}, {"active": 0}), *(
            pod("Running", container("main", RUNNING), spec={"nodeName": f"n{number}"}, meta={
                "name": f"work-{number}", "uid": f"p-{number}", "deletionTimestamp": at("09:20"),
                "deletionGracePeriodSeconds": 30}) for number in (1, 2))],
        "v1.33.4", ("TK430", "work-1, work-2 on n1, n2 were deleted at 2026-05-04 09:19:30Z"), ()),
    "a CronJob whose runs take longer than its interval": (
        [allowing(), *crowd(12)],
        "v1.33.4", ("TK318", "its runs pile up", "12 at once as of 2026-05-04 10:00:00Z, 7 at",
                    "more than one since 2026-05-04 09:05:00Z", "the oldest for 1 h 0 min",
                    "kubectl patch cronjob -n app tick", "activeDeadlineSeconds"), ()),
    "the same, of the CronJob alone": (
        [allowing(12)], "v1.33.4", ("TK318", "its status.active names 12 Jobs"), ("TK315",)),
    "runs that pile up behind an image": (
        [allowing(), *crowd(12, waiting("ImagePullBackOff", "manifest unknown"))],
        "v1.33.4", ("TK404", "TK318", "see TK404. Correct the image's name or tag.",
                    "concurrencyPolicy Forbid would keep more"), ()),
    "keda#5895, a virtual node": (
        [failed(), pod("Failed", reason="ProviderFailed", message="ContainerGroupQuotaReached")],
        "v1.30.4", ("TK409", "its pods failed with ProviderFailed", "ContainerGroupQuotaReached"), ()),
    "kubernetes#97131, kube-batch#931": (
        [failed(), pod("Failed", reason="UnexpectedAdmissionError", message="Pod Allocate failed due "
                       "to requested number of devices unavailable for nvidia.com/gpu")],
        "v1.23.6", ("the kubelet refused its pods", "look at the device plugin"), ("keep other pods",)),
    "rke2#127, kubernetes#109663": (
        [failed(), pod("Failed", reason="NodeAffinity", message="Predicate NodeAffinity failed")],
        "v1.20.14", ("its kubelet had only begun", "Allow a retry"), ("keep other pods",)),
    "argo-workflows#2502, Fargate": (
        [job(), pod("Pending", spec={"nodeName": None}, conditions=[{
            "type": "PodScheduled", "status": "False", "reason": "POD_UNSUPPORTED_ON_FARGATE",
            "message": "Pod not supported on Fargate: volumes not supported: docker-sock"}])],
        "v1.30.4", ("docker-sock", "what Fargate does not run"), ("requests, node selector",)),
    "containers-roadmap#2654": (
        [job(), pod("Pending", spec={"nodeName": None}), event(
            "Pod", "FailedScheduling", "the account reached the limit on the number of Fargate vCPU")],
        "v1.30.4", ("TK411", "no node takes its pods (FailedScheduling)", "limit on the number",
                    "Raise the account's limit"), ("never bound",)),
    "kube-batch#515, a scheduler that is not there": (
        [job(), pod("Pending", spec={"nodeName": None, "schedulerName": "kube-batch"})],
        "v1.30.4", ("no scheduler has looked at its pods (schedulerName kube-batch)",
                    "whether that scheduler runs"), ("kubelet's Events",)),
    "dynamic resources, no device": (
        [job(), unschedulable("0/3 nodes are available: 3 cannot allocate all claims.")],
        "v1.34.0", ("Free a device", "resourceslices"), ("node selector",)),
    "dynamic resources, no claim": (
        [job(), unschedulable('waiting for resource claim "work-a-gpu" to be created')],
        "v1.34.0", ("describe resourceclaim",), ("node selector",)),
    "karpenter-provider-aws#5975": (
        [job(), unschedulable("0/7 nodes are available: 7 Insufficient memory."), event(
            "Pod", "FailedScheduling", "Failed to schedule pod, no instance type has enough resources")],
        "v1.30.4", ("no instance type has enough", "Ask for less"), ()),
    "AKS#615": (
        [job(), pod("Pending", container("main", waiting("ContainerCreating"))), event(
            "Pod", "FailedAttachVolume", "AttachVolume.Attach failed: the disk is being detached")],
        "v1.30.4", ("TK428", "being detached", "volumeattachments"), ()),
    "airflow#56596, a sidecar of XCom": (
        [job(), pod("Running", container("main", ended(0, "Completed")),
                    container("xcom", RUNNING), spec={"containers": [
                        {"name": "main", "image": "i:1"}, {"name": "xcom", "image": "a:1"}]})],
        "v1.33.4", ("TK436", "done but for container xcom"), ()),
    "k8up#689": (
        [job(None, NO_PODS, finalizers=["foregroundDeletion"], deletionTimestamp=at("09:20"),
             deletionGracePeriodSeconds=0)],
        "v1.22.4", ("TK412", "foregroundDeletion", "garbage collector"), ()),
    "kubernetes#109429": (
        [job({"ttlSecondsAfterFinished": 300}, COMPLETE, finalizers=["foregroundDeletion"], **GOING),
         pod("Succeeded", DONE, meta=GOING)],
        "v1.23.5", ("TK204", "pods were left with the tracking finalizer", "54 min 0 s",
                    "kubectl patch pod -n app work-a --type=json", "TK412", "see TK204"),
        ("api-resources",)),
    "kubernetes#121605, kubernetes#127917, kyverno#8815": (
        [job(None, {"active": 0, "uncountedTerminatedPods": {"succeeded": ["p-1"]}}),
         pod("Succeeded", DONE)],
        "v1.27.4", ("ERROR TK439", "does not get its finalizer off", "(#121605)",
                    "in uncountedTerminatedPods", "mutatingwebhookconfigurations",
                    "kubectl patch pod -n app work-a"), ("lease kube-controller-manager",)),
    "a finalizer that is taken off in its time": (
        [job(None, {"active": 0, "uncountedTerminatedPods": {"succeeded": ["p-1"]}}),
         pod("Succeeded", container("main", {"terminated": {
             **DONE["state"]["terminated"], "finishedAt": "2026-05-04T09:59:50Z"}}))],
        "v1.27.4", (), ("TK439",)),
    "kubernetes#130881": (
        ignored(3), "v1.32.2",
        ("TK414", "EvictionByEvictionAPI", "(#130881)", "3 not counted (podFailurePolicy)",
         "each lengthens the wait"), ()),
    "metal-stack#148, ttlSecondsAfterFinished": (
        [job({"ttlSecondsAfterFinished": 60}, COMPLETE), pod("Succeeded", DONE, meta=FREED)],
        "v1.30.4", ("TK425", "has not deleted it", "over at 2026-05-04 09:07:00Z",
                    "still there (as of 2026-05-04 10:00:00Z)", "ttl-after-finished-controller"),
        ("TK204",)),
    "a TTL that was set just now": (
        [job({"ttlSecondsAfterFinished": 60}, COMPLETE,
             managedFields=set_by("kubectl-patch", "10:00"))],
        "v1.30.4", (), ("TK425",)),
    "istio#51883": (
        [job(), pod("Running", DONE, spec=NATIVE,
                    initContainerStatuses=[container("proxy", RUNNING)])],
        "v1.30.4", ("TK436", "native sidecar proxy, which the kubelet has not ended",
                    "main ended at 2026-05-04 09:05:00Z", "kubelet's log on n1"),
        ("Make it a native sidecar",)),
    "a native sidecar beside work that goes on": (
        [job(), pod("Running", container("main", RUNNING), spec=NATIVE,
                    initContainerStatuses=[container("proxy", RUNNING)])],
        "v1.30.4", (), ("TK436", "TK442")),
    "kubernetes#25908, a proxy that is killed after the work failed": (
        [failed(), pod("Failed", container("main", ended(3)),
                       container("proxy", killed_later("Error")), spec=TWO, meta=FREED)],
        "v1.30.4", ("TK401", "failed with exit code 3"), ("137", "SIGKILL")),
    "istio, an injected proxy whose image does not come": (
        [job(), pod("Pending", DONE, container("proxy", waiting("ImagePullBackOff", "Back-off")),
                    spec=TWO)],
        "v1.30.4", ("TK404", "cannot pull its image p:1", "container proxy of work-a"), ("i:1",)),
    "a native sidecar that is out of memory as the work fails": (
        [failed(), pod("Failed", container("main", ended(1)), spec=NATIVE, meta=FREED,
                       initContainerStatuses=[container("proxy", ended(137, "OOMKilled"))])],
        "v1.30.4", ("TK401", "failed with exit code 1"), ("TK402", "OOMKilled")),
    "kueue, a CronJob behind a Job that waits for its turn": (
        behind_forbid(spec={"suspend": True}, status=SUSPENDED,
                      labels={"kueue.x-k8s.io/queue-name": "ml"}),
        "v1.33.4", ("TK315", "work: is suspended: Kueue holds it back (queue ml)",
                    "do: see TK413. INFO"), ("kubectl patch job",)),
    "kubernetes#76570, a CronJob behind a pod that no node takes": (
        behind_forbid(unschedulable("0/3 nodes are available: 3 Insufficient cpu.")),
        "v1.33.4", ("TK411", "TK315", "work: has not begun: no node takes its pods",
                    "do: Ask for less of what is insufficient", "do: see TK411. INFO"), ("runs for",)),
    "a CronJob behind a Job that another controller manages": (
        behind_forbid(spec={"managedBy": "kueue.x-k8s.io/multikueue"},
                      status={"active": 0, "startTime": None}),
        "v1.33.4", ("TK315", "work: is managed by kueue.x-k8s.io/multikueue"), ("runs for",)),
    "kubernetes#107720, by whom": (
        [job(status={"failed": 1}),
         disrupted("PreemptionByScheduler") | {"metadata": {
             **disrupted("")["metadata"], "finalizers": []}},
         second(), event("Pod", "Preempted", "Preempted by pod 0f-1 on node n1"),
         pod("Running", container("main", RUNNING), meta={
             "name": "vip-x", "uid": "0f-1", "labels": {}, "ownerReferences": [
                 {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "vip", "uid": "r-9",
                  "controller": True}]})],
        "v1.33.4", ("TK448", "Preempted by pod 0f-1 on node n1",
                    "(that is app/vip-x of ReplicaSet vip)"), ()),
    "runs that overlap now and then": (
        [allowing(), *crowd(2)], "v1.33.4", (), ("TK318",)),
}  # fmt: skip


def first_screen(place: Path, version: str, *logs: str, lines: int = 24) -> str:
    """What `diagnose` prints first at 80 columns, its lines joined by single spaces."""
    out = place / "trace"
    words = [*logs, "-o", str(out), "--kubernetes-version", version]
    result = CliRunner().invoke(import_, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(" ".join(list(text_lines(findings_of(Session([str(out)]))))[:lines]).split())


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, tmp_path: Path) -> None:
    objects, version, says, not_said = ASKED[thread]
    log = tmp_path / "list.json"
    log.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [LOOK, *objects]}))
    screen = first_screen(tmp_path, version, str(log))
    assert [text for text in says if text not in screen] == [], screen
    assert [text for text in not_said if text in screen] == [], screen


#### Out of audit logs ####

MANAGER = "system:serviceaccount:kube-system:"


def asked(
    verb: str, found: Object, user: str, clock: str, version: int, subresource: str | None = None
) -> Object:
    """A line of an audit log: a request for a Job or a pod, and what came of it."""
    kind, meta = found["kind"], found["metadata"]
    resource = {"Job": "jobs", "Pod": "pods"}[kind]
    answer = found | {"metadata": {**meta, "resourceVersion": str(version)}}
    if verb == "delete":
        answer = {"kind": "Status", "apiVersion": "v1", "status": "Success",
                  "details": {"name": meta["name"], "kind": resource, "uid": meta["uid"]}}  # fmt: skip
    group = {"apiGroup": "batch"} if kind == "Job" else {}
    return {
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
        "auditID": f"a-{version}", "stage": "ResponseComplete", "verb": verb,
        "requestURI": f"/api/{resource}", "user": {"username": user}, "userAgent": "client/v1",
        "objectRef": {"resource": resource, "namespace": "app", "name": meta["name"],
                      "apiVersion": "v1", "uid": meta["uid"],
                      **group, **({"subresource": subresource} if subresource else {})},
        "responseStatus": {"metadata": {}, "code": 201 if verb == "create" else 200},
        "responseObject": answer,
        "requestReceivedTimestamp": f"2026-05-04T{clock}.000000Z",
        "stageTimestamp": f"2026-05-04T{clock}.010000Z",
    }  # fmt: skip


def refused(line: Object, status: Object) -> Object:
    """That request, refused with a Status of the API."""
    return {
        **line, "responseStatus": {"metadata": {}, **status},
        "responseObject": {"kind": "Status", "apiVersion": "v1", **status},
    }  # fmt: skip


def deleted_by(user: str, owner: str = "") -> list[Object]:
    """A Job whose pod runs, until somebody deletes the Job."""
    owners = [{"apiVersion": "keda.sh/v1alpha1", "kind": owner, "name": "tick", "uid": "s-1",
               "controller": True}] if owner else []  # fmt: skip
    made = job(None, {"active": 0, "startTime": None}, ownerReferences=owners)
    made["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "work"
    begun = pod("Pending", spec={"nodeName": None}, meta={"generateName": "work-"})
    runs_now = pod("Running", container("main", RUNNING))
    begun_job = {**made, "status": job()["status"]}
    return [
        asked("create", made, user, "09:00:00", 100),
        asked("create", begun, f"{MANAGER}job-controller", "09:00:00", 101),
        asked("update", begun_job, f"{MANAGER}job-controller", "09:00:01", 102, "status"),
        asked("patch", runs_now, "system:node:n1", "09:01:00", 103, "status"),
        asked("delete", made, user, "09:10:00", 104),
        asked("delete", runs_now, f"{MANAGER}generic-garbage-collector", "09:10:01", 105),
    ]


def not_freed() -> list[Object]:
    """A Job whose pod has ended; a webhook refuses to let its controller take the finalizer off."""
    made = job(None, {"active": 0, "startTime": None})
    made["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "work"
    begun = pod("Pending", spec={"nodeName": None}, meta={"name": "work-x2x4z",
                                                          "generateName": "work-"})  # fmt: skip
    over = pod("Succeeded", DONE, meta=begun["metadata"])
    waits = {**job()["status"], "active": 0, "uncountedTerminatedPods": {"succeeded": ["p-1"]}}
    user = f"{MANAGER}job-controller"
    lines = [
        asked("create", made, "dora", "09:00:00", 100),
        asked("create", begun, user, "09:00:00", 101),
        asked("update", {**made, "status": job()["status"]}, user, "09:00:01", 102, "status"),
        asked("patch", over, "system:node:n1", "09:05:00", 103, "status"),
        asked("update", {**made, "status": waits}, user, "09:05:02", 104, "status"),
    ]
    denied = {"status": "Failure", "reason": "", "code": 400, "message": "admission webhook "
              '"validate.kyverno.svc-fail" denied the request: blocked by policies'}  # fmt: skip
    for number in range(6):
        line = asked("patch", over, user, f"09:{5 + number:02}:10", 110 + number)
        lines.append(refused(line, denied))
    return lines


def taken_name(user: str) -> list[Object]:
    """A Job, and five requests for another one of its name."""
    made = job(None, {"active": 0, "startTime": None})
    lines = [asked("create", made, "dora", "09:00:00", 100)]
    taken = {"status": "Failure", "reason": "AlreadyExists", "code": 409,
             "message": 'jobs.batch "work" already exists'}  # fmt: skip
    for number in range(5):
        line = asked("create", made, user, f"09:{5 + number:02}:10", 110 + number)
        lines.append(refused(line, taken))
    return lines


KEDA, ADMIN = "system:serviceaccount:keda:keda-operator", "lukas"
HELD = job({"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "ml"})
HELD["status"] = {}
QUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
_IMMUTABLE = (
    'Job.batch "work" is invalid: spec.template: Invalid value: core.PodTemplateSpec{Spec:'
    "core.PodSpec{Volumes:[]core.Volume(nil)}}: field is immutable"
)


def held_back() -> list[Object]:
    """A Job that a queue holds, whose template the queue may not change."""
    answer = {"status": "Failure", "reason": "Invalid", "message": _IMMUTABLE, "code": 422}
    line = refused(asked("patch", HELD, QUEUE, "09:00:01", 105), answer)
    return [asked("create", HELD, "dora", "09:00:00", 100), line]


#: By thread: the release, what is said of that, and what is not.
HELD_BACK = {
    "kubernetes#139281": ("v1.36.0", ("until the Job has its condition Suspended", "1.36.2",
                                      "(#139281)"), ("delete the Job",)),
    "kueue#406": ("v1.22.4", ("upgrade to 1.23 or later",), ("#139281", "delete the Job")),
    "the same, mended": ("v1.36.3", ("only node affinity, node selector",), ("#139281", "upgrade")),
}  # fmt: skip


@pytest.mark.parametrize("thread", HELD_BACK)
def test_what_a_queue_may_not_change_is_told_by_the_release(thread: str, tmp_path: Path) -> None:
    version, says, not_said = HELD_BACK[thread]
    log = tmp_path / "audit.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in held_back()))
    screen = first_screen(tmp_path, version, str(log), lines=11)
    assert [text for text in ("TK433", QUEUE, *says) if text not in screen] == [], screen
    assert [text for text in not_said if text in screen] == [], screen


#: By thread: the lines, what the first screen says, and what it does not say.
AUDITED: dict[str, tuple[list[Object], tuple[str, ...], tuple[str, ...]]] = {
    "keda#6440, keda#2098, keda#1021": (
        deleted_by(KEDA, "ScaledJob"),
        ("TK447", f"deleted before it ended, by {KEDA}", "(audit log)", "work-a",
         "2026-05-04 09:10:00Z", "gradual"), ()),
    "helm#8146": (
        deleted_by(ADMIN), ("TK447", f"by {ADMIN}", "tracekit who TRACE --object app/work"), ()),
    "helm#1769, helm#8101": (
        taken_name("system:serviceaccount:ci:helm"),
        ("TK433", "create by system:serviceaccount:ci:helm was refused (409)", "5 times",
         "a Job of that name is there", "before-hook-creation"), ("TK411",)),
    "the same, by somebody": (
        taken_name("lukas"), ("TK433", "create by lukas", "generateName"), ("before-hook",)),
    "a log without the controllers": (
        taken_name("lukas")[:1] + taken_name("lukas")[-1:], ("TK903",), ("TK411", "not looked")),
    "kyverno#8815": (
        not_freed(),
        ("TK439", "patch by job-controller was refused (400)", '"validate.kyverno.svc-fail" denied',
         "as of 2026-05-04 09:10:10Z"), ()),
    "helm#6741": (
        deleted_by("system:serviceaccount:kube-system:tiller"),
        ("TK447", "tiller", "helm.sh/hook-delete-policy"), ()),
}  # fmt: skip


@pytest.mark.parametrize("thread", AUDITED)
def test_what_is_said_first_of_an_audit_log(thread: str, tmp_path: Path) -> None:
    lines, says, not_said = AUDITED[thread]
    log = tmp_path / "audit.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    screen = first_screen(tmp_path, "v1.30.4", str(log))
    assert [text for text in says if text not in screen] == [], screen
    assert [text for text in not_said if text in screen] == [], screen
