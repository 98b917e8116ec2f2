"""Scenarios in which somebody else writes what is the controllers' to write."""

import time

from tests.e2e.api import JSON_PATCH, STRATEGIC_MERGE_PATCH, RawObject, namespaced
from tests.e2e.scene import JOBS, Scene, pod_template

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"


def foreign(scene: Scene) -> None:
    """Pods made and freed by hand, statuses overwritten, labels and annotations edited."""
    two: RawObject = {"completions": 2, "parallelism": 2}
    scene.job("relabelled", {"run": 5}, end="Complete", **two)
    scene.job("overwritten", {"run": 8}, end="Complete", **two)
    scene.job("given-a-pod", {"run": 6}, end="Complete", completions=3, parallelism=2)
    scene.job("finalizer-taken", {"run": 6}, end="Complete", **two)
    scene.job("annotated-pods", {"run": 5}, end="Complete", **two)
    scene.job("phase-overwritten", {"run": 9}, end="Complete", **two)
    body = {"metadata": {"labels": {"team": "x"}, "annotations": {"note": "by hand"}}}
    scene.alice.patch(namespaced(JOBS, scene.namespace, "relabelled"), body)
    scene.running("overwritten", 2)
    overwritten = namespaced(JOBS, scene.namespace, "overwritten", "status")
    scene.alice.patch(overwritten, {"status": {"active": 7}})
    _give_pod(scene, "given-a-pod")
    _take_finalizer(scene, scene.running("finalizer-taken", 1)[0])
    for pod in scene.running("annotated-pods", 2):
        path = namespaced("pods", scene.namespace, pod["metadata"]["name"])
        scene.alice.patch(path, {"metadata": {"annotations": {"seen-by": "alice"}}})
    pod = scene.running("phase-overwritten", 2)[0]
    path = namespaced("pods", scene.namespace, pod["metadata"]["name"], "status")
    scene.alice.patch(path, {"status": {"phase": "Failed"}}, kind=STRATEGIC_MERGE_PATCH)


def namespace_deleted(scene: Scene) -> None:
    """The namespace goes away under running jobs: creates are refused, pods are deleted."""
    scene.job("running", {"run": 60, "grace": 2}, end="Gone", completions=4, parallelism=2)
    scene.job("failing", {"run": 1, "exit": 1}, end="Gone", completions=1, backoffLimit=9)
    scene.job("finished", {"run": 1}, end="Gone")
    scene.running("running", 2)
    scene.finished("finished")
    time.sleep(4)
    scene.alice.delete(f"/api/v1/namespaces/{scene.namespace}")


def _give_pod(scene: Scene, job: str) -> None:
    """Create a pod that names the job as its controller, as another program might."""
    owner = scene.admin.get(namespaced(JOBS, scene.namespace, job))
    template = pod_template({"run": 3}, labels=owner["spec"]["template"]["metadata"]["labels"])
    template["metadata"] |= {
        "name": f"{job}-by-hand",
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": job,
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    body = {"apiVersion": "v1", "kind": "Pod", **template}
    scene.alice.create(namespaced("pods", scene.namespace), body)


def _take_finalizer(scene: Scene, pod: RawObject) -> None:
    """Remove the tracking finalizer from a running pod, where the version has one."""
    finalizers = pod["metadata"].get("finalizers", [])
    if TRACKING_FINALIZER not in finalizers:
        return
    at = f"/metadata/finalizers/{finalizers.index(TRACKING_FINALIZER)}"
    operations = [{"op": "test", "path": at, "value": TRACKING_FINALIZER}]
    operations.append({"op": "remove", "path": at})
    path = namespaced("pods", scene.namespace, pod["metadata"]["name"])
    scene.alice.patch(path, operations, kind=JSON_PATCH)
