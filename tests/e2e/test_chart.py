"""The chart: helm lints and renders it, it says what `tracekit manifests` says, a server takes it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.tools import tool
from tests.support.traces import ROOT
from tracekit.cli.record import record as record_command
from tracekit.cli.watch import watch as watch_command
from tracekit.record.operation.manifests import Deployment, alert_groups, manifests

pytestmark = pytest.mark.e2e

CHART = ROOT / "packaging" / "chart"
MONITORING = ("--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true")
Object = dict[str, Any]


def helm(*words: str, status: int = 0) -> str:
    # Helm's own releases say at build time which Kubernetes they are of; one built here does not.
    command = [tool("helm"), *words, "--kube-version", "1.36.3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def rendered(*words: str) -> dict[str, list[Object]]:
    text = helm("template", "tracekit", str(CHART), "-n", "tracekit", *words)
    found: dict[str, list[Object]] = {}
    for document in yaml.safe_load_all(text):
        if document:
            found.setdefault(document["kind"], []).append(document)
    return found


@pytest.mark.parametrize("words", [(), MONITORING, ("--set", "namespaces={a,b},logs=failed")])
def test_it_has_no_fault(words: tuple[str, ...]) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), *words)


@pytest.mark.parametrize(
    ("deployment", "values"),
    [
        (Deployment(watches=True), ""),
        (Deployment(watches=False, reads_gates=True), "watch.enabled=false,featureGates=true"),
        (
            Deployment(namespaces=("a", "b"), logs="failed", watches=True, writes_events=True),
            "namespaces={a,b},logs=failed,watch.events=true",
        ),
    ],
)
def test_it_installs_what_the_manifests_say(deployment: Deployment, values: str) -> None:
    words = ("--set", values) if values else ()
    found = rendered(*words, "--set", "image.tag=latest")
    for printed in manifests(deployment):
        kind = printed["kind"]
        if kind in ("Role", "ClusterRole"):
            name = printed["metadata"].get("namespace")
            (same,) = [o for o in found[kind] if o["metadata"].get("namespace") == name]
            assert same["rules"] == printed["rules"]
        if kind == "Deployment":
            (same,) = found[kind]
            ours, theirs = (o["spec"]["template"]["spec"] for o in (printed, same))
            assert theirs["securityContext"] == ours["securityContext"]
            assert theirs["volumes"] == ours["volumes"]
            for one, other in zip(ours["containers"], theirs["containers"], strict=True):
                other.pop("imagePullPolicy")
                one["ports"] = [dict(port) for port in one["ports"]]
                assert other == one


def test_its_containers_run_commands_that_parse() -> None:
    (deployment,) = rendered()["Deployment"]
    recorder, watch = deployment["spec"]["template"]["spec"]["containers"]
    record_command.make_context("record", recorder["args"][1:])
    watch_command.make_context("watch", watch["args"][1:])
    words = ("--set", "storage.bucket=s3://b/traces,watch.enabled=false")
    (deployment,) = rendered(*words)["Deployment"]
    (recorder,) = deployment["spec"]["template"]["spec"]["containers"]
    context = record_command.make_context("record", recorder["args"][1:])
    assert context.params["keep"] is None
    assert recorder["env"] == [{"name": "XDG_CACHE_HOME", "value": "/traces"}]


def test_monitoring_finds_both_ports_and_has_the_alerts() -> None:
    found = rendered(*MONITORING)
    (service,), (monitor,), (rule,) = (
        found[kind] for kind in ("Service", "ServiceMonitor", "PrometheusRule")
    )
    labels = service["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    ports = [port["name"] for port in service["spec"]["ports"]]
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == ports
    assert rule["spec"] == alert_groups()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("storage.bucket=s3://b/x", "watch.enabled=false"),
        ("logs=some", "logs"),
        ("storage.bucket=/local", "bucket"),
        ("nonsense=1", "nonsense"),
    ],
)
def test_values_that_are_none_are_refused(values: str, said: str) -> None:
    assert said in helm("template", "tracekit", str(CHART), "--set", values, status=1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(folder=tmp_path_factory.mktemp("chart"), version="v1.36.3") as made:
        yield made


WHERE = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


@pytest.mark.parametrize("values", ["", "namespaces={a,b},watch.events=true,logs=all"])
def test_a_real_server_takes_all_of_it(cluster: Cluster, values: str) -> None:
    admin = cluster.api("admin", agent="e2e-admin")
    home = "some" if values else "all"
    for name in ("some", "a", "b") if values else ("all",):
        admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    found = rendered("-n", home, *(("--set", values) if values else ()))
    for kind, objects in found.items():
        for thing in objects:
            where = WHERE[kind].format(thing["metadata"].get("namespace"))
            # A field that the server does not know is an error, and no warning.
            stored = admin.create(f"{where}?fieldValidation=Strict", thing)
            assert stored["metadata"]["uid"]
