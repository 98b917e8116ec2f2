"""Situations of batch work out of several trackers, each made here: what `diagnose` says first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.findings.situations import (
    LIMITED,
    NO_PODS,
    ON_FAILURE,
    RUNNING,
    Asked,
    Object,
    alone,
    at,
    check_first_screen,
    container,
    cron,
    ended,
    event,
    failed,
    job,
    of_cron,
    pod,
    waiting,
)
from tests.findings.test_tracker_reports import MANAGER, asked, refused
from tracekit.answers.trace_model import Facts
from tracekit.cli.explain import explain
from tracekit.cli.import_ import import_
from tracekit.report.findings import text_lines
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session

FREE: Object = {"finalizers": []}
MESH = {"containers": [{"name": "main", "image": "i:1"}, {"name": "linkerd-proxy", "image": "p:1"}]}
NOT_THERE = "The container could not be located when the pod was terminated"


def lost() -> Object:
    """How a container ends that its kubelet no longer found."""
    return {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": NOT_THERE,
                           "startedAt": None, "finishedAt": None}}  # fmt: skip


NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
           "lastTransitionTime": at("09:00"),
           "message": "0/3 nodes are available: 3 Insufficient memory."}  # fmt: skip
DONE = container("wait", ended(0, "Completed"))


def not_created(message: str) -> tuple[Object, Object]:
    """A Job whose pods are refused with that message."""
    return job(None, NO_PODS), event("Job", "FailedCreate", f"Error creating: {message}")


ASKED = {
    "linkerd, work that failed beside its proxy": Asked(
        (job(), pod("Running", container("main", ended(1)), container("linkerd-proxy", RUNNING),
                    spec=MESH)),
        ("TK436", "has failed but for container linkerd-proxy", "main ended with exit code 1",
         "until then nothing is counted", "kubectl logs -n app-0 work-a -c main"),
        ("is done but for",)),
    "istio, work out of memory beside its proxy": Asked(
        (job(), pod("Running", container("main", ended(137, "OOMKilled")),
                    container("linkerd-proxy", RUNNING), spec=MESH)),
        ("TK436", "ended with exit code 137 (OOMKilled)"), ("SIGKILL",)),
    "work that is begun again beside its proxy": Asked(
        (job(), pod("Running", container("main", ended(1)), container("linkerd-proxy", RUNNING),
                    spec={**MESH, **ON_FAILURE})), (), ("TK436",)),
    "a container that the kubelet lost": Asked(
        (failed(), pod("Failed", container("main", lost()), meta=FREE)),
        ("TK409", "the kubelet lost its containers (ContainerStatusUnknown)", NOT_THERE[:40],
         "How it ended is not known"), ("SIGKILL", "exit code 137 (")),
    "a command that the image lacks, OnFailure": Asked(
        (job(), pod("Running", container("main", waiting("RunContainerError", "OCI runtime create "
            "failed: executable file not found in $PATH"), 2, ended(128, "StartError")),
            spec=ON_FAILURE)),
        ("TK428", "each try is a restart (2 so far)", "count toward backoffLimit 6"),
        ("never counts",)),
    "an API server that throttles": Asked(
        not_created("the server has received too many requests and has asked us to try again later "
                    "(post pods)"),
        ("TK405", "too many requests", "tries again by itself"), ("objects to",)),
    "kubernetes#64249, a quota that is not evaluated in time": Asked(
        not_created("Internal error occurred: resource quota evaluation timed out"),
        ("TK405", "did not answer in time"), ("Free the quota",)),
    "tekton, an init container's image": Asked(
        (job(), pod("Pending", container("main", waiting("PodInitializing")), initContainerStatuses=[
            container("prep", waiting("ImagePullBackOff", "prep:9: not found"))])),
        ("TK404", "init container prep of work-a"), ()),
    "a zone that the controller does not know": Asked(
        (cron({"timeZone": "Europe/Kyiv"}), of_cron("UnknownTimeZone", 'invalid timeZone: '
         '"Europe/Kyiv": unknown time zone Europe/Kyiv')),
        ("ERROR TK315", "its controller does not know its time zone", "Europe/Kyiv", "newer data"),
        ("TK316",)),
    "a deadline that was over": Asked(
        (cron({"startingDeadlineSeconds": 5}), of_cron("MissSchedule", "Missed scheduled time to "
         "start a job: Mon, 04 May 2026 09:05:00 +0000")),
        ("TK315", "later than startingDeadlineSeconds allows"), ()),
    "kubectl create job --from, and a deadline of 5 s": Asked(
        (cron({"startingDeadlineSeconds": 5}), of_cron("UnexpectedJob", "Saw a job that the "
         "controller did not create or forgot: work")),
        ("TK315", "the record does not tell why", "a start that is 5 s late is let go"),
        ("UnexpectedJob",)),
    "airflow#59083, a pod that no node takes": Asked(
        (alone("Pending", spec={"nodeName": None}, conditions=[NO_NODE],
               labels={"dag_id": "etl", "task_id": "load"}),),
        ("WARNING TK451", "no node takes it (Unschedulable)", "3 Insufficient memory",
         "since 2026-05-04 09:00:00Z", "DAG etl, task load", "Ask for less"),
        ("Job's template", "No findings")),
    "airflow#53015, an evicted pod": Asked(
        (alone("Failed", reason="Evicted", message="The node was low on resource: memory."),),
        ("TK451", "failed: a disruption ended it (Evicted)", "low on resource: memory",
         "ended before 2026-05-04", "when a list first showed it"),
        ("backoffLimit", "ended at")),
    "argo-workflows, out of memory": Asked(
        (alone("Failed", container("main", ended(137, "OOMKilled")), DONE, owner="Workflow",
               spec=LIMITED),),
        ("TK451", "container main used more memory", "limits.memory 64Mi", "a pod of Workflow up"),
        ("backoffLimit",)),
    "tekton, a step that fails": Asked(
        (alone("Failed", container("step-build", ended(3)), owner="TaskRun"),),
        ("TK451", "failed with exit code 3", "kubectl logs -n app-14 work-a -c step-build"), ()),
    "spark-operator, a driver whose image does not come": Asked(
        (alone("Pending", container("main", waiting("ImagePullBackOff", "s:1: not found")),
               owner="SparkApplication"),),
        ("TK451", "cannot pull its image i:1", "a pod of SparkApplication up",
         "Correct the image's name"), ("None",)),
    "argo-workflows, a pod that its finalizer holds": Asked(
        (alone("Running", container("main", RUNNING), meta={
            "deletionTimestamp": at("09:20"), "deletionGracePeriodSeconds": 0,
            "finalizers": ["workflows.argoproj.io/status"]}),),
        ("TK451", "is being deleted and does not go", "when workflows.argoproj.io/status is taken",
         "Argo Workflows (workflow-controller)"),
        ("--force",)),
    "a pod of a service": Asked(
        (alone("Failed", container("main", ended(3)), owner="ReplicaSet"),), (), ("TK451",)),
    "a pod that is to run for ever": Asked(
        (alone("Failed", container("main", ended(3)), spec={"restartPolicy": "Always"}),), (),
        ("TK451",)),
    "kubernetes#92570, airflow#67332": Asked(
        (alone("Running", container("main", RUNNING), labels={
            "batch.kubernetes.io/job-name": "work"}),),
        ("WARNING TK452", "has no owner: its Job is gone", "labels of Job work",
         "propagationPolicy"), ("118834",)),
    "two pods on two dead nodes, both to be deleted": Asked(
        (job({"parallelism": 2, "completions": 2}, NO_PODS), *(
            pod("Running", container("main", RUNNING), spec={"nodeName": f"n{number}"}, meta={
                "name": f"work-{number}", "uid": f"p-{number}", "deletionTimestamp": at("09:20"),
                "deletionGracePeriodSeconds": 30}) for number in (1, 2))),
        ("TK430", "If n1, n2 are gone for good: kubectl delete pod -n app-20 work-1 work-2 --force",
         "give those nodes the taint"), ()),
    "an evicted pod without a successor": Asked(
        (job(), pod("Failed", reason="Evicted")),
        ("TK414", "had no pod after failed ones", "the last before 2026-05-04", "If it is in"),
        ("waited in back-off", "the last at")),
    "kueue, a pod that its finalizer holds": Asked(
        (job(), pod("Running", container("main", RUNNING), meta={
            "deletionTimestamp": at("09:20"), "deletionGracePeriodSeconds": 0,
            "finalizers": ["batch.kubernetes.io/job-tracking", "kueue.x-k8s.io/managed"]})),
        ("TK430", "only when kueue.x-k8s.io/managed is taken off, which Kueue (kueue-controller"), ()),
    "kueue, a Job that its finalizer holds": Asked(
        (job(None, None, finalizers=["kueue.x-k8s.io/resource-in-use"], deletionTimestamp=at("09:20"),
             deletionGracePeriodSeconds=0),),
        ("TK412", "See whether Kueue (kueue-controller-manager) runs"), ()),
}  # fmt: skip


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)


def test_what_explain_says_of_a_lost_container_is_no_exit_code(trace: str) -> None:
    place = f"app-{list(ASKED).index('a container that the kubelet lost')}"
    said = CliRunner().invoke(explain, [trace, f"{place}/work"], catch_exceptions=False).output
    assert "the kubelet lost its containers" in said
    assert "exited 137" not in said


def test_a_last_start_that_lies_ahead_is_no_later_look(tmp_path: Path) -> None:
    hourly = cron({"schedule": "0 * * * *"}, {"lastScheduleTime": "2026-05-05T12:00:00Z"})
    file, out = tmp_path / "list.json", str(tmp_path / "trace")
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [hourly]}))
    words = [str(file), "-o", out, "--at", at("10:00"), "--kubernetes-version", "v1.33.4"]
    assert CliRunner().invoke(import_, words, catch_exceptions=False).exit_code == 0
    text = " ".join(" ".join(text_lines(findings_of(Session([out])))).split())
    assert "WARNING TK315" in text
    assert "starts nothing until 2026-05-05 13:00:00Z: its lastScheduleTime lies ahead" in text
    assert "26 h 0 min after the look (as of 2026-05-04 10:00:00Z)" in text
    assert "--subresource=status --type=merge -p" in text


#### Out of audit logs ####

FLUX = "system:serviceaccount:flux-system:kustomize-controller"
CI, ALICE = "system:serviceaccount:ci:helm", "alice"
RUNNER = "system:serviceaccount:ci:runner"
NO_RIGHT = {"status": "Failure", "reason": "Forbidden", "code": 403, "message":
            f'jobs.batch "work" is forbidden: User "{RUNNER}" cannot patch resource "jobs" in API '
            'group "batch" in the namespace "app"'}  # fmt: skip
INVALID = {"status": "Failure", "reason": "Invalid", "code": 422}
NOT_STARTED = {"active": 0, "startTime": None}


def invalid(user: str, field: str) -> Object:
    """A patch of the Job that validation refuses for a field that is immutable."""
    message = f'Job.batch "work" is invalid: {field}: Invalid value: 5: field is immutable'
    return refused(asked("patch", job(), user, "09:10:00", 120), {**INVALID, "message": message})


def drained(user: str = ALICE) -> list[Object]:
    """A Job whose pod somebody evicts, as `kubectl drain` does."""
    made = job({"backoffLimit": 0}, NOT_STARTED)
    begun = pod("Pending", spec={"nodeName": None}, meta={"generateName": "work-"})
    runs = pod("Running", container("main", RUNNING))
    shown = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
             "message": "Eviction API: evicting"}  # fmt: skip
    over = pod("Failed", container("main", ended(143)), conditions=[shown], meta={
        "deletionTimestamp": "2026-05-04T09:10:30Z", "deletionGracePeriodSeconds": 30})  # fmt: skip
    done = {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
    failed_job = {**failed(), "metadata": made["metadata"]}
    return [
        asked("create", made, "dora", "09:00:00", 100),
        asked("create", begun, f"{MANAGER}job-controller", "09:00:00", 101),
        asked("patch", runs, "system:node:n1", "09:01:00", 103, "status"),
        {**asked("create", runs, user, "09:10:00", 110, "eviction"), "responseObject": done},
        asked("patch", over, "system:node:n1", "09:10:02", 112, "status"),
        asked("update", failed_job, f"{MANAGER}job-controller", "09:10:03", 113, "status"),
    ]


def hooked() -> list[Object]:
    """A Job that Helm deletes as it becomes Complete."""
    made = job(None, NOT_STARTED)
    over = job(None, {"active": 0, "succeeded": 1, "completionTime": at("09:06"), "conditions": [
        {"type": "Complete", "status": "True", "lastTransitionTime": at("09:06"),
         "lastProbeTime": at("09:06")}]})  # fmt: skip
    return [
        asked("create", made, CI, "09:00:00", 100),
        asked("update", over, f"{MANAGER}job-controller", "09:06:00", 103, "status"),
        asked("delete", over, CI, "09:06:01", 104),
    ]


def not_made(message: str, resource: str = "jobs") -> list[Object]:
    """A Job, and a request for another object of which validation says that."""
    answer = {"status": "Failure", "reason": "Invalid", "message": message, "code": 422}
    line = refused(asked("create", job(name="other", uid=""), "velero", "09:10:00", 120), answer)
    line["objectRef"]["resource"] = resource
    return [asked("create", job(), "lukas", "09:00:00", 100), line]


def taken_cronjob() -> Object:
    """A request for a CronJob whose name is taken."""
    answer = {"status": "Failure", "reason": "AlreadyExists", "code": 409,
              "message": 'cronjobs.batch "other" already exists'}  # fmt: skip
    line = refused(asked("create", job(name="other", uid=""), CI, "09:10:00", 120), answer)
    line["objectRef"]["resource"] = "cronjobs"
    return line


#: By thread: the lines, the finding, what it says, and what it does not say.
AUDITED: dict[str, tuple[list[Object], str, tuple[str, ...], tuple[str, ...]]] = {
    "flux, a template that changed": (
        [asked("create", job(), FLUX, "09:00:00", 100), invalid(FLUX, "spec.template")], "TK433",
        (f"patch by {FLUX} was refused (422): the field is immutable",
         "A Job's template cannot be changed", "kustomize.toolkit.fluxcd.io/force"), ("Argo CD",)),
    "completions that changed": (
        [asked("create", job(), "lukas", "09:00:00", 100), invalid("lukas", "spec.completions")],
        "TK433", ("A Job's spec.completions cannot be changed",), ("Argo CD", "template")),
    "a right that is missing": (
        [asked("create", job(), "lukas", "09:00:00", 100),
         refused(asked("patch", job(), RUNNER, "09:10:00", 120), NO_RIGHT)], "TK433",
        (f"patch by {RUNNER} was refused (403): it has no right to patch jobs.batch",
         "kubectl create role patch-jobs-batch -n app --verb=patch --resource=jobs.batch",
         "--serviceaccount=ci:runner", f"can-i patch jobs.batch -n app --as={RUNNER}"), ()),
    "velero#6711": (
        not_made('Job.batch "other" is invalid: [spec.template.metadata.labels[batch.kubernetes.io/'
                 'controller-uid]: Invalid value: map[string]string{"job-name":"other"}: must be '
                 "'b-2', spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]"
                 'string{"batch.kubernetes.io/controller-uid":"b-1"}}: `selector` not '
                 "auto-generated]"),
        "TK433", ("It is a copy of another Job: leave spec.selector out",), ()),
    "piraeus-operator#156, kubectl-browse-pvc#42": (
        not_made('Job.batch "other" is invalid: spec.template.labels: Invalid value: "other": must '
                 "be no more than 63 characters"),
        "TK433", ("Give it a shorter name: its pods",), ()),
    "a label of its own that is too long": (
        not_made('Job.batch "other" is invalid: metadata.labels: Invalid value: "release": must be '
                 "no more than 63 characters"),
        "TK433", ("Change the request as the message says",), ("name",)),
    "a CronJob's name, and any other request for a CronJob": (
        not_made('CronJob.batch "other" is invalid: metadata.name: Invalid value: "other": must be '
                 "no more than 52 characters", "cronjobs"),
        "TK433", ("that of its Jobs is NAME-MINUTES",), ()),
    "a CronJob that is there already": (
        [asked("create", job(), "lukas", "09:00:00", 100), taken_cronjob()], "TK433",
        ("create by system:serviceaccount:ci:helm was refused (409): a CronJob of that name",
         "kubectl apply or replace"), ("ttlSecondsAfterFinished", "hook")),
    "a drain, by whom": (
        drained(), "TK403", ("EvictionByEvictionAPI",
                             "alice asked for it at 2026-05-04 09:10:00Z (audit log)"), ()),
    "karpenter#1167, by whom": (
        drained(f"{MANAGER}karpenter"), "TK403",
        (f"Karpenter took work-a off its node (asked for by {MANAGER}karpenter at 2026-05-04 09:10",
         'Set karpenter.sh/do-not-disrupt: "true" in the pod template'), ()),
    "helm, hook-succeeded": (
        hooked(), "TK432", (f"was deleted by {CI} as it became Complete", "deleted 1 s later",
                            "before-hook-creation"), ()),
}  # fmt: skip


@pytest.mark.parametrize("thread", AUDITED)
def test_what_an_audit_log_tells(thread: str, tmp_path: Path) -> None:
    lines, rule, says, not_said = AUDITED[thread]
    log = tmp_path / "audit.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = [str(log), "-o", str(tmp_path / "trace"), "--kubernetes-version", "v1.33.4"]
    result = CliRunner().invoke(import_, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = [f for f in findings_of(Session([str(tmp_path / "trace")])) if f.id == rule]
    text = " ".join(" ".join(text_lines(found)).split())
    assert [part for part in says if part not in text] == [], text
    assert [part for part in not_said if part in text] == [], text


def test_a_log_in_which_all_was_refused_says_by_what(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    line = refused(asked("create", job(), RUNNER, "09:00:00", 100), NO_RIGHT)
    log.write_text(json.dumps(line) + "\n")
    result = CliRunner().invoke(import_, [str(log), "-o", str(tmp_path / "trace")])
    said = str(result.exception)
    assert "1 write to Jobs, and the API server refused it: create of app/work by" in said
    assert "(403): jobs.batch" in said
    assert "kubectl create role patch-jobs-batch -n app --verb=patch --resource=jobs.batch" in said
