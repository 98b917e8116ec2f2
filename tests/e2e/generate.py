"""Run scenarios on a real control plane and keep what it left behind as a trace folder.

    python -m tests.e2e.generate --version v1.30.14 --scenarios all -o DIR

writes `watch.jsonl.zst`, `audit.jsonl.zst` and `about.json` into DIR, which appears only when it is
whole. Scenarios run side by side, one namespace and one thread each.
"""

import argparse
import json
import logging
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from tests.e2e import audit
from tests.e2e.access import grant, read_rules
from tests.e2e.api import ApiError
from tests.e2e.audit_policies import POLICIES
from tests.e2e.build import DEFAULT_VERSION, NODE_PROGRAMS, PROGRAMS, BuildError, ensure
from tests.e2e.cluster import API_SERVER, CONTROLLER_MANAGER, Cluster, ClusterError
from tests.e2e.hollow import HollowNodes, with_nodes
from tests.e2e.kubelet import Kubelet
from tests.e2e.scenarios import SCENARIOS, known_to
from tests.e2e.scene import Scene, Surroundings

STAGGER_SECONDS = 0.5
SETTLE_SECONDS_MAX = 110.0  # three failures back off for 10, 20 and 40 s
QUIET_SECONDS = 6.0
QUIET_SECONDS_MAX = 60.0
RECORDED_RESOURCES = {
    "batch": ("jobs", "cronjobs"),
    "": ("pods", "events", "namespaces", "resourcequotas"),
    "coordination.k8s.io": ("leases",),
}

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Run:
    """The options of one run and what came of it."""

    version: str
    scenarios: list[str]
    seconds: float
    seed: int
    churn_jobs: int
    kcm_flags: str
    feature_gates: str
    restarts_after: dict[str, list[float]]  # program → when it gets kill -9
    away_seconds: float
    out: Path
    note: str
    audit_policy: str = "full"
    hollow: bool = False  # a real scheduler and hollow nodes in place of the stand-in

    def __post_init__(self) -> None:
        """Start with nothing known."""
        self.errors: dict[str, list[str]] = {}

    def error(self, where: str, what: str) -> None:
        """Keep one sentence about what went wrong, for about.json."""
        log.warning("%s: %s", where, what)
        self.errors.setdefault(where, []).append(what)

    def gates(self) -> dict[str, bool]:
        """Return the gates set on the command line."""
        pairs = (pair.split("=") for pair in self.feature_gates.split(",") if pair)
        return {name: value.lower() == "true" for name, value in pairs}


def generate(
    run: Run,
    make: Callable[..., Cluster] = Cluster,
    keep: Callable[[Cluster, Path], None] = lambda _cluster, _made: None,
) -> None:
    """Make one trace folder; `keep` may take more of the running cluster into it."""
    ensure(run.version, (*PROGRAMS, *NODE_PROGRAMS) if run.hollow else PROGRAMS)
    if run.hollow:
        make = with_nodes(make)
    started = time.monotonic()
    run.out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=run.out.parent, prefix=f".{run.out.name}-"))
    try:
        cluster = make(
            folder=scratch / "cluster",
            version=run.version,
            feature_gates=run.feature_gates,
            kcm_flags=run.kcm_flags.split(),
            audit_policy=POLICIES[run.audit_policy],
        )
        made = scratch / "made"
        made.mkdir()
        with cluster:
            git_version = str(cluster.api().get("/version")["gitVersion"])
            grant(cluster.api(), "recorder", read_rules(RECORDED_RESOURCES))
            begun = len(cluster.history)
            _record(run, cluster, made / "watch.jsonl.zst")
            restarts = cluster.history[begun:]
            keep(cluster, made)
        _compress(cluster.audit_log, made / "audit.jsonl.zst")
        about = _about(run, made) | {
            "gitVersion": git_version,
            "seconds": round(time.monotonic() - started, 1),
            "controller_restart": any(r["program"] == CONTROLLER_MANAGER for r in restarts),
            "restarts": restarts,
        }
        (made / "about.json").write_text(json.dumps(about, indent=1) + "\n")
        made.replace(run.out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _record(run: Run, cluster: Cluster, watch_path: Path) -> None:
    """Run the scenarios with the kubelet at work and the watch log on."""
    watching = _start_watchlog(cluster, watch_path)
    kubelet = (
        HollowNodes(cluster, run.seconds)
        if run.hollow
        else Kubelet(cluster.api("system:node:node-1", agent="sim-kubelet", pool_size=10))
    )
    try:
        kubelet.start()
        time.sleep(1)
        scenes = _run_scenarios(run, cluster)
        _settle(run, scenes)
        _await_quiet(cluster)
    finally:
        kubelet.stop()
        for what, count in kubelet.errors.items():
            run.error("kubelet", f"{count} times {what}")
        watching.send_signal(signal.SIGTERM)
        watching.wait(timeout=20)
        watch_path.with_suffix(".ready").unlink(missing_ok=True)


def _run_scenarios(run: Run, cluster: Cluster) -> list[Scene]:
    around = Surroundings(
        admin=cluster.api("admin", agent="e2e-admin", pool_size=30, patient=True),
        alice=cluster.api("alice", agent="kubectl-alice", pool_size=30, patient=True),
        minor=cluster.minor,
        gates=run.gates(),
        seconds=run.seconds,
        seed=run.seed,
        churn_jobs=run.churn_jobs,
    )
    if run.scenarios == ["all"]:
        run.scenarios = known_to(around)
    scenes = [Scene(around=around, name=name) for name in run.scenarios]
    threads = [threading.Thread(target=_play, args=(run, scene), daemon=True) for scene in scenes]
    restarters = [
        threading.Thread(target=_restart, args=(run, cluster, program), daemon=True)
        for program in run.restarts_after
    ]
    for restarter in restarters:
        restarter.start()
    for thread in threads:
        thread.start()
        time.sleep(STAGGER_SECONDS)
    for thread in [*threads, *restarters]:
        thread.join(run.seconds + 300)
    return scenes


def _play(run: Run, scene: Scene) -> None:
    try:
        scene.open()
        SCENARIOS[scene.name].run(scene)
    except Exception as error:  # noqa: BLE001 (one scenario's failure must not end the others)
        run.error(scene.name, f"{type(error).__name__}: {error}")


def _restart(run: Run, cluster: Cluster, program: str) -> None:
    """Kill -9 a program at the given times; a new controller manager then waits for its lease."""
    started = time.monotonic()
    for after in run.restarts_after[program]:
        time.sleep(max(0.0, started + after - time.monotonic()))
        cluster.restart(program, away_seconds=run.away_seconds)


def _settle(run: Run, scenes: list[Scene]) -> None:
    """Wait until every job has ended as it must, and keep those that did not."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while time.monotonic() < deadline and any(scene.check() for scene in scenes):
        time.sleep(1)
    for scene in scenes:
        for sentence in scene.check():
            run.error(scene.name, sentence)


def _await_quiet(cluster: Cluster) -> None:
    """Wait until nobody but lease holders has written for a while.

    A throttled controller writes its last Events long after the last pod has ended.
    """
    deadline = time.monotonic() + QUIET_SECONDS_MAX
    written_at = time.monotonic()
    with cluster.audit_log.open("rb") as appended:
        appended.seek(0, 2)
        while time.monotonic() < min(deadline, written_at + QUIET_SECONDS):
            time.sleep(0.5)
            if any(b'"resource":"leases"' not in line for line in appended):
                written_at = time.monotonic()


def _start_watchlog(cluster: Cluster, path: Path) -> subprocess.Popen[bytes]:
    arguments = ["--kubeconfig", str(cluster.kubeconfig("recorder")), "-o", str(path)]
    watching = subprocess.Popen([sys.executable, "-m", "tests.e2e.watchlog", *arguments])
    ready = path.with_suffix(".ready")
    deadline = time.monotonic() + 30
    while not ready.exists():
        if watching.poll() is not None or time.monotonic() > deadline:
            watching.kill()
            raise ClusterError("The watch log did not start; its message is above.")
        time.sleep(0.1)
    return watching


def _compress(source: Path, target: Path) -> None:
    with source.open("rb") as plain, target.open("wb") as packed:
        zstandard.ZstdCompressor(level=19).copy_stream(plain, packed)


def _about(run: Run, made: Path) -> dict[str, Any]:
    watch_path, audit_path = made / "watch.jsonl.zst", made / "audit.jsonl.zst"
    unseen = audit.written_revisions(audit_path) - audit.seen_revisions(watch_path)
    if unseen:
        run.error("watch", f"{len(unseen)} written revisions were not seen: {sorted(unseen)[:5]}")
    return {
        "version": run.version,
        "scenarios": run.scenarios,
        "errors": run.errors,
        "feature_gates": run.feature_gates,
        "kcm_flags": run.kcm_flags,
        "churn": {"seed": run.seed, "jobs": run.churn_jobs} if "churn" in run.scenarios else None,
        "note": run.note,
        "nodes": "hollow" if run.hollow else "stand-in",
        "lines": sum(1 for _ in audit.lines(watch_path)),
        "job_controller_writes": dict(audit.writes(audit_path)),
    }


def _moments(text: str) -> list[float]:
    return [float(moment) for moment in text.split(",") if moment]


def options(arguments: Sequence[str] | None) -> Run:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=DEFAULT_VERSION)
    parser.add_argument(
        "--scenarios", default="all", help=f"all, or some of: {', '.join(SCENARIOS)}"
    )
    parser.add_argument("--churn-seed", type=int, default=0)
    parser.add_argument("--churn-jobs", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=3.5)
    parser.add_argument("--kcm-flags", default="--kube-api-qps=100 --kube-api-burst=200")
    parser.add_argument("--feature-gates", default="")
    parser.add_argument(
        "--restart-after", default="", help="seconds, comma separated; controllers get kill -9"
    )
    parser.add_argument("--api-restart-after", default="", help="the same for the API server")
    parser.add_argument("--away-seconds", type=float, default=2, help="until it is started again")
    parser.add_argument("--audit-policy", choices=POLICIES, default="full")
    parser.add_argument("--note", default="")
    parser.add_argument(
        "--hollow-nodes", action="store_true", help="real scheduler and kubelets without machines"
    )
    parser.add_argument("-o", "--out", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    scenarios = chosen.scenarios.split(",")
    unknown = [name for name in scenarios if name != "all" and name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {unknown[0]!r}; choose from {', '.join(SCENARIOS)}")
    if chosen.out.exists():
        parser.error(f"{chosen.out} exists; choose another folder or remove it")
    return Run(
        version=chosen.version,
        scenarios=scenarios,
        seconds=chosen.minutes * 60,
        seed=chosen.churn_seed,
        churn_jobs=chosen.churn_jobs,
        kcm_flags=chosen.kcm_flags,
        feature_gates=chosen.feature_gates,
        restarts_after={
            CONTROLLER_MANAGER: _moments(chosen.restart_after),
            API_SERVER: _moments(chosen.api_restart_after),
        },
        away_seconds=chosen.away_seconds,
        out=chosen.out.resolve(),
        note=chosen.note,
        audit_policy=chosen.audit_policy,
        hollow=chosen.hollow_nodes,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a trace; exit 1 if something in it is not as expected, 2 if there is none."""
    run = options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # patience is not news
    try:
        generate(run)
    except (BuildError, ClusterError, ApiError) as error:
        log.error("%s", error)  # noqa: TRY400 (a user's error, no traceback)
        return 2
    log.info("%s: %s", run.out, run.errors or "no errors")
    return 1 if run.errors else 0


if __name__ == "__main__":
    sys.exit(main())
