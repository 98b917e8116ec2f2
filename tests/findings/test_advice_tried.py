"""What `do:` says is tried: the model of the cluster runs the trouble, then the same with that.

A world shows the finding with that advice; with what it advises done, the harm is gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from tracekit.api.trace import Trace
from tracekit.cli.simulate import simulate_command

World = dict[str, Any]
_NEVER = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}}
_EVICTED = {"run": "2s", "exit": 143, "condition": "DisruptionTarget",
            "reason": "EvictionByEvictionAPI", "failFirst": 1}  # fmt: skip
_IGNORED = {"rules": [{"action": "Ignore", "onPodConditions": [
    {"type": "DisruptionTarget", "status": "True"}]}]}  # fmt: skip


def world(spec: Mapping[str, Any], pods: Mapping[str, Any], **more: Any) -> World:
    job = {"name": "work", "namespace": "app", "spec": {**_NEVER, **spec}, "pods": dict(pods)}
    return {"duration": "3m", "kubernetesVersion": "v1.36.3", "seed": 1, "jobs": [job], **more}


def with_spec(found: World, **spec: Any) -> World:
    job = found["jobs"][0]
    return {**found, "jobs": [{**job, "spec": {**job["spec"], **spec}}]}


def patched(found: World, **spec: Any) -> World:
    """A user's patch in the midst of it."""
    action = {"at": "100s", "target": "jobs/app/work", "patch": {"spec": spec}}
    return {**found, "actions": [*found.get("actions", ()), action]}


def cron(policy: str, job: Mapping[str, Any], pods: Mapping[str, Any]) -> World:
    spec = {"schedule": "* * * * *", "concurrencyPolicy": policy,
            "jobTemplate": {"spec": {**_NEVER, **job}}}  # fmt: skip
    made = {"name": "tick", "namespace": "app", "spec": spec, "pods": dict(pods)}
    return {"duration": "6m", "kubernetesVersion": "v1.36.3", "seed": 1, "cronJobs": [made]}


class Tried(NamedTuple):
    """A world in trouble, what is said, what is done about it, and how one sees that it helped."""

    trouble: World
    finding: str
    advice: str
    done: World
    helped: Callable[[Trace], bool]


def completed(trace: Trace) -> bool:
    """Whether the Job is Complete."""
    return bool(trace.jobs()["outcome"].to_pylist() == ["Complete"])


def count(trace: Trace, query: str) -> int:
    return int(trace.sql(query).fetchall()[0][0])


SUSPENDED = world({"suspend": True}, {"run": "2s"})
IDLE = world({"parallelism": 0, "completions": 1}, {"run": "2s"})
DISRUPTED = world({"backoffLimit": 0}, _EVICTED)
EXIT_3 = world({"backoffLimit": 2}, {"run": "1s", "exit": 3})
TOO_SHORT = world({"activeDeadlineSeconds": 20}, {"run": "40s"})
GONE = world({"ttlSecondsAfterFinished": 5, "backoffLimit": 0}, {"run": "1s", "exit": 1})
HUNG = cron("Forbid", {}, {"run": None})
PILED_UP = cron("Allow", {}, {"run": "200s"})
CUT = cron("Replace", {}, {"run": "90s"})
QUOTA = {**world({}, {"run": "2s"}), "faults": {"podQuota": {"app": 0}}}
FAIL_JOB = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]}
_PODS = "SELECT count(*) FROM attempts"
_STARTS = "SELECT count(*) FROM cron_ticks WHERE outcome = 'started'"
_KEPT = "SELECT count(*) FROM deletions WHERE kind = 'Job'"

TRIED = {
    "suspended": Tried(
        SUSPENDED, "TK413", "kubectl patch job -n app work", patched(SUSPENDED, suspend=False),
        completed),
    "wants no pods": Tried(
        IDLE, "TK438", "kubectl patch job -n app work", patched(IDLE, parallelism=1), completed),
    "disrupted": Tried(
        DISRUPTED, "TK403", "podFailurePolicy ignore DisruptionTarget",
        with_spec(DISRUPTED, podFailurePolicy=_IGNORED), completed),
    "one exit code": Tried(
        EXIT_3, "TK407", "FailJob on this exit code",
        with_spec(EXIT_3, podFailurePolicy=FAIL_JOB), lambda trace: count(trace, _PODS) == 1),
    "too short a deadline": Tried(
        TOO_SHORT, "TK408", "Raise activeDeadlineSeconds",
        with_spec(TOO_SHORT, activeDeadlineSeconds=60), completed),
    "the TTL took it": Tried(
        GONE, "TK431", "Raise ttlSecondsAfterFinished",
        with_spec(GONE, ttlSecondsAfterFinished=600), lambda trace: count(trace, _KEPT) == 0),
    "Forbid behind a hung run": Tried(
        HUNG, "TK304", "activeDeadlineSeconds in the CronJob's jobTemplate",
        cron("Forbid", {"activeDeadlineSeconds": 30}, {"run": None}),
        lambda trace: count(trace, _STARTS) > 3),
    "replaced before they end": Tried(
        CUT, "TK313", "concurrencyPolicy Forbid", cron("Forbid", {}, {"run": "90s"}),
        lambda trace: count(trace, "SELECT count(*) FROM jobs WHERE outcome = 'Complete'") > 0),
    "runs that pile up": Tried(
        PILED_UP, "TK318", '"concurrencyPolicy":"Forbid"', cron("Forbid", {}, {"run": "200s"}),
        lambda trace: count(trace, "SELECT count(*) FROM jobs WHERE outcome = 'Running'") <= 1),
    "a quota": Tried(
        QUOTA, "TK405", "Raise the quota's hard limit",
        {**QUOTA, "faults": {"podQuota": {"app": 1}}}, completed),
}  # fmt: skip


def run(found: World, place: Path) -> Trace:
    """The trace of a world."""
    place.with_suffix(".json").write_text(json.dumps(found))
    words = ["--workload", str(place.with_suffix(".json")), "-o", str(place)]
    result = CliRunner().invoke(simulate_command, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return Trace(str(place))


@pytest.mark.parametrize("name", TRIED)
def test_what_is_advised_helps(name: str, tmp_path: Path) -> None:
    tried = TRIED[name]
    trouble = run(tried.trouble, tmp_path / "trouble")
    said = {f["id"]: f["do"] for f in trouble.diagnose().document()["findings"]}
    assert tried.advice in said.get(tried.finding, ""), said
    assert not tried.helped(trouble)
    assert tried.helped(run(tried.done, tmp_path / "done"))


@pytest.mark.parametrize("name", ["disrupted", "one exit code"])
def test_no_policy_is_advised_that_validation_refuses(name: str, tmp_path: Path) -> None:
    """A podFailurePolicy is valid with restartPolicy Never alone."""
    found = TRIED[name].trouble
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main"}]}}
    trouble = run(with_spec(found, template=template), tmp_path / "trouble")
    for finding in trouble.diagnose().document()["findings"]:
        assert "Let a podFailurePolicy" not in finding["do"]
        assert "FailJob on this" not in finding["do"]
