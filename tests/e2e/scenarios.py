"""Scenarios, one for every kind of thing that can happen to a job; the table is at the end.

Each is a function of a `Scene` that reads top to bottom like the story it makes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e import twin_scenarios as twins
from tests.e2e.api import RawObject, namespaced
from tests.e2e.churn import churn
from tests.e2e.cron_scenarios import cronjobs, relabelled
from tests.e2e.foreign_scenarios import foreign, namespace_deleted
from tests.e2e.policy_scenarios import (
    backoff_limit_per_index,
    managed_by,
    pod_failure_policy,
    pod_replacement_policy,
    success_policy,
)
from tests.e2e.scene import Scene, Surroundings
from tests.e2e.storm_scenarios import burst, crons, drain, meddle, quotas, webhook
from tests.e2e.trouble_scenarios import refused, troubles
from tests.e2e.version_scenarios import cron_conflicts, orphans_refused

LONG_JOB_NAME = "a-long-job-name-that-fills-the-limit-of-sixty-three-characters"
LONG_INDEXED_NAME = "a-long-indexed-job-name-that-nearly-fills-the-sixty-three-ch"


def fixed_completions(scene: Scene) -> None:
    scene.job("one", {"run": 1}, end="Complete", completions=1, parallelism=1)
    scene.job("three", {"run": 1}, end="Complete", completions=3, parallelism=2)
    scene.job("eight", {"run": 0.5}, end="Complete", completions=8, parallelism=4)
    scene.job("over-parallel", {"run": 1.5}, end="Complete", completions=2, parallelism=5)
    scene.job("slow-ready", {"run": 3, "ready": 1}, end="Complete", completions=2, parallelism=2)
    scene.job(
        "two-containers",
        {"run": 1},
        end="Complete",
        containers=("main", "side"),
        completions=2,
        parallelism=1,
    )


def work_queue(scene: Scene) -> None:
    staggered = {"run": 2, "byOrdinal": {"1": {"run": 3}, "2": {"run": 4}}}
    scene.job("queue", staggered, end="Complete", parallelism=3)
    late_failure = {"run": 2, "byOrdinal": {"1": {"run": 4, "exit": 1}}}
    scene.job("late-failure", late_failure, end="Complete", parallelism=2)
    first_fails = {"run": 2, "byOrdinal": {"0": {"run": 0.5, "exit": 1}}}
    scene.job("first-fails", first_fails, end="Complete", parallelism=2)
    scene.job("fails", {"run": 0.5, "exit": 4}, end="Failed", parallelism=2, backoffLimit=1)


def slow_start(scene: Scene) -> None:
    scene.job("wide", {"run": 2}, end="Complete", completions=40, parallelism=25)
    scene.job("burst", {"run": 6}, end="Complete", completions=33, parallelism=33)


def backoff_limit(scene: Scene) -> None:
    exceeded = "Failed:BackoffLimitExceeded"
    one: RawObject = {"completions": 1, "parallelism": 1}
    scene.job("flaky", {"run": 0.5, "exit": 1}, end=exceeded, backoffLimit=3, **one)
    scene.job(
        "once", {"run": 0.5, "exit": 1}, end=exceeded, backoffLimit=0, completions=3, parallelism=3
    )
    scene.job("recovers", {"run": 0.5, "failFirst": 2}, end="Complete", completions=2)
    partly = {"run": 1, "byOrdinal": {"1": {"exit": 1}, "4": {"exit": 1}}}
    scene.job("partly", partly, end="Complete", completions=6, parallelism=3)
    scene.job(
        "many-at-once",
        {"run": 2, "byOrdinal": {"0": {"run": 0.5, "exit": 1}, "1": {"run": 0.5, "exit": 1}}},
        end=exceeded,
        backoffLimit=1,
        completions=4,
        parallelism=4,
    )


def on_failure_restarts(scene: Scene) -> None:
    scene.job(
        "restarts", {"run": 6, "restarts": 4}, end="Failed", restart="OnFailure", backoffLimit=2
    )
    scene.job(
        "fine",
        {"run": 4, "restarts": 1},
        end="Complete",
        restart="OnFailure",
        backoffLimit=3,
        completions=2,
        parallelism=2,
    )
    scene.job("forever", {"run": 1, "exit": 1}, end="Failed", restart="OnFailure", backoffLimit=3)


def active_deadline(scene: Scene) -> None:
    exceeded = "Failed:DeadlineExceeded"
    scene.job("late", end=exceeded, completions=3, parallelism=3, activeDeadlineSeconds=5)
    scene.job("in-time", {"run": 1}, end="Complete", activeDeadlineSeconds=20)
    scene.job("extended", {"run": 9}, end="Complete", activeDeadlineSeconds=3)
    scene.job("shortened", {"run": 60}, end=exceeded, activeDeadlineSeconds=50)
    between = {"run": 1.5, "exit": 1}
    scene.job("failing", between, end=exceeded, activeDeadlineSeconds=6, backoffLimit=9)
    time.sleep(1)
    scene.edit("extended", activeDeadlineSeconds=30)
    time.sleep(3)
    scene.edit("shortened", activeDeadlineSeconds=8)


def scale(scene: Scene) -> None:
    scene.job("elastic", {"run": 7}, end="Complete", completions=14, parallelism=2)
    time.sleep(2)
    for parallelism, pause_seconds in ((7, 2.5), (1, 2), (0, 2), (10, 0)):
        scene.edit("elastic", parallelism=parallelism)
        time.sleep(pause_seconds)
    scene.job("shrinks", {"run": 20, "start": 2, "grace": 2}, end="Complete", parallelism=6)
    time.sleep(2.4)  # some pods are still starting: those are the first to go
    scene.edit("shrinks", parallelism=2)


def suspend(scene: Scene) -> None:
    scene.job("pausing", {"run": 4}, end="Complete", completions=4, parallelism=2)
    time.sleep(2)
    scene.edit("pausing", suspend=True)
    time.sleep(3)
    scene.edit("pausing", suspend=False)
    scene.job("born-suspended", {"run": 1}, end="Complete", suspend=True, activeDeadlineSeconds=6)
    scene.job("stays-suspended", {"run": 1}, end="Suspended", suspend=True)
    scene.job(
        "deadline-restarts", {"run": 6}, end="Complete", activeDeadlineSeconds=14, completions=1
    )
    time.sleep(3)
    scene.edit("born-suspended", suspend=False)
    scene.edit("deadline-restarts", suspend=True)
    scene.job("flapping", {"run": 5, "grace": 2}, end="Complete", completions=3, parallelism=3)
    for wanted in (True, False, True, False):
        time.sleep(0.8)
        scene.edit("flapping", suspend=wanted)
    time.sleep(7)  # in all longer than the deadline, which counts from the resumption
    scene.edit("deadline-restarts", suspend=False)


def indexed(scene: Scene) -> None:
    mode: RawObject = {"completionMode": "Indexed"}
    plan = {"run": 1, "byIndex": {"3": {"run": 3}}}
    scene.job("idx", plan, end="Complete", completions=5, parallelism=3, **mode)
    failing = {"run": 1, "byIndex": {"2": {"exit": 3}}}
    scene.job(
        "idx-fail", failing, end="Failed", completions=4, parallelism=4, backoffLimit=2, **mode
    )
    retried = {"run": 1, "byIndex": {"0": {"failFirst": 1}, "4": {"failFirst": 2}}}
    scene.job("idx-retried", retried, end="Complete", completions=6, parallelism=2, **mode)
    scene.job(
        "idx-restarts",
        {"run": 3, "byIndex": {"1": {"restarts": 1}}},
        end="Complete",
        restart="OnFailure",
        completions=3,
        parallelism=3,
        **mode,
    )
    scene.job(LONG_JOB_NAME, {"run": 1}, end="Complete")
    scene.job(LONG_INDEXED_NAME, {"run": 1}, end="Complete", completions=2, parallelism=2, **mode)
    scene.job("idx-scaled", {"run": 5}, end="Complete", completions=9, parallelism=6, **mode)
    scene.delete_pod(scene.running("idx-scaled")[0])
    scene.edit("idx-scaled", parallelism=2)
    time.sleep(2)
    scene.edit("idx-scaled", parallelism=9)


def elastic_indexed(scene: Scene) -> None:
    mode: RawObject = {"completionMode": "Indexed"}
    scene.job("grow", {"run": 3}, end="Complete", completions=3, parallelism=3, **mode)
    scene.job("shrink", {"run": 4}, end="Complete", completions=6, parallelism=6, **mode)
    time.sleep(1.5)
    scene.edit("grow", completions=6, parallelism=6)
    time.sleep(1)
    scene.edit("grow", completions=2, parallelism=2)
    scene.edit("shrink", completions=2, parallelism=2)


def ttl(scene: Scene) -> None:
    scene.job("gone-soon", {"run": 1}, end="Gone", ttlSecondsAfterFinished=3)
    scene.job("gone-at-once", {"run": 1}, end="Gone", ttlSecondsAfterFinished=0)
    failing = {"run": 0.5, "exit": 1}
    scene.job("failed-gone", failing, end="Gone", backoffLimit=0, ttlSecondsAfterFinished=2)
    scene.job("later", {"run": 1}, end="Gone", ttlSecondsAfterFinished=100)
    scene.job("unset", {"run": 1}, end="Complete", ttlSecondsAfterFinished=9)
    scene.job("added", {"run": 1}, end="Gone")
    scene.job("postponed", {"run": 1}, end="Complete", ttlSecondsAfterFinished=8)
    scene.finished("later")
    scene.edit("later", ttlSecondsAfterFinished=4)
    scene.finished("unset")
    scene.edit("unset", ttlSecondsAfterFinished=None)
    scene.finished("added")
    scene.edit("added", ttlSecondsAfterFinished=1)
    scene.finished("postponed")
    scene.edit("postponed", ttlSecondsAfterFinished=3000)


def orphans(scene: Scene) -> None:
    stray_plan = {"sim/plan": '{"run": 8}'}
    for name, labels in (("stray", {"mine": "yes"}), ("other", {"mine": "never"})):
        scene.admin.create(
            namespaced("pods", scene.namespace),
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels, "annotations": stray_plan},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "busybox:1"}],
                },
            },
        )
    scene.job(
        "adopter",
        {"run": 6},
        end="Complete",
        labels={"mine": "yes"},
        pod_labels={"mine": "yes"},
        completions=3,
        parallelism=3,
        manualSelector=True,
        selector={"matchLabels": {"mine": "yes"}},
    )
    released = next(p for p in scene.running("adopter", 2) if p["metadata"]["name"] != "stray")
    scene.label_pod(released, {"mine": "no"})
    time.sleep(3)
    scene.label_pod(released, {"mine": "yes"})  # comes home: adopted again
    scene.job("orphaned", {"run": 5}, end="Gone", completions=2, parallelism=2)
    scene.running("orphaned", 2)
    scene.delete_job("orphaned", "Orphan")


def pod_killed(scene: Scene) -> None:
    scene.job("victim", {"run": 6}, end="Complete", completions=4, parallelism=4)
    scene.job(
        "late-kill",
        {"run": 0.5, "byOrdinal": {"1": {"run": 9}}},
        end="Complete",
        completions=2,
        parallelism=2,
    )
    scene.job(
        "gracious",
        {"run": 12, "termExit": 0, "grace": 1},
        end="Complete",
        completions=2,
        parallelism=2,
    )
    scene.job(
        "node-lost",
        {"run": 6, "silent": True, "grace": 2},
        end="Complete",
        completions=2,
        parallelism=2,
    )
    scene.job("unbound", {"unschedulable": True}, end="Active", completions=2, parallelism=2)
    scene.job("strict", {"run": 8}, end="Failed", completions=2, parallelism=2, backoffLimit=0)
    first, second, third = scene.running("victim", 3)[:3]
    scene.delete_pod(first)
    scene.evict(second)
    scene.delete_pod(third, grace_seconds=0)
    scene.delete_pod(scene.running("gracious", 1)[0])
    scene.delete_pod(scene.running("node-lost", 1)[0])
    scene.delete_pod(scene.running("strict", 1)[0])
    scene.until(lambda: len(scene.pods("unbound")) == 2)
    scene.delete_pod(scene.pods("unbound")[0])
    scene.until(lambda: any(p["status"]["phase"] == "Succeeded" for p in scene.pods("late-kill")))
    done = [p for p in scene.pods("late-kill") if p["status"]["phase"] == "Succeeded"]
    time.sleep(2)  # after it was counted
    scene.delete_pod(done[0])


def quota(scene: Scene) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "two"},
        "spec": {"hard": {"pods": "2"}},
    }
    made = scene.admin.create(namespaced("resourcequotas", scene.namespace), body)
    path = namespaced("resourcequotas", scene.namespace, made["metadata"]["name"])
    scene.until(lambda: "hard" in scene.admin.get(path).get("status", {}))
    scene.job("squeezed", {"run": 5}, end="Complete", completions=5, parallelism=5)
    time.sleep(10)
    scene.alice.patch(path, {"spec": {"hard": {"pods": "10"}}})


def job_deleted(scene: Scene) -> None:
    two: RawObject = {"completions": 2, "parallelism": 2}
    for name in ("foreground", "background", "unwatched"):
        scene.job(name, {"run": 30, "grace": 1}, end="Gone", **two)
    scene.job("at-birth", {"run": 30}, end="Gone", **two)
    scene.delete_job("at-birth")
    scene.job("finished", {"run": 1}, end="Gone")
    for name, propagation in (
        ("foreground", "Foreground"),
        ("background", "Background"),
        ("unwatched", "Orphan"),
    ):
        scene.running(name, 2)
        scene.delete_job(name, propagation)
    scene.finished("finished")
    scene.delete_job("finished")
    time.sleep(2)
    scene.job("background", {"run": 1}, end="Complete")  # the same name again, another uid


def zero(scene: Scene) -> None:
    scene.job("no-work", {"run": 1}, end="Complete", completions=0)
    scene.job("no-parallelism", {"run": 1}, end="Active", completions=2, parallelism=0)
    scene.job("empty-queue", {"run": 1}, parallelism=0)
    scene.job("woken", {"run": 1}, end="Complete", completions=2, parallelism=0)
    time.sleep(4)
    scene.edit("woken", parallelism=2)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One scenario and the version or gate that it needs."""

    run: Callable[[Scene], None]
    minor: int = 0  # from here on its feature is on by default
    gate: str = ""  # with which it can be had earlier
    in_all: bool = True


SCENARIOS: dict[str, Entry] = {
    "fixed-completions": Entry(run=fixed_completions),
    "work-queue": Entry(run=work_queue),
    "slow-start": Entry(run=slow_start),
    "backoff-limit": Entry(run=backoff_limit),
    "on-failure-restarts": Entry(run=on_failure_restarts),
    "active-deadline": Entry(run=active_deadline),
    "scale": Entry(run=scale),
    "suspend": Entry(run=suspend, minor=22, gate="SuspendJob"),
    "indexed": Entry(run=indexed, minor=22, gate="IndexedJob"),
    "elastic-indexed": Entry(run=elastic_indexed, minor=27, gate="ElasticIndexedJob"),
    "ttl": Entry(run=ttl),
    "orphans": Entry(run=orphans),
    "pod-killed": Entry(run=pod_killed),
    "quota": Entry(run=quota),
    "job-deleted": Entry(run=job_deleted),
    "zero": Entry(run=zero),
    "foreign": Entry(run=foreign, in_all=False),
    "namespace-deleted": Entry(run=namespace_deleted, in_all=False),
    "pod-failure-policy": Entry(run=pod_failure_policy, minor=26, gate="JobPodFailurePolicy"),
    "backoff-limit-per-index": Entry(
        run=backoff_limit_per_index, minor=29, gate="JobBackoffLimitPerIndex"
    ),
    "pod-replacement-policy": Entry(
        run=pod_replacement_policy, minor=29, gate="JobPodReplacementPolicy"
    ),
    "success-policy": Entry(run=success_policy, minor=31, gate="JobSuccessPolicy"),
    "managed-by": Entry(run=managed_by, minor=32, gate="JobManagedBy"),
    "cronjobs": Entry(run=cronjobs),
    "cron-relabelled": Entry(run=relabelled, in_all=False),
    "cron-conflicts": Entry(run=cron_conflicts, minor=21),
    "orphans-refused": Entry(run=orphans_refused, minor=30),
    "churn": Entry(run=churn, in_all=False),
    "troubles": Entry(run=troubles, in_all=False),
    "refused": Entry(run=refused, in_all=False),
    "burst": Entry(run=burst, in_all=False),
    "meddle": Entry(run=meddle, in_all=False),
    "drain": Entry(run=drain, in_all=False),
    "webhook": Entry(run=webhook, in_all=False),
    "quotas": Entry(run=quotas, in_all=False),
    "crons": Entry(run=crons, in_all=False),
    "twin-suspended": Entry(run=twins.suspended, in_all=False),
    "twin-slow-death": Entry(run=twins.slow_death, in_all=False),
    "twin-replacement": Entry(run=twins.replacement, in_all=False),
    "twin-failure-policy": Entry(run=twins.failure_policy, in_all=False),
    "twin-failing-together": Entry(run=twins.failing_together, in_all=False),
    "twin-on-failure": Entry(run=twins.on_failure, in_all=False),
    "twin-deadline-failed": Entry(run=twins.deadline_failed, in_all=False),
    "twin-suspend-midway": Entry(run=twins.suspend_midway, in_all=False),
    "twin-backoff-told": Entry(run=twins.backoff_told, in_all=False),
    "twin-recreated": Entry(run=twins.recreated, in_all=False),
    "twin-scaled": Entry(run=twins.scaled, in_all=False),
    "twin-finished-deleted": Entry(run=twins.finished_deleted, in_all=False),
}


def known_to(around: Surroundings) -> list[str]:
    """Return the scenarios whose feature the version knows; a gate turned off does not remove one.

    With the gate off the server drops the field, which is worth having in a trace.
    """
    return [
        name
        for name, entry in SCENARIOS.items()
        if entry.in_all and (around.minor >= entry.minor or around.gates.get(entry.gate, False))
    ]
