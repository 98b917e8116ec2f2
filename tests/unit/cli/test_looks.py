"""`kubectl get … | tracekit diagnose -`: a look is answered as a look, and nothing is left."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture
from tests.support.traces import ROOT
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

FILE = ROOT / "tests" / "data" / "reports" / "03-terminating-dead-node" / "all.yaml"
AT = "2025-05-20T09:30:00Z"


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, which has to be empty afterwards."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_pipe_is_diagnosed_as_of_the_look(run, monkeypatch, scratch: Path) -> None:  # noqa: F811
    piped(monkeypatch, FILE.read_bytes())
    code, out, err = run("diagnose", "-", "--at", AT)
    assert code == 0
    assert "TK430  Job train/epoch-7: makes no new pod" in out
    assert "1 h 5 min ago (as of 2025-05-20 09:30:00Z)" in " ".join(out.split())
    assert f"tracekit: as of {AT}\n" in err
    assert not list(scratch.iterdir())


def test_what_is_piped_in_was_printed_now(run, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr("time.time_ns", lambda: 1747733400 * 10**9)
    piped(monkeypatch, FILE.read_bytes())
    _, out, err = run("diagnose", "-", "-o", "json")
    assert f"as of {AT}, now: say --at if it was printed before" in err
    assert "1 h 5 min ago" in json.dumps(json.loads(out))


def test_a_file_is_as_of_when_it_was_written(run, tmp_path: Path, scratch: Path) -> None:  # noqa: F811
    file = tmp_path / "all.yaml"
    file.write_bytes(FILE.read_bytes())
    os.utime(file, (1747733400, 1747733400))
    code, out, err = run("diagnose", file)
    assert code == 0
    assert "1 h 5 min ago" in " ".join(out.split())
    assert f"as of {AT}, when the file was written: say --at if" in err
    assert "if it was copied" not in err
    os.utime(file, (1747733400 + 30 * 86400,) * 2)
    assert (
        "the latest time in it is 30 d 1 h before that, so if it was copied say --at "
        "2025-05-20T08:25:00Z, or later"
    ) in run("diagnose", file)[2]
    os.utime(file, (0, 0))
    assert (
        "as of 2025-05-20T08:25:00Z, the latest time that an object tells"
        in run("diagnose", file)[2]
    )
    assert not list(scratch.iterdir())


def test_the_other_verbs_take_a_file_too(run, monkeypatch, scratch: Path) -> None:  # noqa: F811
    assert "epoch-7" in run("jobs", FILE)[1]
    assert run("explain", FILE, "epoch-7")[1].startswith("Job train/epoch-7\n")
    assert json.loads(run("timeline", FILE, "-o", "json")[1])["happenings"]
    assert json.loads(run("info", FILE, "--at", AT, "-o", "json")[1])["first_time"] == AT
    assert "epoch-7" in run("sql", FILE, "SELECT trace, job FROM jobs", "-o", "csv")[1]
    assert "epoch-7" in run("report", FILE, "-o", "-")[1]
    piped(monkeypatch, FILE.read_bytes())
    code, _, err = run("who", "-", "--object", "job/epoch-7")
    assert code == 0
    assert "the record tells of no write to it" in err  # it was printed without managedFields
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"nothing of the kind\n", "nothing that can be imported"),
    ],
)
def test_what_is_no_look_is_one_sentence(run, monkeypatch, scratch, content, said) -> None:  # noqa: F811
    piped(monkeypatch, content)
    code, out, err = run("diagnose", "-")
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
    assert not list(scratch.iterdir())


def test_explain_tells_all_that_a_look_shows_as_of_its_time(run) -> None:  # noqa: F811
    code, out, _ = run("explain", FILE, "epoch-7", "--at", AT)
    assert code == 0
    assert "TK430: makes no new pod" in out
    assert "2025-05-20 09:30:00.000" in out
    assert "1 h 5 min ago" in " ".join(out.split())


def test_a_trace_has_its_own_times(run, trace_path) -> None:  # noqa: F811
    code, out, err = run("diagnose", trace_path("empty"), "--at", "now")
    assert (code, out) == (2, "")
    assert "leave --at out" in err


def test_a_watch_whose_rows_have_one_time_is_no_look(run, tmp_path: Path) -> None:  # noqa: F811
    meta = {"name": "a", "namespace": "x", "uid": "u", "creationTimestamp": "2026-11-20T10:00:00Z"}
    lines = [
        {"type": kind, "object": {"apiVersion": "v1", "kind": "Pod", "spec": {}, "status": {},
                                  "metadata": {**meta, "resourceVersion": str(7 + place)}}}
        for place, kind in enumerate(("ADDED", "MODIFIED", "DELETED"))
    ]  # fmt: skip
    (tmp_path / "pods.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    trace = tmp_path / "trace"
    assert run("import", tmp_path / "pods.jsonl", "-o", trace)[0] == 0
    (seen,) = json.loads(run("info", trace, "-o", "json")[1])["coverage"]["seen"]
    assert (seen["stream"], seen["from"], seen["look"]) == ("pods", seen["until"], False)
    shown = " ".join(run("info", trace)[1].split())
    assert "watched, of which all rows have one time" in shown
    assert "look, not watched" not in shown


def test_several_files_are_read_together(run, tmp_path: Path) -> None:  # noqa: F811
    items = yaml.safe_load(FILE.read_text())["items"]
    files = []
    for kind in ("Job", "Pod"):
        files.append(tmp_path / f"{kind}.json")
        mine = [item for item in items if item["kind"] == kind]
        files[-1].write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": mine}))
    code, together, _ = run("diagnose", *map(str, files), "--at", AT)
    assert code == 0
    assert "TK430  Job train/epoch-7: makes no new pod" in together
    code, alone, _ = run("diagnose", str(files[0]), "--at", AT)
    assert code == 0
    assert "TK430" not in alone


def test_several_are_files_each(run, tmp_path: Path) -> None:  # noqa: F811
    code, _, err = run("diagnose", str(FILE), str(tmp_path))
    assert code == 2
    assert "no file that can be read together with others" in err


def _lease(name: str, renewed: str) -> dict[str, object]:
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-system", "uid": name, "resourceVersion": "9",
                     "creationTimestamp": "2025-05-20T01:00:00Z"},
        "spec": {"holderIdentity": "cp-1_x", "leaseDurationSeconds": 15,
                 "renewTime": f"2025-05-20T{renewed}.000000Z"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("renewed", "scheduler", "said"),
    [
        ("08:50:00", None, True),
        ("09:27:00", None, False),  # what was gathered in minutes is no sign
        ("09:27:00", "09:29:58", True),  # but a Lease of the same look that was renewed is
        ("08:50:00", "08:50:02", False),  # the file is a copy: all in it is as old
    ],
)
def test_a_lease_that_nobody_renews(
    run,  # noqa: F811
    tmp_path: Path,
    renewed: str,
    scheduler: str | None,
    said: bool,
) -> None:
    leases = [_lease("kube-controller-manager", renewed)]
    leases += [_lease("kube-scheduler", scheduler)] if scheduler else []
    file = tmp_path / "leases.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": leases}))
    code, out, _ = run("diagnose", str(file), "--at", AT)
    assert code == 0
    assert ("WARNING TK208" in out) is said
    assert ("nobody leads: it was last renewed" in " ".join(out.split())) is said
    assert ("since 2025-05-20 08:50:00Z (as of" in " ".join(out.split())) is (
        said and scheduler is None
    )


def test_that_nobody_leads_is_told_of_each_that_waits(run, tmp_path: Path) -> None:  # noqa: F811
    """What `diagnose` says of all, `explain` says of one; not of one that has ended."""
    leases = [_lease("kube-controller-manager", "08:50:00")]
    created = {"namespace": "app", "creationTimestamp": "2025-05-20T09:00:00Z"}
    over = [{"type": "Complete", "status": "True", "lastTransitionTime": "2025-05-20T08:40:00Z"}]
    jobs = [
        {"apiVersion": "batch/v1", "kind": "Job", "spec": {"completions": 1}, "status": status,
         "metadata": {**created, "name": name, "uid": name, "resourceVersion": "7"}}
        for name, status in (("new", {}), ("done", {"conditions": over, "succeeded": 1}))
    ]  # fmt: skip
    file = tmp_path / "look.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*leases, *jobs]}))
    out = run("diagnose", str(file), "--at", AT)[1]
    assert "TK411  Job app/new: has not begun: nobody leads (TK208)" in out
    assert "see TK208. Until one leads" in out
    told = run("explain", str(file), "new", "--at", AT)[1]
    assert "warning TK208: nobody leads: it was last renewed" in told
    assert "TK208" not in run("explain", str(file), "done", "--at", AT)[1]
