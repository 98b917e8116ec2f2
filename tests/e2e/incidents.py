"""Make an incident of docs/incidents happen on a real control plane and record it with tracekit.

    python -m tests.e2e.incidents missed-start -o traces/incidents/missed-start

The folder is a trace as `tracekit record` writes it, with `about.json` and the part of the API
server's audit log that is about the incident's namespace.
"""

import argparse
import json
import logging
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson
import zstandard

from tests.e2e import audit
from tests.e2e.access import grant, read_rules
from tests.e2e.build import ensure
from tests.e2e.cluster import Cluster, ClusterError
from tests.e2e.generate import RECORDED_RESOURCES
from tests.e2e.incident_scenarios import INCIDENTS, Incident, Stage
from tests.e2e.kubelet import Kubelet
from tests.e2e.lagging import LaggingView
from tests.e2e.scene import Scene, Surroundings
from tracekit.base.errors import TracekitError
from tracekit.trace.reading.reader import TraceReader

STREAMS = 7
KCM_FLAGS = ("--kube-api-qps=100", "--kube-api-burst=200")

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Run:
    """One recording."""

    slug: str
    incident: Incident
    version: str
    out: Path


def make(run: Run) -> None:
    """Record one incident."""
    ensure(run.version)
    run.out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{run.slug}-"))
    try:
        cluster = Cluster(
            folder=scratch / "cluster",
            version=run.version,
            feature_gates=run.incident.feature_gates,
            kcm_flags=KCM_FLAGS,
        )
        with ExitStack() as stack:
            view = stack.enter_context(LaggingView(server=cluster.server, folder=cluster.folder))
            if run.incident.lags:
                cluster.relay = view.url
            stack.enter_context(cluster)
            git_version = str(cluster.api().get("/version")["gitVersion"])
            begun = len(cluster.history)
            namespace = _record(run, cluster, view, scratch / "trace")
        _finish(run, cluster, scratch / "trace", namespace, git_version, cluster.history[begun:])
        shutil.move(scratch / "trace", run.out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _record(run: Run, cluster: Cluster, view: LaggingView, trace: Path) -> str:
    """Play the incident with the kubelet at work and the recorder on; return its namespace."""
    grant(cluster.api(), "recorder", read_rules(RECORDED_RESOURCES))
    around = Surroundings(
        admin=cluster.api("admin", agent="e2e-admin"),
        alice=cluster.api("alice", agent="kubectl-alice"),
        minor=cluster.minor,
        gates={},
        seconds=60,
    )
    scene = Scene(around=around, name=run.slug)
    scene.open()
    kubelet = Kubelet(cluster.api("system:node:node-1", agent="sim-kubelet", pool_size=10))
    kubelet.start()
    recorder = _start_recorder(cluster, trace, scene.namespace)
    try:
        run.incident.run(Stage(cluster=cluster, scene=scene, view=view))
        time.sleep(2)
    finally:
        recorder.send_signal(signal.SIGINT)
        status = recorder.wait(60)
        kubelet.stop()
    if status:
        raise ClusterError(f"tracekit record ended with status {status}; its message is above.")
    return scene.namespace


def _start_recorder(cluster: Cluster, trace: Path, namespace: str) -> subprocess.Popen[bytes]:
    start = "from tracekit.cli.main import main; main()"
    config = str(cluster.kubeconfig("recorder"))
    options = ["record", "-n", namespace, "-o", str(trace), "--kubeconfig", config]
    recorder = subprocess.Popen([sys.executable, "-c", start, *options])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and recorder.poll() is None:
        try:
            ends = TraceReader(trace).table(("stream",), types=["LIST_END"]).num_rows
        except TracekitError:  # not there yet
            ends = 0
        if ends >= STREAMS:
            return recorder
        time.sleep(0.2)
    recorder.kill()
    raise ClusterError("tracekit record did not get going; its message is above.")


def _finish(
    run: Run,
    cluster: Cluster,
    trace: Path,
    namespace: str,
    git_version: str,
    history: list[dict[str, str | float]],
) -> None:
    """Put about.json and the namespace's part of the audit log beside the trace."""
    lines = [
        orjson.dumps(line)
        for line in audit.lines(cluster.audit_log)
        if line.get("objectRef", {}).get("namespace") == namespace
    ]
    packed = zstandard.ZstdCompressor(level=19).compress(b"\n".join(lines) + b"\n")
    (trace / "audit.jsonl.zst").write_bytes(packed)
    about = {
        "incident": f"https://github.com/kubernetes/kubernetes/issues/{run.incident.thread}",
        "version": run.version,
        "gitVersion": git_version,
        "recorded_with": f"tracekit record -n {namespace}",
        "feature_gates": run.incident.feature_gates,
        "kcm_flags": " ".join(KCM_FLAGS),
        "made_by_hand": None,
        "note": run.incident.note,
        "programs": [step for step in history if step["what"] != "SIGTERM"],
    }
    (trace / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    (trace / ".lock").unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record one incident; exit 2 if there is no recording."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("incident", choices=sorted(INCIDENTS))
    parser.add_argument("--version", help="another version than the page's")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    if options.out.exists():
        parser.error(f"{options.out} exists; choose another folder or remove it")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    incident = INCIDENTS[options.incident]
    run = Run(
        slug=options.incident,
        incident=incident,
        version=options.version or incident.version,
        out=options.out.resolve(),
    )
    try:
        make(run)
    except ClusterError as error:
        log.error("%s", error)  # noqa: TRY400 (a user's error, no traceback)
        return 2
    log.info("%s", run.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
