"""YAML as people keep it: one output behind another, in an issue, in a terminal's text, cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.trace.importers.test_bundles import listing, names, thing
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

JOBS = [{**thing("Job", "shop", n), "spec": {"completions": 1}, "status": {}} for n in range(2)]
POD = {**thing("Pod", "shop", 0), "spec": {"containers": [{"name": "c"}]}, "status": {}}
SAID = "Warning: batch/v1beta1 CronJob is deprecated in v1.21+; use batch/v1 CronJob\n"
NONE = "No resources found in shop namespace.\n"


def made(document: object) -> str:
    return yaml.safe_dump(document)


LISTS = [made(listing("Job", JOBS, "List")), made(listing("Pod", [POD], "List"))]
ASKED = ["$ kubectl get jobs -A -o yaml\n", "bob@host:~$ kubectl get pods -A -o yaml\n"]
SHOWN = "".join(a + text for a, text in zip(ASKED, LISTS, strict=True))


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}\n" for line in text.splitlines())


def fenced(document: object) -> str:
    return f"```yaml\n{made(document)}```\n"


#: What people have, and how many of its lines are of no document.
TEXTS = {
    "appended": ("".join(LISTS), 0),
    "appended, each object": ("".join(map(made, [*JOBS, POD])), 0),
    "what kubectl said behind it": (f"{LISTS[0]}---\n{LISTS[1]}{NONE}", 1),
    "what kubectl said between": (NONE.join(LISTS), 1),
    "a terminal": (SHOWN, 2),
    "a terminal of Windows": ("﻿" + SHOWN.replace("\n", "\r\n"), 2),
    "an issue": ("### It fails\n\n" + "and\n".join(map(fenced, [*JOBS, POD])) + "Why?\n", 10),
    "an issue, JSON too": (
        f"{fenced(JOBS[0])}and\n```json\n{json.dumps(JOBS[1], indent=2)}\n```\n{fenced(POD)}", 7
    ),
    "indented": ("".join(indented(text, "    ") for text in LISTS), 0),
    "quoted": ("Bob wrote:\n" + "".join(indented(text, "> ") for text in LISTS) + ">\n> Why?\n", 2),
    "keys of etcd between": (
        "".join(f"/registry/jobs/shop/{n}\n{made(o)}\n" for n, o in enumerate([*JOBS, POD])), 3
    ),
}  # fmt: skip


def imported(text: str, place: Path) -> tuple[ImportResult, list[str]]:
    (place / "source").write_text(text, newline="")
    (result,) = import_files(ImportRequest([str(place / "source")], place / "trace"))
    return result, names(TraceReader(place / "trace"))


@pytest.mark.parametrize("name", TEXTS)
def test_each_object_is_kept_and_each_line_around_it_counted(name: str, tmp_path: Path) -> None:
    text, around = TEXTS[name]
    result, found = imported(text, tmp_path)
    assert found == ["jobs/shop/job-0", "jobs/shop/job-1", "pods/shop/pod-0"]
    left = {what: n for what, n in result.problems.items() if what.endswith("left out")}
    assert sum(left.values()) == around
    assert all("has lines around its documents" in what for what in left)


def test_what_kubectl_said_before_json_hides_none_of_it(tmp_path: Path) -> None:
    _, found = imported(SAID + json.dumps(listing("Job", JOBS, "List"), indent=4), tmp_path)
    assert found == ["jobs/shop/job-0", "jobs/shop/job-1"]


def test_a_manifest_in_an_issue_does_not_hide_its_table(tmp_path: Path) -> None:
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}
    table = "NAME   STATUS   COMPLETIONS   DURATION   AGE\na      Failed   0/1           5m         6m\n"
    (tmp_path / "issue.md").write_text(f"{fenced(manifest)}\n```\n{table}```\n")
    (result,) = import_files(ImportRequest([str(tmp_path / "issue.md")], tmp_path / "trace"))
    assert result.kind == "kubectl-text"


def test_a_list_that_was_cut_is_refused_as_that(tmp_path: Path) -> None:
    """Its kind stands behind its items: of the last of these nobody knows whether it is whole."""
    with pytest.raises(TraceFormatError) as refused:
        imported(LISTS[0][: LISTS[0].index("kind: List")], tmp_path)
    assert str(refused.value).endswith("source has a list that ends before it names its kind: it is cut off, fetch it anew")  # fmt: skip


@pytest.mark.parametrize("end", ["status:", "spec:"])
def test_an_object_that_was_cut_is_no_state(tmp_path: Path, end: str) -> None:
    """A Job without a status is not one whose controller has not looked at it."""
    whole = yaml.safe_dump(JOBS[0])
    with pytest.raises(TraceFormatError, match="has an object that ends before its status"):
        imported(whole[: whole.index(end)], tmp_path)
    result, found = imported(f"{made(JOBS[1])}---\n{whole[: whole.index(end)]}", tmp_path)
    assert found == ["jobs/shop/job-1"]
    assert any("ends before its status" in what for what in result.problems)


def test_items_that_somebody_has_picked_out_are_objects_that_stand_alone(tmp_path: Path) -> None:
    result, found = imported(json.dumps({"items": JOBS}), tmp_path)
    assert found == ["jobs/shop/job-0", "jobs/shop/job-1"]
    assert result.shapes == {"object": 2}
