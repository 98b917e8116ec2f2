"""Lies about one field in the body of one pod that the controller created.

The field is wrong from the pod's first row to its last: it was posted like that.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .pods import created_pods
from .record import (
    FINALIZER,
    INDEX,
    Edit,
    Lie,
    Record,
    copy_of,
    finalized,
    new_uid,
    pick,
    told,
)

Obj = dict[str, Any]
#: Changes the object in place; False where it has nothing to change.
Change = Callable[[Obj, random.Random], "bool | None"]


def _container(obj: Obj) -> Obj:
    found: Obj = obj["spec"]["containers"][0]
    return found


def image(obj: Obj, rng: random.Random) -> None:
    _container(obj)["image"] = f"registry.example/other:{rng.randrange(9)}"


def command(obj: Obj, rng: random.Random) -> None:
    del rng
    _container(obj)["command"] = [*_container(obj).get("command", []), "--once"]


def env_added(obj: Obj, rng: random.Random) -> None:
    del rng
    _container(obj).setdefault("env", []).append({"name": "DEBUG", "value": "1"})


def env_index(obj: Obj, rng: random.Random) -> bool:
    del rng
    for entry in _container(obj).get("env", []):
        if entry["name"] == "JOB_COMPLETION_INDEX":
            del entry["valueFrom"]
            entry["value"] = "0"
            return True
    return False


def env_index_gone(obj: Obj, rng: random.Random) -> bool:
    del rng
    env = _container(obj).get("env", [])
    kept = [entry for entry in env if entry["name"] != "JOB_COMPLETION_INDEX"]
    _container(obj)["env"] = kept
    return len(kept) != len(env)


def container_added(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["containers"].append({**_container(obj), "name": "sidecar"})


def init_container_added(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["initContainers"] = [{**_container(obj), "name": "setup"}]


def image_pull_policy(obj: Obj, rng: random.Random) -> None:
    del rng
    _container(obj)["imagePullPolicy"] = "Always"


def label(obj: Obj, rng: random.Random) -> bool:
    labels = obj["metadata"].get("labels", {})
    mine = sorted(key for key in labels if "job-name" not in key and "uid" not in key)
    if not mine:
        return False
    labels[rng.choice(mine)] = "other"
    return True


def label_added(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["metadata"].setdefault("labels", {})["team"] = "blue"


def label_job_name(obj: Obj, rng: random.Random) -> bool:
    del rng
    labels = obj["metadata"].get("labels", {})
    if "job-name" not in labels:
        return False  # a user took it off
    labels["job-name"] += "-x"
    return True


def index_label(obj: Obj, rng: random.Random) -> bool:
    del rng
    return obj["metadata"]["labels"].pop(INDEX, None) is not None


def annotation(obj: Obj, rng: random.Random) -> bool:
    del rng
    notes = obj["metadata"].get("annotations", {})
    if "sim/plan" not in notes:
        return False
    notes["sim/plan"] = '{"run":99}'
    return True


def annotation_added(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["metadata"].setdefault("annotations", {})["example.com/note"] = "1"


def annotation_gone(obj: Obj, rng: random.Random) -> bool:
    del rng
    return obj["metadata"].get("annotations", {}).pop("sim/plan", None) is not None


def failure_count(obj: Obj, rng: random.Random) -> bool:
    del rng
    notes = obj["metadata"].get("annotations", {})
    key = "batch.kubernetes.io/job-index-failure-count"
    if key not in notes:
        return False
    notes[key] = str(int(notes[key]) + 1)
    return True


def finalizer_added(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["metadata"]["finalizers"] = [
        *obj["metadata"].get("finalizers", []),
        "example.com/protect",
    ]


def generate_name(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["metadata"]["generateName"] = "x" + obj["metadata"]["generateName"]


def _owner(obj: Obj) -> Obj | None:
    return next(iter(obj["metadata"].get("ownerReferences", ())), None)


def owner_uid_other(obj: Obj, rng: random.Random) -> bool:
    owner = _owner(obj)
    if owner is not None:
        owner["uid"] = new_uid(rng)
    return owner is not None


def owner_name(obj: Obj, rng: random.Random) -> bool:
    del rng
    owner = _owner(obj)
    if owner is not None:
        owner["name"] += "-x"
    return owner is not None


def owner_block(obj: Obj, rng: random.Random) -> bool:
    del rng
    owner = _owner(obj)
    if owner is not None:
        owner["blockOwnerDeletion"] = False
    return owner is not None


def owner_api_version(obj: Obj, rng: random.Random) -> bool:
    del rng
    owner = _owner(obj)
    if owner is not None:
        owner["apiVersion"] = "batch/v1beta1"
    return owner is not None


def owner_added(obj: Obj, rng: random.Random) -> None:
    refs = obj["metadata"].setdefault("ownerReferences", [])
    del rng
    refs.append(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "extra",
            "uid": "00000000-0000-4000-a000-000000000001",
        }
    )


def restart_policy(obj: Obj, rng: random.Random) -> None:
    del rng
    old = obj["spec"]["restartPolicy"]
    obj["spec"]["restartPolicy"] = "OnFailure" if old == "Never" else "Never"


def hostname(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["hostname"] = obj["spec"].get("hostname", "host") + "x"


def subdomain(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["subdomain"] = "other"


def node_selector(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["nodeSelector"] = {"disk": "ssd"}


def pod_deadline(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["activeDeadlineSeconds"] = 60


def grace_period(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["terminationGracePeriodSeconds"] += 5


def scheduler(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["schedulerName"] = "other-scheduler"


def host_network(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["hostNetwork"] = True


def volume_added(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"].setdefault("volumes", []).append({"name": "scratch", "emptyDir": {}})


def toleration_added(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"].setdefault("tolerations", []).append(
        {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    )


def toleration_exists(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"].setdefault("tolerations", []).append(
        {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}
    )


def resources(obj: Obj, rng: random.Random) -> None:
    del rng
    _container(obj)["resources"] = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


def priority(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["priority"] = 1000
    obj["spec"]["priorityClassName"] = "high"


def service_account(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["serviceAccountName"] = obj["spec"]["serviceAccount"] = "admin"


def container_security(obj: Obj, rng: random.Random) -> bool:
    del rng
    if _container(obj).get("securityContext") is not None:
        return False
    _container(obj)["securityContext"] = {"privileged": True}
    return True


def pull_secrets(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["imagePullSecrets"] = [{"name": "registry"}]


def node_name(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["nodeName"] = "node-7"


def service_links(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["enableServiceLinks"] = False


def preemption(obj: Obj, rng: random.Random) -> None:
    del rng
    obj["spec"]["preemptionPolicy"] = "Never"


def token_volume(obj: Obj, rng: random.Random) -> None:
    del rng
    volume = {"name": "my-token-store", "hostPath": {"path": "/etc"}}
    obj["spec"].setdefault("volumes", []).append(volume)


def toleration_seconds(obj: Obj, rng: random.Random) -> bool:
    del rng
    for entry in obj["spec"].get("tolerations", []):
        if entry.get("tolerationSeconds") == 300:
            entry["tolerationSeconds"] = 20
            return True
    return False


def toleration_gone(obj: Obj, rng: random.Random) -> bool:
    del rng
    return obj["spec"].pop("tolerations", None) is not None


ADMISSION = "a mutating admission plugin could have set it"

_CHANGES: dict[str, tuple[Change, str]] = {
    "image": (image, ""),
    "command": (command, ""),
    "env-added": (env_added, ""),
    "env-index-literal": (env_index, ""),
    "env-index-gone": (env_index_gone, ""),
    "container-added": (container_added, ""),
    "init-container-added": (init_container_added, ""),
    "image-pull-policy": (image_pull_policy, ""),
    "label": (label, ""),
    "label-added": (label_added, ""),
    "label-job-name": (label_job_name, ""),
    "index-label-gone": (index_label, ""),
    "annotation": (annotation, ""),
    "annotation-added": (annotation_added, ""),
    "annotation-gone": (annotation_gone, ""),
    "failure-count": (failure_count, ""),
    "finalizer-added": (finalizer_added, ""),
    "generate-name": (generate_name, ""),
    "owner-uid": (owner_uid_other, ""),
    "owner-name": (owner_name, ""),
    "owner-block": (owner_block, ""),
    "owner-api-version": (owner_api_version, ""),
    "owner-added": (owner_added, ""),
    "restart-policy": (restart_policy, ""),
    "hostname": (hostname, ""),
    "subdomain": (subdomain, ""),
    "node-selector": (node_selector, ""),
    "active-deadline": (pod_deadline, ""),
    "grace-period": (grace_period, ""),
    "scheduler": (scheduler, ""),
    "host-network": (host_network, ""),
    "volume-added": (volume_added, ""),
    "toleration-added": (toleration_added, ""),
    "container-security": (container_security, f"{ADMISSION} (PodSecurityPolicy, to 1.24)"),
    "image-pull-secrets": (pull_secrets, f"{ADMISSION} (ServiceAccount)"),
    "node-name": (node_name, ""),
    "service-links": (service_links, ""),
    "preemption": (preemption, f"{ADMISSION} (Priority)"),
    "token-volume": (token_volume, ""),
    "toleration-seconds": (toleration_seconds, "the default is a flag of the API server"),
    "toleration-gone": (toleration_gone, "an API server without DefaultTolerationSeconds"),
    "toleration-exists": (toleration_exists, ADMISSION),
    "resources": (resources, f"{ADMISSION} (LimitRanger)"),
    "priority": (priority, f"{ADMISSION} (Priority)"),
    "service-account": (service_account, f"{ADMISSION} (ServiceAccount sets the default only)"),
}


def _planter(
    name: str, change: Change, doubt: str
) -> Callable[[Record, Edit, random.Random], Lie | None]:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = list(created_pods(record))
        rng.shuffle(choices)
        for job, pod in choices:
            seed = rng.random()
            if change(copy_of(pod.obj(0)), random.Random(seed)) is False:
                continue
            trial = [change(edit.obj(i), random.Random(seed)) for i in pod.rows]
            if all(done is not False for done in trial):
                what = f"pod {pod.name} was posted with another body: {name}"
                return told(
                    f"body-{name}",
                    job,
                    what,
                    ("pod-create", "status-update", "finalizer-removal"),
                    ("different", "extra", "missing"),
                    rv=pod.rv(0),
                    doubt=doubt,
                )
            for i in pod.rows:
                del edit.replaced[i]
        return None

    return plant


def finalizer_missing(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A pod that was posted without the tracking finalizer; so nobody takes it off."""
    choice = pick(rng, [(j, p) for j, p in created_pods(record) if finalized(p.obj(0))])
    if choice is None:
        return None
    job, pod = choice
    for p, i in enumerate(pod.rows):
        if p and finalized(pod.obj(p - 1)) and not finalized(pod.obj(p)):
            edit.drop([i])
            continue
        rest = [f for f in pod.obj(p)["metadata"].get("finalizers", ()) if f != FINALIZER]
        if rest:
            edit.obj(i)["metadata"]["finalizers"] = rest
        else:
            edit.obj(i)["metadata"].pop("finalizers", None)
    what = f"pod {pod.name} was posted without the tracking finalizer"
    return told("body-finalizer-missing", job, what, ("pod-create", "status-update"), rv=pod.rv(0))


KINDS = {
    **{f"body-{name}": _planter(name, change, doubt) for name, (change, doubt) in _CHANGES.items()},
    "body-finalizer-missing": finalizer_missing,
}
