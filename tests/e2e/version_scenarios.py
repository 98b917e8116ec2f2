"""Scenarios that tell releases apart in which a change without a gate shipped.

Each makes a state in which two releases do different things, and holds it long enough for either.
"""

import time

from tests.e2e.api import JSON_PATCH, ApiError, RawObject, namespaced
from tests.e2e.cron_scenarios import await_tick, cron
from tests.e2e.scene import JOBS, Scene, pod_template

#: Keeps an object that is being deleted until somebody takes it off.
HOLD = "e2e.tracekit.dev/hold"
_POLICY_GROUP = "/apis/admissionregistration.k8s.io/v1"


def cron_conflicts(scene: Scene) -> None:
    """Names that are taken by a CronJob's own Job, and Jobs of a namesake that was deleted.

    A controller that created a Job and died before it wrote the status finds the first after its
    start. The second is what stays of a CronJob that was deleted and created anew.
    """
    ends_at = time.monotonic() + min(scene.around.seconds, 150)
    long: RawObject = {"run": 100}
    cron(scene, "own-taken", long)
    cron(scene, "own-finished", {"run": 1}, successfulJobsHistoryLimit=1)
    cron(scene, "others-taken", {"run": 1}, startingDeadlineSeconds=40)
    cron(scene, "recreated", long, successfulJobsHistoryLimit=0, concurrencyPolicy="Forbid")
    if 60 - time.time() % 60 < 5:  # the Jobs must be there before the tick
        await_tick(scene, after_seconds=3)
    _take_next_name(scene, "own-taken", long, own=True)
    _take_next_name(scene, "own-finished", {"run": 1}, own=True)
    _take_next_name(scene, "others-taken", long, own=False)
    await_tick(scene, after_seconds=8)
    held = _hold_jobs(scene, "recreated")
    scene.alice.delete(_cron_path(scene, "recreated"), {"propagationPolicy": "Background"})
    scene.until(lambda: not _exists(scene, "recreated"))
    cron(scene, "recreated", long, successfulJobsHistoryLimit=0, concurrencyPolicy="Forbid")
    await_tick(scene, after_seconds=12)
    for name in held:
        _release(scene, name)
    time.sleep(max(0.0, ends_at - time.monotonic()))


def orphans_refused(scene: Scene) -> None:
    """Orphaned pods whose finalizer may not be taken off for a while.

    Up to 1.37.0 the controller tries once for each change of the pod, from 1.37.1 on again and
    again with a back-off.
    """
    scene.job("let-go", {"run": 45}, completions=2, parallelism=2)
    scene.job("told-again", {"run": 14}, completions=2, parallelism=2)
    scene.running("let-go", 2)
    scene.running("told-again", 2)
    _forbid_finalizer_removal(scene)
    for name in ("let-go", "told-again"):
        scene.delete_job(name, "Orphan")
    time.sleep(5)
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        scene.admin.delete(f"{_POLICY_GROUP}/{kind}/{scene.namespace}")
    time.sleep(25)


def _take_next_name(scene: Scene, name: str, plan: RawObject, *, own: bool) -> None:
    """Create a Job under the name that the controller will want at the next tick."""
    metadata: RawObject = {"name": f"{name}-{int(time.time()) // 60 + 1}", "labels": {"cron": name}}
    if own:
        owner = scene.admin.get(_cron_path(scene, name))
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": "CronJob",
                "name": name,
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    spec = {"completions": 1, "template": pod_template(plan, labels={"app": name})}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    scene.alice.create(namespaced(JOBS, scene.namespace), body)


def _cron_path(scene: Scene, name: str) -> str:
    return namespaced(scene.around.cron_path, scene.namespace, name)


def _exists(scene: Scene, name: str) -> bool:
    try:
        scene.admin.get(_cron_path(scene, name))
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


def _hold_jobs(scene: Scene, cron_job: str) -> list[str]:
    """Give the Jobs of a CronJob a finalizer that outlives the garbage collector; their names."""
    answer = scene.admin.get(
        namespaced(JOBS, scene.namespace), {"labelSelector": f"cron={cron_job}"}
    )
    names = [str(job["metadata"]["name"]) for job in answer["items"]]
    for name in names:
        path = namespaced(JOBS, scene.namespace, name)
        scene.alice.patch(path, {"metadata": {"finalizers": [HOLD]}})
    return names


def _release(scene: Scene, name: str) -> None:
    path = namespaced(JOBS, scene.namespace, name)
    finalizers = scene.admin.get(path)["metadata"].get("finalizers", [])
    if HOLD in finalizers:
        at = f"/metadata/finalizers/{finalizers.index(HOLD)}"
        scene.alice.patch(path, [{"op": "remove", "path": at}], kind=JSON_PATCH)


def _forbid_finalizer_removal(scene: Scene) -> None:
    """Refuse every update of this namespace's pods that takes a finalizer away; wait until it holds."""
    only_here = {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}}
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["pods"],
        "scope": "*",
    }
    keeps = "size(object.metadata.?finalizers.orValue([])) >= size(oldObject.metadata.?finalizers.orValue([]))"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": scene.namespace},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": only_here, "resourceRules": [pods]},
            "validations": [{"expression": keeps, "message": "finalizers stay for now"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": scene.namespace},
        "spec": {"policyName": scene.namespace, "validationActions": ["Deny"]},
    }
    scene.admin.create(f"{_POLICY_GROUP}/validatingadmissionpolicies", policy)
    scene.admin.create(f"{_POLICY_GROUP}/validatingadmissionpolicybindings", binding)
    probe = {"metadata": {"name": "probe", "finalizers": [HOLD]}, **_lone_pod()}
    path = namespaced("pods", scene.namespace)
    scene.admin.create(path, probe)

    def is_refused() -> bool:
        try:
            scene.admin.patch(f"{path}/probe", {"metadata": {"finalizers": None}})
        except ApiError as error:
            return error.status == 422
        scene.admin.patch(f"{path}/probe", {"metadata": {"finalizers": [HOLD]}})
        return False

    scene.until(is_refused)


def _lone_pod() -> RawObject:
    container = {"name": "main", "image": "none"}
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
