"""One audit event in each of the texts that programs write around it: behind, before and in quotes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.trace.importers.audit_logs import entry
from tests.unit.trace.importers.test_bundles import thing
from tests.unit.trace.importers.test_wrappers import bigquery, csv_of, gke, in_base64
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.audit.texts import is_csv
from tracekit.trace.importers.audit.wrappers import unwrap
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.importers.strangers import office
from tracekit.trace.importers.tables import first_rows, is_table

ENTRY = entry(
    "create",
    "jobs",
    "job-0",
    at_s=1,
    response=thing("Job", "shop", 0),
    code=201,
    audit_id="a-0",
)
TEXT = json.dumps(ENTRY, separators=(",", ":"))
QUOTED = json.dumps(TEXT)
KLOG = "I1128 10:00:00.000000       1 audit.go:42] "
RFC3164 = "<134>Nov 28 10:00:00 master kube-apiserver[812]: "
RFC5424 = '<134>1 2026-11-28T10:00:00Z master kube-apiserver 1 - [a@1 x="{1}"] '


def within(name: str, text: str) -> str:
    return json.dumps({name: text, "stream": "stdout"})


AMID: dict[str, tuple[str, str]] = {
    "klog": (KLOG + TEXT, "log line"),
    "klog in a shipper": (within("log", KLOG + TEXT + "\n"), "container log"),
    "syslog in a shipper": (within("message", RFC3164 + TEXT), "container log"),
    "structured syslog in a shipper": (within("message", RFC5424 + TEXT), "container log"),
    "logfmt": (f"time=2026-11-28T10:00:00Z level=info msg={QUOTED}", "log line"),
    "logfmt in a shipper": (within("log", f"level=info msg={QUOTED}\n"), "container log"),
    "logfmt in two shippers": (
        within("message", within("log", f"level=info msg={QUOTED} n=1\n")), "container log"
    ),
    "klog, structured": (f'{KLOG}"Audit" event={QUOTED} node="a {{b}}"', "log line"),
    "quoted": (QUOTED, "audit"),
    "quoted in a shipper": (within("log", QUOTED), "container log"),
    "a row of CSV without a head": (csv_of(["a", TEXT], []).strip(), "log line"),
    "Fluent Bit's stdout": (
        f'[0] kube.audit: [[1700000000.1, {{}}], {{"log"=>"{TEXT}", "stream"=>"stdout"}}]',
        "container log",
    ),
    "a cell of Markdown": (f"| 2026-11-21 05:56:42 | {TEXT} |", "log line"),
    "before braces": (f"2026/11/28 10:00:00 got: {TEXT} of {{x}}", "log line"),
    "before JSON": (f'2026/11/28 10:00:00 got: {TEXT} of {{"ip": "10.0.0.1"}}', "log line"),
    "base64 behind a stamp": (
        f'2026-11-28T10:00:00Z x {{"awslogs": {{"data": "{in_base64(ENTRY)}"}}}}', "eks"
    ),
    "CEF": (f"CEF:0|k8s|audit|1|1|e|1|msg={TEXT}", "log line"),
    "oc adm node-logs": (f"ip-10-0-1-2.ec2.internal {TEXT}", "openshift"),
    "a label": (f"audit: {TEXT}", "log line"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "shape"), AMID.values(), ids=AMID.keys())
def test_an_event_amid_text_is_found_whole(text: str, shape: str) -> None:
    ((said, event),) = unwrap(text.encode())
    assert (said, json.loads(event)) == (shape, ENTRY)


def flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of an event by dotted names, its bodies as they are."""
    found: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, dict) and name not in ("requestObject", "responseObject"):
            found |= flat(inner, f"{prefix}{name}.")
        else:
            found[prefix + name] = inner
    return found


def texts(row: dict[str, Any]) -> dict[str, str]:
    """The same where each field is a text."""
    return {n: v if isinstance(v, str) else json.dumps(v) for n, v in row.items()}


AUDIT = flat(ENTRY, "kubernetes.audit.")
TABLE = {"AuditId": "a-0", "Stage": "ResponseComplete", "Verb": "create",
         "ObjectRef": ENTRY["objectRef"], "ResponseObject": ENTRY["responseObject"]}  # fmt: skip
ELSEWHERE: dict[str, tuple[Any, str]] = {
    "Kibana's answer": ({"hits": [{"fields": {k: [v] for k, v in AUDIT.items()}}]}, "elastic"),
    "Splunk's fields": ({"results": [texts(flat(ENTRY))]}, "eks"),
    "Data Explorer": (
        {"Tables": [{"Columns": [{"ColumnName": n} for n in TABLE], "Rows": [[*TABLE.values()]]}]},
        "aks",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_an_event_of_which_a_store_keeps_the_fields_has_its_object(name: str) -> None:
    document, shape = ELSEWHERE[name]
    ((said, event),) = unwrap(json.dumps(document).encode())
    assert said == shape
    found = json.loads(event)
    assert (found["auditID"], found["verb"]) == ("a-0", "create")
    assert found["objectRef"] == ENTRY["objectRef"]
    assert found["responseObject"] == ENTRY["responseObject"]
    assert found.get("responseStatus", {"code": 201})["code"] == 201


def test_of_several_events_in_a_line_none_is_lost() -> None:
    two = [TEXT, TEXT.replace("a-0", "a-1")]
    counted = "".join(f"{len(RFC5424 + text)} {RFC5424}{text}" for text in two)
    ids = [json.loads(event)["auditID"] for _, event in unwrap(counted.encode())]
    assert ids == ["a-0", "a-1"]


@pytest.mark.parametrize("rest", [f"{'{' * 70} {TEXT} y", TEXT[:-9], f"{{{TEXT[:300]}}} y"])
def test_an_event_that_is_cut_beside_a_whole_one_is_counted(rest: str) -> None:
    (_, whole), (_, cut) = unwrap(f"x {TEXT} {rest}".encode())
    assert (json.loads(whole), cut) == (ENTRY, b"")
    (_, whole), (_, cut) = unwrap(f"x {TEXT[:300]} x {TEXT}".encode())
    assert (json.loads(whole), cut) == (ENTRY, b"")


@pytest.mark.parametrize(
    "text", ['a {b} "{\\"kind\\":1', 'msg="{\\"auditID\\":\\"a', "x {auditID} {", '"{' * 40]
)
def test_text_that_is_none_is_none(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - as orjson says it
        list(unwrap(text.encode()))


def test_a_last_line_without_a_line_break_that_ends_as_text_is_read(tmp_path: Path) -> None:
    lines = [TEXT.replace("a-0", f"a-{n}") for n in range(2)]
    path = tmp_path / "log"
    path.write_text("\n".join(f"10:00:00 got: {line} of 10.0.0.1" for line in lines))
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert result.shapes == {"log line": 2}
    assert result.problems == {}


#### Tables and workbooks ####


def view(logged: dict[str, Any]) -> dict[str, Any]:
    """A row of Log Analytics' view _AllLogs."""
    payload = logged["protoPayload"]
    found = {
        "method_name": payload["methodName"],
        "resource_name": payload["resourceName"],
        "authentication_info": {"principal_email": "admin"},
        "request_metadata": {"caller_supplied_user_agent": "kubectl"},
        "request": None,
        "response": json.dumps(payload["response"]),
    }
    at = logged["timestamp"].replace("T", " ").replace("Z", " UTC")
    return {"insert_id": "x", "operation": {"id": "a-0"}, "timestamp": at,
            "proto_payload": {"type": "AuditLog", "audit_log": found}}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "name", "as_cell"),
    [
        (dict, "protoPayload", True),
        (view, "proto_payload", False),
        (view, "proto_payload", True),
        (bigquery, "protopayload_auditlog", True),
    ],
)
def test_an_entry_of_cloud_logging_under_other_names_is_the_same(
    form: Callable[[dict[str, Any]], dict[str, Any]], name: str, as_cell: bool
) -> None:
    logged = gke(ENTRY)
    made = form(logged)
    if as_cell:
        made[name] = json.dumps(made[name])
        assert is_csv(csv_of(list(made), [list(made.values())]).encode())
    ((shape, event),) = unwrap(json.dumps(made).encode())
    found = json.loads(event)
    assert shape == "gke"
    assert found["auditID"] == "a-0"
    assert found["stageTimestamp"] == logged["timestamp"]
    assert found["responseObject"] == ENTRY["responseObject"]
    assert (found["verb"], found["objectRef"]["name"]) == ("create", "job-0")


COLUMNS = ["insertId", "protoPayload.authenticationInfo.principalEmail", "protoPayload.methodName"]
EXPLORER = csv_of(COLUMNS, [["x", "'admin'", "io.k8s.batch.v1.jobs.create"]])


def said_of(content: bytes, name: str, tmp_path: Path) -> str:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TraceFormatError) as refused:
        import_files(ImportRequest([str(path)], tmp_path / "trace"))
    return str(refused.value)


def test_a_table_of_cloud_logging_without_what_tells_entries_is_told(tmp_path: Path) -> None:
    assert not is_csv(EXPLORER.encode())
    said = said_of(EXPLORER.encode(), "downloaded-logs.csv", tmp_path)
    assert "is a table of Cloud Logging's entries without the columns that tell them" in said
    assert "--format=json` print them" in said


def test_a_table_is_told_by_its_rows() -> None:
    assert is_table(b"a,b\n1,2\n3,4\n5,")
    assert not is_table(b"a,b\n1\n2\n3\n")
    assert not is_table(b"a\n1\n2\n")
    assert first_rows(b'{"a": 1},\n') == []


def zipped(names: list[str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return out.getvalue()


def test_a_workbook_is_told_and_never_called_damaged(tmp_path: Path) -> None:
    names = ["[Content_Types].xml", "xl/workbook.xml", "xl/sharedStrings.xml"]
    said = said_of(zipped(names), "log.xlsx", tmp_path)
    assert "is an Excel workbook" in said
    assert "save its sheet as CSV UTF-8" in said
    assert "is an OpenDocument file" in office(["mimetype", "content.xml"])
    assert "is a Word document" in office(["word/document.xml"])
    assert office(["jobs.json", "xl/other.xml"]) == ""
    old = said_of(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "log.xls", tmp_path)
    assert "an older format of Microsoft Office" in old


def test_an_archive_whose_files_lie_in_it_as_they_are_is_one(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    path.write_bytes(zipped(["a.log"]))
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert result.shapes == {"audit": 1}
    assert result.problems == {}
