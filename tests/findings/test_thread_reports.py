"""Situations out of threads of many trackers, each made here: what `diagnose` says of it first."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.findings.situations import (
    ON_FAILURE,
    RUNNING,
    SUSPENDED,
    UID,
    Asked,
    Object,
    alone,
    at,
    check_first_screen,
    container,
    cron,
    disrupted,
    ended,
    event,
    failed,
    job,
    pod,
    unschedulable,
    waiting,
)
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.answers.trace_model import Facts

ELSEWHERE = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "gone", "uid": "c-7",
             "controller": True}  # fmt: skip
SCALED = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "name": "encoder", "uid": "s-1",
          "controller": True}  # fmt: skip
JOBSET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "s-3",
          "controller": True}  # fmt: skip
DONE = [{"type": "Complete", "status": "True", "lastTransitionTime": at("09:56"),
         "lastProbeTime": at("09:56")}]  # fmt: skip
AGO = "2026-04-20T09:00:00Z"
FAILING = {"lastScheduleTime": at("09:55"), "lastSuccessfulTime": AGO}
BY_POLICY = [
    {"type": kind, "status": "True", "reason": "SuccessPolicy", "message": "Matched rules",
     "lastTransitionTime": at("09:06"), "lastProbeTime": at("09:06")}
    for kind in ("SuccessCriteriaMet", "Complete")
]  # fmt: skip
LEADER = {"completionMode": "Indexed", "completions": 2, "parallelism": 2,
          "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}  # fmt: skip


def of_owner(number: int, owner: Object) -> tuple[Object, Object]:
    """A Job of such an owner whose pod no node takes."""
    name, uid = f"{owner['name']}-{number}", f"{owner['uid']}-{number}"
    waits = unschedulable(
        "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules."
    )
    waits["metadata"].update(name=f"{name}-a", uid=f"{uid}-a")
    waits["metadata"]["ownerReferences"][0].update(name=name, uid=uid)
    waits["metadata"]["labels"] = {UID: uid, "batch.kubernetes.io/job-name": name}
    return job(name=name, uid=uid, ownerReferences=[owner]), waits


def led(conditions: list[Object]) -> tuple[Object, ...]:
    """A Job whose leader succeeded, and a worker that does not go."""
    ended_ok = pod("Succeeded", container("main", ended(0, "Completed")), meta={"finalizers": []})
    going = {"name": "work-b", "uid": "p-2", "finalizers": [], "deletionTimestamp": at("09:07"),
             "deletionGracePeriodSeconds": 30}  # fmt: skip
    worker = pod("Running", container("main", RUNNING), meta=going)
    return job(LEADER, {"active": 0, "succeeded": 1, "conditions": conditions}), ended_ok, worker


OWNER = {**ELSEWHERE, "name": "tick", "uid": "c-1"}
HELD = {"active": 0, "startTime": None, "conditions": [SUSPENDED]}
QUEUED: Object = {"labels": {"kueue.x-k8s.io/queue-name": "ml"}}
WAITS = {
    "type": "QuotaReserved",
    "status": "False",
    "reason": "Pending",
    "message": "insufficient "
    "unused quota for memory in flavor default. Pending the preemption of 1 workload(s)",
}
EVICTED = {
    "type": "Evicted",
    "status": "True",
    "reason": "Preempted",
    "message": "Preempted to accommodate a workload",
}


def workload(name: str, uid: str, condition: Object) -> Object:
    """What Kueue has made for a Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": f"job-{name}-1a2b3", "namespace": "app", "uid": f"w-{name}",
                     "resourceVersion": "400", "creationTimestamp": at("09:00"),
                     "ownerReferences": [owner]},
        "spec": {"queueName": "ml", "active": True},
        "status": {"conditions": [{**condition, "lastTransitionTime": at("09:00")}]},
    }  # fmt: skip


ASKED = {
    "kubernetes#49918, a CronJob that is gone": Asked(
        (job(ownerReferences=[ELSEWHERE]), pod("Running", container("main", RUNNING))),
        ("WARNING TK423", "work: is still at work, and its CronJob is gone", "its owner, CronJob gone",
         "kubectl delete job -n app"), ()),
    "a CronJob none of whose runs succeeds": Asked(
        (cron(None, FAILING),),
        ("WARNING TK319", "none has succeeded since 2026-04-20 09:00:00Z", "4,043 times due",
         "failedJobsHistoryLimit"), ("TK315",)),
    "a CronJob whose last run succeeded after all": Asked(
        (cron(None, {**FAILING, "lastSuccessfulTime": at("09:46")}),), (), ("TK319",)),
    "a CronJob whose Jobs go at once": Asked(
        (cron({"jobTemplate": {"spec": {"ttlSecondsAfterFinished": 0, "template": {"spec": {}}}}},
              FAILING),), (), ("TK319",)),
    "keda, Jobs that wait for a node": Asked(
        tuple(found for number in range(3) for found in of_owner(number, SCALED)),
        ("TK411", "3 Jobs of ScaledJob app-", "/encoder: have not begun"), ()),
    "a worker that a successPolicy made needless": Asked(
        led(BY_POLICY), ("TK449", "has succeeded by its successPolicy", "If n1 is gone"), ()),
    "kubernetes#69774, containers that ended and a phase that did not": Asked(
        (cron(None, {"active": [{"name": "work", "uid": "j-1"}]}), job(ownerReferences=[OWNER]),
         pod("Running", container("main", ended(0, "Completed")))),
        ("TK456", "whose containers have all ended, and its phase is still Running",
         "main ended with exit code 0 at 2026-05-04 09:05:00Z", "kubelet's log on n1", "TK315",
         "see TK456"), ("runs for",)),
    "the same, of one that is begun again": Asked(
        (job(), pod("Running", container("main", ended(1)), spec=ON_FAILURE)), (), ("TK456",)),
    "spark-operator#410, a driver that is never set up": Asked(
        (alone("Pending", container("driver", waiting("ContainerCreating")), owner="SparkApplication",
               spec={"containers": [{"name": "driver", "image": "i:1"}]}),),
        ("TK451", "its containers wait (ContainerCreating)", "no Event of its kubelet",
         "describe node n1"), ()),
    "kueue#7350, a victim that runs on": Asked(
        (job({"suspend": True}, HELD, **QUEUED), workload("work", "j-1", WAITS),
         job(None, None, **QUEUED) | {"metadata": {**job(**QUEUED)["metadata"], "name": "low",
                                                   "uid": "j-2"}},
         workload("low", "j-2", EVICTED)),
        ("WARNING TK457", "low: was evicted by Kueue (Preempted), and is not suspended",
         "Evicted since 2026-05-04 09:00:00Z", "TK413", "what Kueue preempts for it has ended"),
        ("end what holds the quota",)),
    "karpenter#3185, a node that went": Asked(
        (failed(), disrupted("DeletionByTaintManager")),
        ("TK403", "deleted for a taint of their node", "on node n1"), ()),
    "kubernetes#128881, a start that came late": Asked(
        (cron({"schedule": "0 9 * * *"}, {"lastScheduleTime": at("09:00")}),
         job(None, {"succeeded": 1, "conditions": DONE}, ownerReferences=[OWNER], annotations={
             "batch.kubernetes.io/cronjob-scheduled-timestamp": at("09:00")},
             creationTimestamp=at("09:52"))),
        ("WARNING TK307", "52 min 0 s after 2026-05-04 09:00:00Z"), ()),
    "the same, in its time": Asked(
        (cron({"schedule": "0 9 * * *"}, {"lastScheduleTime": at("09:00")}),
         job(None, {"succeeded": 1, "conditions": DONE}, ownerReferences=[OWNER], annotations={
             "batch.kubernetes.io/cronjob-scheduled-timestamp": at("09:00")})), (), ("TK307",)),
    "jobset#341, followers that nothing fits": Asked(
        tuple(found for number in range(2) for found in of_owner(number, JOBSET)),
        ("TK411", "2 Jobs of JobSet app-", "/train: have not begun", "change that of JobSet train"),
        ("create it anew",)),
    "actions-runner-controller#780, an evicted pod": Asked(
        (alone("Failed", owner="Runner", reason="Evicted", message="The node was low on resource: "
               "ephemeral-storage. Container docker was using 324Ki, which exceeds its request of "
               "0."),),
        ("TK451", "Let it ask for what it uses (resources.requests)"), ("Raise that limit",)),
    "the same, before the Job is Complete": Asked(
        led(BY_POLICY[:1]), ("TK430", "has succeeded (SuccessPolicy), and waits for"),
        ("was ended",)),
}  # fmt: skip


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)


def told_of(verb, file: Path, text: str) -> str:
    """What `diagnose` says of a file with that text, in one line."""
    file.write_text(text)
    return " ".join(verb("diagnose", str(file), "--at", at("10:00"))[1].split())


TABLE = """NAMESPACE  NAME  SCHEDULE     SUSPEND  ACTIVE  LAST SCHEDULE  AGE
app        tick  */5 * * * *  False    1       14d            90d
app        fine  */5 * * * *  False    0       3m             90d
app        rest  */5 * * * *  True     0       14d            90d
"""


def test_a_table_shows_that_nothing_was_started(run, tmp_path: Path) -> None:  # noqa: F811
    out = told_of(run, tmp_path / "table.txt", TABLE)
    assert "WARNING TK455 CronJob app/tick: was shown without a start that was due" in out
    assert "LAST SCHEDULE 14d, ACTIVE 1 (*/5 * * * *): 4,031 times due since; a run that has" in out
    assert "as of 2026-05-04 10:00:00Z" in out
    assert "app/fine" not in out
    assert "TK455 CronJob app/rest" not in out


def test_json_documents_of_a_yaml_file_are_all_read(run, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "two.yaml"
    objects = led(BY_POLICY)
    lists = ({"apiVersion": "v1", "kind": "List", "items": [found]} for found in objects)
    file.write_text("\n---\n".join(json.dumps(found, indent=2) for found in lists))
    _, out, err = run("diagnose", str(file), "--at", at("10:00"))
    assert "TK449" in out
    assert "no JSON" not in err


def test_explain_knows_the_cronjob_of_a_job(run, tmp_path: Path) -> None:  # noqa: F811
    """One that is there is not told as gone, though only the Job's own rows are read."""
    owner = {**ELSEWHERE, "name": "tick", "uid": "c-1"}
    mine = job(ownerReferences=[owner])
    others = [cron(name="other", uid="c-2"), cron(name="third", uid="c-3")]
    for crons, said in ([cron()], False), (others, True), (others[:1], False):
        file = tmp_path / "list.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [mine, *crons]}))
        out = run("explain", str(file), "work", "--at", at("10:00"))[1]
        assert ("its CronJob is gone" in out) is said


def test_one_job_alone_says_nothing_of_others(run, tmp_path: Path) -> None:  # noqa: F811
    """Who asks for one Job by its name has not looked at the others."""
    file, items = tmp_path / "list.json", [pod("Running", container("main", RUNNING))]
    for number, severity in (1, "INFO"), (2, "WARNING"):
        items.append(job(name=f"other-{number}", uid=f"j-9{number}"))
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        out = told_of(run, file, listed)
        assert re.search(rf"{severity} +TK423", out)
        assert ("its Job is gone" in out) is (number > 1)


def watched(*states: Object) -> str:
    """A watch log of a pod that was added, changed, and deleted at last."""
    kinds = ("ADDED", *("MODIFIED" for _ in states[2:]), "DELETED")
    found = [{"type": kind, "object": state} for kind, state in zip(kinds, states, strict=True)]
    for number, line in enumerate(found):
        line["object"]["metadata"]["resourceVersion"] = str(200 + number)
    return "".join(json.dumps(line) + "\n" for line in found)


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ([], "INFO TK451 Pod app/work-a: was deleted while it ran, and the record does not tell"),
        (
            ["EvictionByEvictionAPI"],
            "WARNING TK451 Pod app/work-a: was deleted while it ran: eviction",
        ),
    ],
)
def test_a_pod_of_a_workflow_that_is_deleted_is_told(
    run,  # noqa: F811
    tmp_path: Path,
    conditions: list[str],
    said: str,
) -> None:
    """argo-workflows#13533."""
    shown = [{"type": "DisruptionTarget", "status": "True", "reason": c} for c in conditions]
    going = {"deletionTimestamp": at("09:05"), "deletionGracePeriodSeconds": 0}
    states = [
        alone("Running", container("main", RUNNING), owner="Workflow", conditions=of, meta=meta)
        for of, meta in (([], {}), (shown, going), (shown, going))
    ]
    out = told_of(run, tmp_path / "watch.json", watched(*states))
    assert said in out
    assert "a pod of Workflow up" in out


def test_events_about_who_makes_pods_are_told(run, tmp_path: Path) -> None:  # noqa: F811
    """tekton-pipeline#7672: a claim that a quota refuses, of which Events alone are there."""
    message = 'persistentvolumeclaims "pvc-1" is forbidden: exceeded quota: q, used: 20'
    said = event("Pod", "Failed", f"failed to create PVC pvc-1: {message}")
    said["involvedObject"].update(kind="PipelineRun", name="build", uid="t-1")
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [said]})
    out = told_of(run, tmp_path / "events.json", listed)
    assert "TK445 PipelineRun app/build: was told of with the warning Failed" in out
    assert "Free the quota or raise it" in out


JOBS = """NAMESPACE  NAME   STATUS              COMPLETIONS  DURATION  AGE
app        early  SuccessCriteriaMet  3/8          4m        4m
app        going  Terminating         0/1          3h        3h
app        runs   Running             0/1          3h        3h
"""


def test_a_table_shows_that_jobs_are_ending(run, tmp_path: Path) -> None:  # noqa: F811
    out = told_of(run, tmp_path / "table.txt", JOBS)
    assert "INFO TK458 Job app/early: was shown as a success that is not Complete yet" in out
    assert "INFO TK458 Job app/going: was shown as being deleted" in out
    assert "its finalizers are removed" in out
    assert "app/runs" not in out
