"""`watch --event`: one Event for each finding, of its object, which no judge takes for a word."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tests.lies import plant
from tests.lies.record import Edit, Record, Row
from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer, Faults
from tests.record.harness import write_kubeconfig
from tests.support.traces import ROOT, TRACES, import_log, json_lines
from tracekit.base.errors import TracekitError
from tracekit.cli.main import cli
from tracekit.judge.judged import Judge, resolve_era
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session
from tracekit.watch.events import KEPT_NS, ClusterEvents, Document, event_of, name_of
from tracekit.watch.news import News
from tracekit.watch.outbox import NotSent

S = 10**9
NEWS = News("TK126", "error", "Job", "shop", "import", "a status", "why", S, 46 * S, "uid-1")
FAILED = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "no"}]
NAME = "v1.36.3-all"


class Store:
    """Takes each name once, as a server does; first it fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.events: dict[tuple[str, str], Document] = {}
        self.failures = failures
        self.asked = 0

    def create(self, namespace: str, event: Document) -> bool:
        self.asked += 1
        if self.failures:
            self.failures -= 1
            raise NotSent("busy")
        key = (namespace, event["metadata"]["name"])
        return self.events.setdefault(key, event) is event


def written(store: Store, *news: News, now_ns: int = 60 * S) -> ClusterEvents:
    events = ClusterEvents(store.create, clock_ns=lambda: now_ns, pause_s=0.0)
    events.start()
    for one in news:
        events.post(one)
    events.close()
    return events


def test_an_event_is_of_the_object_that_the_finding_is_about() -> None:
    event = event_of(NEWS)
    assert event["involvedObject"] == {
        "apiVersion": "batch/v1", "kind": "Job", "namespace": "shop", "name": "import",
        "uid": "uid-1",
    }  # fmt: skip
    assert event["metadata"]["namespace"] == "shop"
    assert (event["reason"], event["type"], event["count"]) == ("TK126", "Warning", 1)
    assert event["message"] == "a status (why)"
    assert event["reportingComponent"] == event["source"]["component"] == "tracekit"
    assert event["firstTimestamp"] == "1970-01-01T00:00:01Z"


def test_a_long_message_is_cut_and_a_long_name_fits() -> None:
    event = event_of(replace(NEWS, why="w" * 5000, name="n" * 253))
    assert len(event["message"]) == 1024
    assert len(event["metadata"]["name"]) <= 253


@pytest.mark.parametrize("kind", ["Lease", "Controller"])
def test_what_is_about_a_controller_is_told_of_its_lease_each_time(kind: str) -> None:
    news = replace(NEWS, kind=kind, namespace="", name="the Job controller", uid="")
    event = event_of(news)
    assert event["metadata"]["namespace"] == event["involvedObject"]["namespace"] == "kube-system"
    assert event["involvedObject"]["name"] == "kube-controller-manager"
    assert name_of(news) != name_of(replace(news, at_ns=2 * S))


def test_a_finding_is_written_once_also_by_the_next_process() -> None:
    store = Store()
    first = written(store, NEWS, NEWS, replace(NEWS, at_ns=30 * S))
    assert (first.results()["written"], store.asked) == (1, 1)
    second = written(store, NEWS, replace(NEWS, id="TK103"), replace(NEWS, uid="uid-2"))
    assert second.results() == {"written": 2, "repeated": 1, "old": 0, "failed": 0}
    assert len(store.events) == 3


def test_what_a_server_may_have_forgotten_is_not_written() -> None:
    store = Store()
    events = written(store, NEWS, now_ns=S + KEPT_NS)
    assert (events.old, store.asked) == (1, 0)


def test_a_server_that_is_busy_is_asked_again() -> None:
    store = Store(failures=3)
    assert written(store, NEWS).results()["written"] == 1
    assert store.asked == 4


#### The command ####


@pytest.fixture
def server() -> Iterator[FakeServer]:
    cluster = FakeCluster()
    cluster.create("namespaces", name="ns")
    cluster.create("namespaces", name="kube-system")
    cluster.create("jobs", name="import", status={"failed": 1, "conditions": FAILED})
    made = FakeServer(cluster, bookmark_every_s=0.2)
    yield made
    made.close()


@pytest.fixture
def config(tmp_path: Path, server: FakeServer) -> str:
    return write_kubeconfig(tmp_path / "config", server, namespace="ns")


@pytest.fixture
def recorded(tmp_path: Path, config: str) -> str:
    folder = str(tmp_path / "run")
    command = (sys.executable, "-m", "tracekit", "record", "-o", folder, "--duration", "0.6s")
    subprocess.run(
        [*command, "--kubeconfig", config], check=True, capture_output=True, cwd=ROOT
    )  # fmt: skip
    return folder


def invoke(trace: str, *words: str) -> Any:
    words = ("watch", trace, "--once", *words)
    return CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)


def events_of(server: FakeServer) -> list[dict[str, Any]]:
    return list(server.cluster.objects["events"].values())


def test_watch_writes_each_finding_once(recorded: str, config: str, server: FakeServer) -> None:
    told = invoke(recorded, "--event", "--kubeconfig", config, "-o", "jsonl").stdout.splitlines()
    (event,) = events_of(server)
    assert event["involvedObject"]["uid"] == "jobs-3"
    assert event["reason"] in {orjson.loads(line)["id"] for line in told}
    assert invoke(recorded, "--event", "--kubeconfig", config).stderr == ""
    assert len(events_of(server)) == 1


def test_a_server_that_fails_now_and_then_has_it_in_the_end(
    recorded: str, config: str, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracekit.cli.watch_events._try", lambda *_: None)
    server.faults = Faults(3, budget=3, answer_probability=1.0)
    invoke(recorded, "--event", "--kubeconfig", config)
    assert len(server.faults.done) == 3
    assert len(events_of(server)) == 1


def test_credentials_that_expire_are_read_again(
    recorded: str, config: str, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def expire(*_: object) -> None:
        server.expire_token()
        Path(config).with_suffix(".token").write_text(server.token)

    monkeypatch.setattr("tracekit.cli.watch_events._try", expire)
    invoke(recorded, "--event", "--kubeconfig", config)
    assert len(events_of(server)) == 1


def test_bad_input_is_one_sentence(recorded: str, config: str, server: FakeServer) -> None:
    with pytest.raises(TracekitError, match="only --event speaks to a cluster"):
        invoke(recorded, "--kubeconfig", config)
    with pytest.raises(TracekitError, match="no kubeconfig at nowhere"):
        invoke(recorded, "--event", "--kubeconfig", "nowhere")
    server.forbidden = frozenset({"events"})
    with pytest.raises(TracekitError, match=r"may not write Events.*manifests --watch --event"):
        invoke(recorded, "--event", "--kubeconfig", config)
    server.forbidden = frozenset()
    for found in server.cluster.objects["namespaces"].values():
        found["metadata"]["uid"] += "-of-another-cluster"
    with pytest.raises(TracekitError, match="of another cluster"):
        invoke(recorded, "--event", "--kubeconfig", config)
    server.close()
    with pytest.raises(TracekitError, match="cannot be reached"):
        invoke(recorded, "--event", "--kubeconfig", config)


#### What is written is recorded, too ####


def _with_ours(rows: list[Row]) -> tuple[list[Row], int]:
    """The rows with an Event of ours after every third of a Job's or CronJob's."""
    record = Record(rows)
    edit = Edit(record)
    count = 0
    for i, row in enumerate(rows):
        if row["resource"] not in ("jobs", "cronjobs") or row["type"] not in ("ADDED", "MODIFIED"):
            continue
        if i % 3:
            continue
        meta = row["object"]["metadata"]
        kind = "Job" if row["resource"] == "jobs" else "CronJob"
        news = replace(
            NEWS, kind=kind, namespace=meta["namespace"], name=meta["name"], uid=meta["uid"],
            at_ns=row["recv"], id=f"TK{100 + count}",
        )  # fmt: skip
        event = event_of(news)
        event["metadata"] |= {
            "uid": f"ours-{count}", "resourceVersion": "0",
            "creationTimestamp": event["firstTimestamp"],
            "managedFields": [{"manager": "kube-tracekit", "operation": "Update"}],
        }  # fmt: skip
        edit.insert_beside({"resource": "events", "type": "ADDED", "object": event}, i)
        count += 1
    return edit.rows(), count


def _answers(rows: list[Row], folder: Path) -> tuple[list[tuple[Any, ...]], list[tuple[str, str]]]:
    folder.mkdir()
    log = folder / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    reader = import_log(log, folder / "trace", NAME)
    found = Judge(reader, resolve_era(reader, None, None)).report().judgements
    verdicts = [
        (j.controller, j.object, j.action, j.verdict, j.time_ns, j.subject, len(j.fields), j.reason)
        for j in found
    ]
    findings = [(f.id, f.text) for f in findings_of(Session([folder / "trace"]))]
    return verdicts, findings


@pytest.mark.full
def test_our_own_events_are_nobodys_word(tmp_path: Path) -> None:
    rows: list[Row] = list(json_lines(TRACES / NAME / "watch.jsonl.zst"))
    planted = plant("status-ready-high", rows, random.Random(3))
    assert planted is not None
    more, count = _with_ours(planted[0])
    assert count > 100
    assert _answers(more, tmp_path / "with") == _answers(planted[0], tmp_path / "without")
