"""The views `findings`, `endings` and `waits` say what `diagnose` says; each Job is in one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.traces import ROOT, TRACES, import_log
from tracekit.cli.import_ import import_
from tracekit.cli.sql import sql
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session

NAMES = sorted(path.parent.name for path in TRACES.glob("*/watch.jsonl.zst"))


@pytest.mark.parametrize("name", NAMES)
def test_the_views_say_what_diagnose_says(name: str, tmp_path: Path) -> None:
    path = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name).path
    session = Session([path])
    wanted = {
        (finding.id, str(case.target), case.claim, case.badness.value)
        for finding in findings_of(session)
        for case in finding.cases
    }
    rows = session.table("FROM findings").to_pylist()
    said = {
        (
            row["id"],
            f"{row['kind']} {row['namespace']}/{row['name']}" if row["namespace"] else row["name"],
            row["claim"],
            row["severity"],
        )
        for row in rows
    }
    assert said == wanted
    # Each failed Job has its cause, and the finding that says it.
    failed = session.table("SELECT * FROM endings WHERE kind = 'Job' AND reason IS NOT NULL")
    ended = {row["uid"]: row for row in failed.to_pylist()}
    causes = {(row["uid"], row["id"]): row["claim"] for row in rows}
    jobs = session.table("SELECT job_uid FROM jobs WHERE outcome = 'Failed'").to_pylist()
    assert jobs or name == "v1.36.3-conflicts"
    for job in jobs:
        row = ended[job["job_uid"]]
        assert row["cause"] == causes[job["job_uid"], row["finding"]]
    # And each that has not ended is said to wait for something, if it is the controller's.
    open_jobs = session.table(
        "SELECT job_uid, job FROM jobs WHERE outcome IN ('Running', 'Pending', 'Suspended')"
    ).to_pylist()
    waits = {row["job"] for row in session.table("FROM waits").to_pylist()}
    managed = {row["uid"] for row in rows if row["id"] == "TK437"}
    assert [
        j["job"] for j in open_jobs if j["job_uid"] not in managed and j["job"] not in waits
    ] == []
    session.close()


def test_what_an_unfinished_job_waits_for_is_a_row(tmp_path: Path) -> None:

    folder = ROOT / "tests" / "data" / "reports" / "19-config-error"
    out = str(tmp_path / "t")
    files = [str(folder / "jobs-pods.yaml"), str(folder / "events.yaml")]
    assert CliRunner().invoke(import_, [*files, "-o", out]).exit_code == 0
    session = Session([out])
    rows = session.table("SELECT * FROM waits WHERE kind = 'Pod'").to_pylist()
    session.close()
    assert any('secret "export-db" not found' in row["message"] for row in rows)
    assert {row["finding"] for row in rows} == {"TK428"}
    assert all(row["advice"] and row["since_at"] for row in rows)


@pytest.mark.full
def test_advice_names_the_file_as_its_user_does(tmp_path: Path) -> None:
    """Where the trace is one of the moment, its place is nobody's."""
    log = tmp_path / "my watch.jsonl.zst"
    log.write_bytes((ROOT / "traces/v1.14.10-all/watch.jsonl.zst").read_bytes())
    done = CliRunner().invoke(sql, [str(log), "SELECT advice FROM findings", "-o", "json"])
    assert done.exit_code == 0, done.output
    asked = re.findall(r"`tracekit [a-z]+ ([^`]*)", done.stdout)
    assert asked
    assert all(words.startswith(f"'{log}'") for words in asked), asked


@pytest.mark.full
def test_the_view_causes_has_what_each_cause_cost_and_whose_doing_it_was(tmp_path: Path) -> None:
    """Each failed Job counts once among them; pod time is that of `wasted_pods`."""
    name = "v1.36.3-troubles"
    path = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name).path
    session = Session([path])
    rows = session.table("FROM causes").to_pylist()
    findings = findings_of(session)
    failed = session.table("SELECT job_uid FROM jobs WHERE outcome = 'Failed'").num_rows
    wasted = session.table(
        "SELECT job, wasted_pod_s FROM wasted_pods WHERE outcome = 'Failed'"
    ).to_pylist()
    session.close()
    victims = {id(victim.cases) for finding in findings for victim in finding.victims}
    assert len(victims) >= 5
    assert [(row["rank"], row["id"], row["severity"], row["cause"]) for row in rows] == [
        (rank, f.id, f.severity.value, f.claim)
        for rank, f in enumerate(findings, 1) if id(f.cases) not in victims
    ]  # fmt: skip
    assert sum(row["failed_jobs"] for row in rows) == failed
    of = {(row["id"], row["name"]): row for row in rows}
    evicted = of["TK403", "evicted"]
    assert evicted["actor"] == "kubelet"
    assert evicted["lost_pod_s"] == pytest.approx(
        next(row["wasted_pod_s"] for row in wasted if row["job"] == "evicted"), abs=0.01
    )
    assert of["TK304", "hangs"]["missed_runs"] == 3
    assert of["TK413", "suspended"]["unfinished_jobs"] == 1
    assert of["TK206", "sleeps"]["actor"] == "kubectl-alice"


def test_the_parts_of_latency_add_up_to_the_whole(tmp_path: Path) -> None:
    name = "v1.36.3-troubles"
    path = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name).path
    session = Session([path])
    rows = session.table("FROM latency_shares").to_pylist()
    oom = session.table("SELECT first_pod_s FROM latency WHERE job LIKE 'forgets-%'").to_pylist()
    session.close()
    mine = [r for r in rows if r["cronjob"] == "forgets" and r["outcome"] == "Failed"]
    assert sum(r["share"] for r in mine) == pytest.approx(1)
    of = {r["part"]: r for r in mine}
    assert (of["scheduled"]["whose"], of["running"]["whose"]) == ("scheduler", "kubelet")
    assert of["first_pod"]["jobs"] == len(oom) == 4
    assert of["first_pod"]["max_s"] == max(r["first_pod_s"] for r in oom)
    assert all(r["p50_s"] <= r["p95_s"] <= r["max_s"] for r in rows)
