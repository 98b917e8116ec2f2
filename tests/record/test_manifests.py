"""What `tracekit manifests` prints: complete, read-only, and what the recorder asks for."""

from __future__ import annotations

from itertools import pairwise

import pytest
import yaml

from tests.record.test_record_cli import run
from tracekit.cli.record import record as record_command
from tracekit.cli.watch import watch as watch_command


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[dict]]:
    assert run("manifests", *arguments) == 0
    text = capsys.readouterr().out
    assert "&id" not in text
    found: dict[str, list[dict]] = {}
    for document in yaml.safe_load_all(text):
        found.setdefault(document["kind"], []).append(document)
    return found


def test_the_whole_cluster(capsys) -> None:
    found = printed(capsys, "-A")
    assert set(found) == {
        *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"),
        *("PersistentVolumeClaim", "Deployment"),
    }
    (role,) = found["ClusterRole"]
    kinds = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert kinds == {
        *("jobs", "cronjobs", "pods", "events", "resourcequotas", "namespaces", "leases"),
    }
    assert all(rule["verbs"] == ["get", "list", "watch"] for rule in role["rules"])
    (lease,) = [rule for rule in role["rules"] if rule["resources"] == ["leases"]]
    assert lease["resourceNames"] == ["kube-controller-manager"]
    (binding,) = found["ClusterRoleBinding"]
    assert binding["subjects"][0]["name"] == found["ServiceAccount"][0]["metadata"]["name"]


def test_namespaces(capsys) -> None:
    found = printed(capsys, "-n", "a", "-n", "b")
    assert "ClusterRole" not in found
    assert [role["metadata"]["namespace"] for role in found["Role"]] == ["a", "b"]
    kinds = {r for role in found["Role"] for rule in role["rules"] for r in rule["resources"]}
    assert kinds == {"jobs", "cronjobs", "pods", "events", "resourcequotas"}


def test_the_deployment_runs_a_command_that_parses(capsys) -> None:
    (deployment,) = printed(capsys, "-A", "--keep", "3d")["Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["args"][0] == "record"
    context = record_command.make_context("record", list(container["args"][1:]))
    assert context.params["keep"] == 3 * 86400
    assert context.params["append"] is True
    assert context.params["keep_size"] == (10 << 30) * 4 // 5
    assert context.params["metrics_port"] == container["ports"][0]["containerPort"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["volumes"]}
    assert deployment["spec"]["strategy"]["type"] == "Recreate"


@pytest.mark.parametrize(
    ("storage", "kept"), [("500M", 400_000_000), ("1Ti", (1 << 40) * 4 // 5), ("1e3", None)]
)
def test_what_is_kept_leaves_room_on_the_volume(capsys, storage: str, kept: int | None) -> None:
    (deployment,) = printed(capsys, "-A", "--storage", storage)["Deployment"]
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert (None if kept is None else str(kept)) == dict(pairwise(arguments)).get("--keep-size")


@pytest.mark.parametrize("scope", [("-A",), ("-n", "a")])
def test_logs_are_a_right_only_where_they_are_recorded(capsys, scope: tuple[str, ...]) -> None:
    kind = "ClusterRole" if scope == ("-A",) else "Role"
    right = {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}
    assert right not in printed(capsys, *scope)[kind][0]["rules"]
    found = printed(capsys, *scope, "--logs", "failed")
    assert right in found[kind][0]["rules"]
    (container,) = found["Deployment"][0]["spec"]["template"]["spec"]["containers"]
    context = record_command.make_context("record", list(container["args"][1:]))
    assert context.params["logs"] == "failed"


@pytest.mark.parametrize("scope", [("-A",), ("-n", "a")])
def test_events_may_be_created_only_where_findings_are_told_so(
    capsys, scope: tuple[str, ...]
) -> None:
    kind = "ClusterRole" if scope == ("-A",) else "Role"
    right = {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}
    assert right not in printed(capsys, *scope, "--watch")[kind][0]["rules"]
    found = printed(capsys, *scope, "--watch", "--event")
    assert right in found[kind][0]["rules"]
    _, judge = found["Deployment"][0]["spec"]["template"]["spec"]["containers"]
    context = watch_command.make_context("watch", list(judge["args"][1:]))
    assert context.params["writes_events"] is True


def test_feature_gates_add_one_url(capsys) -> None:
    (role,) = printed(capsys, "-A", "--feature-gates")["ClusterRole"]
    assert {"nonResourceURLs": ["/metrics"], "verbs": ["get"]} in role["rules"]


@pytest.mark.parametrize(
    "arguments", [[], ["-A", "-n", "x"], ["-n", "x", "--feature-gates"], ["-A", "--event"]]
)
def test_refusals(capsys, arguments: list[str]) -> None:
    assert run("manifests", *arguments) == 2
    assert "Traceback" not in capsys.readouterr().err
