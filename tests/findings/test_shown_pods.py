"""Text of kubectl: pods that have not begun, by their AGE, and a run that holds up the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

_HEAD = "NAME        READY   STATUS   RESTARTS   AGE\n"
#: By STATUS and AGE: what is said, and what is not.
ASKED = {
    ("ContainerCreating", "3h12m"): (
        "WARNING TK444 Pod load-7xk2p: has not begun",
        "its node wait",
    ),
    ("Pending", "131m"): (
        "WARNING TK444 Pod load-7xk2p: has not begun",
        "FailedScheduling say why",
    ),
    ("PodInitializing", "12m"): ("WARNING TK444 Pod load-7xk2p: has not begun", "mostly an image"),
    ("Init:0/2", "130m"): ("INFO TK444 Pod load-7xk2p: has not begun", "the init container that"),
    ("SchedulingGated", "5s"): ("INFO TK444 Pod load-7xk2p: was shown as", "scheduling gates"),
    ("ContainerStatusUnknown", "2d"): ("WARNING TK444", "no longer finds a container"),
    ("Init:Error", "4m"): ("WARNING TK444", "kubectl logs load-7xk2p -c INIT;"),
    ("Init:CrashLoopBackOff", "4m"): ("WARNING TK444", "-c INIT; kubectl describe pod load-7xk2p"),
    ("ContainerCreating", "8m59s"): ("INFO TK908",),
    ("Running", "3d"): ("INFO TK908",),
}


@pytest.mark.parametrize("shown", ASKED, ids=" ".join)
def test_what_is_said_of_a_pod_in_a_table(shown: tuple[str, str], run, tmp_path: Path) -> None:  # noqa: F811
    status, age = shown
    file = tmp_path / "pods.txt"
    file.write_text(f"{_HEAD}load-7xk2p  0/1   {status}   0   {age}\n")
    said = " ".join(run("diagnose", str(file))[1].split())
    assert [text for text in ASKED[shown] if text not in said] == [], said
    assert ("TK444" in said) == (len(ASKED[shown]) > 1)


def test_a_container_that_a_description_names_is_named_in_the_command(run, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "pod.txt"
    file.write_text(DESCRIBED)
    said = " ".join(run("diagnose", str(file))[1].split())
    assert "kubectl logs -n app load-7xk2p -c fetch" in said


DESCRIBED = """Name:             load-7xk2p
Namespace:        app
Node:             n1/10.0.0.1
Status:           Pending
Controlled By:    Job/load
Init Containers:
  fetch:
    Image:          i:1
    State:          Terminated
      Reason:       Error
      Exit Code:    4
      Started:      Mon, 04 May 2026 09:00:00 +0000
      Finished:     Mon, 04 May 2026 09:00:03 +0000
    Ready:          False
    Restart Count:  0
Containers:
  main:
    Image:          i:1
    State:          Waiting
      Reason:       PodInitializing
    Ready:          False
    Restart Count:  0
Conditions:
  Type              Status
  Initialized       False
  PodScheduled      True
"""


CRONJOB = """Name:                nightly
Namespace:           app
Schedule:            0 2 * * *
Concurrency Policy:  {policy}
Suspend:             False
Last Schedule Time:  Sat, 02 May 2026 02:00:00 +0000
Active Jobs:         {active}
"""


@pytest.mark.parametrize(
    ("policy", "active", "waits"),
    [("Forbid", "nightly-29627640", True), ("Allow", "nightly-29627640", False),
     ("Forbid", "<none>", False)],
)  # fmt: skip
def test_a_description_names_the_run_that_a_cronjob_waits_for(
    policy: str, active: str, waits: bool, run, tmp_path: Path,  # noqa: F811
) -> None:  # fmt: skip
    file = tmp_path / "cronjob.txt"
    file.write_text(CRONJOB.format(policy=policy, active=active))
    said = " ".join(run("diagnose", str(file), "--at", "2026-05-06T12:00:00Z")[1].split())
    assert "TK455 CronJob app/nightly: " in said
    assert ("waits for nightly-29627640 to end" in said) == waits, said
    assert ("kubectl describe job -n app nightly-29627640" in said) == waits
