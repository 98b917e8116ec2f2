"""Last words on a real API server: all there, also of pods that the controller deletes at once.

The stand-in kubelet serves the logs over TLS; what a trace holds is compared with the pods of the
trace itself: each container that failed has exactly one row, and each row says what its run said.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.e2e.api import namespaced
from tests.e2e.cluster import Cluster
from tests.e2e.kubelet import Kubelet
from tests.e2e.kubelet_logs import ContainerLogs
from tests.e2e.recorder import Recording, tracekit, until
from tests.e2e.scene import Scene, is_running, pod_template
from tests.e2e.setup import grant_printed, open_scene
from tracekit.trace.format.model import HEADER_NAME
from tracekit.trace.reading.reader import TraceReader

pytestmark = pytest.mark.e2e

SECRET = "Hunter2PlantedSecret"  # noqa: S105 (planted)
SAYS = {"say": [f"connecting to https://me:{SECRET}@db.example", f"password={SECRET}"]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("logs") / "cluster"
    made = Cluster(folder=folder, version=os.environ.get("TRACEKIT_E2E_VERSION", "v1.36.3"))
    logs = ContainerLogs(folder.parent)
    with made:
        kubelet = Kubelet(made.api("system:node:node-1", agent="sim-kubelet", pool_size=10), logs)
        kubelet.start()
        try:
            yield made
        finally:
            kubelet.stop()
            logs.close()


def _bare_pod(scene: Scene, name: str) -> None:
    template = pod_template(SAYS, labels={})
    meta = {"name": name, **template["metadata"]}
    path = namespaced("pods", scene.namespace)
    scene.admin.create(path, {"metadata": meta, "spec": template["spec"]})
    scene.until(lambda: is_running(scene.admin.get(f"{path}/{name}")))


def _logs(trace: Path) -> list[dict]:
    rows = TraceReader(trace).table(("raw",), streams=["logs"])["raw"].to_pylist()
    return [orjson.loads(raw) for raw in rows]


def _failed_runs(trace: Path) -> set[tuple[str, int]]:
    """Every run of a container that a pod of the trace shows to have failed: (pod, restart)."""
    found = set()
    for raw in TraceReader(trace).table(("raw",), streams=["pods"])["raw"].to_pylist():
        pod = orjson.loads(raw) if "containerStatuses" in raw else {}
        for status in (pod.get("status") or {}).get("containerStatuses", ()):
            count = status["restartCount"]
            for state, restart in ((status["state"], count), (status["lastState"], count - 1)):
                if (state.get("terminated") or {}).get("exitCode"):
                    found.add((pod["metadata"]["name"], restart))
    return found


def test_without_the_right_nothing_is_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    grant_printed(cluster, "-A")
    done = tracekit(
        *("record", "-A", "-o", str(tmp_path / "t"), "--logs", "failed", "--duration", "2s"),
        *("--kubeconfig", str(cluster.kubeconfig("recorder"))),
    )
    assert "Not recorded: logs: get of pods/log is forbidden" in done.stderr
    assert _logs(tmp_path / "t") == []


def test_last_words_of_all_that_failed(cluster: Cluster, tmp_path: Path) -> None:
    grant_printed(cluster, "-A", "--logs", "failed")
    trace = tmp_path / "trace"
    recording = Recording(cluster, trace, "-A", "--logs", "failed", "--redact", "all")
    until(lambda: (trace / HEADER_NAME).exists() and TraceReader(trace).rows > 10)
    scene = open_scene(cluster, "words")
    scene.job("good", {"run": 0.3, **SAYS}, completions=2)
    scene.job("fails", {"run": 0.3, "exit": 3, **SAYS}, backoffLimit=0)
    scene.job("restarts", {"run": 2, "restarts": 2, **SAYS}, restart="OnFailure")
    # Deleted by the controller at their deadline, and gone as soon as they have ended.
    deadline = {"completions": 3, "parallelism": 3, "activeDeadlineSeconds": 3}
    scene.job("deadline", {"grace": 2, **SAYS}, **deadline)
    scene.job("silent", {"grace": 2, "silent": True, **SAYS}, **deadline)
    scene.job("quick", {"grace": 0.05, **SAYS}, **deadline)
    # No Job, so no finalizer: without grace it is gone before anybody can ask.
    _bare_pod(scene, "bare")
    scene.delete_pod("bare", grace_seconds=0)
    for job in ("good", "fails", "restarts", "deadline", "silent", "quick"):
        scene.finished(job)
    until(lambda: not any(scene.pods(job) for job in ("deadline", "silent", "quick")))
    until(lambda: len(_logs(trace)) >= 13)
    recording.stop()
    logs = _logs(trace)
    said = {(one["metadata"]["name"], one["restart"]): one for one in logs}
    assert len(said) == len(logs), "one row for each run"
    assert _failed_runs(trace) <= set(said)
    by_job: dict[str, list[dict]] = {}
    for one in logs:
        owners = one["metadata"]["ownerReferences"]
        by_job.setdefault(owners[0]["name"] if owners else "bare", []).append(one)
    assert "good" not in by_job
    counts = {"fails": 1, "restarts": 2, "deadline": 3, "silent": 3, "quick": 3, "bare": 1}
    assert {name: len(found) for name, found in by_job.items()} == counts
    assert by_job["bare"][0]["gap"].startswith("the pod was gone before")
    for job, words in (("fails", "ends"), ("deadline", "was told to stop")):
        for one in by_job[job]:
            assert one["text"].endswith(f"{one['metadata']['name']} {words}\n"), one
    for one in by_job["silent"]:
        assert one["text"].endswith("was told to stop\n"), one
    # 50 ms from the deletion to the end: faster than any kubelet, and than this machine, perhaps.
    for one in by_job["quick"]:
        assert "was told to stop" in one.get("text", "") or "gone" in one["gap"], one
    assert sorted(one["text"].split()[-2] for one in by_job["restarts"]) == ["0", "1"]
    text = orjson.dumps(logs).decode()
    assert SECRET not in text
    assert text.count("redacted-") >= 2 * 9
    assert "was told to stop" in tracekit("explain", str(trace), "t-words/deadline").stdout
    tracekit("replay", str(trace), "--diff")
    tracekit("redact", str(trace), "--check")
