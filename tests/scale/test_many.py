"""Replays of many traces: each is a task, in a bucket or not, and what is done is not done again."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.scale.test_processes import run
from tests.support.erasures import early_end
from tests.support.s3 import S3, s3_server, set_environment
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.cli.many import ask
from tracekit.cli.replay_many import ReplayQuestion
from tracekit.cli.report_many import ReportQuestion, pages_of
from tracekit.cli.whatif_many import WhatIfQuestion
from tracekit.crew.alone import Alone
from tracekit.crew.cluster import Cluster
from tracekit.moments import ALWAYS
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.parts import Parts
from tracekit.trace.stores.rotated import overlapping
from tracekit.trace.writing.whole import compact_in_place

#: Where a recorder that rotates would have put them.
HOURS = ("20261101T000000Z", "20261101T010000Z", "20261101T020000Z")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three traces of one cluster; the second one is narrow, the last one of other rows."""
    found = tmp_path_factory.mktemp("many")
    for hour, name in zip(HOURS, ("v1.25.4-twins", "v1.25.4-twins", "v1.32.2-twins"), strict=True):
        import_log(TRACES / name / "watch.jsonl.zst", found / hour, name)
    compact_in_place(found / HOURS[1])  # the same rows as the first, in narrow segments
    assert all(file.is_narrow for file in TraceReader(found / HOURS[1]).snapshot.files)
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    with s3_server() as running:
        yield running


def test_a_folder_is_judged_trace_by_trace_and_only_what_is_new_again(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    mine = tmp_path / "traces"
    shutil.copytree(folder, mine)
    parts = tmp_path / "parts"
    words = ("replay", str(mine), "--diff", "--processes", "1", "--parts", str(parts), "-o", "json")
    first = run(capsys, *words)
    assert first[0] == 0
    documents = orjson.loads(first[1])["traces"]
    assert [Path(document["trace"]).name for document in documents] == list(HOURS)
    assert documents[0]["summary"] == documents[1]["summary"] != documents[2]["summary"]
    judged: list[str] = []
    whole = ReplayQuestion.answer
    monkeypatch.setattr(
        ReplayQuestion,
        "answer",
        lambda self, word: judged.append(Path(word).name) or whole(self, word),
    )
    assert run(capsys, *words) == first
    assert judged == []
    next((parts / "replay").iterdir()).unlink()
    os.utime(mine / HOURS[0] / "trace.json")  # as after a change
    assert run(capsys, *words) == first
    assert HOURS[0] in judged
    assert len(judged) <= 2


def test_a_trace_that_vanished_is_named_and_the_rest_is_answered(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    gone = tmp_path / "gone"
    words = (str(folder / HOURS[0]), str(gone), str(folder / HOURS[2]))
    status, out, err = run(capsys, "replay", *words, "--diff", "--processes", "1", "-o", "jsonl")
    assert status == 2
    first, lost, last = map(orjson.loads, out.splitlines())
    assert "summary" in first
    assert "summary" in last
    assert lost["error"] in err
    assert err.count("tracekit: ") == 1
    assert str(gone) in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--job", "a/b"], "several traces are judged with --diff"),
        (["-o", "junit"], "several traces are printed with -o table, json, jsonl"),
        (["--controller", "jobs"], "'jobs' is no controller"),
    ],
)
def test_what_several_traces_cannot_be_asked(
    more: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "replay", str(folder), "--diff", *more)
    assert (status, out) == (2, "")
    assert said in err


TO = ("--kubernetes-version", "v1.36.3")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two traces of the same rows, the second one narrow."""
    found = tmp_path_factory.mktemp("short")
    rows = list(json_lines(TRACES / "v1.25.4-twins" / "watch.jsonl.zst"))
    kept = early_end(rows, rows[0]["recv"] + (rows[-1]["recv"] - rows[0]["recv"]) // 5)
    log = found / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in kept))
    for hour in HOURS[:2]:
        import_log(log, found / "traces" / hour, "v1.25.4-twins")
    compact_in_place(found / "traces" / HOURS[1])
    return found / "traces"


def test_what_other_rules_would_have_done_is_asked_of_each_trace(
    short: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    mine = tmp_path / "traces"
    shutil.copytree(short, mine)
    words = ("whatif", str(mine), *TO, "--parts", str(tmp_path / "parts"))
    status, out, err = run(capsys, *words, "--processes", "1", "-o", "json")
    assert (status, err) == (0, "")
    for hour, found in zip(HOURS[:2], orjson.loads(out)["traces"], strict=True):
        alone = orjson.loads(run(capsys, "whatif", str(mine / hour), *TO, "-o", "json")[1])
        told = {"trace": str(mine / hour), "problems": [], "warnings": found["warnings"]}
        assert found == {**told, **alone}
    wide, narrow = orjson.loads(out)["traces"]
    assert wide["jobs"] == narrow["jobs"]
    assert sum(found["counts"].values()) > 0
    asked: list[str] = []
    whole = WhatIfQuestion.answer
    monkeypatch.setattr(
        WhatIfQuestion, "answer", lambda self, word: asked.append(word) or whole(self, word)
    )
    os.utime(mine / HOURS[1] / "trace.json")  # as after a change
    assert run(capsys, *words, "--processes", "1", "-o", "json")[1] == out
    assert asked == [str(mine / HOURS[1])]
    table = run(capsys, *words, "--processes", "1")
    assert table[1].count("v1.36.3") == 2


WHATIF = WhatIfQuestion(
    versions=("v1.36.3",), feature_gates=None, settings=(), cron_settings=(), kube_api_qps=None,
    concurrent_job_syncs=None, draws=1, from_version=None, from_feature_gates=None, namespace=None,
    selector=None, no_limits=False,
)  # fmt: skip
REPORT = ReportQuestion(None, (), None, ALWAYS, no_limits=False)


@pytest.mark.parametrize("question", [WHATIF, REPORT], ids=lambda question: str(question.run))
def test_dask_workers_answer_with_the_same_bytes(
    question: WhatIfQuestion | ReportQuestion, cluster: Cluster, short: Path, tmp_path: Path
) -> None:
    traces = [str(short / HOURS[0]), str(tmp_path / "gone"), str(short / HOURS[1])]
    parts = Parts(str(tmp_path / "parts"))
    by_workers = ask(traces, question, cluster, parts)
    assert len(parts.names(question.run)) == 2
    assert by_workers == ask(traces, question, Alone(), None)
    assert [("error" in found) for found in by_workers] == [False, True, False]


def test_each_trace_gets_the_page_that_it_gets_alone(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    pages, alone = tmp_path / "pages", tmp_path / "alone.html"
    words = ("report", str(folder), "-o", str(pages), "--processes", "1")
    status, _, err = run(capsys, *words)
    assert (status, sorted(path.name for path in pages.iterdir())) == (
        0,
        [f"{hour}.html" for hour in HOURS],
    )
    assert "Wrote 3 reports" in err
    run(capsys, "report", str(folder / HOURS[2]), "-o", str(alone))
    assert (pages / f"{HOURS[2]}.html").read_bytes() == alone.read_bytes()
    assert run(capsys, *words)[0] == 2  # the pages are there
    for more, said in (
        (("t-a/b",), "is asked about in one trace"),
        (("--since", "1h"), "several traces have several ends"),
        (("-o", "-"), "name a folder"),
    ):
        status, _, err = run(capsys, "report", str(folder), *more)
        assert (status, said in err) == (2, True)


def test_pages_have_the_names_that_tell_traces_apart() -> None:
    urls = ["s3://fleet/a/20261101T000000Z", "s3://fleet/b/20261101T000000Z"]
    assert [str(page) for page in pages_of(urls, Path("out")).values()] == [
        "out/a/20261101T000000Z.html",
        "out/b/20261101T000000Z.html",
    ]


def test_traces_of_other_times_are_not_opened(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for hour in HOURS:
        shutil.copytree(folder / hour, tmp_path / hour)
    for hour in HOURS[:2]:
        (tmp_path / hour / "trace.json").write_text("no header")
    asked = ("replay", str(tmp_path), "--diff", "--processes", "1", "-o", "json")
    times = ("--from", "2026-11-01T02:30Z", "--to", "2026-11-01T02:45Z")
    status, out, err = run(capsys, *asked, *times)
    (found,) = orjson.loads(out)["traces"]
    assert found["trace"].endswith(HOURS[2])
    assert "2 traces of other times: not read" in err
    assert status == 2  # what it has is of another time than its name says
    assert "none of the traces holds what is asked about" in err


def test_what_may_hold_something_of_a_time_is_kept() -> None:
    hour = 3600 * 10**9
    first = 1793491200 * 10**9  # 2026-11-01T00:00:00Z
    traces = [f"s3://fleet/a/{name}" for name in HOURS] + ["s3://fleet/b/night"]
    for from_ns, until_ns, kept in (
        (None, None, (0, 1, 2, 3)),
        (first + hour // 2, first + hour // 2 + 1, (0, 3)),
        (first + hour + hour // 2, None, (1, 2, 3)),
        (None, first + hour, (0, 1, 3)),  # what begins within a minute of it, too
        (first + 99 * hour, None, (2, 3)),
        (None, first - hour, (3,)),
    ):
        assert overlapping(traces, from_ns, until_ns) == ([traces[i] for i in kept], 4 - len(kept))


class _Killer(threading.Thread):
    """Kills one of the workers as soon as they are at work."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster
        self.killed = 0

    def run(self) -> None:
        workers = self._cluster._client.run(os.getpid)
        self.killed = next(iter(workers.values()))
        os.kill(self.killed, signal.SIGKILL)


def test_a_bucket_under_dask_with_a_worker_killed_and_a_store_that_fails(
    server: S3,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same bytes as one process gives that reads the same bucket undisturbed."""
    set_environment(monkeypatch, server, tmp_path / "cache")
    for hour in HOURS:
        server.put(folder / hour, f"fleet/cluster-a/{hour}")
    asked = ("replay", "s3://fleet/*/*", "--diff", "-o", "json")
    expected = run(capsys, *asked, "--processes", "1")
    assert expected[0] == 0

    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "workers"))
    with Cluster("local", 2) as cluster:  # its workers, and who follows them, have these settings
        monkeypatch.setattr("tracekit.crew.cluster.Cluster", lambda *_: _Held(cluster))
        with server.failing(every=20):
            killer = _Killer(cluster)
            killer.start()
            found = run(capsys, *asked, "--scheduler", "tcp://held", "--parts", "s3://fleet/parts")
            killer.join()
        assert killer.killed
        assert found == expected
        assert server.failed > 0
        server.delete(next(iter(server.names("fleet/parts/replay"))))
        found = run(capsys, *asked, "--scheduler", "tcp://held", "--parts", "s3://fleet/parts")
        assert found == expected


class _Held:
    """A cluster that is not this command's to close."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __enter__(self) -> Cluster:
        return self._cluster

    def __exit__(self, *_: object) -> None:
        pass
