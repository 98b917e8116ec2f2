"""Scenarios of the policies that came later: pod failures, indexes, replacement, success."""

import time
from typing import TYPE_CHECKING

from tests.e2e.scene import Scene

if TYPE_CHECKING:
    from tests.e2e.api import RawObject

DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


def pod_failure_policy(scene: Scene) -> None:
    fatal_codes = {"containerName": "main", "operator": "In", "values": [42]}
    rules = [
        {"action": "FailJob", "onExitCodes": fatal_codes},
        {"action": "Ignore", "onPodConditions": [DISRUPTED]},
        {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [0, 7]}},
    ]
    three: RawObject = {"completions": 3, "parallelism": 3, "podFailurePolicy": {"rules": rules}}
    on = scene.around.has("JobPodFailurePolicy", beta_minor=26)
    fatal = {"run": 1, "byOrdinal": {"0": {"run": 6}, "1": {"exit": 42}}}
    scene.job("fatal", fatal, end="Failed:PodFailurePolicy" if on else "Complete", **three)
    disrupted = {"exit": 1, "condition": "DisruptionTarget"}
    ignored = {"run": 1, "byOrdinal": {"0": disrupted, "1": {"exit": 7}}}
    scene.job("ignored", ignored, end="Complete", backoffLimit=2, **three)
    counted = {"run": 1, "byOrdinal": {"0": {"exit": 3}, "1": {"exit": 4}, "2": {"exit": 5}}}
    scene.job("counted", counted, end="Failed:BackoffLimitExceeded", backoffLimit=1, **three)
    many_disrupted = {"run": 1, "failFirst": 4} | disrupted
    no_limit = "Complete" if on else "Failed:BackoffLimitExceeded"
    scene.job("disrupted", many_disrupted, end=no_limit, backoffLimit=0, **three)
    side_code = {"run": 1, "byOrdinal": {"1": {"exits": {"side": 42}}}}
    scene.job("side-code", side_code, end="Complete", containers=("main", "side"), **three)
    scene.job(
        "evicted",
        {"run": 8},
        end="Complete" if on else "Failed:BackoffLimitExceeded",
        backoffLimit=0,
        **three,
    )
    scene.evict(scene.running("evicted", 3)[0])


def backoff_limit_per_index(scene: Scene) -> None:
    on = scene.around.has("JobBackoffLimitPerIndex", beta_minor=29)
    mode: RawObject = {"completionMode": "Indexed"}
    failing = {"run": 1, "byIndex": {"1": {"exit": 1}, "3": {"exit": 5}}}
    scene.job(
        "per-index",
        failing,
        end="Failed:FailedIndexes" if on else "Failed",
        completions=5,
        parallelism=3,
        backoffLimitPerIndex=1,
        **mode,
    )
    scene.job(
        "too-many",
        {"run": 1, "exit": 1},
        end="Failed:MaxFailedIndexesExceeded" if on else "Failed",
        completions=6,
        parallelism=3,
        backoffLimitPerIndex=0,
        maxFailedIndexes=2,
        **mode,
    )
    recovers = {"run": 1, "byIndex": {"0": {"failFirst": 2}, "2": {"failFirst": 1}}}
    scene.job(
        "recovers",
        recovers,
        end="Complete",
        completions=4,
        parallelism=4,
        backoffLimitPerIndex=2,
        **mode,
    )
    fail_index = {"operator": "In", "values": [9]}
    scene.job(
        "fail-index",
        {"run": 1, "byIndex": {"0": {"exit": 9}}},
        end="Failed:FailedIndexes" if on else "",
        completions=3,
        parallelism=3,
        backoffLimitPerIndex=2,
        podFailurePolicy={"rules": [{"action": "FailIndex", "onExitCodes": fail_index}]}
        if on
        else None,
        **mode,
    )
    killed = {"run": 6, "byIndex": {"1": {"failFirst": 1, "run": 1}}}
    scene.job(
        "killed-index",
        killed,
        end="Complete",
        completions=3,
        parallelism=3,
        backoffLimitPerIndex=1,
        **mode,
    )
    scene.delete_pod(scene.running("killed-index", 2)[0])


def pod_replacement_policy(scene: Scene) -> None:
    two: RawObject = {"completions": 2, "parallelism": 2}
    slow_end = {"run": 8, "grace": 3}
    scene.job("failed", slow_end, end="Complete", podReplacementPolicy="Failed", **two)
    scene.job(
        "terminating",
        slow_end,
        end="Complete",
        podReplacementPolicy="TerminatingOrFailed",
        **two,
    )
    scene.job(
        "paused",
        slow_end,
        end="Complete",
        podReplacementPolicy="Failed",
        completions=3,
        parallelism=3,
    )
    scene.job(
        "by-index",
        slow_end,
        end="Complete",
        completionMode="Indexed",
        podReplacementPolicy="Failed",
        **two,
    )
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [DISRUPTED]}]}
    scene.job(
        "with-policy",
        slow_end,
        end="Complete",
        podReplacementPolicy="Failed",
        podFailurePolicy=policy,
        **two,
    )
    for name in ("failed", "terminating", "by-index", "with-policy"):
        scene.delete_pod(scene.running(name, 2)[0])
    scene.running("paused", 3)
    scene.edit("paused", suspend=True)
    time.sleep(1)
    scene.edit("paused", suspend=False)  # the old pods still terminate
    scene.job(
        "over-deadline",
        {"grace": 4},
        end="Failed:DeadlineExceeded",
        podReplacementPolicy="Failed",
        activeDeadlineSeconds=3,
        **two,
    )


def success_policy(scene: Scene) -> None:
    mode: RawObject = {"completionMode": "Indexed"}
    leader = {"run": 8, "byIndex": {"0": {"run": 2}}}
    scene.job(
        "leader",
        leader,
        end="Complete",
        completions=3,
        parallelism=3,
        successPolicy={"rules": [{"succeededIndexes": "0"}]},
        **mode,
    )
    two_of = {"run": 9, "byIndex": {"1": {"run": 1}, "2": {"run": 2}}}
    scene.job(
        "two-of",
        two_of,
        end="Complete",
        completions=4,
        parallelism=4,
        successPolicy={"rules": [{"succeededCount": 2}]},
        **mode,
    )
    either = {
        "rules": [{"succeededIndexes": "0-1"}, {"succeededIndexes": "2-4", "succeededCount": 2}]
    }
    scene.job(
        "second-rule",
        {"run": 2, "byIndex": {"0": {"run": 20, "grace": 2}}},
        end="Complete",
        completions=5,
        parallelism=5,
        successPolicy=either,
        **mode,
    )
    scene.job(
        "fails-first",
        {"run": 4, "byIndex": {"1": {"run": 1, "exit": 1}}},
        end="Failed:BackoffLimitExceeded",
        completions=3,
        parallelism=3,
        backoffLimit=0,
        successPolicy={"rules": [{"succeededIndexes": "0"}]},
        **mode,
    )
    per_index = {"run": 2, "byIndex": {"1": {"run": 1, "exit": 1}, "3": {"run": 15}}}
    scene.job(
        "with-failed-index",
        per_index,
        end="Complete" if scene.around.has("JobSuccessPolicy", beta_minor=31) else "Failed",
        completions=4,
        parallelism=4,
        backoffLimitPerIndex=0,
        successPolicy={"rules": [{"succeededCount": 2}]},
        **mode,
    )


def managed_by(scene: Scene) -> None:
    on = scene.around.has("JobManagedBy", beta_minor=32)
    scene.job(
        "elsewhere", {"run": 1}, end="Active" if on else "Complete", managedBy="example.com/other"
    )
    scene.job("here", {"run": 1}, end="Complete", managedBy="kubernetes.io/job-controller")
