"""Events that a store has taken apart into columns: whole again where they can be, else told so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.trace.importers.audit_logs import entry
from tests.unit.trace.importers.test_bundles import thing
from tests.unit.trace.importers.test_wrappers import csv_of, gke
from tracekit.base.errors import TraceFormatError, UsageError
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

ENTRIES = [
    entry(
        "create", "jobs", f"job-{n}", at_s=n, code=201, audit_id=f"a-{n}",
        response=thing("Job", "shop", n),
    )
    for n in range(3)
]  # fmt: skip


def parts(value: Any, prefix: str = "") -> dict[str, str]:
    """Each field of an object as a text under its path; arrays as they are."""
    if isinstance(value, dict) and value:
        found: dict[str, str] = {}
        for name, inner in value.items():
            found |= parts(inner, f"{prefix}.{name}" if prefix else name)
        return found
    return {prefix: value if isinstance(value, str) else json.dumps(value)}


def table(rows: list[dict[str, str]]) -> str:
    names = sorted({name for row in rows for name in row})
    return csv_of(names, [[row.get(name, "") for name in names] for row in rows])


def explored(event: dict[str, Any], *, apart: bool) -> dict[str, str]:
    """An entry as a row of Cloud Logging."""
    logged = gke(event)
    bodies = {n: logged["protoPayload"].pop(n, None) for n in ("request", "response")}
    row = parts(logged) | {"protoPayload.status.code": "0"}
    for name, body in bodies.items():
        if body is not None:
            path = f"protoPayload.{name}"
            row |= parts(body, path) if apart else {path: json.dumps(body)}
    return row


def taken_apart(event: dict[str, Any], prefix: str, *, apart: bool) -> dict[str, str]:
    """An event by dotted names."""
    row = parts({k: v for k, v in event.items() if k != "responseObject"})
    body = event["responseObject"]
    row |= parts(body, "responseObject") if apart else {"responseObject": json.dumps(body)}
    return {f"{prefix}{name}": cell for name, cell in row.items()}


def imported(
    tmp_path: Path, text: str, *others: str, name: str = "log.csv"
) -> tuple[list[ImportResult], TraceReader]:
    paths = [tmp_path / name, *(tmp_path / f"other-{n}" for n in range(len(others)))]
    for path, content in zip(paths, (text, *others), strict=True):
        path.write_text(content)
    target = tmp_path / f"{name}-trace"
    words = [str(path) for path in paths]
    results = import_files(ImportRequest(words[:1], target, others=words[1:]))
    return results, TraceReader(target)


ROWS = {
    "Logs Explorer": lambda event, *, apart: explored(event, apart=apart),
    "Logs Insights": lambda event, *, apart: taken_apart(event, "", apart=apart),
    "Elastic": lambda event, *, apart: taken_apart(event, "kubernetes.audit.", apart=apart),
}


@pytest.mark.parametrize("store", ROWS)
def test_an_entry_whose_answer_is_a_cell_is_whole(tmp_path: Path, store: str) -> None:
    (result,), reader = imported(tmp_path, table([ROWS[store](e, apart=False) for e in ENTRIES]))
    assert result.shapes == {"gke" if store == "Logs Explorer" else "elastic": 3}
    assert result.problems == {}
    found = reader.table(("name", "rv", "verb", "raw")).to_pylist()
    assert [json.loads(row["raw"]) for row in found] == [e["responseObject"] for e in ENTRIES]
    assert {row["verb"] for row in found} == {"create"}


@pytest.mark.parametrize("store", ROWS)
def test_an_answer_that_was_taken_apart_is_not_put_together(tmp_path: Path, store: str) -> None:
    text = table([ROWS[store](e, apart=True) for e in ENTRIES])
    with pytest.raises(TraceFormatError, match="apart into a field each: it names who wrote"):
        imported(tmp_path, text)
    watched = "\n".join(
        json.dumps(
            {"recv": 10**18, "resource": "jobs", "type": "ADDED", "object": e["responseObject"]}
        )
        for e in ENTRIES
    )
    results, _ = imported(tmp_path, watched, text, name="watch")
    assert any("the bodies of this log are taken apart" in r for x in results for r in x.remarks)


def test_lines_of_dotted_names_are_no_events_as_they_are(tmp_path: Path) -> None:
    """Whose first fields are an event's own; what they are about was said to be nothing of batch."""
    flat = (taken_apart({"level": "RequestResponse", **e}, "", apart=True) for e in ENTRIES)
    with pytest.raises(TraceFormatError, match="it names who wrote which object"):
        imported(tmp_path, "\n".join(json.dumps(row, separators=(",", ":")) for row in flat))


def test_of_an_entry_that_was_logged_twice_the_one_with_its_answer_is_kept(tmp_path: Path) -> None:
    apart = table([explored(e, apart=True) for e in ENTRIES])
    whole = "\n".join(json.dumps(gke(e)) for e in ENTRIES)
    for name, texts in (("a", (apart, whole)), ("b", (whole, apart))):
        (result,), _ = imported(tmp_path, *texts, name=name)
        assert result.streams == {"jobs": 3}
        assert result.calls == {"logged twice, left out": 3}


EVENTS = [
    {
        "metadata": {
            "name": f"job-0.{n}", "namespace": "shop", "uid": f"uid-{n}",
            "resourceVersion": str(100 + n), "labels": {"a.b/c": "d"},
        },
        "involvedObject": {"kind": "Job", "namespace": "shop", "name": "job-0", "uid": "uid-j"},
        "reason": "SuccessfulCreate", "message": f"Created pod: job-0-{n}", "count": n + 1,
    }
    for n in range(3)
]  # fmt: skip


def elastic(event: dict[str, Any]) -> dict[str, Any]:
    meta = event["metadata"]
    return {
        "metadata": {"name": meta["name"], "namespace": "shop", "uid": meta["uid"]},
        "involved_object": {"kind": "Job", "name": "job-0", "uid": "uid-j"},
        "reason": event["reason"], "message": event["message"], "count": event["count"],
    }  # fmt: skip


EVENT_TABLES = {
    "columns": table([parts(e) for e in EVENTS]),
    "Cloud Logging": table([{"insertId": "x", **parts(e, "jsonPayload")} for e in EVENTS]),
    "Elastic": table([parts(elastic(e), "kubernetes.event") for e in EVENTS]),
    "Kibana": json.dumps(
        [
            {"fields": {k: [v] for k, v in parts(elastic(e), "kubernetes.event").items()}}
            for e in EVENTS
        ]
    ),
}


@pytest.mark.parametrize("store", EVENT_TABLES)
def test_an_event_of_which_each_field_is_a_column_is_whole(tmp_path: Path, store: str) -> None:
    (result,), reader = imported(tmp_path, EVENT_TABLES[store])
    assert result.shapes == {"shipped Event": 3}
    raws = reader.table(("type", "raw")).to_pylist()
    found = [json.loads(row["raw"]) for row in raws if not row["type"].startswith("LIST_")]
    assert sorted(e["count"] for e in found) == [1, 2, 3]
    assert {e["involvedObject"]["uid"] for e in found} == {"uid-j"}
    if "labels" in EVENT_TABLES[store]:
        assert found[0]["metadata"]["labels"] == {"a.b/c": "d"}


def test_columns_without_a_uid_are_no_event(tmp_path: Path) -> None:
    rows = [{k: v for k, v in parts(e).items() if "uid" not in k} for e in EVENTS]
    with pytest.raises(TraceFormatError, match="holds no audit event and no Event"):
        imported(tmp_path, table(rows))


def test_a_trace_alone_is_told_to_be_one(tmp_path: Path) -> None:
    imported(tmp_path, "\n".join(map(json.dumps, ENTRIES)), name="log")
    with pytest.raises(UsageError, match="is a trace already, and nothing is to be put beside it"):
        import_files(ImportRequest([str(tmp_path / "log-trace")], tmp_path / "again"))


def test_a_grace_period_that_is_no_number_is_the_default(tmp_path: Path) -> None:
    pod = thing("Pod", "shop", 0)
    pod["spec"] = {"terminationGracePeriodSeconds": "30", "nodeName": "n"}
    pod["status"] = {"phase": "Running"}
    name = pod["metadata"]["name"]
    log = [
        entry("create", "pods", name, at_s=1, response=pod, code=201, audit_id="a"),
        entry("create", "pods", name, at_s=2, subresource="eviction", code=201, audit_id="b"),
    ]
    (result,), _ = imported(tmp_path, "\n".join(map(json.dumps, log)), name="log")
    assert result.derived == {"deletion mark": 1}
