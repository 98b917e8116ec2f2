"""The views `findings`, `endings` and `waits` say what `diagnose` says; each Job is in one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.traces import ROOT, TRACES, import_log
from tracekit.cli.import_ import import_
from tracekit.sql.diagnosed import findings_of
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
