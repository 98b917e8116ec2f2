"""Text for people of which nothing is read is said to be that, with the command that prints more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.trace.importers.audit_logs import entry
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.run import ImportRequest, import_files

DEPLOYMENTS = """NAME   READY   UP-TO-DATE   AVAILABLE   AGE
web    1/1     1            1           3d
"""
TEXTS = {
    "deployments": (DEPLOYMENTS, "a table that `kubectl get` prints"),
    "nodes": ("NAME     STATUS   ROLES    AGE   VERSION\nnode-a   Ready    <none>   3d    v1.36.3\n", "table"),
    "columns that somebody chose": (
        "NAME    STATUS\na-x7k   Running\n", "without the columns by which Jobs, CronJobs, pods and Events"
    ),
    "Events without their messages": (
        "LAST SEEN   TYPE     REASON    OBJECT\n5m          Normal   Created   pod/a\n",
        "without the columns by which Jobs, CronJobs, pods and Events",
    ),
    "a prompt before it": ("$ kubectl get deployments\n" + DEPLOYMENTS, "table"),
    "ts before it": ("".join(f"2026-03-01T10:00:00Z {line}\n" for line in DEPLOYMENTS.splitlines()), "table"),
    "describe": (
        "Name:    node-a\nRoles:  <none>\nLabels:  a=b\nCreationTimestamp:  Sun, 01 Mar 2026 10:00:00 +0000\n",
        "`kubectl describe` prints",
    ),
    "journal": ('{"MESSAGE":null,"_SYSTEMD_UNIT":"k3s.service"}\n' * 3, "-o json --all"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("kind", [None, "kubectl", "audit", "watch"])
def test_it_is_refused_with_what_to_ask_for(
    text: str, said: str, kind: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "text"
    path.write_text(text)
    with pytest.raises(TraceFormatError) as refused:
        import_files(ImportRequest([str(path)], tmp_path / "trace", kind=kind))
    if kind != "watch":  # a watch log says what each line of it must be
        assert said in str(refused.value)
    assert "docs/rescue.md" not in str(refused.value)


def test_prose_is_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("Name: a letter\n\nDear all,\n")
    with pytest.raises(TraceFormatError, match=r"docs/rescue\.md"):
        import_files(ImportRequest([str(path)], tmp_path / "trace"))


def test_entries_that_a_journal_left_out_are_said_to_be(tmp_path: Path) -> None:
    job = {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {"name": "j", "namespace": "a", "uid": "u", "resourceVersion": "5"},
    }
    event = json.dumps(entry("create", "jobs", "j", response=job, code=201))
    lines = [
        json.dumps({"MESSAGE": text, "_PID": "1"}) for text in (event, None, "k3s started", None)
    ]
    path = tmp_path / "journal"
    path.write_text("\n".join(lines) + "\n")
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    counts = sorted(n for what, n in result.problems.items() if "entr" in what)
    assert counts == [1, 2]
    assert any("journalctl --all" in what for what in result.problems)
