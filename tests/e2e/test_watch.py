"""Told while it happens: beside a churn, a controller manager that stops and a watch held back.

`TRACEKIT_E2E_CLEAN_SECONDS` says how long the churn goes on before anything is done to it (90).
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from tests.e2e.access import RBAC
from tests.e2e.cluster import CONTROLLER_MANAGER, Cluster
from tests.e2e.kubelet import Kubelet
from tests.e2e.lagging import LaggingView
from tests.e2e.recorder import Recording, command, tracekit, until
from tests.e2e.scene import Scene, Surroundings

pytestmark = pytest.mark.e2e

CLEAN_SECONDS = float(os.environ.get("TRACEKIT_E2E_CLEAN_SECONDS", "90"))
EVERY_SECONDS = 3.0  # 20 Jobs a minute
AWAY_SECONDS = 60.0
#: What docs/watch.md promises, and a machine that does other things as well.
LEADER_DELAY_S = 16 + 5
VERDICT_DELAY_S = 45 + 30


class Watching:
    """A `tracekit watch` process; what it tells is read as it comes."""

    def __init__(self, trace: Path) -> None:
        self.process = subprocess.Popen(
            command("watch", str(trace), "-o", "jsonl"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.told: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def wait_for(self, *ids: str, since_s: float, seconds_max: float) -> dict[str, Any]:
        """The first that is told of some kinds of finding since a time."""
        until(
            lambda: self.process.poll() is not None or bool(self.of(*ids, since_s=since_s)),
            seconds_max,
        )
        assert self.process.poll() is None, self.said
        return self.of(*ids, since_s=since_s)[0]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.append({**json.loads(line), "told_s": time.time()})

    def of(self, *ids: str, since_s: float = 0.0) -> list[dict[str, Any]]:
        """What was told of some kinds of finding since a time."""
        return [n for n in list(self.told) if n["id"].startswith(ids) and n["told_s"] >= since_s]

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 0, self.said
        assert "Traceback" not in "".join(self.said)


class Churn:
    """Jobs at an even pace, from a thread of their own."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.created = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        shapes = (
            {"completions": 2, "parallelism": 2},
            {"completions": 3, "parallelism": 1, "completionMode": "Indexed"},
            {"completions": 1, "ttlSecondsAfterFinished": 20},
        )
        while not self._stop.wait(EVERY_SECONDS):
            shape = shapes[self.created % len(shapes)]
            self._scene.job(f"c{self.created:04}", {"run": 2}, **shape)
            self.created += 1


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Cluster, LaggingView]]:
    version = os.environ.get("TRACEKIT_E2E_VERSION", "v1.36.3")
    made = Cluster(folder=tmp_path / "cluster", version=version)
    with LaggingView(server=made.server, folder=made.folder) as view:
        made.relay = view.url
        with made:
            kubelet = Kubelet(made.api("system:node:node-1", agent="sim-kubelet", pool_size=10))
            kubelet.start()
            try:
                yield made, view
            finally:
                kubelet.stop()


def _grant(cluster: Cluster) -> None:
    for document in yaml.safe_load_all(tracekit("manifests", "-A").stdout):
        kind = document["kind"]
        if kind == "ClusterRoleBinding":
            document["subjects"] = [{"apiGroup": RBAC, "kind": "User", "name": "recorder"}]
        if kind in {"ClusterRole", "ClusterRoleBinding"}:
            cluster.api().create(f"/apis/{RBAC}/v1/{kind.lower()}s", document)


@pytest.mark.xfail(reason="not met yet: the bounds of docs/watch.md, beside a cluster on two cores")
def test_what_goes_wrong_is_told_while_it_does(
    cluster: tuple[Cluster, LaggingView], tmp_path: Path
) -> None:
    made, view = cluster
    _grant(made)
    scene = Scene(
        around=Surroundings(
            admin=made.api("admin", agent="e2e-admin", pool_size=10),
            alice=made.api("alice", agent="kubectl-alice", pool_size=10),
            minor=made.minor,
            gates={},
            seconds=30,
        ),
        name="watched",
    )
    scene.open()
    recording = Recording(made, tmp_path / "run", "-A")
    recording.wait_live(7)
    watching = Watching(tmp_path / "run")
    with Churn(scene) as churn:
        time.sleep(CLEAN_SECONDS)
        assert churn.created > CLEAN_SECONDS / EVERY_SECONDS / 2
        assert watching.process.poll() is None, watching.said
        assert watching.told == [], "a clean churn has no findings"

        stopped_s = time.time()
        made.kill(CONTROLLER_MANAGER)
        told = watching.wait_for("TK208", since_s=stopped_s, seconds_max=60)
        assert told["told_s"] - stopped_s <= LEADER_DELAY_S
        time.sleep(max(0.0, AWAY_SECONDS - (time.time() - stopped_s)))
        made.start_process(CONTROLLER_MANAGER)
        made.wait_controllers()
        time.sleep(VERDICT_DELAY_S)
        assert watching.of("TK1") == [], "a controller that was away did nothing wrong"

        held_s = time.time()
        view.hold("pods")
        time.sleep(40)
        view.release("pods")
        told = watching.wait_for("TK20", since_s=held_s, seconds_max=VERDICT_DELAY_S)
        assert told["told_s"] - held_s <= 40 + VERDICT_DELAY_S
    watching.stop()
    recording.kill()
    (tmp_path / "told.json").write_text(json.dumps(watching.told, indent=1))
