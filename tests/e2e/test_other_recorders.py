"""What other recorders see of one run: by another API server, late, and with another clock.

Two API servers share one etcd. The controller manager works at one; a recorder is at the other,
behind a relay that holds watches back and lets everything come at once. Beside it record two whose
clocks are off and set midway: one forward, one back, so that its later rows have earlier times. One
that nothing is wrong with shows that the run is one in which nothing diverges.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.kubelet import Kubelet
from tests.e2e.lagging import PATHS, LaggingView
from tests.e2e.recorder import Recording, other_clock, tracekit
from tests.e2e.setup import grant_printed, open_scene
from tracekit.trace.reading.reader import TraceReader

pytestmark = pytest.mark.e2e

STREAMS = 7
CLEAN, LATE, STEPPED, BACK = "clean", "late", "stepped", "back"
HELD_SECONDS = (2.0, 5.0)
MATCHES_MIN = 40  # a record of nothing diverges nowhere


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of four traces of one run."""
    folder = tmp_path_factory.mktemp("others")
    cluster = Cluster(
        folder=folder / "cluster",
        version=os.environ.get("TRACEKIT_E2E_VERSION", "v1.36.3"),
        kcm_flags=["--kube-api-qps=100", "--kube-api-burst=200"],
    )
    with cluster:
        kubelet = Kubelet(cluster.api("system:node:node-1", agent="sim-kubelet", pool_size=10))
        kubelet.start()
        grant_printed(cluster, "-A")
        second = cluster.start_second_server()
        with LaggingView(server=second, folder=cluster.folder) as relay:
            clock = other_clock(-1.0, step_s=3.0, after_s=14.0)
            set_back = other_clock(0.5, step_s=-4.0, after_s=14.0)
            recorders = [
                Recording(cluster, folder / CLEAN, "-A"),
                Recording(cluster, folder / LATE, "-A", server=relay.url),
                Recording(cluster, folder / STEPPED, "-A", server=second, clock=clock),
                Recording(cluster, folder / BACK, "-A", server=second, clock=set_back),
            ]
            for recorder in recorders:
                recorder.wait_live(STREAMS)
            _run(cluster, relay)
            for recorder in recorders:
                recorder.stop()
        kubelet.stop()
    return folder


def _run(cluster: Cluster, relay: LaggingView) -> None:
    """Some Jobs, with watches held back while they are at work."""
    scene = open_scene(cluster, "others")
    for number, seconds in enumerate(HELD_SECONDS):
        for resource in PATHS if number else ("pods",):
            relay.hold(resource)
        scene.job(f"three-{number}", {"run": 0.5}, completions=3, parallelism=2)
        scene.job(f"fails-{number}", {"run": 0.3, "exit": 1}, backoffLimit=1, completions=1)
        scene.job(f"deadline-{number}", {"run": 30}, activeDeadlineSeconds=3, completions=1)
        scene.job(f"ttl-{number}", {"run": 0.2}, ttlSecondsAfterFinished=2, completions=1)
        time.sleep(seconds)
        for resource in PATHS:
            relay.release(resource)
        scene.finished(f"three-{number}")
        scene.finished(f"fails-{number}")
    time.sleep(3)


def divergences(trace: Path) -> list[dict[str, Any]]:
    """What `tracekit replay --diff` finds."""
    done = tracekit("replay", str(trace), "--diff", "-o", "json", status=None)
    document = json.loads(done.stdout)
    assert sum(counts["match"] for counts in document["summary"]["job"].values()) > MATCHES_MIN
    found: list[dict[str, Any]] = document["divergences"]
    return found


def test_the_run_itself_has_no_divergence(traces: Path) -> None:
    assert divergences(traces / CLEAN) == []


def test_a_recorder_behind_a_late_relay_tells_of_none(traces: Path) -> None:
    assert divergences(traces / LATE) == []


@pytest.mark.parametrize("trace", [STEPPED, BACK])
def test_a_recorder_whose_clock_is_off_and_set_tells_of_none(traces: Path, trace: str) -> None:
    assert divergences(traces / trace) == []


def test_each_recorder_has_every_revision_and_times_of_its_own(traces: Path) -> None:
    """Nothing was lost on the way: what differs is when it came."""
    seen = {}
    for name in (CLEAN, LATE, STEPPED, BACK):
        table = TraceReader(traces / name).table(
            ("stream", "uid", "rv", "recv_ns"),
            streams=["jobs", "pods"],
            types=["ADDED", "MODIFIED", "DELETED"],
        )
        seen[name] = {
            (row["stream"], row["uid"], row["rv"]): row["recv_ns"] for row in table.to_pylist()
        }
    assert seen[CLEAN].keys() == seen[LATE].keys() == seen[STEPPED].keys() == seen[BACK].keys()
    later = [(seen[LATE][key] - at) / 1e9 for key, at in seen[CLEAN].items()]
    assert max(later) > HELD_SECONDS[0] / 2
    apart = [(seen[STEPPED][key] - at) / 1e9 for key, at in seen[CLEAN].items()]
    assert min(apart) < -0.5
    assert max(apart) > 1.5
    back = [(seen[BACK][key] - at) / 1e9 for key, at in seen[CLEAN].items()]
    assert max(back) > 0.2
    assert min(back) < -2.5
