"""Runs watchers against the fault-injecting server and compares what they wrote with its history."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson
import yaml

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer, Faults
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.server.backoff import Backoff
from tracekit.record.server.kinds import StreamSpec
from tracekit.record.server.transport import ApiClient
from tracekit.record.streams.sink import GapRow, Rows
from tracekit.record.streams.watcher import Watcher, WatchPolicy

SPECS = {
    "jobs": StreamSpec(resource="jobs", group_version="batch/v1", kind="Job"),
    "pods": StreamSpec(resource="pods", group_version="v1", kind="Pod"),
    "events": StreamSpec(resource="events", group_version="v1", kind="Event", keeps_bodies=False),
}
STATE_TYPES = {"ADDED", "MODIFIED", "DELETED"}


@dataclass
class Row:
    """One of the `Rows` that a sink took."""

    stream: str
    type: str
    recv_ns: int
    raw: bytes
    synthesized: bool = False


@dataclass
class ListSink:
    """A sink that keeps everything in order."""

    items: list[Row | GapRow] = field(default_factory=list)

    def rows(self, rows: Rows) -> None:
        self.items += [
            Row(rows.stream, kind, rows.recv_ns, raw, rows.synthesized)
            for kind, raw in zip(rows.types, rows.raws, strict=True)
        ]

    def gap(self, gap: GapRow) -> None:
        self.items.append(gap)


def write_kubeconfig(path, server: FakeServer, **context) -> str:
    token_file = path.with_suffix(".token")
    token_file.write_text(server.token)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": server.url}}],
        "users": [{"name": "me", "user": {"tokenFile": str(token_file)}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "me", **context}}],
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


def fast_policy(seed: int, **overrides) -> WatchPolicy:
    rng = random.Random(seed)
    values = {
        "page_limit": 3,
        "idle_timeout_s": 0.3,
        "backoff": lambda: Backoff(first_s=0.001, most_s=0.02, rng=rng),
        "rng": rng,
    }
    return WatchPolicy(**{**values, **overrides})


def follow_token(server: FakeServer, path) -> None:
    """Write the token file anew whenever the server expires the old token, as a kubelet does."""
    original = server.expire_token

    def expire() -> None:
        original()
        path.with_suffix(".token").write_text(server.token)

    server.expire_token = expire


def run_schedule(
    tmp_path, seed: int, *, changes: int = 100, resources=("jobs", "pods", "events"), sink=None
):
    """Record under one seeded schedule until everything is caught up; returns what happened."""
    rng = random.Random(seed)
    cluster = FakeCluster()
    for _ in range(rng.randrange(12)):
        cluster.mutate(rng, resources)
    faults = Faults(seed, budget=rng.randrange(6, 24))
    server = FakeServer(cluster, faults, streaming_lists=rng.random() < 0.5, stall_s=0.5)
    kubeconfig = tmp_path / f"config-{seed}"
    connection = Connection(ConnectOptions(kubeconfig=write_kubeconfig(kubeconfig, server)))
    follow_token(server, kubeconfig)
    client = ApiClient(connection, request_timeout_s=5)
    sink = sink or ListSink()
    stop = threading.Event()
    policy = fast_policy(seed, streaming_lists=rng.random() < 0.7)
    watchers = [
        Watcher(SPECS[resource], client, sink, policy=policy, stop=stop) for resource in resources
    ]
    threads = [threading.Thread(target=watcher.run, daemon=True) for watcher in watchers]
    for thread in threads:
        thread.start()
    for _ in range(changes):
        cluster.mutate(rng, resources)
        if rng.random() < 0.4:
            time.sleep(rng.random() * 0.008)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not all(caught_up(w, cluster) for w in watchers):
        time.sleep(0.004)
    late = [w.spec.name for w in watchers if not caught_up(w, cluster)]
    stop.set()
    for watcher in watchers:
        watcher.interrupt()
    for thread in threads:
        thread.join(10)
    server.close()
    assert not late, (
        f"seed {seed}: never caught up: {late} {[w.status for w in watchers]} {faults.done}"
    )
    assert all(w.fatal is None for w in watchers), [w.fatal for w in watchers]
    return cluster, faults, watchers, sink


def caught_up(watcher: Watcher, cluster: FakeCluster) -> bool:
    """The stream is past the last change of its kind (list and watch revisions both count)."""
    history = cluster.history[watcher.spec.resource]
    position = watcher._position
    return watcher.fatal is not None or (
        position is not None and (not history or int(position) >= history[-1].rv)
    )


def violations(cluster: FakeCluster, items: Iterable[Row | GapRow], resource: str) -> list[str]:
    """Every way in which a recording of one kind disagrees with the server's history."""
    found: list[str] = []
    truth = {(c.type, c.uid, c.rv): c for c in cluster.history[resource]}
    states = {(c.uid, c.rv): c for c in cluster.history[resource]}
    rows = [i for i in items if isinstance(i, Row) and i.stream == resource]
    gaps = [i for i in items if isinstance(i, GapRow) and i.stream == resource]
    first_rv = next((_rv(r) for r in rows if r.type == "LIST_END"), None)
    if first_rv is None:
        return ["no list was ever completed"]
    recorded: set[tuple[str, int]] = set()
    frames: list[tuple[str, str, int]] = []
    for row in rows:
        if row.type not in STATE_TYPES | {"LIST"}:
            continue
        body = orjson.loads(row.raw)
        uid, rv = body["metadata"]["uid"], int(body["metadata"]["resourceVersion"])
        if (uid, rv) not in states:
            found.append(f"recorded what never was: {row.type} {uid} {rv}")
            continue
        served = orjson.loads(states[uid, rv].body)
        if row.type == "LIST" or row.synthesized:
            served = {k: v for k, v in served.items() if k in body}
        if body != served:
            found.append(f"recorded another body: {row.type} {uid} {rv}")
        if row.type in STATE_TYPES and not row.synthesized:
            frames.append((row.type, uid, rv))
            if (row.type, uid, rv) not in truth:
                found.append(f"recorded another type: {row.type} {uid} {rv}")
        if not row.synthesized:
            recorded.add((uid, rv))
    if len(frames) != len(set(frames)):
        found.append("a frame was recorded twice")
    for change in cluster.history[resource]:
        covered = change.rv <= first_rv or (change.uid, change.rv) in recorded or any(
            int(g.last_rv or 0) < change.rv and (g.next_rv is None or change.rv <= int(g.next_rv)) for g in gaps
        )  # fmt: skip
        if not covered:
            found.append(f"lost without a word: {change.type} {change.uid} {change.rv}")
    if resource != "events":
        found += _wrong_end(cluster, rows, resource)
    return found


def _wrong_end(cluster: FakeCluster, rows: list[Row], resource: str) -> list[str]:
    """Whether the rows, applied by revision, end in what lives on the server."""
    latest: dict[str, tuple[int, int, bool]] = {}
    for order, row in enumerate(rows):
        if row.type in STATE_TYPES | {"LIST"}:
            metadata = orjson.loads(row.raw)["metadata"]
            state = (int(metadata["resourceVersion"]), order, row.type != "DELETED")
            latest[metadata["uid"]] = max(latest.get(metadata["uid"], state), state)
    live = {uid for uid, (_, _, alive) in latest.items() if alive}
    expected = set(cluster.objects[resource])
    if live == expected:
        return []
    return [f"ends with {sorted(live - expected)} too many and without {sorted(expected - live)}"]


def _rv(row: Row) -> int:
    return int(orjson.loads(row.raw)["resourceVersion"])
