"""Logs of controller managers without a record beside them, each made here: what `diagnose` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

GAVE_UP = """\
I0511 08:37:44.442355       1 cronjob_controller.go:95] Starting CronJob Manager
I0511 08:37:44.496712       1 cronjob_controller.go:110] Found 1 cronjobs
E0511 08:37:44.510942       1 cronjob_controller.go:247] Cannot determine if app/greet needs to be started: Too many missed start time (> 100). Set or decrease .spec.startingDeadlineSeconds or check clock skew.
I0511 08:37:44.510958       1 cronjob_controller.go:251] No unmet start times for app/greet
E0511 08:37:54.518112       1 cronjob_controller.go:247] Cannot determine if app/greet needs to be started: Too many missed start time (> 100). Set or decrease .spec.startingDeadlineSeconds or check clock skew.
"""
LOST = """\
I0511 08:13:00.281798       1 event.go:307] "Event occurred" object="etl/load-1" fieldPath="" kind="Job" apiVersion="batch/v1" type="Normal" reason="SuccessfulCreate" message="Created pod: load-1-abcde"
I0511 08:13:40.281798       1 event.go:307] "Event occurred" object="n7" fieldPath="" kind="Node" apiVersion="v1" type="Normal" reason="NodeNotReady" message="Node n7 status is now: NodeNotReady"
I0511 08:18:53.281798       1 event.go:307] "Event occurred" object="etl/load-1-abcde" fieldPath="" kind="Pod" apiVersion="v1" type="Normal" reason="TaintManagerEviction" message="Marking for deletion Pod etl/load-1-abcde"
I0511 08:18:58.281798       1 event.go:307] "Event occurred" object="etl/load-1" fieldPath="" kind="Job" apiVersion="batch/v1" type="Warning" reason="BackoffLimitExceeded" message="Job has reached the specified backoff limit"
E0511 08:19:01.000000       1 job_controller.go:598] syncing job: tracking status: adding uncounted pods to status: conflict
"""
REFUSED = """\
I0511 07:00:00.000100       1 job_controller.go:566] "enqueueing job" logger="job-controller" key="calc/fill-1" delay="0s"
I0511 07:00:01.121001       1 event.go:389] "Event occurred" logger="job-controller" object="calc/fill-1" fieldPath="" kind="Job" apiVersion="batch/v1" type="Warning" reason="FailedCreate" message="Error creating: pods \\"fill-1-x\\" is forbidden: exceeded quota: gpu, requested: pods=1, used: pods=8, limited: pods=8"
"""
OLD = """\
I0511 07:00:01.121001       1 event.go:221] Event(v1.ObjectReference{Kind:"Job", Namespace:"calc", Name:"fill-1", UID:"u", APIVersion:"batch/v1", ResourceVersion:"9", FieldPath:""}): type: 'Warning' reason: 'DeadlineExceeded' Job was active longer than specified deadline
I0511 07:00:02.121001       1 job_controller.go:434] Finished syncing job "calc/fill-1" (3.2ms)
"""
LOGS = {
    "kubernetes#45418, the CronJob controller gave up": (
        GAVE_UP, ("WARNING TK445 CronJob app/greet: was shown with the warning FailedNeedsStart",
                  "2 times, last at 2026-05-11 08:37:54Z", "Set startingDeadlineSeconds")),
    "kubernetes#105838, a node that was lost": (
        LOST, ("WARNING TK443 Job etl/load-1: was shown as failed (BackoffLimitExceeded)",
               "the taint-eviction-controller ended load-1-abcde",
               "INFO TK445 Node n7: was shown with NodeNotReady")),
    "kubernetes#49145, a quota": (
        REFUSED, ("TK445 Job calc/fill-1: was shown with the warning FailedCreate", "Free the quota")),
    "a release before 1.22": (
        OLD, ("TK443 Job calc/fill-1: was shown as failed (DeadlineExceeded)",)),
}  # fmt: skip


@pytest.mark.parametrize("thread", LOGS)
def test_a_managers_log_alone_tells_of_its_events(thread: str, run: Any, tmp_path: Path) -> None:  # noqa: F811
    text, says = LOGS[thread]
    file = tmp_path / "kcm.log"
    file.write_text(text)
    code, out, err = run("diagnose", str(file), "--at", "2026-05-12T10:00:00Z")
    out = " ".join(out.split())
    alone = "TK908 the record: is the log of a controller manager alone: nothing is judged"
    assert [part for part in (*says, alone) if part not in out] == [], out
    assert "tracekit import RECORD --with LOG -o TRACE" in out
    assert (code, "as of 2026-05-12T10:00:00Z" in err) == (0, True), err


@pytest.mark.parametrize(
    ("look", "year"), [("2026-05-10T10:00:00Z", 2025), ("2026-11-30T10:00:00Z", 2026)]
)
def test_what_it_tells_is_from_before_the_look(
    look: str, year: int, run: Any, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    """klog's text has no year."""
    file = tmp_path / "kcm.log"
    file.write_text(GAVE_UP)
    assert f"{year}-05-11 08:37:54Z" in " ".join(
        run("diagnose", str(file), "--at", look)[1].split()
    )


def test_one_that_tells_of_none_says_what_to_do(run: Any, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "kcm.log"
    file.write_text(REFUSED.splitlines()[0] + "\n")
    code, out, err = run("diagnose", str(file), "--at", "2026-05-12T10:00:00Z")
    assert (code, out, "put it beside a record" in err) == (2, "", True)


def test_a_job_that_an_old_table_shows_as_not_complete_is_told(run: Any, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "jobs.txt"
    file.write_text(
        "NAME    DESIRED   SUCCESSFUL   AGE\nlate    1         0            19h\n"
        "done    1         1            18h\nfresh   1         0            20s\n"
    )
    out = " ".join(run("diagnose", str(file))[1].split())
    assert "INFO TK443 Job late: was not complete; whether it failed was not shown" in out
    assert "kubectl get job late -o yaml" in out
    assert ("Job done" in out, "Job fresh" in out) == (False, False)
