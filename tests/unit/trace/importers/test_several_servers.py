"""Audit logs of several API servers, whose clocks differ."""

from __future__ import annotations

import orjson
import pytest
import zstandard

from tests.support.watchlog import job, pod
from tests.unit.trace.importers.audit_logs import SECOND, TRACES, entry, header_of, shipped, write
from tracekit.base.errors import TraceFormatError
from tracekit.base.kube.timestamps import format_rfc3339, parse_rfc3339
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.importers.audit.importer import server_of
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

NAME = "v1.36.3-all"
APART_S = 7.3


def moved(line: bytes, seconds: float) -> bytes:
    """An entry as a server writes it whose clock is ahead."""
    event = orjson.loads(line)
    for name in ("requestReceivedTimestamp", "stageTimestamp"):
        at_ns = parse_rfc3339(event[name])
        event[name] = format_rfc3339(at_ns + int(seconds * SECOND))
    return orjson.dumps(event)


def of_second_server(line: bytes) -> bool:
    """Whether the request came by the load balancer, as those of users and kubelets do."""
    return b'"system:serviceaccount:kube-system' not in line[:2000]


def imported(tmp_path, **files: list[bytes]):
    names = []
    for name, lines in files.items():
        path = tmp_path / f"{name}.log"
        path.write_bytes(b"\n".join(lines) + b"\n")
        names.append(str(path))
    target = tmp_path / "trace"
    (result,) = import_files(ImportRequest(names, target, header_of(NAME)))
    return TraceReader(target), result


def report(reader):
    return Judge(reader, resolve_era(reader, None, None)).report()


@pytest.mark.parametrize("seconds", [APART_S, -APART_S])
def test_a_clock_that_differs_is_put_right_by_the_revisions(tmp_path, seconds):
    lines = shipped(NAME)
    one = [line for line in lines if not of_second_server(line)]
    two = [line for line in lines if of_second_server(line)]
    assert len(one) > 500
    assert len(two) > 500
    (tmp_path / "together").mkdir()
    alone, _ = imported(tmp_path / "together", audit=lines)
    reader, result = imported(tmp_path, one=one, two=[moved(line, seconds) for line in two])
    remark = next(text for text in result.remarks if "clock" in text)
    assert ("behind" if seconds < 0 else "ahead") in remark
    columns = ("stream", "type", "uid", "recv_ns", "not_before_ns", "rv", "rv_after")
    told, right = (
        {
            (r["stream"], r["type"], r["uid"], r["rv"]): r
            for r in trace.table(columns, streams=["jobs", "pods", "cronjobs"]).to_pylist()
            if r["rv_after"] is None and r["type"] != "CALL"
        }
        for trace in (reader, alone)
    )
    assert told.keys() == right.keys()
    off = [abs(told[key]["recv_ns"] - right[key]["recv_ns"]) for key in told]
    assert max(off) < SECOND // 20
    found = report(reader)
    assert found.divergences == []
    assert sum(j.verdict is Verdict.UNKNOWABLE for j in found.judgements) < 20


def mixed(seconds: float) -> list[bytes]:
    return [moved(x, seconds) if of_second_server(x) else x for x in shipped(NAME)]


def test_one_file_of_servers_whose_clocks_differ_is_refused(tmp_path):
    with pytest.raises(TraceFormatError, match=r"clocks differ by 7\.\d s .* a file of its own"):
        imported(tmp_path, audit=mixed(APART_S))


def test_a_small_difference_in_one_file_widens_what_is_known_of_the_order(tmp_path):
    reader, _ = imported(tmp_path, audit=mixed(0.4))
    assert report(reader).divergences == []


def test_a_write_without_effect_is_no_sign_of_another_clock(tmp_path):
    """It is answered with a revision that was there before the log began."""
    old = entry("patch", "jobs", "three", at_s=60, response=job(rv=3), user="alice")
    made = [
        entry("create", "pods", f"p{n}", at_s=n, response=pod(f"p{n}", rv=10 + n), code=201)
        for n in range(50)
    ]
    path = write(tmp_path / "a.log", [*made, old])
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert result.times == ""
    assert not [text for text in result.remarks if "clock" in text]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("n1/audit-2026-11-21T05-42-44.123.log.gz", "n1/audit.log", True),
        ("audit-1.log", "audit-2.log", False),
        ("n1/audit.log", "n2/audit.log", False),
    ],
)
def test_rotated_files_are_of_one_server(one, two, same):
    assert (server_of(one) == server_of(two)) is same


#: A status that was written in time, as the shipped trace has it.
IN_TIME, HANDLED = "2026-11-21T05:45:23.389552Z", "2026-11-21T05:45:23Z"
REVISION = b'"resourceVersion":"2440"'
WAITED_S = 12


def waited(line: bytes) -> bytes:
    """The line if the API server had let the request for that status wait before it handled it.

    The write gets a revision as new as those beside it, one that is no other row's, and the time
    that a server sets as it handles a request. All that names that revision names the other.
    """
    if REVISION not in line:
        return line
    line = line.replace(REVISION, b'"resourceVersion":"2456"')
    for name in (IN_TIME, HANDLED):
        later = format_rfc3339(parse_rfc3339(name) + WAITED_S * SECOND)
        line = line.replace(b'"%s"' % name.encode(), b'"%s"' % later.encode())
    return line


def test_a_write_that_took_long_is_no_lateness_of_the_controller(tmp_path):
    """Only the log tells that the request came in time, before half a minute of silence.

    The row alone, without its revision and time, would be a watch that was late.
    """
    lines = shipped(NAME)
    place = TRACES / NAME / "watch.jsonl.zst"
    with place.open("rb") as file:
        seen = zstandard.ZstdDecompressor().stream_reader(file).read().splitlines()
    assert not any(b'"resourceVersion":"2456"' in text for text in (*seen, *lines))
    rows = [orjson.loads(waited(text)) for text in seen]
    (row,) = (
        row
        for row in rows
        if row["type"] == "MODIFIED" and row["object"]["metadata"]["resourceVersion"] == "2456"
    )
    row["recv"] += WAITED_S * SECOND
    rows.sort(key=lambda row: row["recv"])
    watch, log = tmp_path / "watch.jsonl", tmp_path / "audit.log"
    watch.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    log.write_bytes(b"\n".join(map(waited, lines)) + b"\n")
    late = {}
    for name, others in (("watch", ()), ("both", (str(log),))):
        request = ImportRequest([str(watch)], tmp_path / name, header_of(NAME), others=others)
        import_files(request)
        late[name] = [j.subject for j in report(TraceReader(tmp_path / name)).divergences]
    assert late == {"watch": ["status"], "both": []}
