"""`tracekit report` and `tracekit export`: the data, the page, and every format read back."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

from tests.sql.conftest import EMPTY, session_of, trace_path  # noqa: F401 - fixtures
from tests.sql.test_session import HOSTILE, write_jobs
from tests.support.pages import DATA, data_of
from tests.support.traces import TRACES
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.base.escaping import for_csv, for_terminal
from tracekit.report.html import data, diffs
from tracekit.report.html.data import PHASES, report_data
from tracekit.report.html.diffs import flatten
from tracekit.report.html.page import embedded_json, report_page
from tracekit.sql.session import Session

NAME = "v1.36.3-restart"


@pytest.fixture(scope="module")
def counts(session_of):  # noqa: F811
    return session_of(NAME).rows(
        "SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM attempts) AS pods, "
        "(SELECT count(*) FROM actions WHERE kind <> 'CronJob') AS writes, "
        "(SELECT count(*) FROM pod_phases WHERE phase NOT IN ('Succeeded', 'Failed')) AS phases, "
        "(SELECT count(*) FROM attempts WHERE phase = 'Failed') AS failed"
    )[0]


def test_the_report_holds_every_job_pod_and_write(session_of, counts) -> None:  # noqa: F811
    data = report_data(session_of(NAME))
    assert len(data["jobs"]) == counts["jobs"]
    assert sum(len(job["pods"]) for job in data["jobs"]) == counts["pods"]
    assert sum(len(job["actions"]) for job in data["jobs"]) == counts["writes"]
    assert data["problems"] == []
    assert data["judged"]["pod-create"]
    assert max(n for _, n in data["running"]) > 1
    codes = {span[0] for job in data["jobs"] for pod in job["pods"] for span in pod[-1]}
    assert codes <= set(range(len(PHASES)))


def test_a_trace_without_a_row_has_a_report(session_of) -> None:  # noqa: F811
    """As every shipped one has: tests/replay/test_one_answer.py."""
    page = report_page(report_data(session_of(EMPTY)))
    assert data_of(page)["title"] == EMPTY


def test_the_report_of_one_job_holds_only_that(session_of) -> None:  # noqa: F811
    session = session_of(NAME)
    row = session.rows("SELECT namespace, job, pods FROM jobs WHERE pods > 1 ORDER BY ALL LIMIT 1")[
        0
    ]
    data = report_data(session, f"{row['namespace']}/{row['job']}")
    assert [(j["job"], len(j["pods"])) for j in data["jobs"]] == [(row["job"], row["pods"])]
    history = data["jobs"][0]["history"]
    assert any(path.startswith("status") for revision in history for path, _, _ in revision[4])


def test_the_report_of_a_namespace_holds_only_that(session_of) -> None:  # noqa: F811
    session = session_of(NAME)
    counted = session.rows("SELECT namespace, count(*) AS n FROM jobs GROUP BY 1 ORDER BY 2, 1")
    namespace, jobs = counted[-1]["namespace"], counted[-1]["n"]
    assert len(counted) > 1
    whole, own = report_data(session), report_data(session, namespace=namespace)
    assert [job["namespace"] for job in own["jobs"]] == [namespace] * jobs
    wanted = {
        job["job_uid"]: len(job["pods"]) for job in whole["jobs"] if job["namespace"] == namespace
    }
    assert {job["job_uid"]: len(job["pods"]) for job in own["jobs"]} == wanted
    wanted = [lane["name"] for lane in whole["crons"] if lane["namespace"] == namespace]
    assert [lane["name"] for lane in own["crons"]] == wanted
    assert 0 < sum(own["judged"]["event"].values()) < sum(whole["judged"]["event"].values())


def test_revisions_are_read_by_namespace_until_there_are_enough(
    session_of,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = session_of(NAME)
    whole = report_data(session)
    spaces = {job["namespace"] for job in whole["jobs"]}
    asked: list[str] = []
    ask = Session.tuples

    def counted(self: Session, query: str, **values: object) -> object:
        if "raw FROM internal._states" in query and "'jobs'" in query:
            asked.append(query)
        return ask(self, query, **values)

    monkeypatch.setattr(Session, "tuples", counted)
    monkeypatch.setattr(diffs, "_AT_A_TIME", 1)
    assert report_data(session) == whole
    assert len(asked) == len(spaces) > 2
    asked.clear()
    monkeypatch.setattr(data, "MAX_DIFF_ENTRIES", 1)
    assert "with every object diff" in report_data(session)["problems"][0]
    assert len(asked) == 1


def test_a_report_needs_no_network_and_forbids_it(session_of) -> None:  # noqa: F811
    page = report_page(report_data(session_of(NAME)))
    shell = DATA.sub("", page)
    assert "default-src 'none'" in shell.replace("&#x27;", "'")
    assert not re.findall(r'(?:src|href)="(?!data:)', shell)
    assert not re.findall(r"https?:", shell)


def test_hostile_names_stay_data_in_the_page(tmp_path: Path) -> None:
    name = HOSTILE + "</script><script>alert(2)</script><!--\u2028"
    session = Session([write_jobs(tmp_path / "t", name)])
    page = report_page(report_data(session))
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "alert(2)</" not in page
    assert data_of(page)["jobs"][0]["job"] == for_terminal(name).replace("\\x1b", "\\u001b")


def test_embedded_json_has_no_markup() -> None:
    text = embedded_json({"a": "<!--<script>&\u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["a"] == r"<!--<script>&\u2028\u2029"


def test_objects_are_flattened_by_name() -> None:
    flat = flatten({"status": {"conditions": [{"type": "Failed", "status": "True"}], "x": []}})
    assert flat == {
        "status.conditions[Failed].type": "Failed",
        "status.conditions[Failed].status": "True",
        "status.x": [],
    }


def test_the_command_does_not_overwrite(run, tmp_path: Path) -> None:  # noqa: F811
    target = tmp_path / "r.html"
    trace = TRACES / "incidents" / "counted-twice"
    assert run("report", trace, "-o", target)[0] == 0
    code, _, err = run("report", trace, "-o", target)
    assert (code, "--force" in err) == (2, True)
    assert run("report", trace, "nowhere/nothing", "-o", target, "--force")[0] == 2


#### Exports ####


@pytest.fixture
def exported(run, trace_path, tmp_path: Path):  # noqa: F811
    def export(kind: str) -> Path:
        target = tmp_path / kind
        assert run("export", trace_path(NAME), "--format", kind, "-o", target)[0] == 0
        return target

    return export


def test_perfetto_is_a_tree_of_tracks_with_paired_slices(exported, counts) -> None:
    trace = PerfettoTrace()
    trace.ParseFromString(exported("perfetto").read_bytes())
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor
        for p in trace.packet
        if p.HasField("track_descriptor")
    }
    names = Counter(t.name.split(" ")[0] for t in tracks.values())
    assert (names["Job"], names["pod"]) == (counts["jobs"], counts["pods"])
    assert all(t.parent_uuid in tracks for t in tracks.values() if t.HasField("parent_uuid"))
    depth: Counter[int] = Counter()
    last = 0
    begun, ended = set(), set()
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert packet.timestamp >= last
        last = packet.timestamp
        assert event.track_uuid in tracks
        depth[event.track_uuid] += {
            TrackEvent.TYPE_SLICE_BEGIN: 1,
            TrackEvent.TYPE_SLICE_END: -1,
        }.get(event.type, 0)
        assert depth[event.track_uuid] in (0, 1)
        begun |= set(event.flow_ids)
        ended |= set(event.terminating_flow_ids)
    assert set(depth.values()) == {0}
    assert begun == ended
    assert len(begun) >= counts["pods"]


def test_chrome_has_every_span_and_its_arrows(exported, counts) -> None:
    events = json.loads(exported("chrome").read_text())["traceEvents"]
    kinds = Counter(e["cat"] for e in events if e["ph"] == "X")
    assert kinds == {"job": counts["jobs"], "pod": counts["pods"], "phase": counts["phases"]}
    assert {e["id"] for e in events if e["ph"] == "s"} == {
        e["id"] for e in events if e["ph"] == "f"
    }
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")


def test_otlp_spans_have_their_parents_and_status(exported, counts) -> None:
    requests = [json.loads(line) for line in exported("otlp").read_text().splitlines()]
    assert len(requests) == counts["jobs"]
    failed = 0
    for request in requests:
        spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
        ids = {span["spanId"] for span in spans}
        assert len(ids) == len(spans)
        assert len({span["traceId"] for span in spans}) == 1
        assert [s for s in spans if "parentSpanId" not in s] == spans[:1]
        for span in spans:
            assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
            assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
            assert span.get("parentSpanId", span["spanId"]) in ids
            assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
            failed += span["status"].get("code") == 2 and span is not spans[0]
    assert failed == counts["failed"]


def test_jsonl_and_csv_have_the_same_rows_in_order_of_time(exported) -> None:
    lines = [json.loads(line) for line in exported("jsonl").read_text().splitlines()]
    with exported("csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [line["time_ns"] for line in lines] == sorted(line["time_ns"] for line in lines)
    assert [(str(r["time_ns"]), r["what"], r["name"]) for r in lines] == [
        (r["time_ns"], r["what"], r["name"]) for r in rows
    ]
    assert all(
        json.loads(row["attributes"]) == line["attributes"]
        for row, line in zip(rows, lines, strict=True)
    )


@pytest.mark.parametrize("kind", ["perfetto", "chrome", "otlp", "jsonl", "csv"])
def test_an_empty_trace_can_be_exported(run, trace_path, tmp_path: Path, kind: str) -> None:  # noqa: F811
    assert run("export", trace_path(EMPTY), "--format", kind, "-o", tmp_path / kind)[0] == 0


@pytest.mark.parametrize("kind", ["perfetto", "chrome", "otlp", "jsonl", "csv"])
def test_hostile_names_stay_data_in_every_export(run, tmp_path: Path, kind: str) -> None:  # noqa: F811
    name = HOSTILE + '\n",=1+1,</script>\u2028'
    write_jobs(tmp_path / "t", name)
    target = tmp_path / kind
    assert run("export", tmp_path / "t", "--format", kind, "-o", target)[0] == 0
    content = target.read_bytes()
    if kind == "perfetto":
        trace = PerfettoTrace()
        trace.ParseFromString(content)
        tracks = [p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")]
        assert any(name in track for track in tracks)
    elif kind == "csv":
        rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
        assert {row["job"] for row in rows} == {for_csv(name)}
        assert len({len(row) for row in rows}) == 1
    else:
        lines = content.decode().split("\n") if kind == "jsonl" else [content.decode()]
        documents = [json.loads(line) for line in lines if line]
        assert json.dumps(name)[1:-1] in json.dumps(documents)
