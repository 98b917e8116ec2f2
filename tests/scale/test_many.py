"""Replays of many traces: each is a task, in a bucket or not, and what is done is not done again."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from tests.scale.conftest import HOURS
from tests.scale.executors import scheduler
from tests.scale.test_processes import run
from tests.support.erasures import early_end
from tests.support.s3 import S3, set_environment
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.base.time_input import ALWAYS
from tracekit.cli.many import ask
from tracekit.cli.report_many import ReportQuestion, pages_of
from tracekit.cli.sql_many import VerdictsQuestion
from tracekit.cli.whatif_many import WhatIfQuestion
from tracekit.judge.executors.cluster import Cluster
from tracekit.judge.executors.inline import Inline
from tracekit.trace.format.manifest import parse_manifest, write_manifest
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.parts import Parts
from tracekit.trace.stores.rotated import overlapping
from tracekit.trace.writing.whole import compact_in_place
from tracekit.versions.overrides import AskedRules


def test_a_folder_is_judged_trace_by_trace_and_only_what_is_new_again(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], judged: list[str]
) -> None:
    parts = tmp_path / "parts"
    words = ("replay", str(mine), "--diff", "--processes", "1", "--parts", str(parts), "-o", "json")
    first = run(capsys, *words)
    assert first[0] == 0
    documents = orjson.loads(first[1])["traces"]
    assert [Path(document["trace"]).name for document in documents] == list(HOURS)
    assert documents[0]["summary"] == documents[1]["summary"] != documents[2]["summary"]
    judged.clear()
    assert run(capsys, *words) == first
    assert judged == []
    next((parts / "replay").iterdir()).unlink()
    os.utime(mine / HOURS[0] / "trace.json")  # as after a change
    assert run(capsys, *words) == first
    assert HOURS[0] in judged
    assert len(judged) <= 2


@pytest.mark.usefixtures("cache")
def test_a_trace_that_vanished_is_named_and_the_rest_is_answered(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


@pytest.mark.usefixtures("cache")
def test_what_other_rules_would_have_done_is_asked_of_each_trace(
    short: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    selector=None, within=ALWAYS, no_limits=False,
)  # fmt: skip
REPORT = ReportQuestion(AskedRules(), ALWAYS, None, no_limits=False)


@pytest.mark.parametrize("question", [WHATIF, REPORT], ids=lambda question: str(question.run))
def test_dask_workers_answer_with_the_same_bytes(
    question: WhatIfQuestion | ReportQuestion, cluster: Cluster, short: Path, tmp_path: Path
) -> None:
    traces = [str(short / HOURS[0]), str(tmp_path / "gone"), str(short / HOURS[1])]
    parts = Parts(str(tmp_path / "parts"))
    by_workers = ask(traces, question, cluster, parts)
    assert len(parts.names(question.run)) == 2
    assert by_workers == ask(traces, question, Inline(), None)
    assert [("error" in found) for found in by_workers] == [False, True, False]


@pytest.mark.full
@pytest.mark.usefixtures("cache")
def test_each_trace_gets_the_page_that_it_gets_alone(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
        (("t-a/b",), "needs one trace"),
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


@pytest.mark.parametrize("asked", [("replay", "--diff"), ("whatif", *TO)])
def test_traces_of_other_times_are_not_opened(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: tuple[str, ...]
) -> None:
    for hour in HOURS:
        shutil.copytree(folder / hour, tmp_path / hour)
    for hour in HOURS[:2]:
        (tmp_path / hour / "trace.json").write_text("no header")
    verb, *options = asked
    words = (verb, str(tmp_path), *options, "--processes", "1", "-o", "json")
    times = ("--from", "2026-11-01T02:30Z", "--to", "2026-11-01T02:45Z")
    status, out, err = run(capsys, *words, *times)
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
        monkeypatch.setattr("tracekit.judge.executors.cluster.Cluster", lambda *_: _Held(cluster))
        with server.failing(every=20):
            killer = _Killer(cluster)
            killer.start()
            found = run(capsys, *asked, "--scheduler", "tcp://held", "--parts", "s3://fleet/parts")
            killer.join()
        assert killer.killed
        assert found == expected
        assert server.failed > 0
        made = server.names("fleet/parts/replay")
        assert len(made) == len(HOURS)
        server.delete(made[0])
        with server.watched() as answers:
            found = run(capsys, *asked, "--scheduler", "tcp://held", "--parts", "s3://fleet/parts")
        assert found == expected
        assert {path for method, path, _ in answers if method in ("PUT", "POST")} == {made[0]}


@pytest.mark.full
def test_workers_put_nothing_into_a_folder_that_others_may_have_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they put aside is pickled: who may change it has code run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    theirs = tmp_path / "dask-scratch-space"
    theirs.mkdir(mode=0o777)
    with Cluster("local", 1) as cluster:
        (place,) = cluster._client.run(_local_directory).values()
        (ours,) = tmp_path.glob("tracekit-dask-*")
        assert Path(place).is_relative_to(ours)
        assert stat.S_IMODE(ours.stat().st_mode) == 0o700
    assert list(tmp_path.rglob("*")) == [theirs]


def _local_directory(dask_worker: Any) -> str:
    return str(dask_worker.local_directory)


class _Held:
    """A cluster that is not this command's to close."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __enter__(self) -> Cluster:
        return self._cluster

    def __exit__(self, *_: object) -> None:
        pass


VERDICTS = (
    "SELECT trace, controller, action, verdict, count(*) AS n FROM verdicts GROUP BY ALL "
    "ORDER BY ALL"
)


@pytest.mark.full
def test_verdicts_in_sql_are_judged_by_a_crew_and_only_those_that_are_new(
    server: S3,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_environment(monkeypatch, server, tmp_path / "cache")
    for hour in HOURS:
        server.put(folder / hour, f"verdicts/a/{hour}")
    expected = run(capsys, "sql", str(folder / "*"), VERDICTS, "-o", "csv")
    assert expected[0] == 0
    assert expected[1].count("\n") > 10
    asked: list[str] = []
    whole = VerdictsQuestion.answer
    monkeypatch.setattr(
        VerdictsQuestion,
        "answer",
        lambda self, word: asked.append(word.rpartition("/")[2]) or whole(self, word),
    )
    monkeypatch.setattr("tracekit.judge.executors.processes.cores", lambda: 1)
    words = ("sql", "s3://verdicts/a/*", VERDICTS, "-o", "csv", "--processes", "1")
    kept = ("--parts", "s3://verdicts/parts")
    assert run(capsys, *words, *kept) == expected
    assert asked == list(HOURS)
    asked.clear()
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "of another"))
    with server.watched() as answers:
        assert run(capsys, *words, *kept) == expected
    assert asked == []
    # Its listings and parts are all that was asked for: of the traces not a byte.
    assert not any(path.startswith("verdicts/a/2026") for _, path, size in answers if size)
    server.delete(server.names("verdicts/parts/verdicts")[0])
    assert run(capsys, *words, *kept) == expected
    assert len(asked) == 1
    rows = TraceReader(folder / HOURS[0]).table(("namespace", "job")).to_pylist()
    namespace = min(row["namespace"] for row in rows if row["job"])
    own = ("-n", namespace, "--from", "2026-11-01T00:30Z", "--to", "2026-11-01T00:40Z")
    status, out, err = run(capsys, *words, *kept, *own)
    assert (status, out.count("\n")) == (0, 1)  # what the first hour has is of another time
    assert "2 traces without what is asked about: not read" in err


def test_a_query_for_verdicts_by_dask_workers_is_answered_alike(
    cluster: Cluster, folder: Path
) -> None:
    question = VerdictsQuestion(AskedRules(), no_limits=False)
    traces = [str(folder / hour) for hour in HOURS]
    assert ask(traces, question, cluster, None) == ask(traces, question, Inline(), None)


@pytest.mark.full
def test_traces_without_a_namespace_are_left_out_by_their_manifests(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = TraceReader(mine / HOURS[0]).table(("namespace", "job")).to_pylist()
    namespace = min(row["namespace"] for row in rows if row["job"])
    (mine / HOURS[2] / "log").rename(mine / HOURS[2] / "gone")  # whoever opens it finds it damaged
    manifest = parse_manifest((mine / HOURS[2] / "manifest.json").read_bytes())
    write_manifest(mine / HOURS[2], replace(manifest, namespaces=frozenset({"another"})))
    for words in (
        ("jobs", str(mine), "-n", namespace, "-o", "csv"),
        ("sql", str(mine), "-n", namespace, "SELECT * FROM jobs", "-o", "csv"),
        ("replay", str(mine), "--diff", "-n", namespace, "-o", "json", "--processes", "1"),
    ):
        status, out, err = run(capsys, *words)
        assert (status, HOURS[0] in out, "lost" in err) == (0, True, False), err
    reports = mine.parent / "reports"
    status, _, err = run(
        capsys, "report", str(mine), "-n", namespace, "-o", str(reports), "--processes", "1"
    )
    assert (status, "lost" in err) == (0, False), err
    assert {page.stem for page in reports.iterdir()} <= set(HOURS[:2])
    assert f"without namespace {namespace}: no page" in err


def test_jobs_of_other_times_are_not_looked_for(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for hour in HOURS[:2]:
        (mine / hour / "trace.json").write_text("no header")  # whoever opens it says so
    times = ("--from", "2026-11-01T02:30Z")
    status, out, err = run(capsys, "jobs", str(mine), *times, "-o", "csv")
    assert (status, f"{HOURS[2]},t-" in out, HOURS[0] in out) == (0, True, False)
    assert "2 traces without what is asked about: not read" in err
    status, _, err = run(capsys, "jobs", str(mine), "--to", "2020-01-01")
    assert (status, "none of the 3 traces was recorded then" in err) == (2, True)


@pytest.mark.full
def test_workers_that_share_no_disk_read_one_trace_from_the_bucket(
    server: S3,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = run(capsys, "replay", str(folder / HOURS[1]), "--diff", "-o", "jsonl")
    set_environment(monkeypatch, server, tmp_path / "cache")
    monkeypatch.setattr("tracekit.judge.executors.cluster._ANSWERS_S", 120)  # of a busy machine
    url = server.put(folder / HOURS[1], "alone/t")
    theirs = tmp_path / "of workers"
    with scheduler(workers=1, TRACEKIT_CACHE_DIR=str(theirs)) as (address, _):
        asked = ("replay", url, "--diff", "-o", "jsonl", "--scheduler", address)
        assert run(capsys, *asked) == expected
    assert list(theirs.rglob("*.parquet"))


@pytest.mark.usefixtures("cache")
def test_a_trace_without_states_of_jobs_is_named_beside_others(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alone it is refused; among others nothing was judged of it either."""
    pods = tmp_path / "pods.json"
    meta = {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    meta["creationTimestamp"] = "2026-03-01T10:00:00Z"
    listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [{"metadata": meta}]}
    pods.write_bytes(orjson.dumps(listed))
    place = str(tmp_path / "pods")
    words = ("import", str(pods), "-o", place, "--kubernetes-version", "v1.36.3")
    assert run(capsys, *words)[0] == 0
    alone = run(capsys, "replay", place, "--diff")
    code, out, err = run(
        capsys, "replay", place, str(folder / HOURS[0]), "--diff", "-o", "json", "--processes", "1"
    )
    assert (alone[0], code) == (2, 2)
    (said,) = [doc["lacks"] for doc in orjson.loads(out)["traces"] if "lacks" in doc]
    assert "no states of Jobs or CronJobs" in said
    assert f"tracekit: {said}\n" in alone[2]
    assert f"tracekit: {place}: {said}\n" in err
