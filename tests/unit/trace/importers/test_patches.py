"""Patches as the API server applies them: against its own answers in the shipped logs, and by hand."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from click.testing import CliRunner

from tests.unit.trace.importers.audit_logs import entry as written
from tests.unit.trace.importers.audit_logs import shipped, write
from tracekit.cli.import_ import import_
from tracekit.trace.importers.audit import objects
from tracekit.trace.importers.audit.entry import decode_entry
from tracekit.trace.importers.audit.patches import UnknownOutcomeError, patched
from tracekit.trace.importers.audit.unanswered import sent, state_after
from tracekit.trace.reading.reader import TraceReader

KUBECTL = "kubectl/v1.36.3"


def applied(obj, patch, *, uri="", agent=""):
    return patched(obj, patch, uri=uri, agent=agent)


def plain(obj):
    meta = {k: v for k, v in obj["metadata"].items() if k not in ("managedFields", "selfLink")}
    return {**obj, "metadata": {**meta, "resourceVersion": ""}}


def served(name):
    """Patches of a shipped log with the object before and the one that was answered."""
    before = {}
    entries = sorted(
        (json.loads(line) for line in shipped(name)), key=lambda e: e["stageTimestamp"]
    )
    for entry in entries:
        ref, answer = entry.get("objectRef") or {}, entry.get("responseObject") or {}
        key = (ref.get("resource"), ref.get("namespace"), ref.get("name"))
        if answer.get("kind") not in ("Pod", "Job", "CronJob"):
            before.pop(key, None)  # a binding, an eviction: the state is another from now on
            continue
        meta = answer["metadata"]
        key, rv = (ref["resource"], meta["namespace"], meta["name"]), int(meta["resourceVersion"])
        old = before.get(key)
        newer = old is not None and int(old["metadata"]["resourceVersion"]) < rv
        if entry["verb"] == "patch" and newer:
            yield entry, old, answer
        before[key] = answer


@pytest.mark.parametrize("name", ["v1.17.17-all", "v1.24.17-all", "v1.30.14-all", "v1.37.1-all"])
def test_what_is_worked_out_is_what_the_server_answered(name):
    found = Counter()
    for entry, old, answer in served(name):
        raw = decode_entry(json.dumps(entry).encode())
        made = state_after(raw, sent(raw), old)
        assert plain(made) == plain(answer)
        found[entry["objectRef"]["resource"]] += 1
    assert found["pods"] > 100
    assert found["jobs"] > 5


BASE = {
    "metadata": {"finalizers": ["a", "b"]},
    "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, "finalizers", ["b"]),
        ({"metadata": {"finalizers": ["c"]}}, "finalizers", ["c", "a", "b"]),
        (
            {"status": {"conditions": [{"type": "B", "$patch": "delete"}]}},
            "conditions",
            [{"type": "A", "status": "True"}],
        ),
        (
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}],
                    "conditions": [{"type": "A", "status": "False"}],
                }
            },
            "conditions",
            [{"type": "B", "status": "True"}, {"type": "A", "status": "False"}],
        ),
        (
            {"status": {"conditions": [{"$patch": "replace"}, {"type": "C"}]}},
            "conditions",
            [{"type": "C"}],
        ),
    ],
)
def test_strategic_merge(patch, path, expected):
    made = applied(BASE, patch, agent=KUBECTL)
    assert (made["metadata"] | made["status"])[path] == expected


def test_merge_patch_takes_away_what_is_null():
    made = applied({"spec": {"suspend": True, "parallelism": 2}}, {"spec": {"suspend": None}})
    assert made == {"spec": {"parallelism": 2}}


def test_json_patch():
    made = applied(
        {"spec": {"suspend": True}, "list": [1, 2]},
        [
            {"op": "test", "path": "/spec/suspend", "value": True},
            {"op": "replace", "path": "/spec/suspend", "value": False},
            {"op": "add", "path": "/list/-", "value": 3},
            {"op": "remove", "path": "/list/0"},
            {"op": "copy", "from": "/list", "path": "/spec/a~1b"},
        ],
    )
    assert made == {"spec": {"suspend": False, "a/b": [2, 3]}, "list": [2, 3]}


APPLY = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 3}}
URI = "/apis/batch/v1/namespaces/ns/jobs/a?fieldManager=gitops&force=true"


def managed(fields):
    entry = {"manager": "gitops", "operation": "Apply", "fieldsV1": fields}
    return {"metadata": {"managedFields": [entry]}, "spec": {"parallelism": 1, "completions": 5}}


def test_apply_where_nothing_is_given_up():
    made = applied(managed({"f:spec": {"f:parallelism": {}}}), APPLY, uri=URI)
    assert made["spec"] == {"parallelism": 3, "completions": 5}
    assert "kind" not in made


MANY = [f"example.com/{number}" for number in range(2_001)]
#: Three kilobytes that stood for 2^40 times an object.
DOUBLING = [{"op": "copy", "from": "/metadata", "path": f"/metadata/{n}"} for n in range(40)]


def strategic(metadata):
    return {"metadata": {"$retainKeys": ["finalizers"], **metadata}}


@pytest.mark.parametrize(
    ("obj", "patch", "uri", "why"),
    [
        (managed({"f:spec": {"f:completions": {}}}), APPLY, URI, "applied before"),
        ({"spec": {}}, APPLY, URI, "who managed which field"),
        (BASE, {"status": {"conditions": [{"type": "A"}]}}, "", "strategic merge"),
        (BASE, [{"op": "remove", "path": "/spec/x"}], "", "not one of the object known"),
        (BASE, [{"op": "jump", "path": "/spec"}], "", "unknown operation"),
        (BASE, "text", "", "neither an object nor an array"),
        (BASE, DOUBLING, "", "copies more than an API server lets it"),
        ({"metadata": {"finalizers": MANY}}, strategic({"finalizers": MANY}), "", "2,000 elements"),
        (
            {"metadata": {"finalizers": MANY}},
            strategic({"$deleteFromPrimitiveList/finalizers": MANY}),
            "",
            "2,000 elements",
        ),
    ],
)
def test_what_cannot_be_told_is_said(obj, patch, uri, why):
    with pytest.raises(UnknownOutcomeError, match=why):
        applied(obj, patch, uri=uri)


@pytest.mark.parametrize("name", ["_OBJECT_BYTES_MAX", "_WORKED_OUT_BYTES_MAX"])
def test_patches_do_not_stand_for_any_length(tmp_path, monkeypatch, name):
    monkeypatch.setattr(objects, name, 5_000)
    job = {"kind": "Job", "apiVersion": "batch/v1", "spec": {}, "metadata": {
        "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7",
    }}  # fmt: skip
    log = [written("create", "jobs", "a", response=job, request=job)]
    for at in range(1, 30):
        patch = {"metadata": {"annotations": {f"k{at}": "x" * 1_000}}}
        log.append(written("patch", "jobs", "a", at_s=at, request=patch))
    result = CliRunner().invoke(
        import_, ["audit", str(write(tmp_path / "log", log)), "-o", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    reader = TraceReader(tmp_path / "out")
    rows = reader.table(("type", "raw", "reason")).to_pylist()
    made = [row for row in rows if row["type"] == "MODIFIED"]
    assert 1 < len(made) < 6
    assert sum(len(row["raw"]) for row in made) < 20_000
    (call,) = (row for row in rows if re.search("larger than|too much", row["reason"] or ""))
    assert call["type"] == "CALL"
