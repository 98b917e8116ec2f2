"""More situations out of public reports, each made here: what `diagnose` says of it first.

By name: the tracker and thread where one was read, else the kind of trouble.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.findings.situations import (
    LIMITED,
    LOOK,
    NO_PODS,
    ON_FAILURE,
    PROXY,
    RUNNING,
    SUSPENDED,
    Asked,
    at,
    check_first_screen,
    container,
    cron,
    disrupted,
    ended,
    event,
    failed,
    imported,
    job,
    of_cron,
    pod,
    set_by,
    unschedulable,
    waiting,
)
from tracekit.answers.findings.diagnosis import diagnose
from tracekit.answers.trace_model import Facts
from tracekit.api.trace import Trace
from tracekit.report.findings import text_lines
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session


def asked_of_failures() -> dict[str, Asked]:
    """Jobs that failed: what is said of their pods, and where none is left."""
    indexed = {"completionMode": "Indexed", "completions": 4, "parallelism": 4,
               "backoffLimitPerIndex": 1}  # fmt: skip
    by_policy = failed("PodFailurePolicy")
    by_policy["status"]["conditions"][1]["message"] = (
        "exit code 42 matching FailJob rule at index 0"
    )
    by_index = failed("FailedIndexes")
    by_index["spec"].update(indexed)
    by_index["status"].update(failedIndexes="1,3", completedIndexes="0,2")
    late = failed("DeadlineExceeded")
    late["spec"]["activeDeadlineSeconds"] = 300
    in_place = failed()
    in_place["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    return {
        "no pod left": Asked(
            (failed(),), ("TK409", "no pod of it was seen", "Keep logs outside"),
            ("tells the sync",)),
        "kubernetes#74848, OnFailure": Asked((in_place,), ("restartPolicy Never keeps",)),
        "a deadline, no pod left": Asked(
            (late,), ("TK408", "activeDeadlineSeconds 300", "whether one ran is not known"),
            ("before a pod ran",)),
        "KEP-3329": Asked(
            (by_policy, pod("Failed", container("main", ended(42)))),
            ("TK410", "matching FailJob rule at index 0")),
        "KEP-3850": Asked((by_index,), ("TK410", "failed indexes: 1,3 of 4", "kubectl logs -n", "-l job-name=work --prefix")),
        "an init container that fails": Asked(
            (failed(), pod("Failed", container("main", waiting("PodInitializing")),
                           initContainerStatuses=[container("init-db", ended(3))])),
            ("TK401", "init container init-db ended with exit code 3", "-c init-db")),
        "SIGTERM": Asked(
            (failed(), pod("Failed", container("main", ended(143))),
             event("Pod", "Killing", "Stopping container main")),
            ("exit code 143 (SIGTERM)", "Stopping container main", "who asked the pod to end")),
        "SIGKILL without OOMKilled": Asked(
            (failed(), pod("Failed", container("main", ended(137)))),
            ("exit code 137 (SIGKILL)", "SIGKILL without OOMKilled"), ("limits.memory",)),
        "SIGSEGV": Asked(
            (failed(), pod("Failed", container("main", ended(139)))),
            ("exit code 139 (SIGSEGV)", "a fault of the program"), ("Spare", "retries")),
        "SIGBUS": Asked(
            (failed(), pod("Failed", container("main", ended(135)))),
            ("exit code 135 (SIGBUS)", "shared memory")),
        "a command that the image lacks": Asked(
            (failed(), pod("Failed", container("main", ended(127)))),
            ("exit code 127 (a shell's code for a command that is not found)", ".command"),
            ("retries",)),
        "a sidecar out of memory": Asked(
            (failed(), pod("Failed", container("main", ended(1)),
                           container("proxy", ended(137, "OOMKilled")), spec=PROXY)),
            ("TK402", "container proxy")),
        "DeletionByPodGC": Asked(
            (failed(), disrupted("DeletionByPodGC")), ("pod garbage collector",), ("evicted",)),
        "kubernetes#93649, emptyDir": Asked(
            (failed(), pod("Failed", reason="Evicted", message="Usage of EmptyDir volume tmp "
                                                               "exceeds the limit 1Gi.")),
            ("TK403", "exceeds the limit", "Raise that limit"), ("podFailurePolicy",)),
        "socle#532, memory": Asked(
            (failed(), pod("Failed", reason="Evicted", message="The node was low on resource: memory.")),
            ("low on resource: memory", "resources.requests"), ("podFailurePolicy",)),
        "disrupted, OnFailure": Asked(
            (in_place, disrupted("EvictionByEvictionAPI")), ("not valid with OnFailure",)),
    }  # fmt: skip


def asked_of_waits() -> dict[str, Asked]:
    """Jobs that wait: for what, in whose words, and what helps."""
    going = {"deletionTimestamp": at("09:20"), "deletionGracePeriodSeconds": 0}
    grace = {"deletionTimestamp": at("10:50"), "deletionGracePeriodSeconds": 3600}
    refused = 'Error creating: pods "work-x" is forbidden: '
    return {
        "a claim that is missing": Asked(
            (job(), unschedulable('persistentvolumeclaim "data" not found.')),
            ("TK411", "Create the PersistentVolumeClaim"), ("node selector",)),
        "a claim that is not bound": Asked(
            (job(), unschedulable("pod has unbound immediate PersistentVolumeClaims.")),
            ("kubectl describe pvc",)),
        "a taint": Asked(
            (job(), unschedulable("5 node(s) had untolerated taint {nvidia.com/gpu: present}.")),
            ("Tolerate the taint", "cannot be changed")),
        "ErrImageNeverPull": Asked(
            (job(), pod("Pending", container("main", waiting("ErrImageNeverPull", "is not present "
                                                             "with pull policy of Never")))),
            ("TK404", "not on the node", "IfNotPresent"), ("pull secret",)),
        "a registry that limits pulls": Asked(
            (job(), pod("Pending", container("main", waiting("ImagePullBackOff", "Back-off"))),
             event("Pod", "Failed", "Failed to pull image: toomanyrequests")),
            ("toomanyrequests", "limits pulls")),
        "a pull secret that is missing": Asked(
            (job(), pod("Pending", container("main", waiting("ImagePullBackOff", "Back-off"))),
             event("Pod", "FailedToRetrieveImagePullSecret",
                   "Unable to retrieve some image pull secrets (regcred, other); attempting to "
                   "pull the image may not succeed.")),
            ("TK404", "no imagePullSecret regcred, other in app", "Create regcred, other in")),
        "a tag that is missing, and a pull secret": Asked(
            (job(), pod("Pending", container("main", waiting("ImagePullBackOff",
                                                             "i:1: manifest unknown"))),
             event("Pod", "FailedToRetrieveImagePullSecret",
                   "Unable to retrieve some image pull secrets (regcred); attempting to pull the "
                   "image may not succeed.")),
            ("TK404", "no imagePullSecret regcred", "Correct the image's name or tag"),
            ("Create regcred",)),
        "a key is missing": Asked(
            (job(), pod("Pending", container("main", waiting("CreateContainerConfigError",
                                                             "couldn't find key a in Secret b")))),
            ("TK428", "Add the key")),
        "CreateContainerError": Asked(
            (job(), pod("Pending", container("main", waiting("CreateContainerError",
                                                             "context deadline exceeded")))),
            ("TK428", "container runtime"), ("Create what",)),
        "no address for the pod": Asked(
            (job(), pod("Pending", container("main", waiting("ContainerCreating"))),
             event("Pod", "FailedCreatePodSandBox", "failed to assign an IP address to container")),
            ("TK428", "no address left"), ("Create what",)),
        "wait-for-db": Asked(
            (job(), pod("Pending", container("main", waiting("PodInitializing")),
                        initContainerStatuses=[container("wait-for-db", RUNNING)])),
            ("TK442", "wait-for-db does not end", "-c wait-for-db")),
        "a node that is not ready": Asked(
            (job(), pod("Running", container("main", RUNNING),
                        conditions=[{"type": "Ready", "status": "False"}]),
             event("Pod", "NodeNotReady", "Node is not ready")),
            ("TK441", "node n1, which does not answer")),
        "phase Unknown": Asked(
            (job(), pod("Unknown", reason="NodeLost", message="unresponsive")), ("TK441",)),
        "a long grace period": Asked(
            (job(), pod("Running", container("main", RUNNING), meta=grace)),
            ("TK430", "until 2026-05-04 10:50:00Z", "terminationGracePeriodSeconds")),
        "a probe kills it": Asked(
            (job(), pod("Running", container("main", RUNNING, 4, ended(137)), spec=ON_FAILURE),
             event("Pod", "Killing", "Container main failed liveness probe, will be restarted")),
            ("TK429", "failed liveness probe", "Give the probe more time")),
        "a finalizer of a queue": Asked(
            (job(None, None, finalizers=["kueue.x-k8s.io/resource-in-use"], **going),),
            ("TK412", "kueue.x-k8s.io", "from 2026-05-04 09:20:00Z")),
        "a finalizer without a slash": Asked(
            (job(None, None, finalizers=["resources-finalizer.argocd.argoproj.io"], **going),),
            ("TK412", "See whether Argo CD (argocd-application-controller) runs",
             "Only if it is gone for good")),
        "one of nobody who is known": Asked(
            (job(None, None, finalizers=["cleanup.shop.example.com"], **going),),
            ("TK412", "See whether the controller of shop.example.com runs")),
        "orphan": Asked(
            (job(None, None, finalizers=["orphan"], **going),), ("TK412", "garbage collector")),
        "foreground, pod stuck": Asked(
            (job(None, None, finalizers=["foregroundDeletion"], **going),
             pod("Running", container("main", RUNNING), meta=going)),
            ("TK430", "is being deleted, and waits for a pod"), ("TK412",)),
        "terraform-controller#71": Asked(
            (job(), pod("Running", container("main", RUNNING)),
             event("Job", "OwnerRefInvalidNamespace", "ownerRef [x] does not exist in namespace")),
            ("TK440", "owner is not in its namespace")),
        "argo-workflows#1096": Asked(
            (job(None, NO_PODS), event("Job", "FailedCreate", refused + "failed quota: q1: must "
                                                              "specify limits.cpu for: main")),
            ("TK405", "Give each container"), ("Free the quota",)),
        "LimitRange": Asked(
            (job(None, NO_PODS), event("Job", "FailedCreate", refused + "maximum memory usage per "
                                                              "Container is 1Gi, but limit is 2Gi")),
            ("TK405", "kubectl describe limitrange"), ("quota",)),
        "jobset#408": Asked(
            (job(None, NO_PODS), event("Job", "FailedCreate", "must be no more than 63 characters")),
            ("TK405", "too long", "shorter name")),
        "one of two pods without a node": Asked(
            (job({"parallelism": 2, "completions": 2}, {"active": 2}),
             pod("Running", container("main", RUNNING)),
             pod("Pending", spec={"nodeName": None}, meta={"name": "work-b", "uid": "p-2"},
                 conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                              "message": "0/3 nodes are available: 3 Insufficient cpu."}])),
            ("TK411", "has pods that no node takes", "work-b since 2026-05-04 09:00:00Z",
             "Ask for less")),
        "in back-off": Asked(
            (job(None, {"active": 0, "failed": 1}),
             pod("Failed", container("main", ended(3)), meta={"finalizers": []})),
            ("TK414", "exit code 3", "the last at 2026-05-04 09:05:00Z", "backoffLimit 6")),
        "the controller does not count": Asked(
            (job(), pod("Succeeded", container("main", ended(0, "Completed")))),
            ("TK439", "09:05:00Z, still not counted", "lease")),
        "the controller does not look": Asked(
            (job(None, {"active": 0, "startTime": None}),),
            ("TK411", "has not looked at it", "lease")),
    }  # fmt: skip


def asked_of_cronjobs() -> dict[str, Asked]:
    """CronJobs that start nothing, in one look: since when, and why."""
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "c-1",
             "controller": True}  # fmt: skip
    run = job(None, None, ownerReferences=[owner])
    active = {"active": [{"apiVersion": "batch/v1", "kind": "Job", "name": "work",
                          "namespace": "app", "uid": "j-1"}]}  # fmt: skip
    suspended = job({"suspend": True}, {"active": 0, "startTime": None, "conditions": [SUSPENDED]},
                    managedFields=set_by("kubectl-patch", "09:30"))  # fmt: skip
    return {
        "kubernetes#101584, Forbid behind an image": Asked(
            (cron(None, active), run,
             pod("Pending", container("main", waiting("ImagePullBackOff", "manifest unknown")))),
            ("TK404", "TK315", "work has not ended", "11 times due since 2026-05-04 09:05:00Z",
             "do: Correct the image's name or tag. WARNING", "do: see TK404. INFO"), ("ERROR",)),
        "kubernetes#93783, a webhook": Asked(
            (cron(None, active), run, event("Job", "FailedCreate", 'failed calling webhook "x"')),
            ("TK405", "TK315", "do: Repair what serves the webhook", "do: see TK405. INFO"), ("quota",)),
        "Forbid, a run that hangs": Asked(
            (cron(None, active), run, pod("Running", container("main", RUNNING))),
            ("ERROR", "TK315", "work runs for", "An activeDeadlineSeconds in the CronJob")),
        "kubernetes#112092": Asked(
            (cron(None, {"active": [{"apiVersion": "batch/v1", "kind": "Job"}]}),),
            ("TK315", "entry without a name", "kubectl edit cronjob -n app-")),
        "kubernetes#82539": Asked(
            (cron(),),
            ("ERROR", "TK315", "last start for 2026-05-04 09:00:00Z", "11 times due", "lease")),
        "kubernetes#42649": Asked(
            (cron(), of_cron("FailedNeedsStart", "too many missed start time (> 100)")),
            ("TK315", "never starts again", "Set startingDeadlineSeconds")),
        "a controller without its right": Asked(
            (cron(), of_cron("FailedCreate", "cannot create resource jobs")),
            ("TK315", "has no right to", "ClusterRole")),
        "a namespace that goes": Asked(
            (cron(), of_cron("FailedCreate", "forbidden: because it is being terminated")),
            ("TK315", "namespace is being terminated")),
        "an unknown zone": Asked(
            (cron({"timeZone": "Mars/Olympus"}),), ("TK316", "no time zone 'Mars/Olympus'"), ("TK315",)),
        "an Indexed CronJob of a long name": Asked(
            (cron({"jobTemplate": {"spec": {"completionMode": "Indexed", "completions": 10_001}}},
                  name="n" * 52),),
            ("TK317", "names are not valid", "has 67 characters", "shorter name", "see TK317")),
        "an Indexed CronJob whose name just fits": Asked(
            (cron({"jobTemplate": {"spec": {"completionMode": "Indexed", "completions": 10}}},
                  name="n" * 52),), ("TK315",), ("TK317",)),
        "kube-downscaler#112": Asked(
            (cron({"startingDeadlineSeconds": 0}),), ("TK308", "startingDeadlineSeconds is 0"), ("TK315",)),
        "suspended and forgotten": Asked(
            (cron({"suspend": True}, None, managedFields=set_by("argocd", "09:03")),),
            ("TK305", "11 times due", "suspended by argocd (managedFields, 2026-05-04 09:03:00Z)")),
        "a Job that somebody suspended": Asked(
            (suspended,), ("TK413", "suspended by kubectl-patch", "kubectl patch job -n app-")),
        "a controller in another zone": Asked(
            (cron({"schedule": "0 9 * * *"}, {"lastScheduleTime": at("08:30")}),), (), ("CronJob",)),
        "a CronJob that is not due": Asked(
            (cron({"schedule": "0 9 * * *"}),), (), ("CronJob",)),
    }  # fmt: skip


ASKED = {
    "istio#11045, kubernetes#73118": Asked(
        (job(), pod("Running", container("main", ended(0, "Completed")), container("proxy", RUNNING),
                    spec=PROXY)),
        ("TK436", "done but for container proxy", "main ended with exit code 0", "native sidecar")),
    "kueue#3936, kueue#1726": Asked(
        (job({"suspend": True}, {"active": 0, "startTime": None, "conditions": [SUSPENDED]},
             labels={"kueue.x-k8s.io/queue-name": "ml"}),),
        ("TK413", "Kueue"), ("kubectl patch job",)),
    "keda#5895": Asked(
        (job(), pod("Pending", container("main", waiting("ImagePullBackOff", "unauthorized: no")))),
        ("TK404", "unauthorized: no")),
    "karpenter#3594, karpenter#3778": Asked(
        (failed(), disrupted("EvictionByEvictionAPI")), ("TK403", "EvictionByEvictionAPI", "09:06")),
    "kubernetes#107720, preemption": Asked(
        (failed(), disrupted("PreemptionByScheduler")), ("TK403", "PreemptionByScheduler")),
    "preempted, and replaced": Asked(
        (job(status={"failed": 1}), disrupted("PreemptionByScheduler"),
         pod("Running", container("main", RUNNING), meta={"name": "work-b", "uid": "p-2"}),
         event("Pod", "Preempted", "Preempted by pod 0f-1 on node n1")),
        ("TK448", "gave way to pods of higher priority", "Preempted by pod 0f-1 on node n1",
         "counts toward backoffLimit 6", "priorityClassName"), ("TK403",)),
    "preempted, and nobody tells by whom": Asked(
        (job(status={"failed": 1}), disrupted("PreemptionByScheduler"),
         pod("Running", container("main", RUNNING), meta={"name": "work-b", "uid": "p-2"})),
        ("TK448", "does not tell to which")),
    "AKS#477": Asked(
        (job(), pod("Pending", container("main", waiting("ContainerCreating"))),
         event("Pod", "FailedAttachVolume", "Multi-Attach error for volume pvc-1")),
        ("TK428", "Multi-Attach error", "Free the volume"), ("Create what the message names",)),
    "kueue MultiKueue, KEP-4368": Asked(
        (job({"managedBy": "kueue.x-k8s.io/multikueue"}, {"active": 0, "startTime": None}),),
        ("TK437", "managed by kueue.x-k8s.io/multikueue"), ("has not begun",)),
    "Pod Security": Asked(
        (job(None, NO_PODS), event("Job", "FailedCreate", 'violates PodSecurity "restricted:latest"')),
        ("TK405", "Pod Security", "securityContext"), ("quota",)),
    "istio webhook down": Asked(
        (job(None, NO_PODS), event("Job", "FailedCreate", 'failed calling webhook "x": timeout')),
        ("TK405", "webhook cannot be called", "Repair what serves the webhook"), ("quota",)),
    "airflow, OOM in place": Asked(
        (job(), pod("Running", container("main", waiting("CrashLoopBackOff"), 5,
                                         ended(137, "OOMKilled")), spec=ON_FAILURE | LIMITED)),
        ("TK429", "OOMKilled", "Raise resources.limits.memory")),
    "airflow, OOM": Asked(
        (failed(), pod("Failed", container("main", ended(137, "OOMKilled")), spec=LIMITED)),
        ("TK402", "OOMKilled", "limits.memory 64Mi", "Raise resources.limits.memory")),
    "OOM without a limit": Asked(
        (failed(), pod("Failed", container("main", ended(137, "OOMKilled")))),
        ("TK402", "no limit of its own", "resources.requests.memory"), ("Raise",)),
    "OOM, and nothing shows the limit": Asked(
        (failed(), pod("Failed", container("main", ended(137, "OOMKilled")),
                       spec={"containers": []})),
        ("TK402", "container main do: Raise resources.limits.memory"), ("no limit",)),
    "OOM in place without a limit": Asked(
        (job(), pod("Running", container("main", waiting("CrashLoopBackOff"), 5,
                                         ended(137, "OOMKilled")), spec=ON_FAILURE)),
        ("TK429", "OOMKilled", "resources.requests.memory"), ("Raise",)),
    "parallelism 0": Asked((job({"parallelism": 0}, NO_PODS),), ("TK438", "parallelism is 0")),
    "invalid image name": Asked(
        (job(), pod("Pending", container("main", waiting("InvalidImageName", "invalid reference")))),
        ("TK404", "invalid reference")),
    "GKE, ephemeral storage": Asked(
        (failed(), pod("Failed", reason="Evicted", message="The node was low on resource: disk.")),
        ("TK403", "low on resource: disk")),
    "containerd StartError": Asked(
        (failed(), pod("Failed", container("main", ended(128, "StartError")))),
        ("TK401", "exit code 128 (StartError)")),
    "KEP-753, native sidecar": Asked(
        (job(), pod("Pending", container("main", waiting("PodInitializing")),
                    initContainerStatuses=[container("proxy", waiting("CrashLoopBackOff"), 7, ended(1))])),
        ("TK429", "init container proxy", "7 restarts")),
    "a finalizer of somebody else": Asked(
        (job(), pod("Running", container("main", RUNNING), meta={
            "deletionTimestamp": at("09:11"), "deletionGracePeriodSeconds": 30,
            "finalizers": ["batch.kubernetes.io/job-tracking", "example.com/lock"]})),
        ("TK430", "example.com/lock")),
    "kueue topology gate": Asked(
        (job(), pod("Pending", spec={"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]})),
        ("TK428", "kueue.x-k8s.io/topology"), ("Unschedulable",)),
    **asked_of_failures(), **asked_of_waits(), **asked_of_cronjobs(),
}  # fmt: skip


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)


@pytest.mark.parametrize("kinds", [("Job",), ("CronJob",), ("Pod",), ("Event",), ("Job", "Event")])
def test_a_stream_that_was_never_seen_has_no_time(kinds: tuple[str, ...], tmp_path: Path) -> None:
    """Nothing is as of 1970, whatever of all of it was asked for."""
    part = {
        thread: asked._replace(objects=tuple(o for o in asked.objects if o["kind"] in kinds))
        for thread, asked in ASKED.items()
    }
    part = {thread: asked for thread, asked in part.items() if asked.objects}
    trace = imported(part, tmp_path, LOOK)
    found = diagnose(facts_from(Session([trace])))
    said = [line for finding in found for line in text_lines([finding]) if "1970" in line]
    assert said == []


#: Decided from all Jobs together, or about the record.
OF_ALL = ("TK207", "TK421", "TK434", "TK9")


_OF_JOBS = "SELECT namespace, id, claim FROM findings WHERE kind = 'Job'"


@pytest.mark.full
def test_each_verb_says_of_a_job_what_diagnose_says(trace: str, facts: Facts) -> None:
    said: dict[str, set[tuple[str, str]]] = {}
    for finding in diagnose(facts):
        for case in finding.cases:
            if case.target.kind == "Job" and not finding.id.startswith(OF_ALL):
                told = (finding.id, case.claim)
                said.setdefault(case.target.namespace, set()).add(told)
    assert len(said) >= 50
    with closing(Session([trace])) as session:
        in_sql: dict[str, set[tuple[str, str]]] = {}
        for row in session.table(_OF_JOBS).to_pylist():
            if not row["id"].startswith(OF_ALL):
                in_sql.setdefault(row["namespace"], set()).add((row["id"], row["claim"]))
    assert in_sql == said
    opened = Trace(trace)
    for thread in ("AKS#477", "a node that is not ready"):  # Events of pods are no rows of the Job
        namespace = f"app-{list(ASKED).index(thread)}"
        explained = opened.explain("work", namespace=namespace).findings
        claims = {(f["id"], f["text"].partition(": ")[2]) for f in explained}
        assert {c for c in claims if not c[0].startswith(OF_ALL)} == said[namespace]
