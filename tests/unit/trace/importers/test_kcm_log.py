"""The controller manager's own log is a second witness: beside a record, of what left no write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.watchlog import job
from tests.unit.trace.importers.test_kubectl_text import DESCRIBED
from tracekit.base.errors import TraceFormatError
from tracekit.cli.main import main
from tracekit.trace.importers.kcmlog import call_of, is_kcm_log, read_line
from tracekit.trace.importers.kinds import recognise
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.importers.sample import Sample
from tracekit.trace.importers.source import LineSource
from tracekit.trace.reading.reader import TraceReader

SECOND = 10**9
#: 2026-11-26T13:42:45Z.
AT_NS = 1_795_700_565 * SECOND
#: Of a kube-controller-manager of 1.36.3 at -v=4, under a quota.
TEXT = r"""I1126 13:42:43.140727   10366 flags.go:64] FLAG: --concurrent-job-syncs="5"
I1126 13:42:43.141008   10366 flags.go:64] FLAG: --version="false"
I1126 13:42:43.145295   10366 controllermanager.go:204] "Starting" version="v1.36.3"
I1126 13:42:44.992026   10366 job_controller.go:716] "enqueueing job" logger="job-controller" key="t-quota/squeezed" delay="0s"
I1126 13:42:45.002742   10366 event.go:389] "Event occurred" logger="job-controller" object="t-quota/squeezed" fieldPath="" kind="Job" apiVersion="batch/v1" type="Normal" reason="SuccessfulCreate" message="Created pod: squeezed-m2jxk"
I1126 13:42:45.008299   10366 event.go:389] "Event occurred" logger="job-controller" object="t-quota/squeezed" fieldPath="" kind="Job" apiVersion="batch/v1" type="Warning" reason="FailedCreate" message="Error creating: pods \"squeezed-v9zcp\" is forbidden: exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2"
I1126 13:42:45.011499   10366 job_controller.go:915] "Finished syncing job" key="t-quota/squeezed" elapsed="19.404837ms"
I1126 13:42:46.834149   10366 cronjob_controllerv2.go:230] "Re-queuing cronjob" cronjob="t-cronjobs/allow" requeueAfter="13.265909255s"
I1126 13:43:00.143522   10366 cronjob_controllerv2.go:218] "Error reconciling cronjob" cronjob="t-cronjobs/taken" err="the server could not find the requested resource"
"""
#: The same run with --logging-format=json.
JSON = r"""{"ts":1795700563140.727,"caller":"flag/flags.go:64","msg":"FLAG: --concurrent-job-syncs=\"5\"","v":1}
{"ts":1795700563145.295,"caller":"app/controllermanager.go:204","msg":"Starting","v":0,"version":"v1.36.3"}
{"ts":1795700565002.742,"caller":"record/event.go:389","msg":"Event occurred","v":0,"object":{"name":"squeezed","namespace":"t-quota"},"fieldPath":"","kind":"Job","apiVersion":"batch/v1","type":"Normal","reason":"SuccessfulCreate","message":"Created pod: squeezed-m2jxk"}
{"ts":1795700565008.299,"caller":"record/event.go:389","msg":"Event occurred","v":0,"object":{"name":"squeezed","namespace":"t-quota"},"fieldPath":"","kind":"Job","apiVersion":"batch/v1","type":"Warning","reason":"FailedCreate","message":"Error creating: pods \"squeezed-v9zcp\" is forbidden: exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2"}
{"ts":1795700565011.499,"caller":"job/job_controller.go:915","msg":"Finished syncing job","v":4,"key":"t-quota/squeezed","elapsed":"19.404837ms"}
"""
SEEN = [
    ("jobs", "event", "squeezed", None, "SuccessfulCreate"),
    ("pods", "create", "squeezed", 403, "Forbidden"),
    ("jobs", "sync", "squeezed", None, None),
]


def calls(path: Path) -> list[tuple]:
    rows = TraceReader(path).table(
        ("stream", "verb", "job", "code", "reason", "recv_ns", "not_before_ns"), types=["CALL"]
    )
    return [tuple(row.values()) for row in rows.sort_by("recv_ns").to_pylist()]


@pytest.fixture
def record(tmp_path: Path) -> str:
    """A record of the minute in which the log was written."""
    lines = []
    for number, at_ns in enumerate((AT_NS - 60 * SECOND, AT_NS + 60 * SECOND)):
        obj = {"apiVersion": "batch/v1", "kind": "Job", **job(f"job-{number}")}
        lines.append({"recv": at_ns, "resource": "jobs", "type": "ADDED", "object": obj})
    path = tmp_path / "record.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def imported(tmp_path: Path, record: str, text: str) -> Path:
    log = tmp_path / "kcm.log"
    log.write_text(text)
    import_files(ImportRequest([str(log)], tmp_path / "both", kind="kcm-log", others=[record]))
    return tmp_path / "both"


@pytest.mark.parametrize("text", [TEXT, JSON], ids=["text", "json"])
def test_syncs_events_and_refusals_are_kept_beside_a_record(
    text: str, tmp_path: Path, record: str
) -> None:
    both = imported(tmp_path, record, text)
    found = [row for row in calls(both) if row[2] == "squeezed"]
    assert [row[:5] for row in found] == SEEN
    began_ns, ended_ns = found[-1][6], found[-1][5]
    assert ended_ns == AT_NS + 11_499_000
    assert ended_ns - began_ns == 19_404_837
    header = TraceReader(both).header
    assert header.kubernetes_version == "v1.36.3"
    assert header.controller_flags == ("--concurrent-job-syncs=5",)


def test_what_it_does_not_tell_is_counted(tmp_path: Path, record: str) -> None:
    log = tmp_path / "kcm.log"
    late = TEXT.splitlines()[6].replace("I1126", "I1127")
    log.write_text(f"{TEXT}{late}\nprose\n")
    results = import_files(ImportRequest([record], tmp_path / "both", others=[str(log)]))
    (result,) = (result for result in results if result.kind == "kcm-log")
    assert result.problems == {
        "lines about other things, left out": 1,
        "lines from before or after the record, left out": 1,
        "lines that are none of klog's, left out": 1,
    }
    kept = sum(result.calls.values())
    assert kept == 5
    # Two flags and the version are told by the header.
    assert kept + sum(result.problems.values()) + 3 == len(TEXT.splitlines()) + 2


def test_a_bundle_takes_what_its_log_tells(tmp_path: Path) -> None:
    """A look at one instant: no line is of its time, but the version and the flags are."""
    pods = tmp_path / "bundle" / "namespaces" / "kube-system" / "pods"
    pods.mkdir(parents=True)
    (pods / "current.log").write_text(TEXT)
    listed = {"apiVersion": "v1", "kind": "List", "items": [], "metadata": {}}
    obj = {"apiVersion": "batch/v1", "kind": "Job", **job("a")}
    (tmp_path / "bundle" / "jobs.json").write_text(json.dumps({**listed, "items": [obj]}))
    import_files(ImportRequest([str(tmp_path / "bundle")], tmp_path / "trace"))
    reader = TraceReader(tmp_path / "trace")
    assert reader.header.kubernetes_version == "v1.36.3"
    assert reader.header.controller_flags == ("--concurrent-job-syncs=5",)
    assert reader.header.sealed_from == 0
    assert {stream.stream for stream in reader.streams()} == {"jobs"}


def test_alone_it_is_no_trace(tmp_path: Path) -> None:
    log = tmp_path / "kcm.log"
    log.write_text(TEXT)
    with pytest.raises(TraceFormatError, match=r"import RECORD --with .*kcm\.log"):
        import_files(ImportRequest([str(log)], tmp_path / "trace"))


def test_beside_text_for_people_alone_it_is_left_out_and_the_text_read(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "kube-controller-manager.log").write_text(TEXT)
    (folder / "describe.txt").write_text(DESCRIBED)
    (result,) = import_files(ImportRequest([str(folder)], tmp_path / "trace"))
    assert result.kind == "kubectl-text"
    (remark,) = [each for each in result.remarks if "left out" in each]
    assert remark.startswith("1 file that a controller manager wrote")


@pytest.mark.full
def test_explain_tells_its_syncs_with_v_only(
    tmp_path: Path, record: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TEXT.replace("t-quota/squeezed", "ns/job-0")
    both = str(imported(tmp_path, record, text))
    lines = {}
    for flag in ([], ["-v"]):
        with pytest.raises(SystemExit):
            main(["explain", *flag, both, "ns/job-0"])
        lines[bool(flag)] = capsys.readouterr().out.splitlines()
    end = next(at for at, line in enumerate(lines[True]) if "has the end of a sync" in line)
    assert lines[True][end].startswith("2026-11-26 13:42:45.011  controller manager's log")
    assert lines[True][end + 1].strip() == "it began at 2026-11-26 13:42:44.992 and took 19.4 ms"
    assert not any("has the end of a sync" in line for line in lines[False])


LINE = TEXT.splitlines()[6]
WRAPPED = {
    "plain": LINE,
    "kubectl logs --timestamps": f"2026-11-26T13:42:45.012000000Z {LINE}",
    "kubectl logs --prefix": f"[pod/kube-controller-manager-a/kube-controller-manager] {LINE}",
    "CRI": f"2026-11-26T13:42:45.012000000Z stderr F {LINE}",
    "Docker": json.dumps(
        {"log": LINE + "\n", "stream": "stderr", "time": "2026-11-26T13:42:45.012Z"},
        separators=(",", ":"),
    ),
    "1.20": 'I1126 13:42:45.011499       1 job_controller.go:500] Finished syncing job '
    '"t-quota/squeezed" (19.404837ms)',
}  # fmt: skip


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED.keys())
def test_every_wrapping_is_the_same_line(text: str, tmp_path: Path) -> None:
    line = read_line(text.encode(), AT_NS)
    assert line is not None
    call = call_of(line)
    assert call is not None
    assert (call.recv_ns, call.origin.not_before_ns) == (AT_NS + 11_499_000, AT_NS - 7_905_837)
    assert (call.namespace, call.name, call.origin.verb) == ("t-quota", "squeezed", "sync")
    path = tmp_path / "log"
    path.write_text(f"{text}\n")
    kind = recognise(LineSource(str(path)))
    assert kind is not None
    assert kind.name == "kcm-log"


STORED = {
    "CloudWatch": lambda lines: json.dumps({"events": [{"message": x, "timestamp": 1} for x in lines]}, indent=4),
    "CloudWatch, subscribed": lambda lines: json.dumps({"logEvents": [{"id": "1", "message": x} for x in lines]}),
    "Azure Monitor": lambda lines: "".join(
        json.dumps({"category": "kube-controller-manager", "properties": {"log": f"{x}\n", "stream": "stderr"}}) + "\n"
        for x in lines
    ),
    "Cloud Logging": lambda lines: json.dumps([{"insertId": "x", "textPayload": x} for x in lines], indent=2),
    "Loki": lambda lines: "".join(json.dumps({"labels": {}, "line": x, "timestamp": "t"}) + "\n" for x in lines),
    "journalctl": lambda lines: "".join(f"Nov 26 13:42:45 host k3s[812]: {x}\n" for x in lines),
    "journalctl -o json, some as numbers": lambda lines: "".join(
        json.dumps({"_PID": "1", "MESSAGE": list(x.encode()) if "sync" in x else x}) + "\n" for x in lines
    ),
    "journalctl -o export": lambda lines: "".join(
        f"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1\n_PID=1\nMESSAGE={x}\n\n" for x in lines
    ),
    "logcli": lambda lines: "".join(f'2026-11-26T13:42:45Z {{app="kcm", pod="a"}} {x}\n' for x in lines),
    "Logs Insights, CSV": lambda lines: "@timestamp,@message\n" + "".join(
        '2026-11-26 13:42:45.012,"' + x.replace('"', '""') + '"\n' for x in lines
    ),
    "journalctl -o json": lambda lines: "".join(json.dumps({"MESSAGE": x, "_PID": "1"}) + "\n" for x in lines),
}  # fmt: skip


@pytest.mark.parametrize("text", [TEXT, JSON], ids=["text", "json"])
@pytest.mark.parametrize("store", STORED)
def test_what_a_store_gives_back_is_the_same_log(
    store: str, text: str, tmp_path: Path, record: str
) -> None:
    log = STORED[store](text.splitlines())
    found = [row for row in calls(imported(tmp_path, record, log)) if row[2] == "squeezed"]
    assert [row[:5] for row in found] == SEEN
    kind = recognise(LineSource(str(tmp_path / "kcm.log")))
    assert kind is not None
    assert kind.name == "kcm-log"


def test_a_dump_with_such_a_log_in_it_is_a_dump(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "PodList", "items": [], "metadata": {}}
    path = tmp_path / "dump"
    head = json.dumps(listed, indent=4)
    path.write_text(
        f"{head}\n==== START logs for container kube-controller-manager ====\n{TEXT * 5}"
    )
    kind = recognise(LineSource(str(path)))
    assert kind is not None
    assert kind.name == "kubectl"


def test_an_event_of_the_old_form_is_read() -> None:
    text = (
        'I1126 13:42:45.008299       1 event.go:291] Event(v1.ObjectReference{Kind:"Job", '
        'Namespace:"a", Name:"b", UID:"u", APIVersion:"batch/v1", ResourceVersion:"1", '
        "FieldPath:\"\"}): type: 'Warning' reason: 'FailedCreate' Error creating: pods \"b-x\" is "
        "forbidden: exceeded quota"
    )
    line = read_line(text.encode(), AT_NS)
    assert line is not None
    call = call_of(line)
    assert call is not None
    assert (call.stream, call.job, call.code) == ("pods", "b", 403)


def test_the_year_is_the_nearest() -> None:
    new_year = b'I0101 00:00:01.000000       1 job_controller.go:1] "x"'
    line = read_line(new_year, AT_NS + 40 * 86_400 * SECOND)
    assert line is not None
    assert line.at_ns == 1_798_761_601 * SECOND  # 2027


@pytest.mark.parametrize(
    "text",
    [
        'I1126 13:42:45.1  1 kubelet.go:1] "Finished syncing job" key="a/b"',
        'I9999 13:42:45.111111  1 job_controller.go:1] "x"',
        '{"ts":"x","caller":"job_controller.go:1","msg":"x"}',
        '{"ts":1e99,"msg":"x"}',
        '{"msg":7}',
        "",
    ],
)
def test_what_is_no_line_is_none(text: str) -> None:
    assert read_line(text.encode(), AT_NS) is None


@pytest.mark.parametrize(
    "line",
    [
        (
            'I0130 16:29:58.906370       1 event.go:291] "Event occurred" object="a/b" kind="Job" '
            'apiVersion="batch/v1" type="Normal" reason="Completed" message="Job completed"'
        ),
        (
            'I0904 00:48:50.557161    6929 event.go:221] Event(v1.ObjectReference{Kind:"Job", '
            'Namespace:"a", Name:"b", UID:"u"}): type: \'Normal\' reason: \'SuccessfulCreate\' Created'
        ),
    ],
)
def test_events_of_jobs_alone_tell_the_log(line: str) -> None:
    assert is_kcm_log(Sample(line.encode() + b"\n", whole=True))
