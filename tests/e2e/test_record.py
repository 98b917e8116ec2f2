"""The recorder on a real API server: printed rights only, kills, restarts, compaction.

Everything runs on one control plane, in the order of the tests; what a trace holds is compared with
the API server's own audit log: nothing that was written may be missing outside the gap rows.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e import audit
from tests.e2e.access import compact
from tests.e2e.cluster import API_SERVER, CONTROLLER_MANAGER, Cluster
from tests.e2e.kubelet import Kubelet
from tests.e2e.recorder import Recording, tracekit, until
from tests.e2e.scene import Scene
from tests.e2e.setup import grant_printed, open_scene
from tracekit.trace.reading.reader import TraceReader

pytestmark = pytest.mark.e2e

STATE_TYPES = ("LIST", "ADDED", "MODIFIED", "DELETED")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    version = os.environ.get("TRACEKIT_E2E_VERSION", "v1.36.3")
    made = Cluster(
        folder=tmp_path_factory.mktemp("record") / "cluster",
        version=version,
        kcm_flags=["--kube-api-qps=100", "--kube-api-burst=200"],
    )
    made.add_user("one-namespace")
    made.add_user("nobody")
    with made:
        kubelet = Kubelet(made.api("system:node:node-1", agent="sim-kubelet", pool_size=10))
        kubelet.start()
        grant_printed(made, "-A")
        try:
            yield made
        finally:
            kubelet.stop()


def _some_jobs(scene: Scene, prefix: str) -> None:
    scene.job(f"{prefix}-three", {"run": 0.5}, completions=3, parallelism=2)
    scene.job(f"{prefix}-fails", {"run": 0.3, "exit": 1}, backoffLimit=0, completions=1)


def _finish_jobs(scene: Scene, prefix: str) -> None:
    scene.finished(f"{prefix}-three")
    scene.finished(f"{prefix}-fails")


def _first_rv(trace: Path, stream: str) -> int:
    ends = TraceReader(trace).table(("seq", "rv"), streams=[stream], types=["LIST_END"]).to_pylist()
    return min(ends, key=lambda row: row["seq"])["rv"]


def _missing(cluster: Cluster, trace: Path, namespace: str | None = None) -> set[audit.Revision]:
    """What the audit log says was written and the trace neither holds nor owns up to."""
    reader = TraceReader(trace)
    table = reader.table(("stream", "uid", "rv"), types=STATE_TYPES)
    seen = {(row["stream"], row["uid"], row["rv"]) for row in table.to_pylist()}
    last = {stream: max(rv for s, _, rv in seen if s == stream) for stream, _, _ in seen}
    gaps = reader.gaps()
    missing = set()
    for resource, uid, revision in _written(cluster.audit_log, namespace):
        rv = int(revision)
        if (resource, uid, rv) in seen or rv <= _first_rv(trace, resource):
            continue
        if rv > last.get(resource, 0):
            continue  # written after the recording ended
        if any(g.stream == resource and _inside(rv, g.last_rv, g.next_rv) for g in gaps):
            continue
        missing.add((resource, uid, revision))
    return missing


def _inside(rv: int, after: int | None, until: int | None) -> bool:
    return (after is None or rv > after) and (until is None or rv <= until)


def _written(log: Path, namespace: str | None) -> set[audit.Revision]:
    if namespace is None:
        return audit.written_revisions(log)
    names = {
        (
            entry["objectRef"]["resource"],
            (entry.get("responseObject") or {}).get("metadata", {}).get("uid"),
        )
        for entry in audit.lines(log)
        if entry.get("objectRef", {}).get("namespace") == namespace
    }
    return {found for found in audit.written_revisions(log) if (found[0], found[1]) in names}


def _holds_end_of(trace: Path, job: str) -> bool:
    """Whether the trace has the job with its completion time, and pods of it."""
    reader = TraceReader(trace)
    done = reader.table(("name", "completion_ns"), streams=["jobs"]).to_pylist()
    pods = reader.table(("owner_name",), streams=["pods"])["owner_name"].to_pylist()
    return job in pods and any(r["name"] == job and r["completion_ns"] for r in done)


def _restart_api_server(cluster: Cluster) -> None:
    """Restart it, and the controller manager too, which gives up when it cannot renew its lease."""
    cluster.terminate(API_SERVER)
    time.sleep(1)
    cluster.start_process(API_SERVER)
    cluster.kill(CONTROLLER_MANAGER)
    cluster.start_process(CONTROLLER_MANAGER)
    cluster.wait_controllers()


def test_kill_and_restart_lose_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """kill -9 and --append leave no gap; an API server restart at most owns up to one.

    A restarted server serves watches from its newest revision on, so that streams which were quiet
    before it get 410.
    """
    trace = tmp_path / "trace"
    scene = open_scene(cluster, "kill")
    recording = Recording(cluster, trace, "-A")
    recording.wait_live(7)
    _some_jobs(scene, "before")
    time.sleep(2)
    recording.kill()
    killed_rows = TraceReader(trace).rows
    assert killed_rows > 20
    _some_jobs(scene, "meanwhile")
    _finish_jobs(scene, "before")
    recording = Recording(cluster, trace, "-A", "--append")
    recording.wait_live(7)
    _finish_jobs(scene, "meanwhile")
    until(lambda: _holds_end_of(trace, "meanwhile-three"))
    assert TraceReader(trace).gaps() == []
    _restart_api_server(cluster)
    _some_jobs(scene, "after")
    _finish_jobs(scene, "after")
    until(lambda: _holds_end_of(trace, "after-three"))
    time.sleep(3)
    said = recording.stop()
    assert "Going on with" in said
    reader = TraceReader(trace)
    assert all("410" in gap.reason and gap.next_rv is not None for gap in reader.gaps())
    assert reader.rows > killed_rows
    assert _missing(cluster, trace) == set()
    header = reader.header
    assert header.kubernetes_version == cluster.version
    assert [session["source"] for session in header.sessions] == ["record", "record"]


def test_compaction_makes_a_gap_row_and_synthesised_deletes(
    cluster: Cluster, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    scene = open_scene(cluster, "compaction")
    recording = Recording(cluster, trace, "-A")
    recording.wait_live(7)
    _some_jobs(scene, "before")
    _finish_jobs(scene, "before")
    time.sleep(2)
    recording.stop()
    scene.delete_job("before-three")
    _some_jobs(scene, "unseen")
    _finish_jobs(scene, "unseen")
    compact(cluster.etcd_url)
    _restart_api_server(cluster)
    recording = Recording(cluster, trace, "-A", "--append")
    until(lambda: any(gap.stream == "jobs" for gap in TraceReader(trace).gaps()))
    _some_jobs(scene, "after")
    _finish_jobs(scene, "after")
    until(lambda: _holds_end_of(trace, "after-three"))
    recording.stop()
    reader = TraceReader(trace)
    gaps = {gap.stream: gap for gap in reader.gaps()}
    assert {"jobs", "pods"} <= set(gaps)
    assert "410" in gaps["jobs"].reason
    assert gaps["jobs"].last_rv is not None
    assert gaps["jobs"].next_rv is not None
    assert gaps["jobs"].next_rv > gaps["jobs"].last_rv
    deleted = reader.table(("name", "synthesized"), streams=["jobs"], types=["DELETED"]).to_pylist()
    assert {"name": "before-three", "synthesized": True} in deleted
    assert _missing(cluster, trace) == set()


def test_rights_on_one_namespace_are_enough_for_it(cluster: Cluster, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    scene = open_scene(cluster, "narrow")
    grant_printed(cluster, "-n", scene.namespace, user="one-namespace")
    recording = Recording(cluster, trace, "-n", scene.namespace, user="one-namespace")
    recording.wait_live(5)
    _some_jobs(scene, "here")
    _finish_jobs(scene, "here")
    time.sleep(3)
    said = recording.stop()
    assert "Not recorded: leases: list is forbidden" in said
    reader = TraceReader(trace)
    assert reader.header.streams["leases"]["recorded"] is False
    assert reader.header.streams["namespaces"]["recorded"] is False
    assert reader.header.scope["namespaces"] == [scene.namespace]
    spaces = set(reader.table(("namespace",), types=STATE_TYPES)["namespace"].to_pylist())
    assert spaces == {scene.namespace}
    assert _missing(cluster, trace, scene.namespace) == set()


def test_pods_of_jobs_only(cluster: Cluster, tmp_path: Path) -> None:
    scene = open_scene(cluster, "pods-of-jobs")
    trace = tmp_path / "trace"
    recording = Recording(cluster, trace, "-n", scene.namespace, "--pods", "job")
    recording.wait_live(6)
    lone = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "lone"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    scene.admin.create(f"/api/v1/namespaces/{scene.namespace}/pods", lone)
    _some_jobs(scene, "of-job")
    _finish_jobs(scene, "of-job")
    time.sleep(2)
    recording.stop()
    names = TraceReader(trace).table(("name",), streams=["pods"], types=STATE_TYPES)["name"]
    assert len(set(names.to_pylist())) >= 4
    assert "lone" not in names.to_pylist()


@pytest.mark.parametrize(
    ("user", "arguments", "expected"),
    [
        ("nobody", ["-A"], r"may not list and watch jobs in all namespaces.*tracekit manifests"),
        ("admin", ["-n", "no-such-place"], r'no namespace "no-such-place"'),
        ("recorder", ["-A", "--token", "wrong"], r"does not accept the credentials.*401"),
        ("recorder", ["-A", "--context", "elsewhere"], r'context "elsewhere" does not exist'),
    ],
)
def test_what_a_user_can_get_wrong(
    cluster: Cluster, tmp_path: Path, user: str, arguments: list[str], expected: str
) -> None:
    kubeconfig = cluster.kubeconfig(user)
    done = tracekit(
        *("record", "-o", str(tmp_path / "trace"), "--kubeconfig", str(kubeconfig)),
        *arguments,
        status=2,
    )
    assert re.search(expected, done.stderr), done.stderr
    assert not (tmp_path / "trace").exists()


def test_an_unknown_certificate_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.kubeconfig("recorder").read_text())
    del config["clusters"][0]["cluster"]["certificate-authority"]
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(yaml.safe_dump(config))
    arguments = ["record", "-A", "-o", str(tmp_path / "trace"), "--kubeconfig", str(kubeconfig)]
    done = tracekit(*arguments, status=2)
    assert re.search(r"TLS.*certificate-authority", done.stderr), done.stderr
    tracekit(*arguments, "--insecure-skip-tls-verify", "--duration", "1s")
