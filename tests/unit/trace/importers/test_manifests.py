"""What a server never stored is no history: it is said to be that, and what reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tracekit.base.errors import TraceFormatError
from tracekit.cli.main import main
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

_SET = {"uid": "u-1", "resourceVersion": "7", "creationTimestamp": "2026-03-01T10:00:00Z"}


def obj(kind: str, name: str, **meta: Any) -> dict[str, Any]:
    version = "batch/v1" if kind.endswith("Job") else "v1"
    spec = {"schedule": "30 2 * * *"} if kind == "CronJob" else {}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", **meta},
        "spec": spec,
    } | ({"status": {}} if any(meta.values()) else {})  # which a server always writes


def written(path: Path, *documents: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


@pytest.mark.parametrize(
    ("kind", "verbs"),
    [("CronJob", ("simulate", "cron lint")), ("Job", ("simulate",)), ("Pod", ())],
)
def test_a_file_of_manifests_alone_names_what_reads_it(
    kind: str, verbs: tuple[str, ...], tmp_path: Path
) -> None:
    name = written(tmp_path / "a.yaml", obj(kind, "a", creationTimestamp=None), obj("Service", "n"))
    with pytest.raises(TraceFormatError) as refused:
        import_files(ImportRequest([name], tmp_path / "trace"))
    said = str(refused.value)
    assert "manifests only" in said
    assert "objects: 1; 1 objects of the kind Service, left out" in said
    assert [verb for verb in ("simulate", "cron lint") if f"`tracekit {verb} " in said] == [*verbs]


def test_beside_history_manifests_are_left_out_and_counted(tmp_path: Path) -> None:
    manifests = {"apiVersion": "v1", "kind": "List", "items": [obj("CronJob", "a")] * 3}
    name = written(tmp_path / "a.yaml", obj("Job", "b", **_SET), manifests)
    (result,) = import_files(ImportRequest([name], tmp_path / "trace"))
    assert dict(result.streams) == {
        "jobs": 3
    }  # with the bounds of its look; a list of manifests is no look at CronJobs
    (said,) = [n for what, n in result.problems.items() if "manifests" in what]
    assert said == 3


@pytest.mark.parametrize("lacks", sorted(_SET))
def test_what_lacks_a_part_is_kept_and_said_to_lack_it(lacks: str, tmp_path: Path) -> None:
    meta = {name: value for name, value in _SET.items() if name != lacks}
    name = written(tmp_path / "a.yaml", obj("CronJob", "a", **meta))
    (result,) = import_files(ImportRequest([name], tmp_path / "trace"))
    assert result.streams["cronjobs"] == 3  # with the bounds of its look
    assert result.problems[f"objects without {lacks}, kept"] == 1


def test_a_cronjob_without_a_creation_is_not_missed_since_1970(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = {name: value for name, value in _SET.items() if name != "creationTimestamp"}
    name = written(tmp_path / "a.yaml", obj("CronJob", "a", **meta), obj("Job", "b", **_SET))
    import_files(ImportRequest([name], tmp_path / "trace"))
    with pytest.raises(SystemExit):
        main(["diagnose", str(tmp_path / "trace")])
    said = capsys.readouterr().out
    assert "1970" not in said
    assert "missed" not in said


SCRUBBED = {
    "Pod": {"phase": "Running"},
    "Job": {"active": 1},
    "CronJob": {"lastScheduleTime": "2026-03-01T10:00:00Z"},
}


@pytest.mark.parametrize("laid_out", ["a list", "one a line", "documents"])
def test_what_has_a_status_is_of_a_server_whatever_was_taken_out(
    laid_out: str, tmp_path: Path
) -> None:
    objects = [
        {**obj(kind, f"{kind.lower()}-{n}"), "status": status}
        for kind, status in SCRUBBED.items()
        for n in range(2)
    ]
    path = tmp_path / "objects"
    if laid_out == "a list":
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    elif laid_out == "one a line":
        path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    else:
        written(path, *objects)
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    lacks = "objects without uid, resourceVersion and creationTimestamp, kept"
    assert result.problems[lacks] == len(objects)
    table = TraceReader(tmp_path / "trace").table(("type", "name", "synthesized"))
    rows = [(row["type"], row["name"]) for row in table.to_pylist() if row["name"]]
    assert sorted(rows) == sorted(("LIST", each["metadata"]["name"]) for each in objects)


def test_an_event_is_no_manifest(tmp_path: Path) -> None:
    event = {**obj("Event", "a"), "reason": "Created", "lastTimestamp": "2026-03-01T10:00:00Z"}
    name = written(tmp_path / "a.yaml", event)
    with pytest.raises(TraceFormatError, match="Events without uid, resourceVersion and"):
        import_files(ImportRequest([name], tmp_path / "trace"))


@pytest.mark.parametrize("status", [{}, {"active": []}, {"conditions": None, "a": {"b": ""}}])
def test_a_status_that_says_nothing_is_a_manifests(status: Any, tmp_path: Path) -> None:
    name = written(tmp_path / "a.yaml", {**obj("CronJob", "a"), "status": status})
    with pytest.raises(TraceFormatError, match="manifests only"):
        import_files(ImportRequest([name], tmp_path / "trace"))


def test_a_bookmark_lacks_nothing(tmp_path: Path) -> None:
    """A server sends a revision with it, and neither uid nor creationTimestamp."""
    bookmark = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"resourceVersion": "9"}}
    events = (("ADDED", obj("Job", "a", **_SET)), ("BOOKMARK", bookmark))
    path = tmp_path / "watch.jsonl"
    path.write_text("".join(json.dumps({"type": t, "object": o}) + "\n" for t, o in events))
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert result.streams["jobs"] == 2
    assert not any("uid" in problem for problem in result.problems)
