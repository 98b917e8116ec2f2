"""`tracekit import watch` as a user meets it: good files, bad files, exit codes, sentences."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter

import pytest
import zstandard

from tests.support.traces import ALL, ROOT, TRACES, import_log
from tests.support.watchlog import (
    CLUSTER_UID,
    START_NS,
    job,
    line,
    listed,
    namespace,
    pod,
    small_log,
    write_log,
)
from tracekit.cli.main import main
from tracekit.trace.importers import relist
from tracekit.trace.importers.blocks import Block, parse_block
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter


@pytest.fixture
def run(capsys, tmp_path):
    """Run the command line; gives exit code and stderr. Nothing may come out on stdout."""

    def call(*arguments, out=tmp_path / "out"):
        with pytest.raises(SystemExit) as stopped:
            main(["import", "watch", *map(str, arguments), "-o", str(out)])
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err
        return stopped.value.code or 0, captured.err

    return call


def rows(path, *columns, **selection):
    return TraceReader(path).table(columns, **selection).to_pylist()


def raw_lines(path):
    """The lines of the log that a trace was made from, as far as rows have envelopes."""
    return [
        line(r["stream"], r["type"], json.loads(r["raw"]), at_ns=r["recv_ns"])
        for r in rows(path, "stream", "type", "recv_ns", "raw")
    ]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_plain_and_compressed_files(run, tmp_path, suffix):
    content = b"".join(item + b"\n" for item in small_log())
    packed = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[suffix](content)
    log = tmp_path / f"log.jsonl{suffix}"
    log.write_bytes(packed)
    code, err = run(log)
    assert (code, err) == (0, f"Wrote {tmp_path / 'out'}: 12 rows of 3 streams\n")
    assert raw_lines(tmp_path / "out") == small_log()
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "log",
        "manifest.json",
        "trace.json",
    ]


def test_standard_input(tmp_path):
    content = zstandard.compress(b"\n".join(small_log()))
    done = subprocess.run(
        [sys.executable, "-c", "from tracekit.cli.main import main; main()",
         "import", "watch", "-", "-o", str(tmp_path / "out")],
        input=content, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert raw_lines(tmp_path / "out") == small_log()


def test_rotations_are_one_log(run, tmp_path):
    log = small_log()
    first = write_log(tmp_path / "1", log[:8])
    second = write_log(tmp_path / "2", log[8:])
    code, err = run(first, second)
    assert code == 0
    assert "12 rows of 3 streams\n" in err
    assert raw_lines(tmp_path / "out") == log


def test_what_is_said_about_the_cluster_is_in_the_header(run, tmp_path):
    log = write_log(tmp_path / "log", small_log())
    (tmp_path / "about.json").write_text('{"version": "v1.17.17"}')
    run(log, out=tmp_path / "plain")
    assert TraceReader(tmp_path / "plain").header.kubernetes_version is None
    run(
        log, "--kubernetes-version", "1.36.3", "--feature-gates", "B=true, A=False",
        "--controller-flags", "--kube-api-qps=100 --x='a b'",
    )  # fmt: skip
    header = TraceReader(tmp_path / "out").header
    assert header.kubernetes_version == "v1.36.3"
    assert header.feature_gates == {"A": False, "B": True}
    assert header.controller_flags == ("--kube-api-qps=100", "--x=a b")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--kubernetes-version", "latest", "like v1.36.3"),
        ("--feature-gates", "A", "like Gate=true"),
        ("--controller-flags", "'", "check the quotes"),
        ("--controller-flags", "nan", "'nan' is no controller flag: write them like"),
        ("--controller-flags", "--", "no controller flag"),
        ("--controller-flags", "--a b c", "'c' is no controller flag"),
        ("--controller-flags", "--a=1 =5", "'=5' is no controller flag"),
        ("--controller-flags", "--kube-api-qps=nan", "has no number"),
        ("--controller-flags", "--kube-api-burst", "has no number"),
    ],
)
def test_options_that_cannot_be_meant(run, tmp_path, option, value, said):
    code, err = run(write_log(tmp_path / "log", small_log()), option, value)
    assert code == 2
    assert said in err
    assert not (tmp_path / "out").exists()


def test_an_output_is_replaced_only_with_force_and_only_if_it_is_a_trace(run, tmp_path):
    log = write_log(tmp_path / "log", small_log())
    assert run(log)[0] == 0
    code, err = run(log)
    assert code == 2
    assert "add --force" in err
    assert run(write_log(tmp_path / "log", small_log()[:5]), "--force")[0] == 0
    assert TraceReader(tmp_path / "out").rows == 5
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    code, err = run(log, "--force", out=precious)
    assert code == 2
    assert "is not a trace" in err
    assert (precious / "file").exists()


def test_a_failed_import_leaves_the_old_trace_and_nothing_else(run, tmp_path):
    run(write_log(tmp_path / "log", small_log()))
    code, _ = run(write_log(tmp_path / "log", [b"no"]), "--force")
    assert code == 2
    assert TraceReader(tmp_path / "out").rows == 12
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "out"]


def test_a_trace_that_is_being_written_is_not_replaced(run, tmp_path):
    log = write_log(tmp_path / "log", small_log())
    run(log)
    with TraceWriter(tmp_path / "out", append=True):
        code, err = run(log, "--force")
    assert code == 2
    assert "is being written by another tracekit" in err
    assert TraceReader(tmp_path / "out").rows == 12
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "out"]


def test_an_output_that_cannot_be_written(run, tmp_path):
    log = write_log(tmp_path / "log", small_log())
    code, err = run(log, out=log / "out")
    assert code == 2
    assert "cannot be written" in err
    assert err.count("\n") == 1


AUDIT = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse"}
NOT_LOGS = [
    ("empty", b"", "is empty"),
    ("blank", b"\n\n  \n", "holds nothing but white space"),
    ("audit", json.dumps(AUDIT).encode() + b"\n", "audit log"),
    ("binary", b"\x7fELF\0\0\0\x01\n\0\0" * 50, "binary data"),
    ("parquet", b"PAR1\x15\x04\x15\0\n", "binary data"),
    ("text", b"hello\n", "not a watch log (the line is not JSON"),
    ("latin", b"caf\xe9\n", "not UTF-8"),
    ("kubectl", json.dumps({"type": "ADDED", "object": job()}).encode(), "has no resource"),
    ("list", b"[1,2]\n", "is not a JSON object"),
    ("half", b'{"recv":1,"resource":"jobs","type":"ADD', "no whole line"),
    ("half.zst", zstandard.compress(b"x" * 1000)[:12], "no whole line"),
    ("half.gz", gzip.compress(b"x" * 1000)[:12], "no whole line"),
]


@pytest.mark.parametrize(("name", "content", "said"), NOT_LOGS, ids=[n for n, _, _ in NOT_LOGS])
def test_files_that_are_no_watch_log(run, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    code, err = run(tmp_path / name)
    assert code == 2
    assert said in err
    assert err.startswith("tracekit: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_there(run, tmp_path):
    assert "does not exist" in run(tmp_path / "nothing")[1]
    assert "is an empty directory" in run(tmp_path)[1]
    good = write_log(tmp_path / "log", small_log())
    code, err = run(good, tmp_path / "nothing")
    assert code == 2
    assert "does not exist" in err
    assert not (tmp_path / "out").exists()


def test_garbage_lines_are_kept_and_counted(run, tmp_path):
    log = small_log()
    garbage = [
        b"\xff\xfe",
        b'{"recv":',
        b'{"recv":1,"resource":"jobs","type":"PATCHED","object":{}}',
    ]
    mixed = [garbage[0], *log[:5], garbage[1], *log[5:], garbage[2], b""]
    code, err = run(write_log(tmp_path / "log", mixed))
    assert code == 0
    assert "3 lines could not be read, kept as text" in err
    kept = rows(tmp_path / "out", "raw", "raw_bytes", "reason", "seq", types=["UNPARSED"])
    assert [r["raw_bytes"] or r["raw"].encode() for r in kept] == garbage
    assert [r["seq"] for r in kept] == [0, 6, 14]
    assert all(r["reason"] for r in kept)
    assert TraceReader(tmp_path / "out").rows == len(log) + 3


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_truncated_file_keeps_what_came_before_and_says_so(run, tmp_path, suffix):
    log = [
        *small_log(),
        *(line("pods", "MODIFIED", pod(rv=20 + n), at_ns=START_NS + 20 + n) for n in range(3000)),
    ]
    content = b"".join(item + b"\n" for item in log)
    packed = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[suffix](content)
    path = tmp_path / f"log{suffix}"
    path.write_bytes(packed[: len(packed) * 2 // 3 + 7])
    code, err = run(path)
    assert code == 0
    assert "is cut off" in err
    assert "3 gaps" in err
    reader = TraceReader(tmp_path / "out")
    whole = rows(tmp_path / "out", "raw", types=["ADDED", "MODIFIED", "DELETED"])
    assert 10 < len(whole) < 3000
    assert {g.stream for g in reader.gaps()} == {"namespaces", "jobs", "pods"}
    gap = next(g for g in reader.gaps() if g.stream == "pods")
    assert gap.next_rv is gap.until_ns is None
    assert gap.last_rv >= 20
    assert "cut off" in gap.reason


def test_a_damaged_compressed_file_keeps_what_came_before(run, tmp_path):
    packed = bytearray(zstandard.compress(b"\n".join(small_log()) + b"\n"))
    good = bytes(packed)
    path = tmp_path / "log"
    path.write_bytes(good + b"\x28\xb5\x2f\xfd" + b"\xff" * 50)  # a second frame that is none
    code, err = run(path)
    assert code == 0
    assert "damaged" in err
    assert len(rows(tmp_path / "out", "seq", types=["ADDED"])) == 2


def test_a_cut_between_rotations_is_a_gap_up_to_where_the_next_begins(run, tmp_path):
    log = small_log()
    first = write_log(tmp_path / "1", log[:8])
    first.write_bytes(first.read_bytes() + log[8][:50])
    code, _ = run(first, write_log(tmp_path / "2", log[9:]))
    assert code == 0
    gaps = {g.stream: g for g in TraceReader(tmp_path / "out").gaps()}
    assert (gaps["jobs"].last_rv, gaps["jobs"].next_rv) == (10, 12)
    assert gaps["namespaces"].next_rv is None
    fragment = rows(tmp_path / "out", "raw", types=["UNPARSED"])
    assert [r["raw"].encode() for r in fragment] == [log[8][:50]]


def test_objects_without_metadata_or_status(run, tmp_path):
    odd = [{}, {"metadata": None}, {"metadata": {"name": "x"}, "status": 5}, {"spec": []}]
    log = [*small_log(), *(line("jobs", "MODIFIED", obj, at_ns=START_NS + 9) for obj in odd)]
    code, err = run(write_log(tmp_path / "log", log))
    assert code == 0
    assert "objects without a name in their metadata (3 times)" in err
    kept = [json.loads(r["raw"]) for r in rows(tmp_path / "out", "raw", first_seq=12)]
    assert kept == odd


def test_disorder_is_counted_and_kept_as_it_came(run, tmp_path):
    log = [
        *small_log(),
        line("pods", "ADDED", pod("b", 20), at_ns=START_NS + 9),
        line("pods", "MODIFIED", pod("b", 20), at_ns=START_NS + 8),
        line("pods", "MODIFIED", pod("b", 15), at_ns=START_NS + 10),
        line("widgets", "ADDED", {"metadata": {"name": "w", "resourceVersion": "30"}}, at_ns=None),
    ]
    code, err = run(write_log(tmp_path / "log", log))
    assert code == 0
    for said in (
        "receive times earlier than the line before",
        "observations that repeat the revision before",
        "observations out of order",
        "unknown kind widgets",
        "widgets: the stream begins without a list",
        "lines without a receive time",
    ):
        assert said in err
    assert [r["rv"] for r in rows(tmp_path / "out", "rv", first_seq=12)] == [20, 20, 15, 30]
    widget = rows(tmp_path / "out", "name", "kind", "recv_ns", streams=["widgets"])
    assert widget == [{"name": "w", "kind": None, "recv_ns": START_NS + 10}]


def test_two_clusters_in_one_input_are_refused(run, tmp_path):
    other = [*listed("namespaces", 5, namespace(uid="another"), at_ns=START_NS + 99)]
    first = write_log(tmp_path / "1", small_log())
    code, err = run(first, write_log(tmp_path / "2", other))
    assert code == 2
    assert "mixes two clusters" in err
    assert CLUSTER_UID in err
    assert f"{tmp_path / '2'} line 2" in err
    assert not (tmp_path / "out").exists()


def test_revisions_that_go_far_back_are_a_gap(run, tmp_path):
    log = [
        *listed("jobs", 50_000),
        line("jobs", "ADDED", job(rv=50_001)),
        *listed("jobs", 300, job(rv=290), at_ns=START_NS + 9),
    ]
    code, err = run(write_log(tmp_path / "log", log))
    assert code == 0
    assert "went back from 50001 to 300" in err
    (gap,) = TraceReader(tmp_path / "out").gaps()
    assert (gap.last_rv, gap.next_rv) == (50_001, 300)


def test_a_relist_is_a_gap_and_finds_what_was_deleted(run, tmp_path):
    log = [
        *listed("pods", 5, pod("kept", 3), pod("gone", 4), pod("replaced", 2)),
        line("pods", "ADDED", pod("short", 6)),
        line("pods", "DELETED", pod("short", 7)),
        line("pods", "MODIFIED", pod("gone", 8)),
        line("pods", "NOTE", {"error": "connection reset"}),
        *listed("pods", 20, pod("kept", 3), at_ns=START_NS + 9),
        line("pods", "ADDED", pod("late", 21)),
        *listed("pods", 30, pod("kept", 3), at_ns=START_NS + 19),
    ]
    code, err = run(write_log(tmp_path / "log", log))
    assert code == 0
    assert "3 objects were missing when their stream was listed again" in err
    found = rows(tmp_path / "out", "name", "rv", "type", "raw", "seq", "synthesized")
    found = [r for r in found if r["synthesized"]]
    assert [(r["name"], r["rv"], r["type"]) for r in found] == [
        ("replaced", 2, "DELETED"), ("gone", 8, "DELETED"), ("late", 21, "DELETED"),
    ]  # fmt: skip
    assert json.loads(found[1]["raw"]) == pod("gone", 8)
    gaps = TraceReader(tmp_path / "out").gaps()
    assert [(g.last_rv, g.next_rv) for g in gaps] == [(8, 20), (21, 30)]


@pytest.mark.parametrize(("streams", "lists", "most"), [(1, 40, 1), (40, 2, 17)])
def test_a_log_of_lists_reads_the_trace_no_more_often_than_it_has_streams(
    run, tmp_path, monkeypatch, streams, lists, most
):
    """107 kB of lists took minutes and gigabytes when each read all that was before it."""
    opened = []

    def reader(path):
        opened.append(path)
        return TraceReader(path)

    monkeypatch.setattr(relist, "TraceReader", reader)
    names = [f"stream-{n}" for n in range(streams)]
    log = [
        text
        for at in range(lists)
        for name in names
        for text in listed(name, 10 * at + 5, pod(f"p{at}", 10 * at + 4), at_ns=START_NS + at)
    ]
    code, err = run(write_log(tmp_path / "log", log))
    assert code == 0, err
    assert len(opened) == most
    found = rows(tmp_path / "out", "stream", "name", "raw", "synthesized", "seq")
    gone = [r for r in sorted(found, key=lambda r: r["seq"]) if r["synthesized"]]
    assert [(r["stream"], r["name"]) for r in gone] == [
        (name, f"p{at}") for at in range(lists - 1) for name in names
    ]
    assert [json.loads(r["raw"]) for r in gone] == [
        pod(f"p{at}", 10 * at + 4) for at in range(lists - 1) for _ in names
    ]


def test_a_block_of_more_streams_than_a_cluster_has(run, tmp_path):
    names = [f"stream-{n}" for n in range(200)]
    log = [
        line(name, "ADDED", pod(f"p{at}", 5 + at), at_ns=START_NS + at)
        for at in range(2)
        for name in names
    ]
    text = b"\n".join(log)
    assert sum(seen is not None for seen in Block(text, parse_block(text)).seen) == 2 * 64
    code, err = run(write_log(tmp_path / "log", log))
    assert code == 0, err
    assert raw_lines(tmp_path / "out") == log


def test_a_stream_that_breaks_and_stays_away_is_a_gap(run, tmp_path):
    log = [
        *small_log(),
        line("pods", "NOTE", {"error": "gone"}),
        line("jobs", "ADDED", job("z", 90)),
    ]
    code, _ = run(write_log(tmp_path / "log", log))
    assert code == 0
    (gap,) = TraceReader(tmp_path / "out").gaps()
    assert (gap.stream, gap.last_rv, gap.next_rv) == ("pods", 13, None)
    run(write_log(tmp_path / "log", log[:-1]), out=tmp_path / "at-the-end")
    assert TraceReader(tmp_path / "at-the-end").gaps() == []


def test_objects_that_are_not_last_in_their_line(run, tmp_path):
    text = '{"object": {"metadata":{"name":"a \\"object\\":","resourceVersion":"9"} }, "recv":7,"type":"ADDED","resource":"jobs"}'
    run(write_log(tmp_path / "log", [text.encode()]))
    (row,) = rows(tmp_path / "out", "raw", "name", "recv_ns")
    assert row["raw"] == '{"metadata":{"name":"a \\"object\\":","resourceVersion":"9"} }'
    assert (row["name"], row["recv_ns"]) == ('a "object":', 7)


@pytest.mark.parametrize("name", ALL)
def test_recorded_traces_come_in_whole(run, tmp_path, name):
    log = TRACES / name / "watch.jsonl.zst"
    with log.open("rb") as packed:
        text = zstandard.ZstdDecompressor().stream_reader(packed).read()
    expected = [json.loads(item) for item in text.splitlines()]
    code, _ = run(log)
    assert code == 0
    reader = TraceReader(tmp_path / "out")
    counted = {
        (s.stream, str(row_type)): n for s in reader.streams() for row_type, n in s.counts.items()
    }
    assert counted == Counter((e["resource"], e["type"]) for e in expected)
    again = b"".join(
        b'{"recv":%d,"resource":"%s","type":"%s","object":%s}\n'
        % (r["recv_ns"], r["stream"].encode(), r["type"].encode(), r["raw"].encode())
        for r in rows(tmp_path / "out", "recv_ns", "stream", "type", "raw")
    )
    assert again == text
    # The rows are the same bytes, whoever imports them and whatever is said of them.
    import_log(log, tmp_path / "second", name)
    first, second = (files_of(tmp_path / folder) for folder in ("out", "second"))
    assert first.pop("trace.json") != second.pop("trace.json")
    assert len(first) > 1
    assert first == second


def files_of(trace):
    return {p.name: p.read_bytes() for p in trace.rglob("*.*")}


def test_a_log_makes_the_same_bytes_twice(run, tmp_path):
    log = write_log(tmp_path / "log", small_log())
    run(log)
    run(log, out=tmp_path / "second")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "second")
