"""Recorder speed, memory and size, beside the `kubernetes` package's Watch and beside zstd -19.

    python bench/bench_record.py [--copies 10] [--tls]

One loopback server (a process of its own) streams the same frames to both, each as an HTTP chunk of
its own, as API servers do: the real churn trace of `traces/`, copied with new job names, uids and
revisions. Watch gets the first of each kind, in the same proportions, since its model classes make
it many times slower. Each client runs pinned to one core, the server on another where there is one.
CPU rates (frames per second of CPU time) are what to compare on a busy machine; wall rates depend
on what else runs. With `--tls` (which needs the `openssl` command) each frame is a TLS record too.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow.parquet as pq
import zstandard

if TYPE_CHECKING:
    from tracekit.trace.format.segments import Segment

ROOT = Path(__file__).resolve().parents[1]
TRACE = ROOT / "traces" / "v1.36.3-churn7" / "watch.jsonl.zst"
RESOURCES = {"jobs": "batch/v1", "pods": "v1", "events": "v1"}
FRAME_TYPES = {"ADDED", "MODIFIED", "DELETED"}
REVISIONS_PER_COPY = 1_000_000
JOBS_PER_COPY = 251
COPY_NS = 1_800 * 1_000_000_000
JOB_NAME = re.compile(rb"\bc(\d{4})-")
UID = re.compile(rb"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
WATCH_FRAMES = 6000
CERTIFICATE = "server.pem"


def frames(copies: int) -> Iterator[tuple[str, int, str, bytes]]:
    """Every frame of every copy: resource, receive time, type, object as text.

    A copy is what the cluster would have done next: other jobs, other uids, later revisions and
    times of arrival. What a compressor finds in common is what it would find in one long recording.
    """
    for copy in range(copies):
        with TRACE.open("rb") as packed:
            lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed))
            for line in lines:
                row = json.loads(line)
                if row["type"] not in FRAME_TYPES or row["resource"] not in RESOURCES:
                    continue
                meta = row["object"]["metadata"]
                meta["resourceVersion"] = str(
                    int(meta["resourceVersion"]) + (copy + 1) * REVISIONS_PER_COPY
                )
                text = orjson.dumps(row["object"])
                yield (
                    row["resource"],
                    row["recv"] + copy * COPY_NS,
                    row["type"],
                    _renamed(text, copy) if copy else text,
                )


def _renamed(text: bytes, copy: int) -> bytes:
    """The object with the jobs and uids of a copy."""
    text = JOB_NAME.sub(lambda m: b"c%04d-" % (int(m[1]) + copy * JOBS_PER_COPY), text)
    return UID.sub(lambda m: _uid(m[0], copy), text)


@lru_cache(1 << 16)
def _uid(uid: bytes, copy: int) -> bytes:
    return str(
        uuid.UUID(bytes=hashlib.blake2b(uid + b"%d" % copy, digest_size=16).digest())
    ).encode()


def build(folder: Path, copies: int) -> dict[str, int]:
    """Write the streams as chunked HTTP bodies, and the same as JSON lines under zstd -19."""
    counts = dict.fromkeys(RESOURCES, 0)
    files = {name: (folder / name).open("wb") for name in RESOURCES}
    packed = folder / "lines.zst"
    packer = zstandard.ZstdCompressor(level=19)
    lines_bytes = 0
    with packed.open("wb") as sink, packer.stream_writer(sink) as lines:
        for name, recv, kind, text in frames(copies):
            counts[name] += 1
            # As Go writes it: the object's text goes into the frame as it is.
            body = orjson.Fragment(text)
            frame = orjson.dumps({"type": kind, "object": body}) + b"\n"
            files[name].write(b"%x\r\n%b\r\n" % (len(frame), frame))
            line = orjson.dumps({"recv": recv, "resource": name, "type": kind, "object": body})
            lines_bytes += lines.write(line + b"\n") and len(line) + 1
    for file in files.values():
        file.close()
    (folder / "counts.json").write_text(json.dumps({**counts, "lines": lines_bytes}))
    return counts


#### The server ####


def serve(folder: Path) -> None:
    """Answer lists with nothing and watches with the prepared bytes."""
    _pin(1)
    tls = None
    if (folder / CERTIFICATE).exists():
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / CERTIFICATE)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True)
        threading.Thread(target=_answer, args=(connection, folder), daemon=True).start()


def _answer(connection: socket.socket, folder: Path) -> None:
    stream = connection.makefile("rb")
    while request := stream.readline().decode():
        while stream.readline().strip():
            pass
        path, _, query = request.split()[1].partition("?")
        name = path.rpartition("/")[2]
        if "watch=" not in query.lower():
            body = b'{"metadata":{"resourceVersion":"1"},"items":[]}'
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            )
            connection.sendall(head.encode() + b"\r\n\r\n" + body)
            continue
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        try:
            with (folder / name).open("rb") as prepared:
                if isinstance(connection, ssl.SSLSocket):
                    for size in prepared:
                        connection.sendall(size + prepared.read(int(size, 16) + 2))
                else:
                    connection.sendfile(prepared)
            threading.Event().wait(600)  # an open watch without news
        except OSError:
            return


#### The clients ####


def _pin(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def _kubeconfig(folder: Path, port: int) -> str:
    path = folder / "config"
    server: dict[str, Any] = {"server": f"http://127.0.0.1:{port}"}
    if (folder / CERTIFICATE).exists():
        server = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    cluster = {"name": "c", "cluster": server}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "c"}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    return str(path)


def run_tracekit(folder: Path, port: int, expected: int) -> dict[str, Any]:
    """The recorder as the command runs it, on three streams."""
    import pyarrow as pa  # noqa: PLC0415

    from tracekit.record.credentials.kubeconfig import Connection  # noqa: PLC0415
    from tracekit.record.credentials.options import ConnectOptions  # noqa: PLC0415
    from tracekit.record.operation.recorder import Limits, Recorder, Target  # noqa: PLC0415
    from tracekit.record.server.kinds import Plan, Scope, StreamSpec  # noqa: PLC0415
    from tracekit.record.server.probe import ClusterInfo  # noqa: PLC0415
    from tracekit.record.server.transport import ApiClient  # noqa: PLC0415
    from tracekit.record.streams.watcher import WatchPolicy  # noqa: PLC0415
    from tracekit.trace.format.segments import live_segments  # noqa: PLC0415
    from tracekit.trace.reading.files import SegmentFile  # noqa: PLC0415

    pa.array([b""], pa.string())  # Arrow looks for pandas once, which is not what is measured
    specs = [
        StreamSpec(
            resource=name,
            group_version=group,
            kind=name,
            keeps_bodies=name != "events",
        )
        for name, group in RESOURCES.items()
    ]
    client = ApiClient(Connection(ConnectOptions(kubeconfig=_kubeconfig(folder, port))))
    recorder = Recorder(
        client,
        Plan(specs),
        ClusterInfo("v1.36.3"),
        Scope(),
        Target(path=folder / "trace"),
        limits=Limits(),
        policy=WatchPolicy(),
    )
    done: dict[str, float] = {}

    def watch_progress() -> None:
        while not any(w.status.observations for w in recorder.watchers):
            time.sleep(0.001)
        wall, cpu = time.monotonic(), time.process_time()
        while recorder.feed.rows_written < expected:
            time.sleep(0.005)
        done["wall_s"] = time.monotonic() - wall
        done["cpu_s"] = time.process_time() - cpu
        done["rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        recorder.stop()

    threading.Thread(target=watch_progress, daemon=True).start()
    outcome = recorder.run()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    segments = live_segments(folder / "trace")
    plain = sum(SegmentFile(segment).is_plain for segment in segments)
    if plain:
        raise SystemExit(f"{plain} segments were not compacted")
    return {
        **done,
        "frames": sum(stream.observations for stream in outcome.streams),
        "trace_bytes": outcome.trace_bytes,
        "raw_bytes": sum(map(_stored_raw_bytes, segments)),
        "compaction_cpu_s": children.ru_utime + children.ru_stime,
        "compaction_rss_mib": children.ru_maxrss / 1024,
    }


def _stored_raw_bytes(segment: Segment) -> int:
    metadata = pq.read_metadata(segment.path)
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    columns = (group.column(at) for group in groups for at in range(group.num_columns))
    return sum(c.total_compressed_size for c in columns if c.path_in_schema == "raw")


def run_watch(folder: Path, port: int, expected: int) -> dict[str, Any]:
    """The `kubernetes` package's own Watch, counting events and doing nothing else."""
    from kubernetes import client, config, watch  # noqa: PLC0415

    warnings.simplefilter("ignore")  # urllib3 on unverified TLS
    config.load_kube_config(_kubeconfig(folder, port))
    core, batch = client.CoreV1Api(), client.BatchV1Api()
    calls = (
        batch.list_job_for_all_namespaces,
        core.list_pod_for_all_namespaces,
        core.list_event_for_all_namespaces,
    )
    counts = json.loads((folder / "counts.json").read_text())
    total = sum(counts[name] for name in RESOURCES)
    wall, cpu, seen = time.monotonic(), time.process_time(), 0
    for name, call in zip(RESOURCES, calls, strict=True):
        share = expected * counts[name] // total
        for number, _ in enumerate(watch.Watch().stream(call, resource_version="1"), start=1):
            seen += 1
            if number >= share:
                break
    return {
        "frames": seen,
        "wall_s": time.monotonic() - wall,
        "cpu_s": time.process_time() - cpu,
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


CLIENTS = {"tracekit": run_tracekit, "watch": run_watch}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=15)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--serve", type=Path)
    parser.add_argument("--client", choices=sorted(CLIENTS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--expected", type=int)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
    elif options.client:
        _pin(0)
        result = CLIENTS[options.client](options.folder, options.port, options.expected)
        print(json.dumps(result))
    else:
        with tempfile.TemporaryDirectory() as folder:
            if options.tls:
                _make_certificate(Path(folder))
            _compare(Path(folder), options.copies)


def _make_certificate(folder: Path) -> None:
    path = str(folder / CERTIFICATE)
    made = ["-keyout", path, "-out", path, "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made],
        check=True, capture_output=True,
    )  # fmt: skip


def _compare(folder: Path, copies: int) -> None:
    counts = build(folder, copies)
    expected = sum(counts.values())
    me = [sys.executable, str(Path(__file__).resolve())]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(
        [*me, "--serve", str(folder)], stdout=subprocess.PIPE, text=True, env=env
    )
    try:
        if server.stdout is None:
            raise SystemExit("the server has no output")
        port = server.stdout.readline().strip()

        def client(name: str, count: int) -> dict[str, Any]:
            arguments = ["--folder", str(folder), "--port", port, "--expected", str(count)]
            done = subprocess.run(
                [*me, "--client", name, *arguments], capture_output=True, text=True, env=env,
                check=False, timeout=900,
            )  # fmt: skip
            if done.returncode:
                raise SystemExit(done.stderr)
            return json.loads(done.stdout)

        ours = client("tracekit", expected)
        theirs = client("watch", min(expected, WATCH_FRAMES))
    finally:
        server.kill()
        server.wait()
    _print(folder, ours, theirs)


def _print(folder: Path, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    packed_bytes = (folder / "lines.zst").stat().st_size
    count = ours["frames"]
    print(f"{'':22}{'frames':>9}{'per CPU s':>12}{'per s':>10}{'RSS MiB':>10}")
    for name, found in (("tracekit record", ours), ("kubernetes Watch", theirs)):
        cpu_rate, rate = found["frames"] / found["cpu_s"], found["frames"] / found["wall_s"]
        print(
            f"{name:22}{found['frames']:>9}{cpu_rate:>12,.0f}{rate:>10,.0f}{found['rss_mib']:>10.0f}"
        )
    faster = (count / ours["cpu_s"]) / (theirs["frames"] / theirs["cpu_s"])
    print(f"tracekit does {faster:.1f} times the frames of a Watch per second of CPU")
    print(
        f"compaction, in its own process: {count / ours['compaction_cpu_s']:,.0f} rows per CPU s, "
        f"{ours['compaction_rss_mib']:.0f} MiB"
    )
    print(
        f"size: trace {ours['trace_bytes'] / count:.1f} B per observation (raw text "
        f"{ours['raw_bytes'] / count:.1f} B, the rest is typed columns), zstd -19 of the same JSON "
        f"lines {packed_bytes / count:.1f} B"
    )


if __name__ == "__main__":
    main()
