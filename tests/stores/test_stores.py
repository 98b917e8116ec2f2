"""Traces in object storage: what is read, what is fetched, and what is said when it fails."""

from __future__ import annotations

import http.server
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tracekit
from tests.sql.test_session import write_jobs
from tests.support.s3 import S3
from tracekit.base.errors import TraceFormatError
from tracekit.cli.main import cli, main
from tracekit.sql.session import Session
from tracekit.trace.format.segments import live_segments
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores import mirror
from tracekit.trace.stores.place import known_copy, local_trace

NAME = "v1.36.3-restart"


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, args, catch_exceptions=False)


def jobs_of(*words: str) -> list[dict[str, object]]:
    return Session(words).table("SELECT trace, job FROM jobs ORDER BY ALL").to_pylist()


def inodes(path: Path) -> dict[str, int]:
    return {s.path.name: s.path.stat().st_ino for s in live_segments(path)}


#### What is read ####


@pytest.mark.parametrize(
    "command",
    [
        ("sql", "TRACE", "SELECT * FROM attempts ORDER BY ALL", "-o", "csv"),
        ("jobs", "TRACE", "-o", "jsonl"),
        ("explain", "TRACE", "t-work-queue/wq"),
        ("replay", "TRACE", "--diff", "-o", "jsonl"),
        ("export", "TRACE", "--format", "csv"),
        ("redact", "TRACE", "--check"),
    ],
    ids=lambda command: command[0],
)
def test_every_command_says_of_a_url_what_it_says_of_the_directory(
    s3: S3, trace_path, command: tuple[str, ...]
) -> None:
    path = trace_path(NAME)
    url = s3.put(path, f"bucket/deep/folder/{path.name}")
    here = run(*(str(path) if word == "TRACE" else word for word in command))
    there = run(*(url if word == "TRACE" else word for word in command))
    assert there.exit_code == here.exit_code
    assert there.output == here.output
    assert here.output


@pytest.mark.full
def test_info_and_report_name_what_was_asked_for(s3: S3, trace_path, tmp_path: Path) -> None:
    url = s3.put(trace_path(NAME), "bucket/night")
    told = run("info", url)
    assert (told.exit_code, url in told.stdout) == (0, True)
    report = tmp_path / "report.html"
    assert run("report", url, "-o", str(report)).exit_code == 0
    assert "night" in report.read_text()


def test_the_api_opens_a_url(s3: S3, trace_path) -> None:
    url = s3.put(trace_path(NAME), "bucket/night")
    trace = tracekit.open(url)
    assert trace.jobs().num_rows == tracekit.open(trace_path(NAME)).jobs().num_rows > 0
    assert trace.replay().divergences == []
    assert repr(trace) == f"tracekit.open({url!r})"


def test_a_pattern_reads_several_as_one_with_their_names(s3: S3, tmp_path: Path) -> None:
    for name in ("night-1", "night-2", "day-1"):
        s3.put(write_jobs(tmp_path / name, f"job-{name}"), f"bucket/runs/{name}/trace")
    local = write_jobs(tmp_path / "local", "job-local")
    assert jobs_of("s3://bucket/runs/night-*/trace", str(local)) == [
        {"trace": "local", "job": "job-local"},
        {"trace": "night-1/trace", "job": "job-night-1"},
        {"trace": "night-2/trace", "job": "job-night-2"},
    ]


def test_keys_with_odd_characters_stay_inside_the_cache(s3: S3, tmp_path: Path) -> None:
    trace = write_jobs(tmp_path / "t", "a")
    for name in ("it's 100% [odd] ü", "..."):
        s3.put(trace, f"bucket/{name}/trace")
    # `[odd]` as such, not as a set of letters: an exact name wins over a pattern nowhere else.
    found = jobs_of("s3://bucket/it's 100% [[]odd] ü/trace")
    assert [row["job"] for row in found] == ["a"]
    cache = Path(os.environ["TRACEKIT_CACHE_DIR"])
    for url in (
        "s3://bucket/.../trace",
        "s3://bucket/../../../up",
        "gs://../..",
        "https://h/%2e%2e/x",
    ):
        assert cache in known_copy(url).parents
        assert ".." not in known_copy(url).parts


#### What is fetched ####


def test_only_what_is_new_is_fetched(s3: S3, tmp_path: Path) -> None:
    trace = write_jobs(tmp_path / "t", "job-0", "job-1", "job-2")
    url = s3.put(trace, "bucket/t")
    copy = local_trace(url)
    before = inodes(copy)
    assert len(before) == 2
    assert local_trace(url) == copy
    assert inodes(copy) == before
    s3.put(write_jobs(trace, "job-3", append=True), "bucket/t")
    # The test uploads everything again, as a careless copy would: same size, other time.
    assert [row["job"] for row in jobs_of(url)] == ["job-0", "job-1", "job-2", "job-3"]
    assert len(inodes(copy)) == 3


def test_a_segment_that_lies_there_unchanged_is_not_asked_for_again(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write_jobs(tmp_path / "t", "job-0", "job-1")
    url = s3.put(trace, "bucket/t")
    local_trace(url)
    fetched: list[str] = []
    real = mirror._fetch
    monkeypatch.setattr(
        mirror, "_fetch", lambda store, info, to: (fetched.append(info.path), real(store, info, to))
    )
    local_trace(url)
    assert fetched == []
    write_jobs(trace, "job-2", append=True)
    new = live_segments(trace)[-1].path
    with s3.client.open_output_stream(f"bucket/t/log/{new.name}") as out:
        out.write(new.read_bytes())
    local_trace(url)
    assert fetched == [f"bucket/t/log/{new.name}"]


def test_another_trace_under_the_same_name_replaces_the_copy(s3: S3, tmp_path: Path) -> None:
    url = s3.put(write_jobs(tmp_path / "old", "job-0", "job-1", "job-2"), "bucket/t")
    assert len(jobs_of(url)) == 3
    for segment in live_segments(tmp_path / "old"):
        s3.delete(f"bucket/t/log/{segment.path.name}")
    s3.put(write_jobs(tmp_path / "new", "other", rows=9), "bucket/t")
    assert [row["job"] for row in jobs_of(url)] == ["other"]


def test_what_compaction_has_merged_is_not_fetched_and_goes_from_the_copy(
    s3: S3, tmp_path: Path
) -> None:
    names = [f"job-{n}" for n in range(4)]
    url = s3.put(write_jobs(tmp_path / "t", *names), "bucket/t")
    copy = local_trace(url)
    assert len(inodes(copy)) == 2
    # In place first, the covered ones deleted afterwards: both states read the same.
    s3.put(write_jobs(tmp_path / "merged", *names, rows=9), "bucket/t")
    assert [row["job"] for row in jobs_of(url)] == names
    assert len(inodes(copy)) == 1
    assert len(list((copy / "log").iterdir())) == 1


def test_a_copy_that_was_cut_off_or_tampered_with_is_mended(s3: S3, tmp_path: Path) -> None:
    url = s3.put(write_jobs(tmp_path / "t", "a", "b", "c"), "bucket/t")
    copy = local_trace(url)
    first, second = (segment.path for segment in live_segments(copy))
    first.write_bytes(first.read_bytes()[:100])
    second.unlink()
    (copy / "log" / ".tmp-1-left").write_bytes(b"x")
    assert [row["job"] for row in jobs_of(url)] == ["a", "b", "c"]
    (copy / ".mirror.json").write_text("{")
    assert len(jobs_of(url)) == 3


def test_a_damaged_object_among_good_ones_is_named_and_the_rest_answers(
    s3: S3, tmp_path: Path
) -> None:
    trace = write_jobs(tmp_path / "t", *[f"job-{n}" for n in range(6)])
    broken = live_segments(trace)[1].path
    broken.write_bytes(b"PAR1 nothing of the kind")
    url = s3.put(trace, "bucket/t")
    told = run("sql", url, "SELECT count(*) AS n FROM jobs", "-o", "csv")
    assert told.stdout.split() == ["n", "4"]
    assert broken.name in told.stderr


#### What is said ####


def sentence(word: str) -> str:
    with pytest.raises(TraceFormatError) as error:
        TraceReader(word)
    assert "\n" not in str(error.value)
    assert word in str(error.value)
    return str(error.value)


def test_no_such_bucket_trace_or_match_is_one_sentence_each(s3: S3, tmp_path: Path) -> None:
    s3.put(write_jobs(tmp_path / "t", "a"), "bucket/t")
    assert "there is no bucket nothing" in sentence("s3://nothing/t")
    assert "it has no trace.json" in sentence("s3://bucket/elsewhere")
    assert "it has no trace.json" in sentence("s3://bucket")
    with pytest.raises(TraceFormatError, match="matches no trace"):
        Session(["s3://bucket/x*"])
    with pytest.raises(TraceFormatError, match="names no bucket"):
        Session(["s3://buck*/t"])


def test_refused_credentials_are_one_sentence_with_what_to_set(s3: S3, tmp_path: Path) -> None:
    url = s3.put(write_jobs(tmp_path / "t", "a"), "bucket/t")
    s3.ask_for_credentials()
    assert "AWS_ACCESS_KEY_ID" in sentence(url)


@pytest.mark.usefixtures("s3")
def test_the_command_line_exits_2_with_the_sentence(capsys) -> None:
    for args in (["sql", "s3://nothing/t", "SELECT 1 AS x"], ["info", "s3://nothing/t"]):
        with pytest.raises(SystemExit) as exit_:
            main(args)
        assert exit_.value.code == 2
        told = capsys.readouterr()
        assert told.err.startswith("tracekit: s3://nothing/t is not a trace")
        assert told.out == ""


@pytest.mark.usefixtures("s3")
def test_an_endpoint_that_nobody_listens_on_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    assert "cannot be reached" in sentence("s3://bucket/t")


def test_a_cache_that_cannot_be_written_is_one_sentence(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = s3.put(write_jobs(tmp_path / "t", "a"), "bucket/t")
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "file"))
    assert "TRACEKIT_CACHE_DIR" in sentence(url)


def test_an_unknown_scheme_and_a_missing_package_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "nothing here speaks gopher" in sentence("gopher://host/t")
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    assert "pip install 'kube-tracekit[http]'" in sentence("https://host/t")
    assert "not installed" in sentence("gdrive://host/t")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    assert "AZURE_STORAGE_ACCOUNT" in sentence("az://container/t")


#### Web servers ####


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "web"
    root.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_trace_on_a_web_server_that_lists_its_folders(web: str, tmp_path: Path) -> None:
    trace = write_jobs(tmp_path / "t", "a", "b", "c")
    for name in ("night-1", "night-2"):
        shutil.copytree(trace, tmp_path / "web" / name)
    assert [row["job"] for row in jobs_of(f"{web}/night-1")] == ["a", "b", "c"]
    assert len(jobs_of(f"{web}/night-*")) == 6
    write_jobs(tmp_path / "web" / "night-1", "d", append=True)
    assert [row["job"] for row in jobs_of(f"{web}/night-1")] == ["a", "b", "c", "d"]
    assert "no trace.json" in sentence(f"{web}/nothing")
