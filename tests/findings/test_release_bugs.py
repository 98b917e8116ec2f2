"""Bugs of releases by name: told where the release has them, with the release that mends them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.sql.conftest import session_of, trace_path  # noqa: F401 - fixtures
from tracekit.answers.facts import facts_of, keyed
from tracekit.answers.findings import jobs
from tracekit.answers.findings.advice import advice_of
from tracekit.answers.findings.diagnosis import RULES
from tracekit.answers.judgements import Listed
from tracekit.answers.trace_model import COLUMNS, Facts
from tracekit.base.cron import Generation
from tracekit.cli.simulate import simulate_command
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session
from tracekit.versions.era import Era
from tracekit.versions.gates import Gate
from tracekit.versions.release import Release
from tracekit.versions.release_bugs import BUGS, Bug, bugs_of
from tracekit.versions.version import KubeVersion

S = 10**9
WORKLOAD = """
duration: 2m
jobs:
- {name: paused, spec: {completions: 1, parallelism: 1}, pods: {run: 10m}}
- {name: empty, spec: {completions: 0, parallelism: 1, suspend: true}}
actions:
- {at: 8s, target: jobs/default/paused, patch: {spec: {suspend: true}}}
- {at: 16s, target: jobs/default/paused, patch: {spec: {suspend: false}}}
"""


def said(version: str, place: Path) -> dict[str, str]:
    """By id: what is said of statuses that the API server of the model refused, with advice."""
    (place / "w.yaml").write_text(WORKLOAD)
    words = [
        "--workload",
        str(place / "w.yaml"),
        "-o",
        str(place / "t"),
        "--kubernetes-version",
        version,
    ]
    result = CliRunner().invoke(simulate_command, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = findings_of(Session([str(place / "t")]))
    return {f.id: f.cases[0].todo or "" for f in found if f.id.startswith("TK2")}


def test_a_status_that_this_release_refuses_is_told_with_the_release_that_does_not(
    tmp_path: Path,
) -> None:
    told = said("v1.33.2", tmp_path)
    assert set(told) == {"TK211", "TK212"}
    assert "1.33.6 or later" in told["TK211"]
    assert "1.33.3 or later" in told["TK212"]


def test_a_mended_release_has_nothing_to_tell(tmp_path: Path) -> None:
    assert said("v1.33.6", tmp_path) == {}


@pytest.mark.parametrize(
    ("bug", "has", "mended"),
    [
        (Bug.ACTIVE_TOLD_AS_0_IN_BACKOFF, "1.36.2", "1.36.3"),
        (Bug.ORPHAN_NOT_TRIED_AGAIN, "1.36.4", "1.36.5"),
        (Bug.ORPHAN_NOT_TRIED_AGAIN, "1.32.0", "1.31.14"),  # the queue by selector came with 1.32
        (Bug.EXPECTATIONS_OUTLIVE_THE_JOB, "1.37.1", "1.37.2"),
        (Bug.BACKOFF_OUTLIVES_THE_JOB, "1.33.2", "1.33.3"),
        (Bug.DEADLINE_TIMER_LOST, "1.24.2", "1.24.3"),
        (Bug.RESUMED_JOB_REFUSED, "1.34.1", "1.34.2"),
        (Bug.RESUMED_JOB_REFUSED, "1.32.0", "1.31.0"),  # JobManagedBy is off by default
    ],
)
def test_which_releases_have_a_bug(bug: Bug, has: str, mended: str) -> None:
    assert bug in bugs_of(Era.resolve(has))
    assert bug not in bugs_of(Era.resolve(mended))


@pytest.mark.parametrize("bug", Bug)
def test_the_remedy_names_releases_that_mend_it(bug: Bug) -> None:
    row = BUGS[bug]
    eras = [era for v in ("1.22.3", "1.33.0", "1.36.1") if row.in_release(era := Era.resolve(v))]
    assert eras
    for version in (None, *(era.version for era in eras)):
        text = row.remedy(version).removeprefix("Upgrade to ").partition(" or later")[0]
        for release in text.split(", "):
            assert not row.in_release(Era.resolve(release)), release
    assert row.thread


def test_a_gate_that_is_off_is_turned_on_and_no_upgrade_is_advised() -> None:
    off = Era.resolve("1.36.3", {Gate.StaleControllerConsistencyJob.value: False})
    bug = bugs_of(off)[Bug.OWN_WRITES_NOT_AWAITED]
    assert bug.remedy == "Turn the feature gate StaleControllerConsistencyJob on."
    assert Bug.OWN_WRITES_NOT_AWAITED not in bugs_of(Era.resolve("1.36.3"))
    old = bugs_of(Era.resolve("1.35.1"))[Bug.OWN_WRITES_NOT_AWAITED]
    assert old.remedy == "Upgrade to 1.36 or later."


@pytest.mark.parametrize("version", ["v1.36.3", "v1.37.1"])
def test_no_advice_on_a_new_release_names_an_old_one(version: str, session_of: Any) -> None:  # noqa: F811
    name = {"v1.36.3": "v1.36.3-troubles", "v1.37.1": "v1.37.1-all"}[version]
    own = KubeVersion.parse(version)
    for finding in findings_of(session_of(name)):
        for case in finding.cases:
            named = re.findall(r"\b1\.\d\d(?:\.\d+)?\b", advice_of(case))
            assert all(KubeVersion.parse(release) > own for release in named), advice_of(case)


def test_a_rule_that_names_a_bug_names_its_thread() -> None:
    threads = {row.thread for row in BUGS.values()}
    assert {rule.thread for rule in RULES if rule.id in ("TK210", "TK211", "TK212")} <= threads


def row(stream: str, kind: str, at_s: int, rv: int, **more: Any) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS) | {
        "stream": stream, "type": kind, "recv_ns": at_s * S, "rv": rv, "seq": rv,
        "namespace": "a", "spec": json.dumps({"parallelism": 1, "completions": 1}), **more,
    }  # fmt: skip


def recreated(version: str, phase: str, pod_s: int, end_s: int) -> Facts:
    first, second = ({"name": "j", "job": "j", "uid": uid} for uid in ("one", "two"))
    pod = {"name": "j-x", "uid": "p", "job": "j", "owner_uid": "one", "phase": phase}
    rows = [
        row("jobs", "ADDED", 0, 1, **first),
        row("pods", "ADDED", pod_s, 2, **pod),
        row("jobs", "DELETED", 20, 3, **first),
        row("jobs", "ADDED", 21, 4, **second),
        row("leases", "MODIFIED", end_s, 5, name="other"),
    ]
    era = Era.resolve(version)
    return facts_of(
        keyed(rows), ticks=(), judgements=Listed(), not_judged=None, gaps=(), streams={}, problems=(),
        generation=Generation.GEN3, release=Release.of(era),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("version", "phase", "pod_s", "end_s", "thread"),
    [
        ("1.36.3", "Pending", 19, 120, 131917),  # a pod in flight when its Job went
        ("1.37.2", "Pending", 19, 120, None),
        ("1.36.3", "Pending", 5, 120, None),
        ("1.36.3", "Pending", 19, 600, None),  # nobody expects anything any more
        ("1.33.2", "Failed", 5, 400, 132042),
        ("1.33.3", "Failed", 5, 400, None),
    ],
)
def test_a_job_that_waits_for_what_is_left_of_an_earlier_one(
    version: str, phase: str, pod_s: int, end_s: int, thread: int | None
) -> None:
    (case,) = [
        c
        for c in jobs.Jobs().of_part(recreated(version, phase, pod_s, end_s))
        if c.rule.id == "TK411"
    ]
    assert case.thread == thread
    assert ("earlier Job" in case.claim) is (thread is not None)
