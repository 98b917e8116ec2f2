"""What a new user does: an admin's kubeconfig, every option at its default, on several releases.

`record` runs beside a small churn; then `info`, `replay --diff`, `sql` and `report` read what it
wrote. The API server's audit log says how many actions there were.
"""

import json
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.e2e.cluster import CONTROLLER_MANAGER, Cluster
from tests.e2e.cron_scenarios import cron
from tests.e2e.kubelet import Kubelet
from tests.e2e.recorder import Recording, tracekit
from tests.e2e.scenarios import SCENARIOS
from tests.e2e.scene import Scene, Surroundings
from tests.support.traces import AUDITED_KINDS, CONTROLLERS, as_audited, audited_writes
from tracekit.trace.format.header import read_header

pytestmark = pytest.mark.e2e

#: The newest that are known and one from long before; TRACEKIT_E2E_VERSION names others.
VERSIONS = os.environ.get("TRACEKIT_E2E_VERSION", "v1.30.14,v1.36.3,v1.37.1").split(",")
STREAMS = 7
SECONDS = 50.0  # of which the churn leaves the last 25 quiet
JOBS = 25
SEED = 20261122
EXPLAINED = ("match", "match-lagged")


@dataclass(frozen=True)
class Recorded:
    """A trace as a user has it, and the audit log of the same time."""

    version: str
    trace: Path
    folder: Path
    said: str


@pytest.fixture(scope="module", params=VERSIONS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("main-path")
    with Cluster(folder=folder / "cluster", version=request.param) as cluster:
        kubelet = Kubelet(cluster.api("system:node:node-1", agent="sim-kubelet", pool_size=10))
        kubelet.start()
        try:
            recording = Recording(cluster, folder / "trace", "-A", user="admin")
            recording.wait_live(STREAMS)
            _churn(cluster)
            cluster.kill(CONTROLLER_MANAGER)  # else the audit log goes on when the record has ended
            time.sleep(2)
            said = recording.stop()
        finally:
            kubelet.stop()
        packed = zstandard.ZstdCompressor().compress(cluster.audit_log.read_bytes())
    (folder / "audit.jsonl.zst").write_bytes(packed)
    return Recorded(request.param, folder / "trace", folder, said)


def _churn(cluster: Cluster) -> None:
    """Some random Jobs with their disturbances, and CronJobs that start a few of their own."""
    around = Surroundings(
        admin=cluster.api("admin", agent="e2e-admin", pool_size=10, patient=True),
        alice=cluster.api("alice", agent="kubectl-alice", pool_size=10, patient=True),
        minor=cluster.minor,
        gates={},
        seconds=SECONDS,
        seed=SEED,
        churn_jobs=JOBS,
    )
    scene = Scene(around=around, name="churn")
    scene.open()
    cron(scene, "often", {"run": 1}, schedule="@every 10s", successfulJobsHistoryLimit=1)
    cron(scene, "kept-short", {"run": 1}, schedule="@every 15s", job={"ttlSecondsAfterFinished": 2})
    SCENARIOS["churn"].run(scene)
    for name in ("often", "kept-short"):
        path = f"/apis/{around.cron_path.rpartition('/')[0]}/namespaces/{scene.namespace}/cronjobs"
        scene.alice.patch(f"{path}/{name}", {"spec": {"suspend": True}})
    time.sleep(4)


@pytest.fixture(scope="module")
def verdicts(recorded: Recorded) -> dict[str, Any]:
    done = tracekit("replay", str(recorded.trace), "--diff", "-o", "json")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_header_says_the_version_and_its_gates(recorded: Recorded) -> None:
    header = read_header(recorded.trace)
    assert header.kubernetes_version == recorded.version
    gates = header.feature_gates
    assert ("JobManagedBy" in gates) is (recorded.version >= "v1.30")
    assert gates.get("JobManagedBy", False) is (recorded.version >= "v1.32")


def test_replay_explains_every_action_and_says_nothing_else(
    recorded: Recorded, verdicts: dict[str, Any]
) -> None:
    assert verdicts["divergences"] == []
    assert verdicts["warnings"] == []
    assert verdicts["kubernetes_version"] == recorded.version


def test_the_counts_are_those_of_the_audit_log(
    recorded: Recorded, verdicts: dict[str, Any]
) -> None:
    explained = {
        controller: Counter(
            {action: sum(counts[v] for v in EXPLAINED) for action, counts in actions.items()}
        )
        for controller, actions in verdicts["summary"].items()
    }
    audited = {name: audited_writes(recorded.folder, user) for name, user in CONTROLLERS.items()}
    assert as_audited(explained["job"]) == {kind: audited["job"][kind] for kind in AUDITED_KINDS}
    for kind in ("job-create", "job-delete", "status-update", "event"):
        assert explained["cronjob"][kind] == audited["cronjob"][kind], kind
    assert explained["ttl"]["job-delete"] == audited["ttl"]["job-delete"]
    assert explained["cronjob"]["job-create"] > 3
    assert explained["ttl"]["job-delete"] > 0
    assert explained["job"]["pod-create"] > JOBS


def test_info_sql_and_report_say_the_same(
    recorded: Recorded, verdicts: dict[str, Any], tmp_path: Path
) -> None:
    info = json.loads(tracekit("info", str(recorded.trace), "-o", "json").stdout)
    assert info["kubernetes_version"] == recorded.version
    assert info["gaps"] == []
    query = "SELECT controller, count(*) n, count(*) FILTER (divergent) d FROM verdicts GROUP BY 1"
    rows = json.loads(tracekit("sql", str(recorded.trace), query, "-o", "json").stdout)
    judged = {
        controller: sum(sum(counts.values()) for counts in actions.values())
        for controller, actions in verdicts["summary"].items()
    }
    assert {row["controller"]: row["n"] for row in rows} == judged
    assert {row["d"] for row in rows} == {0}
    page = tmp_path / "report.html"
    tracekit("report", str(recorded.trace), "-o", str(page))
    assert recorded.version in page.read_text()
