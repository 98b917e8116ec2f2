"""What a recorder never saw is a hole, and proves nothing."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.test_record_cli import record, run
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.reader import TraceReader

_SPEC = {
    "parallelism": 1, "completions": 1, "completionMode": "NonIndexed", "backoffLimit": 6,
    "selector": {"matchLabels": {"controller-uid": "x"}},
    "template": {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}},
}  # fmt: skip


def _record(tmp_path: Path, unavailable: frozenset[str], *words: str, served: bool = False) -> int:
    """The exit status of a record of a Job whose status counts a pod that was never there.

    The Job is made once Jobs are followed. With `served` the streams that are not available are
    served once one of them was refused.
    """
    cluster = FakeCluster()
    cluster.create("namespaces", name="ns")
    cluster.create("leases", name="kube-controller-manager", namespace="kube-system")
    server = FakeServer(cluster, bookmark_every_s=0.2, unavailable=unavailable)
    over = threading.Event()

    def until(happened: Callable[[], bool]) -> None:
        while not over.is_set() and not happened():
            time.sleep(0.01)

    def jobs_are_followed() -> bool:
        # A watch that begins with a list (sendInitialEvents) is not answered by this server.
        return any(
            "/jobs?" in asked and "watch=" in asked and "sendInitialEvents" not in asked
            for asked in server.requests
        )

    def work() -> None:
        until(jobs_are_followed)
        uid = cluster.create("jobs", spec=_SPEC, status={})
        cluster.modify("jobs", uid, status={"active": 1, "ready": 1})

    def serve() -> None:
        until(lambda: bool(server.refused))
        server.unavailable = frozenset()

    threads = [threading.Thread(target=work)]
    if served:
        threads.append(threading.Thread(target=serve))
    for thread in threads:
        thread.start()
    try:
        return record(tmp_path, server, "-A", *words)
    finally:
        over.set()
        for thread in threads:
            thread.join()
        server.close()


def _json(capsys, *arguments: str) -> tuple[int, Any]:
    capsys.readouterr()
    status = run(*arguments, "-o", "json")
    return status, json.loads(capsys.readouterr().out)


def _verdicts(capsys, trace: str) -> tuple[int, Counter[str]]:
    status, said = _json(capsys, "replay", trace, "--diff", "--kubernetes-version", "v1.36.3")
    counts: Counter[str] = Counter()
    for verdicts in said["summary"]["job"].values():
        counts.update(verdicts)
    return status, +counts


def test_pods_that_are_seen_tell_that_a_status_is_wrong(tmp_path: Path, capsys) -> None:
    assert _record(tmp_path, frozenset(), "--duration", "2s") == 0
    trace = str(tmp_path / "trace")
    _, said = _json(capsys, "info", trace)
    assert said["gaps"] == []
    assert said["coverage"]["unseen"] == {}
    assert _verdicts(capsys, trace) == (1, Counter(different=1))


def test_pods_that_answer_503_are_a_hole_and_prove_nothing(tmp_path: Path, capsys) -> None:
    # A stream was not being recorded at the end.
    assert _record(tmp_path, frozenset({"pods"}), "--duration", "2s") == 1
    trace = str(tmp_path / "trace")
    _, said = _json(capsys, "info", trace)
    (gap,) = said["gaps"]
    assert (gap["stream"], gap["until"], gap["last_resource_version"]) == ("pods", None, None)
    assert gap["from"] is not None
    assert "pods are not served" in said["coverage"]["unseen"]["pods"]
    assert run("info", trace) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "all of it" in shown
    assert "No gaps" not in shown
    assert _verdicts(capsys, trace) == (0, Counter(unknowable=1))


def test_a_gap_reaches_to_the_end_of_the_first_list(tmp_path: Path) -> None:
    # The first pause after a refusal is 0.8 s to 1.6 s.
    words = ("--duration", "2.5s")
    assert _record(tmp_path, frozenset({"pods"}), *words, served=True) == 0
    reader = TraceReader(tmp_path / "trace")
    (gap,) = reader.gaps()
    (watched,) = [span for span in coverage_of(reader).spans if span.stream == "pods"]
    assert gap.last_rv is None
    assert gap.next_rv is not None
    assert gap.until_ns is not None
    assert abs(watched.from_ns - gap.until_ns) < 100_000_000


@pytest.mark.parametrize(
    ("asked", "scopes"),
    [(("-A",), {"all namespaces"}),
     (("-n", "ns", "-l", "team=a"), {"namespace ns, team=a only"}),
     (("-n", "ns", "-n", "other"), {"namespace ns", "namespace other"})],
)  # fmt: skip
def test_a_list_says_what_it_asked_for(tmp_path: Path, asked, scopes) -> None:
    cluster = FakeCluster()
    for name in ("ns", "other"):
        cluster.create("namespaces", name=name)
    server = FakeServer(cluster, bookmark_every_s=0.2)
    try:
        assert record(tmp_path, server, *asked) == 0
    finally:
        server.close()
    spans = coverage_of(TraceReader(tmp_path / "trace")).spans
    assert {str(span.scope) for span in spans if span.stream == "jobs"} == scopes
    (lease,) = [span for span in spans if span.stream == "leases"]
    assert str(lease.scope) == "namespace kube-system, metadata.name=kube-controller-manager only"
