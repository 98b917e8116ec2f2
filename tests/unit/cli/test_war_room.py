"""`timeline`, `compare`, `who`: against the log of requests that was written beside the record."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture
from tests.support.traces import TRACES, json_lines
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.api import Trace
from tracekit.base.time_input import TimeRange
from tracekit.cli.main import main
from tracekit.sql import edits
from tracekit.sql.edits import edits_of
from tracekit.sql.session import Session

NAME = "v1.36.3-troubles"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record with its audit log."""
    target = tmp_path_factory.mktemp("audited") / "trace"
    folder = TRACES / NAME
    words = ["watch.jsonl.zst", "--with", "audit.jsonl.zst"]
    files = [str(folder / word) if word.endswith(".zst") else word for word in words]
    with pytest.raises(SystemExit) as left:
        main(["import", *files, "-o", str(target), "--processes", "1"])
    assert not left.value.code
    return target


@pytest.fixture
def watched(trace_path) -> Path:  # noqa: F811
    """The same without it."""
    return trace_path(NAME)


#### who ####


def test_a_users_writes_are_those_of_the_log(run, audited: Path) -> None:  # noqa: F811
    asked = Counter(
        (entry["verb"], entry["objectRef"]["resource"], entry["objectRef"]["name"])
        for entry in json_lines(TRACES / NAME / "audit.jsonl.zst")
        if entry["user"]["username"] == "alice"
    )
    code, out, _ = run("who", audited, "ALICE", "-o", "json")
    document = json.loads(out)
    told = Counter(
        (w["verb"].split("/")[0], f"{w['kind'].lower()}s", w["name"]) for w in document["writes"]
    )
    assert (code, told, document["left_out"]) == (0, asked, 0)
    assert {write["evidence"] for write in document["writes"]} == {"audit log"}
    assert sorted(told) == [
        ("delete", "jobs", "again"),
        ("delete", "jobs", "again-later"),
        ("delete", "jobs", "collected"),
        ("delete", "jobs", "held"),
        ("delete", "jobs", "outlived"),
        ("patch", "cronjobs", "edited"),
        ("patch", "cronjobs", "sleeps"),
    ]


def test_fields_are_told_old_and_new(run, audited: Path) -> None:  # noqa: F811
    _, out, _ = run("who", audited, "alice", "--object", "cronjob/edited")
    assert out.splitlines()[0] == ("2026-11-22 01:46:05.006  alice patch CronJob t-troubles/edited")
    assert '    .spec.schedule: "@hourly" → "* * * * *"' in out.splitlines()


def test_without_the_log_managed_fields_name_the_client(run, watched: Path, audited: Path) -> None:  # noqa: F811
    """Whoever is named without the log is whom the log names."""
    with Trace(watched) as seen, Trace(audited) as logged:
        truth = {(e.kind, e.namespace, e.name, e.resource_version): e for e in logged.who()}
        told = [edit for edit in seen.who() if edit.resource_version and edit.names]
        wrong = []
        for edit in told:
            true = truth.get((edit.kind, edit.namespace, edit.name, edit.resource_version))
            if edit.verb == "delete" or true is None or true.evidence != "audit log":
                continue
            controllers = {name for name in edit.names if name.endswith("-controller")}
            if not controllers & set(true.names) and not set(edit.names) & set(true.names):
                wrong.append((edit, true.names))
    # The stand-in for a kubelet is a client of its own name, and so are the clients of the tests.
    assert {edit.actor for edit, _ in wrong} <= {"kube-controller-manager"}
    assert len(told) > 400
    _, out, _ = run("who", watched, "kubectl-alice", "-o", "json")
    assert [w["fields"][0]["path"] for w in json.loads(out)["writes"]] == [
        ".spec.schedule",
        ".status.lastScheduleTime",
    ]


def test_everybody_is_listed(run, audited: Path) -> None:  # noqa: F811
    code, out, _ = run("who", audited)
    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert rows[0] == ["ACTOR", "WRITES", "WITHOUT", "EFFECT", "OBJECTS", "LAST"]
    assert ["alice", "7", "0", "7"] in [row[:4] for row in rows]


def test_who_is_nobody_is_said(run, audited: Path) -> None:  # noqa: F811
    assert run("who", audited, "alicia")[0::2] == (
        2,
        "tracekit: nobody called 'alicia' wrote any of this; did you mean alice?\n",
    )
    code, out, err = run("who", audited, "--object", "cronjob/edite")
    assert (code, out) == (2, "")
    assert "did you mean edited" in err


def test_what_is_left_out_is_said(run, audited: Path) -> None:  # noqa: F811
    code, out, err = run("who", audited, "alice", "--limit", 2)
    assert (code, out.count("alice delete")) == (0, 2)
    assert err == "tracekit: 5 later writes left out: say --from, or --limit 7\n"


#### timeline ####


def test_the_time_between_two_short_times(run, audited: Path) -> None:  # noqa: F811
    words = ("timeline", audited, "--from", "01:46:05", "--to", "01:46:06")
    code, out, _ = run(*words)
    assert code == 0
    assert out.splitlines()[0] == "2026-11-22 (UTC)"
    said = '01:46:05.006  CronJob t-troubles/edited: patch: .spec.schedule "@hourly" → "* * * * *"'
    assert f"{said}, by alice" in out.splitlines()
    found = json.loads(run(*words, "-o", "json")[1])["happenings"]
    assert len(found) == len(out.splitlines()) - 1
    assert all("2026-11-22T01:46:05" <= f["time"] <= "2026-11-22T01:46:06Z" for f in found)
    assert found == sorted(found, key=lambda f: f["time_ns"])


def test_one_object_has_its_jobs_and_pods(run, watched: Path) -> None:  # noqa: F811
    found = json.loads(run("timeline", watched, "t-troubles/edited", "-o", "json")[1])["happenings"]
    names = {f["name"] for f in found}
    assert {"edited", "edited-29921867"} <= names
    assert all(name.startswith("edited") for name in names)
    assert {"CronJob", "Job", "Pod"} == {f["kind"] for f in found}


def test_troubles_have_failures_refusals_and_missed_runs(run, audited: Path) -> None:  # noqa: F811
    out = run("timeline", audited, "--troubles")[1]
    assert "Failed, exit code 137, OOMKilled" in out
    assert "asked to create, refused (403): pods" in out
    assert "due, not started (missed)" in out
    assert "Succeeded" not in out


def test_no_phase_is_lost(run, watched: Path) -> None:  # noqa: F811
    """As many pods end in the timeline as end in the watch itself."""
    ended = {
        (row["object"]["metadata"]["name"], row["object"]["status"]["phase"])
        for row in json_lines(TRACES / NAME / "watch.jsonl.zst")
        if (row["object"].get("status") or {}).get("phase") in ("Succeeded", "Failed")
    }
    out = run("timeline", watched, "-o", "json", "--limit", 10**6)[1]
    told = {
        (f["name"], f["what"].split(",")[0].split(":")[0])
        for f in json.loads(out)["happenings"]
        if f["kind"] == "Pod" and f["what"].startswith(("Succeeded", "Failed"))
    }
    assert told == ended


def test_when_nothing_happened_is_said(run, watched: Path) -> None:  # noqa: F811
    code, out, err = run("timeline", watched, "--from", "2020-01-01", "--to", "2020-01-02")
    assert (code, out) == (0, "")
    assert err.startswith("tracekit: nothing happened from 2020-01-01T00:00:00Z to 2020-01-02T")


#### compare ####


def test_two_jobs_side_by_side(run, watched: Path) -> None:  # noqa: F811
    document = json.loads(run("compare", watched, "oom", "oom-once", "-o", "json")[1])
    facts = {fact["name"]: fact for fact in document["facts"]}
    assert (facts["outcome"]["first"], facts["outcome"]["second"]) == ("Failed", "Complete")
    assert facts["outcome"]["differs"]
    assert not facts["image"]["differs"]
    fields = {f["path"]: (f["first"], f["second"]) for f in document["fields"]}
    assert fields[".spec.backoffLimit"] == (1, 6)
    assert not [path for path in fields if "uid" in path or "job-name" in path]
    assert [len(pods) for pods in document["pods"]] == [2, 2]
    steps = {step["name"]: step for step in document["steps_s"]}
    parts = ("Job → first pod", "first pod → node", "node → running", "running → last pod ended",
             "last pod ended → condition")  # fmt: skip
    whole = sum(steps[part]["first"] for part in parts)
    assert abs(whole - steps["start → finish (API)"]["first"]) < 2  # which has whole seconds
    text = run("compare", watched, "oom", "oom-once")[1]
    assert "≠" in next(line for line in text.splitlines() if line.startswith("outcome"))


def test_the_view_latency_is_of_the_lines(run, watched: Path) -> None:  # noqa: F811
    """The parts of each Job that has one pod, from the lines of the watch."""
    first: dict[tuple[str, str], int] = {}
    pods: dict[str, set[str]] = {}
    for row in json_lines(TRACES / NAME / "watch.jsonl.zst"):
        if row["resource"] not in ("jobs", "pods") or row["type"] not in ("ADDED", "MODIFIED"):
            continue
        meta, status = row["object"]["metadata"], row["object"].get("status") or {}
        uid = meta["uid"]
        if row["resource"] == "pods":
            for owner in meta.get("ownerReferences", []):
                pods.setdefault(owner["uid"], set()).add(uid)
        marks = {
            "created": row["type"] == "ADDED",
            "bound": (row["object"].get("spec") or {}).get("nodeName"),
            "running": status.get("phase") == "Running",
            "ended": status.get("phase") in ("Succeeded", "Failed"),
        }
        for mark, there in marks.items():
            if there:
                first.setdefault((uid, mark), row["recv"])
    rows = json.loads(run("sql", watched, "FROM latency", "-o", "json")[1])
    checked = 0
    for row in rows:
        own = pods.get(row["job_uid"], set())
        if len(own) != 1:
            continue
        (pod,) = own
        steps = [("first_pod_s", (row["job_uid"], "created"), (pod, "created"))]
        steps.append(("scheduled_s", (pod, "created"), (pod, "bound")))
        if (pod, "running") in first:
            steps.append(("running_s", (pod, "bound"), (pod, "running")))
            steps.append(("work_s", (pod, "running"), (pod, "ended")))
        for column, begin, end in steps:
            expected = (first[end] - first[begin]) / 1e9 if end in first else None
            assert row[column] == pytest.approx(expected), (row["job"], column)
            checked += 1
    assert checked > 60


def test_a_cronjob_has_a_good_run_and_a_bad_one(run, trace_path) -> None:  # noqa: F811
    trace = trace_path("v1.34.4-all")
    out = run("compare", trace, "cronjob/forbid", "-o", "json")[1]
    outcome = json.loads(out)["facts"][0]
    assert (outcome["first"], outcome["second"]) == ("Complete", "Deleted")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("oom",), "is one Job: name another"),
        (("remembers",), "no run of the CronJob t-troubles/remembers completed"),
        (("oom", "oom-onc"), "did you mean oom-once"),
        (("oom", "cronjob/edited"), "no state of a Job t-troubles/edited"),
    ],
)
def test_what_cannot_be_compared(run, watched: Path, words: tuple[str, ...], said: str) -> None:  # noqa: F811
    code, out, err = run("compare", watched, *words)
    assert (code, out) == (2, "")
    assert said in err


def test_writes_of_a_time_and_in_parts_are_those_of_the_whole(
    watched: Path, audited: Path, monkeypatch
) -> None:
    for trace in (watched, audited):
        session = Session([trace])
        whole = [edit for edit in edits_of(session) if not edit.verb.startswith("set")]
        known = sorted(edit.at_ns for edit in whole if edit.at_ns is not None)
        times = TimeRange(known[len(known) // 3], known[2 * len(known) // 3])
        within = {key_of(e) for e in whole if e.at_ns is not None and times.holds(e.at_ns)}
        assert 0 < len(within) < len({key_of(edit) for edit in whole})
        assert {key_of(edit) for edit in edits_of(session, times=times)} == within
        everything = Counter(key_of(edit) for edit in edits_of(session))
        monkeypatch.setattr(edits, "_AT_A_TIME", 100)
        assert Counter(key_of(edit) for edit in edits_of(session)) == everything
        monkeypatch.undo()
        session.close()


def key_of(edit: edits.Edit) -> tuple[object, ...]:
    fields = tuple(f"{field.path} {field.old!r} {field.new!r}" for field in edit.fields)
    return (
        edit.at_ns,
        edit.kind,
        edit.namespace,
        edit.name,
        edit.verb,
        edit.actor,
        edit.code,
        fields,
    )
