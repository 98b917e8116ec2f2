"""What `diagnose` says first of what people paste, in each form that kubectl prints.

Situations of public threads that no other test has, made here; the thread is named, its words are
not. Those that were answered right at once are in the full tier.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import (
    LOOK,
    NO_PODS,
    RUNNING,
    UID,
    Object,
    at,
    container,
    ended,
    event,
    failed,
    job,
    pod,
    said_at_ten,
    unschedulable,
    waiting,
)
from tests.findings.test_admission import HELD, condition, workload
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

#### Forms ####


def listed(*objects: Object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]})


def printed(*rows: tuple[str, str, str, str, str]) -> str:
    """What `kubectl get events` prints."""
    rows = (("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"), *rows)
    widths = [max(len(row[at]) for row in rows) + 3 for at in range(4)]
    cells = ("".join(f"{row[n]:<{widths[n]}}" for n in range(4)) + row[4] for row in rows)
    return "\n".join(cells) + "\n"


def events(*lines: str) -> str:
    return (
        "Events:\n  Type  Reason  Age  From  Message\n  ----  ------  ---  ----  -------\n"
        + "".join(f"  {line}\n" for line in lines)
    )


def described(name: str, of: str, status: str, containers: str, *lines: str) -> str:
    """What `kubectl describe pod` prints."""
    return (
        f"Name:             {name}\nNamespace:        app\nNode:             n1/10.0.0.1\n"
        f"Labels:           batch.kubernetes.io/job-name={of}\nStatus:           {status}\n"
        f"Controlled By:    Job/{of}\nContainers:\n{containers}" + events(*lines)
    )


def described_job(name: str, *lines: str) -> str:
    """What `kubectl describe job` prints of one without pods."""
    return (
        f"Name:             {name}\nNamespace:        app\nParallelism:      1\n"
        "Completions:      1\nSuspend:          false\nBackoff Limit:    6\n"
        "Pods Statuses:    0 Active (0 Ready) / 0 Succeeded / 0 Failed\n" + events(*lines)
    )


def of_container(name: str, state: str, *lines: str, restarts: int = 0) -> str:
    below = "".join(f"      {line}\n" for line in lines)
    head = f"  {name}:\n    Image:          i:1\n    State:          {state}\n"
    return f"{head}{below}    Ready:          False\n    Restart Count:  {restarts}\n"


DONE = of_container(
    "main", "Terminated", "Reason:       Completed", "Exit Code:    0",
    "Started:      Mon, 04 May 2026 09:41:00 +0000",
    "Finished:     Mon, 04 May 2026 09:45:00 +0000",
)  # fmt: skip
RUNS = of_container("main", "Running", "Started:      Mon, 04 May 2026 09:55:00 +0000")
CREATING = of_container("main", "Waiting", "Reason:       ContainerCreating")


def of_number(found: Object, number: int) -> Object:
    """A Job, a pod of it or an Event about that, as those of one of several Jobs."""
    text = json.dumps(found)
    for old, new in (("j-1", f"j-{number}"), ("p-1", f"p-{number}"), ("e-1", f"e-{number}"),
                     ("work", f"work-{number}"), ("work-a", f"work-{number}-abcde"),
                     ("e", f"e{number}")):  # fmt: skip
        text = text.replace(f'"{old}"', f'"{new}"')
    return json.loads(text)


def several(count: int, one: Object) -> list[Object]:
    """As many pods of one Job."""
    found = [json.loads(json.dumps(one)) for _ in range(count)]
    for number, each in enumerate(found):
        each["metadata"].update(name=f"work-{number}", uid=f"p-1{number}")
    return found


#### Situations ####

LATE = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long",
        "lastTransitionTime": at("09:16"), "lastProbeTime": at("09:16")}  # fmt: skip
GOING = {"deletionTimestamp": at("09:31"), "deletionGracePeriodSeconds": 30}
FREE = {"finalizers": []}
NO_ADDRESS = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for "
    'sandbox "ab": plugin type="aws-cni" failed (add): add cmd: failed to assign an IP address'
)
OF_ARM = {"exitCode": 255, "reason": "Error", "message": "exec /workspace/app: exec format error\n",
          "startedAt": at("09:01"), "finishedAt": at("09:01")}  # fmt: skip
WANTS = "must specify limits.cpu for: init-copy; limits.memory for: init-copy"
COMPLETE = {"active": 0, "succeeded": 1, "completionTime": at("09:10"), "conditions": [
    {"type": "Complete", "status": "True", "lastTransitionTime": at("09:10")}]}  # fmt: skip
FREED = condition(
    "QuotaReserved", "Pending", "couldn't assign flavors to pod set main: insufficient unused "
    "quota for cpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)",
    holds=False,
)  # fmt: skip
LIMIT = condition(
    "Evicted", "DeactivatedDueToRequeuingLimitExceeded", "deactivated: too many retries"
)
WITH_INIT = {"template": {"metadata": {"labels": {UID: "j-1"}}, "spec": {
    "restartPolicy": "OnFailure", "initContainers": [{"name": "init-copy", "image": "i:1"}],
    "containers": [{"name": "main", "image": "i:1"}]}}}  # fmt: skip
PROBED = [
    event("Pod", "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500"),
    event("Pod", "Killing", "Container main failed liveness probe, will be restarted")
    | {"type": "Normal", "metadata": {**event("Pod", "", "")["metadata"], "name": "k", "uid": "e-2",
                                      "resourceVersion": "301"}},
]  # fmt: skip
STUCK = of_number(job({"suspend": True}), 2)
STUCK_POD = of_number(pod("Running", container("main", RUNNING), meta=GOING), 2)
UNDER_PRESSURE = pod(
    "Failed", meta=FREE, reason="Evicted", message="Pod The node had condition: [DiskPressure]. "
)
Report = tuple[str, tuple[str, ...], tuple[str, ...]]

#: By thread: what is pasted, what is said first, and what is not. These were answered falsely, in
#: part or not at all.
MENDED: dict[str, Report] = {
    "kubernetes#54155, a mount that was late once": (
        printed(("2m", "Warning", "FailedMount", "pod/clean-1509898620-wn049",
                 "Unable to mount volumes for pod: timeout expired waiting for volumes"),
                ("90s", "Normal", "Started", "pod/clean-1509898620-wn049", "Started container"),
                ("60s", "Normal", "Completed", "job/clean-1509898620", "Job completed")),
        ("INFO TK445 Pod clean-1509898620-wn049", "it began after that", "do: Nothing"),
        ("WARNING", "Repair")),
    "save-cloud#1986, a pod that runs by now": (
        described("demo-4pcrw", "demo", "Running", RUNS,
                  "Warning  FailedScheduling  9m38s (x10 over 16m)  default-scheduler  0/3 nodes "
                  "are available: 3 node(s) had taint {node.kubernetes.io/disk-pressure: }.",
                  "Normal  Scheduled  9m27s  default-scheduler  Successfully assigned it to n1"),
        ("INFO TK445", "it began after that"), ("WARNING", "Free disk")),
    "the same, without the Event that placed it": (
        described("demo-4pcrw", "demo", "Running", RUNS,
                  "Warning  FailedMount  9m38s  kubelet  MountVolume.SetUp failed for volume"),
        ("INFO TK445", "it began after that"), ("WARNING",)),
    "withings-sync#248, a pod that still waits": (
        described("sync-7xk2p", "sync", "Pending", CREATING,
                  "Warning  FailedAttachVolume  2m (x6 over 12m)  attachdetach-controller  "
                  'Multi-Attach error for volume "pvc" Volume is already used by pod(s) boot'),
        ("WARNING TK445", "already used by pod(s) boot", "end the pod that has it"),
        ("it began after",)),
    "kubernetes#117303, kubernetes#46497, done and too late": (
        listed(LOOK, job({"activeDeadlineSeconds": 220},
                         {"active": 0, "succeeded": 1, "conditions": [LATE]})),
        ("TK408", "1 of 1 succeeded by its status", "whether anything is to be done again"),
        ("whether one ran is not known",)),
    "the same, of which nothing succeeded": (
        listed(LOOK, job({"activeDeadlineSeconds": 220}, {"active": 0, "conditions": [LATE]})),
        ("TK408", "whether one ran is not known", "Raise activeDeadlineSeconds"), ("succeeded",)),
    "jobset#684, a child that goes and waits for its pod": (
        listed(LOOK, failed() | {"metadata": {**failed()["metadata"], **GOING,
                                              "finalizers": ["foregroundDeletion"]}},
               pod("Running", container("main", RUNNING), meta=GOING)),
        ("WARNING TK430 Job app/work: is being deleted, and waits for a pod that does not go",
         "no pod that failed was seen", "those that failed went"), ("no pod of it was seen",)),
    "karpenter-provider-aws#3594, a budget of the pods of Jobs": (
        printed(("3m", "Warning", "CalculateExpectedPodCountFailed", "poddisruptionbudget/workers",
                 ("Failed to calculate the number of expected pods: jobs.batch does not implement "
                 "the scale subresource"))),
        ("WARNING TK445 PodDisruptionBudget workers", "Give the budget minAvailable as a number"),
        ()),
    "dapr/docs#2972, a sidecar that is begun again": (
        described("run-hmdd4", "run", "Running", DONE + of_container(
            "daprd", "Running", "Started:      Mon, 04 May 2026 09:58:00 +0000", restarts=3),
            "Warning  Unhealthy  2m (x9 over 14m)  kubelet  Liveness probe failed: refused",
            "Normal   Killing    2m (x3 over 14m)  kubelet  Container daprd failed liveness probe"),
        ("WARNING TK444 Pod app/run-hmdd4: is done but for container daprd",
         "main ended with exit code 0 at 2026-05-04 09:45:00Z", "native sidecar"), ("Repair",)),
    "istio#17433, a quota that lets none in": (
        described_job("init", "Warning  FailedCreate  3m (x41 over 4h)  job-controller  Error "
                      'creating: pods "init-x" is forbidden: exceeded quota: best-effort, '
                      "requested: pods=1, used: pods=0, limited: pods=0"),
        ("lets none in at all", "requests or limits on their containers"), ("ask for less",)),
    "kubernetes#54753, the words of an old scheduler": (
        listed(LOOK, job(), unschedulable("No nodes are available that match all of the "
               "predicates: MatchInterPodAffinity (2), MatchNodeSelector (11).")),
        ("TK411", "Correct nodeSelector or affinity; or relax pod affinity"), ()),
    "kubernetes#112765, a request that took too long": (
        printed(("13s", "Warning", "FailedCreate", "job/load", ("Error creating: Timeout: request "
                 "did not complete within requested timeout context deadline exceeded"))),
        ("TK445", "at admission webhooks that take long to answer"), ()),
    "jobset#891, of a maker of Jobs": (
        printed(("13s", "Warning", "FailedCreate", "jobset/tf", ("Internal error occurred: failed "
                 'calling webhook "mjob.kb.io": failed to call webhook: context deadline'))),
        ("WARNING TK445 JobSet tf: ", "Repair what serves the webhook"), ()),
}  # fmt: skip
#: The same, of what was answered right at once.
RIGHT: dict[str, Report] = {
    "configurator#74": (
        described_job("load", "Warning  FailedCreate  75s (x5 over 3m)  job-controller  Error "
                      'creating: Internal error occurred: failed calling webhook "p.c.io": Post '
                      '"https://c.svc": no endpoints available for service "c"'),
        ("TK445", "Repair what serves the webhook"), ()),
    "pulp-operator#1315": (
        described_job("reset", "Warning  FailedCreate  5m (x34 over 3h)  job-controller  (combined "
                      'from similar events): Error creating: pods "r" is forbidden: violates '
                      'PodSecurity "restricted:latest": allowPrivilegeEscalation != false'),
        ("TK445", "the securityContext that the message asks for"), ()),
    "haproxytech/helm-charts#236": (
        printed(("36s", "Warning", "FailedCreate", "job/crd", ('Error creating: pods "crd-x" is '
                 "forbidden: failed quota: q: must specify limits.cpu for: crd"))),
        ("TK445 Job crd", "the requests and limits that the message names"), ()),
    "cloud-platform#7558": (
        listed(*(of_number(each, n) for n in range(10, 13) for each in (
            job(), pod("Pending", container("main", waiting("ContainerCreating"))),
            event("Pod", "FailedCreatePodSandBox", NO_ADDRESS)))),
        ("TK428 3 Jobs in app", "no address left for the node"), ()),
    "KAI-Scheduler#53": (
        listed(LOOK, failed(), pod("Failed", container("main", {"terminated": OF_ARM}), meta=FREE)),
        ("TK401", "exec format error", "for the node's architecture"), ()),
    "argo-cd#24187": (
        listed(LOOK, job(None, COMPLETE, finalizers=["argocd.argoproj.io/hook-finalizer"],
                         **GOING)),
        ("TK412", "held by the finalizer argocd.argoproj.io/hook-finalizer", "Argo CD"), ()),
    "argo-cd#4979, a Job that was done": (
        printed(("22m", "Normal", "SuccessfulCreate", "job/pre", "Created pod: pre-hqm9l"),
                ("18m", "Normal", "Completed", "job/pre", "Job completed")),
        ("INFO TK908",), ("WARNING", "ERROR")),
    "kubernetes#19825, airflow/julia_pod": (
        listed(LOOK, job(), pod("Running", container("main", RUNNING, 5, ended(137)),
                                spec={"restartPolicy": "OnFailure"}), *PROBED),
        ("TK429", "exit code 137 again and again", "Give the probe more time"), ("memory",)),
    "aerospike-kubernetes-operator#80": (
        printed(("12s", "Warning", "FailedScheduling", "pod/load-x2x4z", ("0/12 nodes are "
                 "available: 1 node(s) had volume node affinity conflict, 9 Insufficient cpu."))),
        ("TK445", "free a node where its volume is"), ()),
    "kueue#6489": (
        listed(LOOK, HELD, workload(FREED), STUCK, STUCK_POD),
        ("TK430 Job app/work-2: waits for a pod that is being deleted", "TK413 Job app/work",
         "until what Kueue preempts for it has ended"), ()),
    "kubernetes#27997": (
        ("NAME             COMPLETIONS   DURATION   AGE\njob.batch/copy   0/1           3h   3h\n\n"
        "NAME             READY   STATUS       RESTARTS   AGE\n"
        "pod/copy-aaaaa   0/1     Init:Error   0          170m\n"
        "pod/copy-bbbbb   0/1     Init:Error   0          150m\n"),
        ("TK444 2 Pods: were shown as Init:Error", "-c INIT", "TK443 Job copy: was not complete"),
        ()),
    "operate-first/apps#1352": (
        listed(LOOK, failed(), UNDER_PRESSURE),
        ("TK403", "its node was under pressure", "[DiskPressure]", "Free what the node lacks"),
        ()),
    "rook#14397": (
        listed(LOOK, job(WITH_INIT, NO_PODS), event("Job", "FailedCreate", "Error creating: pods "
               f'"work-x" is forbidden: failed quota: q: {WANTS}')),
        ("TK405", "the quota wants requests and limits", "the message names"), ("webhook adds",)),
    "toil#3576": (
        listed(LOOK, failed(), pod("Failed", container("main", RUNNING), meta=FREE, conditions=[
            {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
             "message": "PodGC: node no longer exists", "lastTransitionTime": at("09:05")}])),
        ("TK403", "the pod garbage collector", "node no longer exists"), ()),
    "kubernetes#20255": (
        listed(LOOK, failed(), *several(3, pod("Failed", container("main", ended(42)),
                                               meta=FREE))),
        ("TK401", "exit code 42", "3 pods"), ()),
    "kueue#2362": (
        listed(LOOK, HELD, workload(LIMIT, spec={"active": False}, requeueState={"count": 3})),
        ("TK413", "has deactivated it", "too many retries", '"active":true'), ()),
    "airflow#37090, a pod that was done, and goes": (
        ("NAME         READY   STATUS        RESTARTS   AGE\n"
        "task-9xk2p   0/1     Completed     0          2m\n"
        "task-9xk2p   0/1     Terminating   0          2m\n"),
        ("INFO TK444", "after Completed"), ("WARNING", "failed")),
}  # fmt: skip


def check(report: Report, tmp_path: Path, run: Any) -> None:  # noqa: F811
    text, says, not_said = report
    out = said_at_ten(run, tmp_path / ("list.json" if text[0] == "{" else "pasted.txt"), text)
    assert [part for part in says if part not in out] == [], out
    assert [part for part in not_said if part in out] == [], out


@pytest.mark.parametrize("thread", MENDED)
def test_what_is_said_first(thread: str, run, tmp_path: Path) -> None:  # noqa: F811
    check(MENDED[thread], tmp_path, run)


@pytest.mark.full
@pytest.mark.parametrize("thread", RIGHT)
def test_what_was_right_stays_right(thread: str, run, tmp_path: Path) -> None:  # noqa: F811
    check(RIGHT[thread], tmp_path, run)
