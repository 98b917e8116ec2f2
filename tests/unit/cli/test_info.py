"""`tracekit info`: the table for people, the JSON for programs."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest

from tests.support.traces import json_lines
from tests.support.watchlog import START_NS, job, line, small_log, write_log
from tests.unit.cli.test_import_watch import TRACES
from tracekit.check.replay.commit_times import Timed
from tracekit.check.replay.recorder_clock import Epoch, RecorderClock
from tracekit.cli.clocks import write_clocks
from tracekit.cli.main import main
from tracekit.trace.reading.reader import TraceReader


@pytest.fixture
def run(capsys):
    """Run the command line; gives exit code, stdout, stderr."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return stopped.value.code or 0, captured.out, captured.err

    return call


def lease(holder, rv, acquired):
    spec = {"holderIdentity": holder, "acquireTime": acquired, "leaseTransitions": rv - 30}
    metadata = {"name": "kube-controller-manager", "namespace": "kube-system", "uid": "l"}
    metadata["resourceVersion"] = str(rv)
    return {"metadata": metadata, "spec": spec}


def suspended(obj):
    return {**obj, "spec": {**obj.get("spec", {}), "suspend": True}}


def condition(kind, reason=None):
    return {"conditions": [{"type": kind, "status": "True", "reason": reason}]}


@pytest.fixture
def trace(run, tmp_path):
    """One Job of each outcome, a restart of the controller manager, a gap."""
    jobs = [
        ("MODIFIED", job("done", 20, **condition("Complete"))),
        ("MODIFIED", job("failed", 21, **condition("Failed", "BackoffLimitExceeded"))),
        ("DELETED", job("failed", 22, **condition("Failed", "BackoffLimitExceeded"))),
        ("DELETED", job("cancelled", 23, startTime="2026-11-21T05:42:44Z")),
        ("MODIFIED", suspended(job("asleep", 24, **condition("Suspended")))),
        ("MODIFIED", job("busy", 25, startTime="2026-11-21T05:42:44Z", active=1)),
        ("ADDED", job("new", 26)),
    ]
    log = [
        *small_log(),
        *(line("jobs", row_type, obj, at_ns=START_NS + 10) for row_type, obj in jobs),
        line("leases", "ADDED", lease("first", 30, "2026-11-21T05:42:44Z"), at_ns=START_NS + 11),
        line("leases", "MODIFIED", lease("first", 31, "2026-11-21T05:42:44Z"), at_ns=START_NS + 12),
        line(
            "leases",
            "MODIFIED",
            lease("[red]second", 32, "2026-11-21T05:43:44Z"),
            at_ns=START_NS + 13,
        ),
        line("pods", "NOTE", {"error": "gone"}, at_ns=START_NS + 14),
        line("jobs", "BOOKMARK", {"metadata": {"resourceVersion": "40"}}, at_ns=START_NS + 15),
    ]
    out = tmp_path / "out"
    run(
        "import",
        "watch",
        write_log(tmp_path / "log", log),
        "-o",
        out,
        "--kubernetes-version",
        "1.36.3",
    )
    return out


def test_json(run, trace):
    code, out, err = run("info", trace, "-o", "json")
    assert (code, err) == (0, "")
    got = json.loads(out)
    assert (got["schema_version"], got["format_version"], got["kept_rows"]) == (1, 2, 0)
    assert got["kubernetes_version"] == "v1.36.3"
    assert got["jobs"] == {
        "total": 7,
        "names": 7,
        "by_outcome": {
            "not started": 2,
            "complete": 1,
            "deleted unfinished": 1,
            "failed: BackoffLimitExceeded": 1,
            "running": 1,
            "suspended": 1,
        },
        "deleted": 2,
    }
    assert [(x["holder"], x["transitions"]) for x in got["leaders"]] == [
        ("first", 1),
        ("[red]second", 2),
    ]
    assert got["leaders"][0]["first_seen"] == "2026-11-21T05:42:41.000000011Z"
    assert got["leaders"][0]["last_seen"] == "2026-11-21T05:42:41.000000012Z"
    assert [g["stream"] for g in got["gaps"]] == ["pods"]
    jobs = next(s for s in got["streams"] if s["stream"] == "jobs")
    assert jobs["types"]["DELETED"] == 2
    assert (jobs["first_resource_version"], jobs["last_resource_version"]) == (5, 40)
    assert got["rows"] == TraceReader(trace).rows


def test_table(run, trace, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, _ = run("info", trace)
    assert code == 0
    assert "\x1b" not in out
    for said in ("v1.36.3", "failed: BackoffLimitExceeded", "[red]second", "Gaps: 1", "Jobs: 7"):
        assert said in out


def test_a_damaged_file_is_named_and_the_rest_is_told(run, trace):
    (segment,) = TraceReader(trace).segments
    segment.path.write_bytes(b"PAR1")
    code, out, err = run("info", trace, "-o", "json")
    assert code == 2
    assert segment.path.name in err
    assert json.loads(out)["streams"] == []


def test_what_is_no_trace(run, tmp_path):
    code, out, err = run("info", tmp_path / "nothing")
    assert (code, out) == (2, "")
    assert err.startswith("tracekit: ")
    assert err.count("\n") == 1


@pytest.mark.skipif(not (TRACES / "v1.36.3-restart").is_dir(), reason="no recorded traces here")
def test_a_restart_of_the_controller_manager_shows(run, tmp_path):
    log = TRACES / "v1.36.3-restart" / "watch.jsonl.zst"
    run("import", "watch", log, "-o", tmp_path / "t")
    got = json.loads(run("info", tmp_path / "t", "-o", "json")[1])
    assert len(got["leaders"]) == 2
    assert got["jobs"]["total"] == 40


def behind_by(ns, run, tmp_path, name="v1.36.3-twins"):
    """The import of a record as a recorder would have it whose clock is behind by so much."""
    log = tmp_path / "log.jsonl"
    lines = json_lines(TRACES / name / "watch.jsonl.zst")
    log.write_text("".join(json.dumps({**row, "recv": row["recv"] - ns}) + "\n" for row in lines))
    run("import", log, "-o", tmp_path / "behind")
    return tmp_path / "behind"


def test_how_far_the_recorders_clock_was_off_is_said_with_its_evidence(run, tmp_path):
    trace = behind_by(300_000_000, run, tmp_path)
    text = run("info", trace)[1]
    assert "s or more behind, by the controller manager's Lease; taken as that" in text
    [epoch] = json.loads(run("info", trace, "-o", "json")[1])["clock"]["epochs"]
    assert epoch["evidence"] == "the controller manager's Lease"
    assert -0.3 <= epoch["ahead_s"] < -0.29


def test_an_offset_that_is_named_stands_in_for_what_the_trace_tells(run, tmp_path):
    trace = behind_by(300_000_000, run, tmp_path)
    told = json.loads(run("info", trace, "-o", "json", "--clock-offset=-7.5")[1])["clock"]
    [epoch] = told["epochs"]
    assert (epoch["ahead_s"], epoch["evidence"]) == (-7.5, "--clock-offset")
    assert 7.1 < told["api_servers_behind_s"] < 7.3
    assert "7.500 s behind, as --clock-offset says" in run("info", trace, "--clock-offset=-7.5")[1]


@pytest.mark.parametrize("said", ["nan", "inf", "1e12", "-1e12", "1e308"])
def test_an_offset_that_no_clock_has_is_refused(run, tmp_path, said):
    trace = behind_by(0, run, tmp_path)
    code, _, err = run("info", trace, f"--clock-offset={said}")
    assert code == 2
    assert "no clock's" in err


def test_the_clocks_of_kubelets_are_told_beside_the_one_that_is_judged_on(run, tmp_path):
    trace = behind_by(0, run, tmp_path)
    others = json.loads(run("info", trace, "-o", "json")[1])["clock"]["others"]
    assert {other["kind"] for other in others} == {"controller manager", "kubelet"}
    assert all(abs(other["ahead_s"]) < 0.02 for other in others)
    assert "kubelet node-1: 0.0" in run("info", trace)[1]


def test_of_a_clock_that_nothing_tells_of_that_is_said():
    out = StringIO()
    write_clocks(Timed(RecorderClock((Epoch(0, START_NS, START_NS, 0),), 2 * 10**9)), out)
    assert "unknown: too few times of the API server's" in out.getvalue()
    assert "clocks of API servers are 2 s apart, or requests took as long" in out.getvalue()


def test_the_scope_of_an_import_is_what_its_lists_tell(run, tmp_path):
    """No words that hold for all namespaces and for nothing known alike."""
    lists = {
        "all": (["x", "y"], "all namespaces"),
        "one": (["x"], "namespace x"),
        "none": ([], "unknown"),
    }
    for name, (namespaces, said) in lists.items():
        items = [job(f"in-{namespace}", rv=10 + at) for at, namespace in enumerate(namespaces)]
        for item, namespace in zip(items, namespaces, strict=True):
            item["metadata"]["namespace"] = namespace
        listed = {"kind": "JobList", "apiVersion": "batch/v1", "metadata": {}, "items": items}
        (tmp_path / f"{name}-jobs.json").write_text(json.dumps(listed), encoding="utf-8")
        target = tmp_path / f"{name}-trace"
        run("import", tmp_path / f"{name}-jobs.json", "-o", target)
        code, out, _ = run("info", target)
        assert code == 0
        assert re.search(r"^Scope +(.*)$", out, re.MULTILINE).group(1) == said
