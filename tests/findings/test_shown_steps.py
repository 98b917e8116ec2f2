"""What kubectl printed for people, asked of `explain`, `timeline` and `who`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import at, job
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

DESCRIBED = """Name:             load-x2x4z
Namespace:        app
Node:             n9/10.0.0.9
Labels:           job-name=load
Status:           Running
Controlled By:    Job/load
Containers:
  main:
    Image:          i:1
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    3
    Ready:          False
    Restart Count:  4
  log:
    Image:          i:1
    State:          Terminated
      Reason:       Error
      Exit Code:    9
      Started:      Mon, 04 May 2026 09:41:00 +0000
      Finished:     Mon, 04 May 2026 09:43:00 +0000
    Ready:          False
    Restart Count:  0
Events:
  Type     Reason   Age                From     Message
  ----     ------   ----               ----     -------
  Warning  BackOff  2m (x20 over 15m)  kubelet  Back-off restarting failed container main

Name:             load
Namespace:        app
Selector:         batch.kubernetes.io/controller-uid=1
Parallelism:      1
Completions:      1
Start Time:       Mon, 04 May 2026 09:40:00 +0000
Pods Statuses:    1 Active (0 Ready) / 0 Succeeded / 0 Failed
Events:           <none>
"""
TABLES = """NAMESPACE   NAME                  STATUS   COMPLETIONS   DURATION   AGE
app         nightly-29627640      Failed   0/1           5m         5m

NAMESPACE   NAME                     READY   STATUS      RESTARTS   AGE
app         nightly-29627640-7xk2p   0/1     OOMKilled   0          5m
app         other-abcde              1/1     Running     0          5m

NAMESPACE   NAME      SCHEDULE    TIMEZONE   SUSPEND   ACTIVE   LAST SCHEDULE   AGE
app         nightly   0 2 * * *   <none>     False     0        5m              9d
"""
EVENTS = """NAMESPACE   LAST SEEN   TYPE      REASON                 OBJECT             MESSAGE
app         20m         Normal    SuccessfulCreate       job/load           Created pod: load-x2x4z
app         2m          Warning   FailedScheduling       pod/load-x2x4z     0/3 nodes are available
app         1m          Warning   BackoffLimitExceeded   job/load           Job has reached its limit
"""
NOTHING = "Nothing of it is judged: text that kubectl prints for people has no states"

#: By text and name: what `explain` says, and what it does not say.
ASKED: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "a description": (DESCRIBED, "load", (
        "Job app/load", "warning TK444: was shown as CrashLoopBackOff",
        "09:40:00.000 Job: began, by its Start Time",
        "09:43:00.000 Pod load-x2x4z: container log ended: Error, exit code 9",
        "Pod load-x2x4z: Event BackOff (20 times): Back-off restarting failed container main (by",
        "container main Waiting CrashLoopBackOff (before that Error, exit code 3), 4 restarts",
        "Job: was described: active 1, succeeded 0, failed 0", NOTHING), ()),
    "its pod": (DESCRIBED, "app/load-x2x4z", ("Job app/load", "Pod load-x2x4z: was described"), ()),
    "a table": (TABLES, "nightly-29627640", (
        "Job app/nightly-29627640", "TK443: was shown as failed", "TK444: was shown as OOMKilled",
        "Pod nightly-29627640-7xk2p: was shown as OOMKilled: READY 0/1"), ("other-abcde",)),
    "a CronJob of a table": (TABLES, "cronjob/nightly", (
        "CronJob app/nightly", "Job nightly-29627640: was shown as Failed: COMPLETIONS 0/1"),
        ("other-abcde",)),
    "a pod of none": (TABLES, "other-abcde", ("Pod app/other-abcde", "was shown as Running"),
                      ("nightly",)),
    "Events": (EVENTS, "load", (
        "TK443: was shown as failed (BackoffLimitExceeded)",
        "09:40:00.000 Job: Event SuccessfulCreate: Created pod: load-x2x4z",
        "09:58:00.000 Pod load-x2x4z: Event FailedScheduling"), ()),
}  # fmt: skip


def printed(run: Any, tmp_path: Path, text: str, verb: str, *words: str) -> tuple[int, str, str]:  # noqa: F811
    file = tmp_path / "printed.txt"
    file.write_text(text)
    code, out, err = run(verb, str(file), *words, "--at", at("10:00"))
    return code, " ".join(out.split()), err


@pytest.mark.parametrize("asked", ASKED)
def test_explain_tells_what_was_shown(asked: str, run, tmp_path: Path) -> None:  # noqa: F811
    text, name, says, not_said = ASKED[asked]
    code, out, _ = printed(run, tmp_path, text, "explain", name)
    assert code == 0
    assert [part for part in says if part not in out] == [], out
    assert [part for part in not_said if part in out] == [], out


def test_explain_of_what_was_not_shown_is_an_error(run, tmp_path: Path) -> None:  # noqa: F811
    code, out, err = printed(run, tmp_path, TABLES, "explain", "nihgtly")
    assert (code, out) == (2, "")
    assert "did you mean nightly" in err


def test_timeline_tells_what_was_shown_in_order(run, tmp_path: Path) -> None:  # noqa: F811
    _, out, _ = printed(run, tmp_path, DESCRIBED, "timeline", "load", "--troubles")
    assert out == (
        "2026-05-04 (UTC) 09:43:00.000 Pod app/load-x2x4z: container log ended: Error, exit code 9 "
        "09:58:00.000 Pod app/load-x2x4z: Event BackOff (20 times): Back-off restarting failed "
        "container main, by kubelet 10:00:00.000 Pod app/load-x2x4z: was described as Running: "
        "container main Waiting CrashLoopBackOff (before that Error, exit code 3), 4 restarts, "
        "container log Terminated Error"
    )
    _, out, _ = printed(run, tmp_path, TABLES, "timeline", "nightly", "-o", "json")
    assert '"name": "nightly-29627640-7xk2p"' in out
    assert "other-abcde" not in out


def test_who_says_why_it_names_nobody(run, tmp_path: Path) -> None:  # noqa: F811
    code, _, err = printed(run, tmp_path, DESCRIBED, "who")
    assert code == 0
    assert "nobody's writes are known: text that kubectl prints for people has no states" in err


def test_a_text_that_is_not_read_beside_states_is_named(run, tmp_path: Path) -> None:  # noqa: F811
    states, text = tmp_path / "list.json", tmp_path / "events.txt"
    states.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [job()]}))
    text.write_text(EVENTS)
    _, _, err = run("diagnose", str(states), str(text), "--at", at("10:00"))
    assert f"nothing with states is beside, left out, for example {text}" in err
