"""Situations out of public reports: the first screen of `diagnose` says what is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.traces import ROOT
from tracekit.cli.import_ import import_
from tracekit.cli.simulate import simulate_command
from tracekit.report.findings import text_lines
from tracekit.report.html.data import report_data
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session

REPORTS = ROOT / "tests" / "data" / "reports"
SCREEN = 24
#: By report: the files (none: the workload is simulated), what the screen says, what it does not.
SAID: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "01-unschedulable": (("all.yaml", "events.yaml"), (
        "TK411", "3 Insufficient nvidia.com/gpu"), ("No pod at all",)),
    "02-serviceaccount-missing": (("all.yaml", "events.yaml"), (
        'serviceaccount "scanner" not found', "do: Create the ServiceAccount"), ("raise the", "TK205")),
    "03-terminating-dead-node": (("all.yaml", "events.yaml"), (
        "podReplacementPolicy Failed", "epoch-7-h2m9s on node-dead", "DeletionByTaintManager",
        "1 h 5 min ago", "--force --grace-period=0"), ()),
    "04-failuretarget-stuck": (("all.yaml", "events.yaml"), (
        "was ended (DeadlineExceeded)", "FailureTarget since 2026-08-17 18:10:00Z",
        "revoke-29783160-zz9pl on node-dead"), ("Give the Job an activeDeadlineSeconds",)),
    "05-failed-ttl": ((), ("ttlSecondsAfterFinished took it", "deleted 20 s later (ttlSecondsAfterFinished 20)"), ()),
    "06-stale-active": (("all.yaml", "events.yaml"), (
        "TK312", "status.active names poll-handout-27405720", "Complete since 2022-02-08 18:23:00Z",
        "8 times"), ("Raise startingDeadlineSeconds",)),
    "07-parallelism-gt-completions": ((), ("1 pod at most, not parallelism 3",), ()),
    "08-init-crashloop": (("all.yaml", "events.yaml"), (
        "init container wait-db ends with exit code 2", "4 restarts", "backoffLimit 6"),
        ("Unschedulable",)),
    "09-outofpods": (("all.yaml", "events.yaml"), (
        "the kubelet refused its pods (OutOfpods)", "no DisruptionTarget", "used: 110"), ()),
    "10-policy-vs-pod-deadline": (("all.yaml", "events.yaml"), (
        "longer than the pod template allows", "In [0] is invalid"),
        ("FailJob on this exit code",)),
    "11-immutable": (("audit.log",), (
        "argocd-application-controller was refused (422)", "2 times", "delete the Job"), ()),
    "12-dst": ((), ("TK314", "was due twice at 2025-10-26 02:15:00 (Europe/Berlin)"), ("No findings",)),
    "13-argo-hook-ttl0": ((), ("went as it became Complete (ttlSecondsAfterFinished 0)",), ()),
    "14-finalizer-orphan": (
        ("watch.log",),
        ("TK204", "left with the tracking finalizer", "mailer-29158680-9dcql"),
        ("nobody asked them", "TK201"),
    ),
    "15-replace-never-ends": ((), ("10 of 10 runs were replaced before they ended",), ()),
    "16-schedule-edit": ((), (
        "TK310", "the old schedule's timer woke the controller at 2025-03-14 10:50:00Z"), ()),
    "17-node-shutdown": (("all.yaml", "events.yaml"), (
        "its node was shut down (TerminationByKubelet)",), ("exit code 0",)),
    "18-duplicate-uncounted": (("all.yaml", "events.yaml"), (
        "TK209", "Duplicate value in uncountedTerminatedPods", "solve-a-0-aaaaa is Failed", "#125410",
        "PR 126343"), ("broken watch",)),
    "19-config-error": (("jobs-pods.yaml", "events.yaml"), (
        'secret "export-db" not found', 'configmap "no-such" not found',
        "never counts toward backoffLimit"), ("Unschedulable",)),
    "20-ready-untold": ((), (
        "active 0 < ready", "#139428", "1.34.10, 1.35.7, 1.36.3"), ("broken watch",)),
    "21-pod-gone-after-complete": ((), (
        "TK435", "Complete before its pods were deleted", "does not run again"), ("No findings",)),
    "22-node-shutdown-1.24": (("all.yaml", "events.yaml"), (
        "its node was shut down (Terminated)",), ("exit code 0",)),
    "23-selector-clash": ((), ("No findings.",), ()),
}  # fmt: skip


def first_screen(name: str, files: tuple[str, ...], place: Path) -> str:
    """What `diagnose` prints first at 80 columns, its lines joined by single spaces."""
    out, folder = place / "trace", REPORTS / name
    if files:
        args = [*(str(folder / file) for file in files), "-o", str(out)]
        result = CliRunner().invoke(import_, args, standalone_mode=False)
    else:
        args = ["--workload", str(folder / "w.yaml"), "-o", str(out)]
        result = CliRunner().invoke(simulate_command, args, standalone_mode=False)
    assert result.exception is None, result.output
    lines = list(text_lines(findings_of(Session([str(out)]))))
    return " ".join(" ".join(lines[:SCREEN]).split())


@pytest.mark.parametrize("name", SAID)
def test_the_first_screen_says_what_is_right(name: str, tmp_path: Path) -> None:
    files, said, not_said = SAID[name]
    screen = first_screen(name, files, tmp_path)
    assert [text for text in said if text not in screen] == [], screen
    assert [text for text in not_said if text in screen] == [], screen


@pytest.mark.parametrize("jobs", ["jobs.json", "jobs.yaml"])
def test_a_pod_whose_job_is_in_no_list_is_left_with_its_finalizer(
    jobs: str, tmp_path: Path
) -> None:
    files = ("pods.yaml", "events.yaml", jobs)
    screen = first_screen("14-finalizer-orphan", files, tmp_path)
    for said in ("TK204", "held by the tracking finalizer", "Job mailer-29158680 is gone"):
        assert said in screen
    assert "nobody asked them" not in screen


def test_a_list_without_events_is_not_silent(tmp_path: Path) -> None:
    screen = first_screen("19-config-error", ("jobs-pods.yaml",), tmp_path)
    assert 'secret "export-db" not found' in screen


def test_who_deleted_is_known_by_an_event_that_was_combined(tmp_path: Path) -> None:
    """The tenth Event of its kind within ten minutes says it behind a prefix of client-go's."""
    first_screen("15-replace-never-ends", (), tmp_path)
    session = Session([str(tmp_path / "trace")])
    rows = session.rows("SELECT name, deleted_by FROM deletions WHERE kind = 'Job'")
    assert len(rows) == 10
    assert {row["deleted_by"] for row in rows} == {"cronjob-controller"}
    by = session.rows("SELECT DISTINCT actor FROM actions WHERE action = 'job-delete'")
    assert [row["actor"] for row in by] == ["cronjob-controller"]


@pytest.mark.full
def test_a_look_is_drawn_from_the_creation_that_it_tells_of(tmp_path: Path) -> None:
    files = ("all.yaml", "events.yaml")
    first_screen("17-node-shutdown", files, tmp_path)
    data = report_data(Session([str(tmp_path / "trace")]))
    assert (data["looked_ms"], data["span_ms"]) == (60_000.0, 60_000.0)
    assert [job["created"] for job in data["jobs"]] == [0.0]
