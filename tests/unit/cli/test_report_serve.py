"""`report --serve`: the page and its answers, for one browser on this machine and for nobody else."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import duckdb
import orjson
import pytest
from click.testing import CliRunner

from tests.sql.conftest import session_of, trace_path  # noqa: F401 - fixtures
from tests.support.pages import data_of
from tests.support.watchlog import START_NS, job, line, listed, write_log
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.base.errors import UsageError
from tracekit.base.time_input import ALWAYS
from tracekit.cli.import_ import import_
from tracekit.cli.report_serve import serve_report
from tracekit.report.html import happenings
from tracekit.report.html.data import report_data
from tracekit.report.serving import answers as answers_module
from tracekit.report.serving.answers import Answers
from tracekit.report.serving.server import ReportServer
from tracekit.sql.findings import diagnosis_of
from tracekit.sql.session import Session


@pytest.fixture(scope="module")
def session(session_of):  # noqa: F811
    return session_of("v1.36.3-troubles")


@pytest.fixture(scope="module")
def server(session) -> Iterator[ReportServer]:
    server = ReportServer(Answers(session, None, ALWAYS, None), address="127.0.0.1", port=0)
    server.judge()
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server
    server.stop()
    thread.join()
    server.close()


@pytest.fixture(scope="module")
def page(session) -> dict:
    return report_data(session)


def ask(server: ReportServer, what: str = "", host: str | None = None, **values: object):
    path = f"{urlsplit(server.url).path}{what}?{urlencode(values)}"
    return server.answer(host or urlsplit(server.url).netloc, path)


def found(server: ReportServer, what: str, **values: object):
    code, _, body = ask(server, what, **values)
    assert code == 200, body
    return orjson.loads(body)


def test_only_who_was_told_the_address_is_answered(server: ReportServer) -> None:
    here = urlsplit(server.url)
    assert here.hostname == "127.0.0.1"
    assert len(here.path) > 30
    assert ask(server)[0] == 200
    for path in (
        "/",
        "/job",
        f"/x{here.path[1:]}",
        here.path[:-2] + "/",
        "//",
        "/%00/",
        here.path[:-1] * 2,
    ):
        assert server.answer(here.netloc, path)[0] == 404, path


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example:{port}",  # a name of somebody else's that resolves to 127.0.0.1
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost:{port}:{port}",
        "[::2]:{port}",
    ],
)
def test_a_name_of_somebody_else_is_not_answered(server: ReportServer, host: str) -> None:
    code, _, body = ask(server, host=host.format(port=server.port) or " ")
    assert code == 421
    assert b"tracekit-" not in body


def test_over_the_wire_it_only_reads(server: ReportServer) -> None:
    here = urlsplit(server.url)

    def asked(method: str, headers: dict[str, str] = {}):  # noqa: B006
        wire = HTTPConnection("127.0.0.1", server.port, timeout=20)
        wire.request(method, here.path, headers=headers)
        answer = wire.getresponse()
        return answer, answer.read()

    answer, body = asked("GET")
    assert answer.status == 200
    assert answer.getheader("Cache-Control") == "no-store"
    assert answer.getheader("X-Frame-Options") == "DENY"
    assert answer.getheader("Access-Control-Allow-Origin") is None
    policy = re.search(rb'Content-Security-Policy" content="([^"]+)"', body)
    assert policy is not None
    assert policy[1].startswith(b"default-src &#x27;none&#x27;")
    assert b"connect-src &#x27;self&#x27;" in policy[1]
    assert asked("HEAD")[1] == b""
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        assert asked(method)[0].status == 501
    assert asked("GET", {"Sec-Fetch-Site": "cross-site"})[0].status == 421


def test_it_listens_on_this_machine_alone(session) -> None:
    with pytest.raises(UsageError, match="is not this machine alone"):
        ReportServer(Answers(session, None, ALWAYS, None), address="0.0.0.0", port=0)  # noqa: S104


def test_a_port_that_is_taken_is_one_sentence(server: ReportServer, session) -> None:
    with pytest.raises(UsageError, match="choose another with --port"):
        ReportServer(Answers(session, None, ALWAYS, None), address="127.0.0.1", port=server.port)


def test_the_page_says_what_the_file_says(server: ReportServer, page) -> None:
    served = data_of(ask(server)[2].decode())
    for name in (
        "findings",
        "crons",
        "leaders",
        "gaps",
        "judged",
        "divergences",
        "running",
        "edits",
    ):
        assert served[name] == orjson.loads(orjson.dumps(page[name], default=str)), name
    assert [job["job"] for job in served["jobs"]] == [job["job"] for job in page["jobs"]]
    assert served["served"]["jobs"] == len(page["jobs"])
    assert sum(row["pods_failed"] for row in served["served"]["totals"]) == sum(
        job["pods_failed"] for job in page["jobs"]
    )


def test_the_details_of_a_job_are_those_of_the_file(server: ReportServer, page) -> None:
    job = next(job for job in page["jobs"] if job["job"] == "overrun")
    details = found(
        server, "job", namespace=job["namespace"], uid=job["job_uid"], start=page["start_ns"]
    )
    plain = orjson.loads(orjson.dumps(job, default=str))
    for name in ("account", "history", "events", "logs"):
        assert details[name] == plain[name], name
    assert len(details["actions"]) == len(job["actions"])
    assert ask(server, "job", namespace="t-troubles", uid="none of it")[0] == 404


def test_what_happened_and_who_wrote_are_those_of_the_file(server: ReportServer, page) -> None:
    start = int(page["start_ns"])
    whole = {"from": start - 10**9, "to": start + 10**15, "start": start}
    answer = found(server, "happenings", **whole)
    rows = orjson.loads(orjson.dumps(page["happenings"]))
    assert answer["rows"] == rows[: len(answer["rows"])]
    troubles = found(server, "happenings", troubles=1, **whole)
    assert troubles["count"] == sum(row[6] for row in page["happenings"]) > 0
    wrote = found(server, "writes", **whole)
    assert sum(n for _, n in wrote["actors"]) == wrote["count"]
    (actor, n) = wrote["actors"][0]
    mine = found(server, "writes", actor=actor, **whole)
    assert mine["count"] == n
    assert {row[6] for row in mine["rows"]} == {actor}


def test_what_the_page_wrote_out_is_found_again(tmp_path: Path) -> None:
    """The page knows a namespace, a uid and a user only as it shows them."""
    here, uid, actor = "sh\x1bop", "u\u202e1", "eve\u2066"
    written = {
        "manager": actor, "operation": "Update", "apiVersion": "batch/v1",
        "time": "2026-11-21T05:42:42Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:parallelism": {}}},
    }  # fmt: skip
    theirs = job("three")
    theirs["metadata"] |= {"namespace": here, "uid": uid, "managedFields": [written]}
    log = [*listed("jobs", 5), line("jobs", "ADDED", theirs, at_ns=START_NS + 10**9)]
    result = CliRunner().invoke(
        import_, ["watch", str(write_log(tmp_path / "log", log)), "-o", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    with closing(ReportServer(
        Answers(Session([tmp_path / "out"]), None, ALWAYS, None), address="127.0.0.1", port=0
    )) as served:  # fmt: skip
        page = data_of(ask(served)[2].decode())
        (drawn,) = page["jobs"]
        assert (drawn["namespace"], drawn["job_uid"]) == ("sh\\u001bop", "u\\u202e1")
        details = found(served, "job", namespace=drawn["namespace"], uid=drawn["job_uid"])
        assert details["history"]
        part = data_of(ask(served, namespace=page["served"]["namespaces"][0])[2].decode())
        assert [each["job"] for each in part["jobs"]] == ["three"]
        ((who, n),) = found(served, "writes")["actors"]
        assert found(served, "writes", actor=who)["count"] == n == 1


def test_an_answer_about_a_long_time_says_where_it_ends(server, page, monkeypatch) -> None:
    monkeypatch.setattr(happenings, "MAX_LOOKED_AT", 100)
    start = int(page["start_ns"])
    part = found(server, "happenings", start=start, **{"from": start})
    assert 0 < part["until"] < page["span_ms"]
    assert max(row[0] for row in part["rows"]) <= part["until"]
    more = found(server, "happenings", start=start, **{"from": start + int(part["until"] * 10**6)})
    assert more["until"] > part["until"]


def test_what_is_seen_is_there_before_the_trace_was_judged(session, page, monkeypatch) -> None:
    judged: list[str] = []
    monkeypatch.setattr(
        answers_module, "diagnosis_of", lambda of: judged.append("once") or diagnosis_of(of)
    )
    server = ReportServer(Answers(session, None, ALWAYS, None), address="127.0.0.1", port=0)
    with closing(server):
        first = data_of(ask(server)[2].decode())
        assert judged == []
        assert found(server, "judged") is False
        assert first["served"]["judged"] is False
        assert (first["findings"], first["judged"], first["divergences"]) == ([], None, [])
        assert [job["job"] for job in first["jobs"]] == [job["job"] for job in page["jobs"]]
        # Who asks for more has it judged.
        job = page["jobs"][0]
        asked = {"namespace": job["namespace"], "uid": job["job_uid"], "start": page["start_ns"]}
        assert found(server, "job", **asked)["account"] is not None
        assert found(server, "judged") is True
        server.judge()
        assert judged == ["once"]
        then = data_of(ask(server)[2].decode())
        assert then["served"]["judged"] is True
        assert [f["id"] for f in then["findings"]] == [f["id"] for f in page["findings"]]


def test_the_details_of_a_job_that_a_page_has_need_no_view_of_all_jobs(session, page) -> None:
    answers = Answers(session, None, ALWAYS, None)
    answers.judge()
    answers.page({})
    asked = " ".join(
        query
        for query in queries_of(
            session,
            lambda: [
                answers.job(
                    {
                        "namespace": job["namespace"],
                        "uid": job["job_uid"],
                        "start": page["start_ns"],
                    }
                )
                for job in page["jobs"][:2]
            ],
        )
    )
    assert "job_history" in asked
    for view in ("attempts", "pod_phases", "actions"):
        assert f"FROM {view}" not in asked


def queries_of(session, do: Callable[[], object]) -> list[str]:
    """What is asked of a session meanwhile."""
    queries: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("each_row", "columns"):
            original = getattr(session, name)
            patch.setattr(
                session,
                name,
                lambda query, original=original, **values: (
                    queries.append(query) or original(query, **values)
                ),
            )
        do()
    return queries


def test_a_page_is_made_once(server: ReportServer, monkeypatch) -> None:
    first = ask(server, words="made once")[2]
    monkeypatch.setattr(Answers, "page", None)
    assert ask(server, words="made once")[2] == first


def test_a_part_is_asked_for(server: ReportServer) -> None:
    data = data_of(ask(server, words="overrun")[2].decode())
    assert {job["job"] for job in data["jobs"]} == {"overrun"}
    failed = data_of(ask(server, outcome="Failed")[2].decode())
    assert failed["jobs"]
    assert {job["outcome"] for job in failed["jobs"]} == {"Failed"}
    assert data_of(ask(server, namespace="nowhere")[2].decode())["jobs"] == []


def test_answers_are_bounded_and_those_in_trouble_come_first(
    server: ReportServer, page, monkeypatch
) -> None:
    monkeypatch.setattr(answers_module, "MAX_JOBS", 5)
    monkeypatch.setattr(server, "_pages", {})  # another test may have asked for it before
    data = data_of(ask(server)[2].decode())
    assert len(data["jobs"]) == 5
    assert data["served"]["jobs"] == len(page["jobs"])
    troubled = {
        case[2] for finding in page["findings"] if finding["severity"] != "info"
        for case in finding["cases"] if case[0] == "Job"
    }  # fmt: skip
    assert {job["job"] for job in data["jobs"]} <= troubled
    # What was found is told of all.
    assert [f["id"] for f in data["findings"]] == [f["id"] for f in page["findings"]]


@pytest.mark.parametrize(
    "asked",
    [
        {"from": "soon"}, {"words": "x" * 400}, {"from": "9" * 40}, {"start": "x"},
        {"to": str(-(1 << 63) - 1)}, {"start": str(1 << 63)}, {"start": "9" * 1800},
    ],
    ids="-".join,
)  # fmt: skip
def test_nonsense_is_one_sentence(server: ReportServer, asked: dict[str, str]) -> None:
    code, kind, body = ask(server, "happenings", **asked)
    assert (code, kind) == (400, "text/plain; charset=utf-8")
    assert b"\n" not in body
    assert b" is no time in ns since 1970" in body or b" characters" in body


@pytest.mark.parametrize("start", [-(1 << 63), (1 << 63) - 1])
def test_times_are_counted_since_any_moment(server: ReportServer, start: int) -> None:
    assert ask(server, "happenings", start=start)[0] == 200


def test_an_address_that_is_none_is_answered(server: ReportServer) -> None:
    code, _, body = server.answer(urlsplit(server.url).netloc, "http://[")
    assert (code, body.count(b"\n")) == (400, 0)


def test_what_is_too_long_is_refused(server: ReportServer) -> None:
    assert ask(server, words="x" * 5000)[0] == 414


def test_what_hides_or_reorders_text_is_written_out_in_answers(server, monkeypatch) -> None:
    text = "a\u202eb\x1b[2J<script>"
    monkeypatch.setattr(
        server, "_questions", {"job": lambda asked: {"rows": [[text, asked.get("uid")]]}}
    )
    body = ask(server, "job", uid="\u2066")[2].decode()
    assert body.isascii()
    assert "<" not in body
    assert orjson.loads(body)["rows"] == [["a\\u202eb\\u001b[2J<script>", "\\u2066"]]


def test_ctrl_c_ends_it(trace_path, tmp_path: Path) -> None:  # noqa: F811
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", "tracekit", "report",
         trace_path("v1.36.3-troubles"), "--serve"],
        stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        url = next(
            m[0]
            for line in process.stderr
            if (m := re.search(r"http://127\.0\.0\.1:\d+/\S+/", line))
        )
        socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=20).close()
        process.send_signal(signal.SIGINT)
        try:
            status = process.wait(60)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            pytest.fail(f"it goes on:\n{process.stderr.read()}")
        assert status == 0
        assert "Ended" in process.stderr.read()
        assert list(tmp_path.iterdir()) == []
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("made_of_it", [None, duckdb.TransactionException("aborted")])
def test_ctrl_c_that_a_library_swallowed_ends_it(
    session, made_of_it: Exception | None, monkeypatch, capsys
) -> None:
    """Amid a destructor, or a callback of a library, what a handler raises is lost or made another."""

    def judge(_: ReportServer) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        if made_of_it is not None:
            raise made_of_it

    monkeypatch.setattr(ReportServer, "judge", judge)
    serve_report(session, None, ALWAYS, None, port=0)
    assert capsys.readouterr().err.endswith("Ended\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "1"], "--serve"),
        (["--serve", "-o", "x.html"], "leave out -o"),
        (["--serve", "--force"], "leave out -o"),
    ],
)
def test_what_does_not_go_together_is_said(run, trace_path, options, said) -> None:  # noqa: F811
    code, _, err = run("report", trace_path("v1.36.3-troubles"), *options)
    assert code == 2
    assert said in err
