"""An observed pod against the pod that the controller meant to post."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.objects import job, rules
from tracekit.base.kube.views import COMPLETION_INDEX_ANNOTATION, pod_from_raw
from tracekit.check.compare.pod_body import pod_body_differences
from tracekit.ports.actions import CreatePod
from tracekit.ports.job.body import new_pod

TEMPLATE: dict[str, Any] = {
    "metadata": {
        "labels": {"app": "demo", "batch.kubernetes.io/job-name": "demo"},
        "annotations": {"team": "blue"},
    },
    "spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "initContainers": [{"name": "setup", "image": "setup:1"}],
        "containers": [
            {
                "name": "main",
                "image": "busybox:1.36",
                "command": ["sh", "-c", "true"],
                "imagePullPolicy": "IfNotPresent",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resources": {"limits": {"cpu": "1"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            },
            {"name": "side", "image": "side:1"},
        ],
    },
}
TOKEN = {"name": "kube-api-access-x7k2p", "projected": {"sources": []}}
TOKEN_MOUNT = {
    "name": "kube-api-access-x7k2p",
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}


def intent() -> CreatePod:
    return new_pod(job(indexed=True, completions=3, template=TEMPLATE), rules(), 2, None)


def observed() -> dict[str, Any]:
    """The pod as the API server and its default admission plugins return it."""
    wanted = intent()
    spec: dict[str, Any] = json.loads(json.dumps(wanted.spec))
    spec |= {
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "nodeName": "node-1",
    }
    spec["tolerations"] += [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]
    spec["volumes"].append(TOKEN)
    for container in (*spec["initContainers"], *spec["containers"]):
        container.setdefault("volumeMounts", []).append(TOKEN_MOUNT)
        container.setdefault("imagePullPolicy", "Always")
        container.setdefault("resources", {})
        container["terminationMessagePath"] = "/dev/termination-log"
        container["terminationMessagePolicy"] = "File"
        for entry in container["env"]:
            if "valueFrom" in entry:
                entry["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    return {
        "metadata": {
            "name": "demo-2-abcde",
            "generateName": wanted.generate_name,
            "labels": dict(wanted.labels),
            "annotations": dict(wanted.annotations),
            "finalizers": list(wanted.finalizers),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def differences(raw: dict[str, Any], wanted: CreatePod | None = None) -> list[tuple[str, Any, Any]]:
    found = pod_body_differences(
        wanted or intent(), pod_from_raw(raw), raw["spec"], raw["metadata"].get("generateName", "")
    )
    return [(d.path, d.expected, d.observed) for d in found]


def test_what_the_api_server_adds_is_no_difference() -> None:
    assert differences(observed()) == []


def main(raw: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = raw["spec"]["containers"][0]
    return found


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set (or, with None, drop) one field, by its dotted path from the pod's root."""

    def apply(raw: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        here: Any = raw
        for parent in parents:
            here = here[int(parent)] if parent.isdigit() else here[parent]
        if value is None:
            del here[last]
        else:
            here[last] = value

    return apply


TOLERATED: dict[str, Callable[[dict[str, Any]], None]] = {
    "a priority class": change("spec.priorityClassName", "high"),
    "a pull secret of the service account": change("spec.imagePullSecrets", [{"name": "s"}]),
    "the overhead of a runtime class": change("spec.overhead", {"podFixed": {"cpu": "1"}}),
    "the note of LimitRanger": lambda raw: raw["metadata"]["annotations"].update(
        {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request"}
    ),
    "requests from LimitRanger": lambda raw: main(raw)["resources"].update(
        {"requests": {"cpu": "1"}}
    ),
    "a limit from LimitRanger beside one of the template": lambda raw: main(raw)["resources"][
        "limits"
    ].update({"memory": "1Gi"}),
    "a token volume of an old API server": lambda raw: raw["spec"]["volumes"].append(
        {"name": "default-token-x", "secret": {}}
    ),
    "the toleration of a memory-pressured node": lambda raw: raw["spec"]["tolerations"].append(
        {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
    ),
    "no node yet": change("spec.nodeName", None),
}


@pytest.mark.parametrize("apply", TOLERATED.values(), ids=TOLERATED.keys())
def test_known_additions_are_tolerated(apply: Callable[[dict[str, Any]], None]) -> None:
    raw = observed()
    apply(raw)
    assert differences(raw) == []


REPORTED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "another generateName": (change("metadata.generateName", "other-2-"), "metadata.generateName"),
    "another label": (change("metadata.labels.app", "x"), "metadata.labels[app]"),
    "a label too many": (change("metadata.labels.new", "x"), "metadata.labels[new]"),
    "a label too few": (change("metadata.labels.app", None), "metadata.labels[app]"),
    "another annotation": (change("metadata.annotations.team", "x"), "metadata.annotations[team]"),
    "an annotation too many": (change("metadata.annotations.a", "b"), "metadata.annotations[a]"),
    "another index": (
        lambda raw: raw["metadata"]["annotations"].update({COMPLETION_INDEX_ANNOTATION: "1"}),
        f"metadata.annotations[{COMPLETION_INDEX_ANNOTATION}]",
    ),
    "no finalizer": (change("metadata.finalizers", []), "metadata.finalizers"),
    "a finalizer too many": (
        lambda raw: raw["metadata"]["finalizers"].append("example.com/x"),
        "metadata.finalizers",
    ),
    "another restart policy": (change("spec.restartPolicy", "OnFailure"), "spec.restartPolicy"),
    "another grace period": (
        change("spec.terminationGracePeriodSeconds", 5),
        "spec.terminationGracePeriodSeconds",
    ),
    "another host name": (change("spec.hostname", "demo-3"), "spec.hostname"),
    "no host name": (change("spec.hostname", None), "spec.hostname"),
    "another node selector": (change("spec.nodeSelector.disk", "hdd"), "spec.nodeSelector"),
    "a field that nobody adds": (change("spec.hostNetwork", 1), "spec.hostNetwork"),
    "a deadline of its own": (
        change("spec.activeDeadlineSeconds", 5),
        "spec.activeDeadlineSeconds",
    ),
    "a toleration too few": (
        lambda raw: raw["spec"]["tolerations"].pop(0),
        "spec.tolerations",
    ),
    "a toleration too many": (
        lambda raw: raw["spec"]["tolerations"].append({"key": "x", "value": "y"}),
        "spec.tolerations",
    ),
    "another volume": (change("spec.volumes.0.emptyDir", {"medium": "Memory"}), "spec.volumes"),
    "a volume too many": (
        lambda raw: raw["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
        "spec.volumes",
    ),
    "another image": (
        change("spec.containers.0.image", "busybox:2"),
        "spec.containers[main].image",
    ),
    "another image of an init container": (
        change("spec.initContainers.0.image", "x"),
        "spec.initContainers[setup].image",
    ),
    "another command": (
        change("spec.containers.0.command", ["sh"]),
        "spec.containers[main].command",
    ),
    "another pull policy": (
        change("spec.containers.0.imagePullPolicy", "Never"),
        "spec.containers[main].imagePullPolicy",
    ),
    "a port that nobody adds": (
        change("spec.containers.0.ports", [{"containerPort": 1}]),
        "spec.containers[main].ports",
    ),
    "a smaller limit": (
        change("spec.containers.0.resources.limits.cpu", "2"),
        "spec.containers[main].resources",
    ),
    "another variable": (
        change("spec.containers.0.env.0.value", "9"),
        "spec.containers[main].env[A]",
    ),
    "a variable too many": (
        lambda raw: main(raw)["env"].append({"name": "Z", "value": "1"}),
        "spec.containers[main].env[Z]",
    ),
    "the index from another field": (
        change("spec.containers.0.env.2.valueFrom.fieldRef.fieldPath", "metadata.name"),
        "spec.containers[main].env[JOB_COMPLETION_INDEX]",
    ),
    "variables in another order": (
        lambda raw: main(raw)["env"].reverse(),
        "spec.containers[main].env",
    ),
    "a mount too many": (
        lambda raw: main(raw)["volumeMounts"].append({"name": "data", "mountPath": "/x"}),
        "spec.containers[main].volumeMounts",
    ),
    "a mount too few": (
        lambda raw: main(raw)["volumeMounts"].pop(0),
        "spec.containers[main].volumeMounts",
    ),
    "a container too many": (
        lambda raw: raw["spec"]["containers"].append({"name": "injected"}),
        "spec.containers",
    ),
    "a container too few": (lambda raw: raw["spec"]["containers"].pop(), "spec.containers"),
    "containers in another order": (
        lambda raw: raw["spec"]["containers"].reverse(),
        "spec.containers",
    ),
}


@pytest.mark.parametrize(("apply", "path"), REPORTED.values(), ids=REPORTED.keys())
def test_every_other_change_is_told_with_its_path(
    apply: Callable[[dict[str, Any]], None], path: str
) -> None:
    raw = observed()
    apply(raw)
    found = differences(raw)
    assert {where for where, _, _ in found} == {path}
    assert all(expected != seen for _, expected, seen in found)


def test_several_changes_are_all_told() -> None:
    raw = observed()
    change("metadata.labels.app", "x")(raw)
    change("spec.containers.0.image", "x")(raw)
    change("spec.containers.1.image", "y")(raw)
    assert [path for path, _, _ in differences(raw)] == [
        "metadata.labels[app]",
        "spec.containers[main].image",
        "spec.containers[side].image",
    ]


def test_finalizers_are_not_looked_at_where_they_may_be_gone() -> None:
    raw = observed()
    raw["metadata"]["finalizers"] = []
    found = pod_body_differences(
        intent(), pod_from_raw(raw), raw["spec"], "demo-2-", finalizers=False
    )
    assert found == []


def test_a_changed_resource_claim_is_told() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "big"}]
    wanted = new_pod(
        job(template={"spec": {"containers": [], "resourceClaims": claims}}), rules(), None, None
    )
    raw = {
        "metadata": {
            "name": "demo-x7k2p",
            "generateName": "demo-",
            "finalizers": list(wanted.finalizers),
        },
        "spec": copy.deepcopy(dict(wanted.spec)),
    }
    assert differences(raw, wanted) == []
    raw["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "small"
    assert [path for path, _, _ in differences(raw, wanted)] == ["spec.resourceClaims"]
