"""What others write that is no source, though it has to do with one: what to ask for in its place.

| file | told by |
|---|---|
| archives and tables that are not unpacked here (7z, RAR, lz4, Parquet, …) | what they begin with |
| a page of HTML: of a must-gather's Events, or of a log-in in place of a file | the same |
| `etcdctl get`, `-w json` | a key with protobuf below, `kvs` beside `header` |
| Logstash's rubydebug | `=>` between a name and its value, a line each |
| metrics of Prometheus, an answer of its API | `# HELP`, `resultType` |
| k9s' screen | its frame around the names of columns |
| the API server's legacy audit format | `AUDIT: id=` |
| Cloud Logging's entries as CSV, without what tells them | columns of what is in `protoPayload` |
| workbooks and documents of offices | what is in their archive, or how older ones begin |
| other tables, which hold no object | as many cells in each row as names |
| SimKube's traces | `applied_objs` |
| what Python's client prints | its names for fields, Python's quotes |
| lists of Rancher's API, CloudEvents, Ansible's k8s_info, ConvertTo-Json | objects under a key |

Upstream: simkube, sk-core/src/trace; rancher/apiserver, pkg/types; kubernetes-client/python,
kubernetes/client/models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tracekit.trace.importers.frames import is_object, stream_of
from tracekit.trace.importers.sample import Sample
from tracekit.trace.importers.tables import is_table

_UNPACK = "which is not unpacked here: unpack it and name what comes out"
_TABLE = "which is not read here: export the log as JSON lines and name these"
_SHEET = "which is not read here: save its sheet as CSV UTF-8 and name that"
_TWICE = "is compressed twice over: decompress it once, and name what comes out"
#: By what such a file begins with, once it is decompressed.
_MAGIC = (
    (b"7z\xbc\xaf\x27\x1c", f"is a 7z archive, {_UNPACK}"),
    (b"Rar!\x1a\x07", f"is a RAR archive, {_UNPACK}"),
    (b"\x04\x22\x4d\x18", f"is compressed by lz4, {_UNPACK}"),
    (b"\xff\x06\0\0sNaPpY", f"is compressed by Snappy, {_UNPACK}"),
    (b"LZIP", f"is compressed by lzip, {_UNPACK}"),
    (b"\x1f\x9d", f"is compressed by compress, {_UNPACK}"),
    (b"\x1f\x8b\x08", _TWICE),
    (b"\x28\xb5\x2f\xfd", _TWICE),
    (b"\xfd7zXZ\0", _TWICE),
    (b"BZh", _TWICE),
    (b"PAR1", f"is a Parquet file, {_TABLE}"),
    (b"Obj\x01", f"is an Avro file, {_TABLE}"),
    (b"ORC", f"is an ORC file, {_TABLE}"),
    (b"k8s\0", "is protobuf: with `Accept: application/json` the API server answers in JSON"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        (
            "is a workbook, document or mail in an older format of Microsoft Office, which is not "
            "read here: save it as CSV UTF-8 or as plain text, and name that"
        ),
    ),
    (b"%PDF-", "is a PDF: name the text that it was made of"),
)
_HTML = re.compile(rb"\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_INSTEAD = "`kubectl get cronjobs,jobs,pods,events -A -o json` prints a file that can be imported"
_ETCDCTL = (
    "prints: `etcdctl snapshot save snapshot.db` writes what `tracekit import snapshot.db -o "
    "TRACE` reads"
)
_METRICS = f"metrics tell how many there were, not what became of each; {_INSTEAD}"
#: By what stands in the first of it; each with what must stand beside it.
_TEXTS = (
    (
        re.compile(rb"\A[^\n{]*\bprotoPayload\.(?:method|resource)Name[^\n{]*\n"), b",",
        ("is a table of Cloud Logging's entries without the columns that tell them (timestamp, "
        "protoPayload.methodName, protoPayload.resourceName, protoPayload.response): let `gcloud "
        "logging read 'protoPayload.serviceName=\"k8s.io\"' --format=json` print them, and name "
        "that"),
    ),
    (
        re.compile(rb'"kvs"\s*:'), b'"mod_revision"', f"is what `etcdctl get -w json` {_ETCDCTL}",
    ),
    (
        re.compile(rb"^/registry/\S+\r?\nk8s\0", re.MULTILINE), b"k8s\0",
        f"is what `etcdctl get` {_ETCDCTL}",
    ),
    (
        re.compile(rb'\A\s*\{\r?\n\s+"[^"\n]+" => '), b" => ",
        ("is what Logstash prints for people (rubydebug): with `output { stdout { codec => "
        "json_lines } }` it prints the same events as JSON, which can be imported"),
    ),
    (
        re.compile(rb"^# (?:HELP|TYPE) [a-zA-Z_:]", re.MULTILINE), b"{",
        f"is metrics in Prometheus' text format: {_METRICS}",
    ),
    (
        re.compile(rb'"resultType"\s*:\s*"(?:matrix|vector)"'), b'"metric"',
        f"is an answer of Prometheus: {_METRICS}",
    ),
    (
        re.compile("\u2502 +(?:NAMESPACE|NAME)".encode()), "\u2500".encode(),
        ("is a copy of a screen of k9s, which shows what has room: `kubectl get cronjobs,jobs,"
        "pods -A` prints the same as a table that can be imported"),
    ),
    (
        re.compile(rb'\bAUDIT: id="'), b'method="',
        ("is an audit log in the API server's legacy format, which has no objects: with "
        "--audit-log-format=json it writes one that can be imported"),
    ),
    (
        re.compile(rb"applied_objs"), b"",
        f"is a trace of SimKube, which keeps what should be and not what was: {_INSTEAD}",
    ),
    (
        re.compile(rb"[\"']creation_timestamp[\"']\s*:"), b"resource_version",
        ("has the names that Python's client gives to fields (to_dict): json.dumps of "
        "`ApiClient().sanitize_for_serialization(objects)` writes them as the API has them"),
    ),
    (
        re.compile(rb"[{,]\s*'(?:apiVersion|auditID|kind)': '"), b"",
        "is what Python prints of objects: json.dumps writes what can be imported",
    ),
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*")
#: A choice: a page of Rancher's and an answer of Ansible's have their objects in the second level.
_NESTED_MAX = 5
#: Of an array so many are looked at: a choice, the first of a kind tells of all.
_ITEMS_MAX = 50


def described(sample: Sample) -> str:
    """What is said of such a file, as the rest of a sentence; "" if it is none of them."""
    head = sample.head
    for begin, said in _MAGIC:
        if head.startswith(begin):
            return said
    if _HTML.match(head):
        return (
            "is a page of HTML, of which nothing is read: name the file that it shows, or that a "
            "log-in has answered in place of"
        )
    for pattern, beside, said in _TEXTS:
        if beside in head and pattern.search(head):
            return said
    return _of_rancher(sample) if b'"collection"' in head else ""


def office(names: Iterable[str]) -> str:
    """What is said of an archive that an office program wrote, by its files; "" if none did."""
    found = set(names)
    if not found.isdisjoint(("xl/workbook.xml", "xl/workbook.bin")):
        return (
            f"is an Excel workbook, {_SHEET}; a cell holds 32,767 characters, so what is longer is "
            "whole only in what the workbook was made of"
        )
    if "word/document.xml" in found:
        return "is a Word document, which is not read here: save it as plain text, and name that"
    if {"mimetype", "content.xml"} <= found:
        return f"is an OpenDocument file, {_SHEET}"
    return ""


def table(sample: Sample) -> str:
    """What is said of a table that holds no object, as `described`."""
    if not sample.is_text or not is_table(sample.head):
        return ""
    return (
        "is a table that holds no audit event and no Event, neither as JSON in a cell nor with its "
        f"uid in columns: export whole entries as JSON where it comes from; {_INSTEAD}"
    )


def below(sample: Sample, file: str) -> str:
    """What is said of a file whose objects lie under a key, as `described`.

    `file`: its name as a command has it.

    They are not read from there: such a list may be one page of many, and its absences no evidence.
    """
    if b'"uid"' not in sample.head or b'"kind"' not in sample.head:
        return ""
    for value in sample.values:
        path = next(_paths(value, "", 0), None)
        if path is None:
            continue
        name = path.partition("[")[0].lstrip(".").partition(".")[0]
        each = f".[]{path}" if sample.head.lstrip()[:1] == b"[" else path
        return (
            f"has its objects under `{name}`, where they are not looked for: "
            f"`jq -c '{each}' {file} > objects.jsonl` takes them out, and "
            "`tracekit import objects.jsonl -o TRACE` imports them"
        )
    return ""


def _paths(value: Any, path: str, depth: int) -> Iterator[str]:
    """Where in a value objects of a server are, in jq's words; none in an object of the API."""
    if depth > _NESTED_MAX:
        return
    if isinstance(value, list):
        for item in value[:_ITEMS_MAX]:
            yield from _paths(item, f"{path}[]", depth + 1)
    elif isinstance(value, dict):
        meta = value.get("metadata")
        if path and isinstance(meta, dict) and "uid" in meta and stream_of(value) is not None:
            yield path
        elif not is_object(value):
            for name, inner in value.items():
                if isinstance(name, str) and _NAME.fullmatch(name):
                    yield from _paths(inner, f"{path}.{name}", depth + 1)


def _of_rancher(sample: Sample) -> str:
    """What is said of a list of Rancher's API without items, which says nothing of its scope."""
    if any(v.get("type") == "collection" and v.get("data") == [] for v in sample.values):
        return (
            "is an empty list of Rancher's API, which does not tell what was asked for: "
            "`kubectl get cronjobs,jobs,pods,events -A -o json` prints lists that do"
        )
    return ""
