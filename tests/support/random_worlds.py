"""Worlds out of a seed, for the law that a simulated trace replays without a divergence.

A world mixes what the controllers have rules for: every field of a Job, CronJobs of all policies,
pods that fail, hang, restart and are evicted, users who edit and delete, refusals, quota, restarts
of the controller manager, slow caches and tight throttles.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.model.cluster.api_server import Refusal
from tracekit.model.cluster.pod_life import PodLife, Slot
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.draws import Timing
from tracekit.model.simulate.world import (
    CreateObject,
    DeleteObject,
    DeletePodOf,
    PatchObject,
    Restart,
    UserWrite,
    World,
)
from tracekit.versions.era import Era
from tracekit.versions.version import KubeVersion

VERSIONS = [
    "v1.11.10",
    "v1.12.10",
    "v1.13.12",
    "v1.14.10",
    "v1.15.12",
    "v1.16.15",
    "v1.17.17",
    "v1.18.20",
    "v1.19.16",
    "v1.20.15",
    "v1.21.14",
    "v1.22.2",
    "v1.22.17",
    "v1.23.17",
    "v1.24.17",
    "v1.25.4",
    "v1.26.13",
    "v1.27.4",
    "v1.27.16",
    "v1.28.15",
    "v1.29.15",
    "v1.30.14",
    "v1.31.0",
    "v1.31.14",
    "v1.32.2",
    "v1.33.9",
    "v1.34.4",
    "v1.35.4",
    "v1.36.3",
    "v1.37.1",
]
_MS = 1_000_000
_START_NS = parse_rfc3339("2026-11-22T00:00:30Z") or 0


@dataclass(frozen=True)
class RandomWorld:
    """All inputs of one run."""

    seed: int
    world: World
    era: Era
    flags: ManagerFlags
    timing: Timing


class _Lives:
    """A life per Job, place and attempt, out of the seed."""

    def __init__(self, seed: int, moods: Mapping[str, str]) -> None:
        self._seed = seed
        self._moods = moods

    def life_of(self, slot: Slot, pod: Mapping[str, Any]) -> PodLife:
        del pod
        rng = random.Random(
            f"{self._seed} {slot.namespace}/{slot.job} {slot.completion_index} {slot.attempt}"
        )
        mood = self._moods.get(slot.job) or rng.choice(("good", "good", "flaky"))
        fails = {"good": 0.02, "flaky": 0.45, "bad": 1.0, "slow": 0.1, "hang": 0.0}[mood]
        run_ns = int(rng.choice((0.2, 1, 2, 3, 5)) * NS_PER_S * rng.uniform(0.5, 1.5))
        return PodLife(
            bind_ns=None if rng.random() < 0.01 else int(rng.uniform(5, 300) * _MS),
            start_ns=None if rng.random() < 0.01 else int(rng.uniform(5, 800) * _MS),
            ready_ns=rng.choice((0, 0, int(rng.uniform(100, 2000) * _MS), None)),
            run_ns=None if mood == "hang" else run_ns * (6 if mood == "slow" else 1),
            exit_code=rng.choice((1, 2, 42, 137)) if rng.random() < fails else 0,
            restarts=rng.choice((0, 0, 0, 1, 2)),
            waiting=rng.choice(("", "", "", "ContainerCreating")),
            condition=rng.choice(("", "", "DisruptionTarget")),
            grace_ns=int(rng.choice((0.1, 0.3, 3, 12)) * NS_PER_S),
            term_exit_code=rng.choice((137, 143, 0)),
            silent=rng.random() < 0.1,
        )


def random_world(seed: int, version: str | None = None) -> RandomWorld:
    """The world of a seed."""
    rng = random.Random(seed)
    version = version or rng.choice(VERSIONS)
    end_ns = _START_NS + rng.choice((60, 150, 300)) * NS_PER_S
    made = _Made(rng, end_ns)
    made.jobs()
    made.cron_jobs()
    made.troubles()
    qps, burst = rng.choice(((None, None), (None, None), (5, 10), (2, 3), (100, 200)))
    slow = rng.choice((20, 20, 100, 400, 1500))
    return RandomWorld(
        seed,
        World(
            _START_NS,
            end_ns,
            tuple(sorted(made.writes, key=lambda write: write.at_ns)),
            _Lives(seed, made.moods),
            refusals=tuple(made.refusals),
            pod_quota=made.quota,
            restarts=tuple(made.restarts),
        ),
        Era.resolve(KubeVersion.parse(version), {}),
        ManagerFlags(
            kube_api_qps=qps,
            kube_api_burst=burst,
            concurrent_job_syncs=rng.choice((None, None, 1, 20)),
        ),
        Timing(
            latency=(1 * _MS, rng.choice((5, 15, 120)) * _MS),
            watch_lag=(0, slow * _MS),
            handler_lag=(0, rng.choice((0, 2, 50)) * _MS),
            record_lag=(0, rng.choice((5, 15, 200)) * _MS),
        ),
    )


def with_slow_answers(made: RandomWorld) -> RandomWorld:
    """The same world, in which the answer to a request takes as long as its news."""
    return dataclasses.replace(made, timing=replace(made.timing, answer=made.timing.watch_lag))


def with_late_kubelets(made: RandomWorld) -> RandomWorld:
    """The same world, in which kubelets learn of a deletion as late as informers do."""
    return dataclasses.replace(made, timing=replace(made.timing, late_kubelets=True))


class _Made:
    """What is drawn for one world."""

    def __init__(self, rng: random.Random, end_ns: int) -> None:
        self.rng = rng
        self.end_ns = end_ns
        self.writes: list[UserWrite] = []
        self.moods: dict[str, str] = {}
        self.refusals: list[Refusal] = []
        self.quota: dict[str, int] = {}
        self.restarts: list[Restart] = []
        self.names: list[tuple[str, str]] = []

    def at(self) -> int:
        """Some time in the first two thirds."""
        span = (self.end_ns - _START_NS) * 2 // 3
        return _START_NS + self.rng.randrange(NS_PER_S, span)

    def jobs(self) -> None:
        """Jobs, and what users do to them."""
        rng = self.rng
        for number in range(rng.randrange(1, 9)):
            name, namespace = f"job-{number}", rng.choice(("shop", "bank"))
            self.moods[name] = rng.choice(("good", "good", "flaky", "bad", "slow", "hang"))
            at_ns = self.at()
            body = {
                "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
                "spec": self._job_spec(),
            }
            self.writes.append(CreateObject(at_ns, "jobs", body))
            self.names.append((namespace, name))
            for _ in range(rng.choice((0, 0, 1, 2))):
                self._user(namespace, name, at_ns)

    def _job_spec(self) -> dict[str, Any]:
        rng = self.rng
        spec: dict[str, Any] = {
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {
                    "restartPolicy": rng.choice(("Never", "Never", "OnFailure")),
                    "containers": [{"name": "main", "image": "busybox:1"}],
                },
            }
        }
        completions = rng.choice((None, 1, 3, 8, 30))
        if completions is not None:
            spec["completions"] = completions
        spec["parallelism"] = rng.choice((1, 1, 2, 5, 30))
        if completions is not None and rng.random() < 0.4:
            spec["completionMode"] = "Indexed"
            if rng.random() < 0.4 and spec["template"]["spec"]["restartPolicy"] == "Never":
                spec["backoffLimitPerIndex"] = rng.choice((0, 1, 2))
                if rng.random() < 0.5:
                    spec["maxFailedIndexes"] = rng.choice((0, 1, 2))
            if rng.random() < 0.3:
                spec["successPolicy"] = {"rules": [{"succeededCount": 1}]}
        if "backoffLimitPerIndex" not in spec:
            spec["backoffLimit"] = rng.choice((0, 1, 2, 6))
        if rng.random() < 0.2:
            spec["activeDeadlineSeconds"] = rng.choice((2, 8, 30))
        if rng.random() < 0.25:
            spec["ttlSecondsAfterFinished"] = rng.choice((0, 3, 20))
        if rng.random() < 0.15:
            spec["suspend"] = True
        if rng.random() < 0.2 and spec["template"]["spec"]["restartPolicy"] == "Never":
            spec["podFailurePolicy"] = {
                "rules": [
                    {
                        "action": rng.choice(("FailJob", "Ignore", "Count")),
                        "onExitCodes": {"operator": "In", "values": [42]},
                    },
                    {
                        "action": "Ignore",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    },
                ]
            }
        if rng.random() < 0.15:
            spec["podReplacementPolicy"] = "Failed"
        return spec

    def _user(self, namespace: str, name: str, at_ns: int) -> None:
        rng = self.rng
        later_ns = min(at_ns + int(rng.uniform(0.2, 30) * NS_PER_S), self.end_ns)
        kind = rng.choice(("suspend", "resume", "scale", "delete", "pod", "deadline", "again"))
        patches: dict[str, dict[str, Any]] = {
            "suspend": {"spec": {"suspend": True}},
            "resume": {"spec": {"suspend": False}},
            "scale": {"spec": {"parallelism": rng.choice((0, 1, 4, 12))}},
            "deadline": {"spec": {"activeDeadlineSeconds": rng.choice((1, 10, 60))}},
        }
        if kind in patches:
            self.writes.append(PatchObject(later_ns, "jobs", namespace, name, patches[kind]))
            if kind == "suspend":
                back_ns = later_ns + int(rng.uniform(1, 20) * NS_PER_S)
                self.writes.append(PatchObject(back_ns, "jobs", namespace, name, patches["resume"]))
        elif kind == "pod":
            self.writes.append(DeletePodOf(later_ns, namespace, name, ordinal=rng.randrange(4)))
        else:
            policy = rng.choice(("Background", "Foreground", "Orphan"))
            self.writes.append(DeleteObject(later_ns, "jobs", namespace, name, policy))
            if kind == "again":
                body = {
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": self._job_spec(),
                }
                again_ns = later_ns + int(rng.uniform(0.5, 10) * NS_PER_S)
                self.writes.append(CreateObject(again_ns, "jobs", body))

    def cron_jobs(self) -> None:
        """CronJobs of all policies."""
        rng = self.rng
        for number in range(rng.choice((0, 1, 2))):
            name = f"cron-{number}"
            spec: dict[str, Any] = {
                "schedule": rng.choice(
                    ("* * * * *", "*/2 * * * *", "@every 30s", "1-59/2 * * * *")
                ),
                "concurrencyPolicy": rng.choice(("Allow", "Forbid", "Replace")),
                "jobTemplate": {"spec": self._job_spec()},
                "successfulJobsHistoryLimit": rng.choice((0, 1, 3)),
                "failedJobsHistoryLimit": rng.choice((0, 1)),
            }
            if rng.random() < 0.3:
                spec["startingDeadlineSeconds"] = rng.choice((5, 20, 200))
            at_ns = self.at()
            body = {"metadata": {"name": name, "namespace": "shop"}, "spec": spec}
            self.writes.append(CreateObject(at_ns, "cronjobs", body))
            if rng.random() < 0.3:
                later_ns = at_ns + int(rng.uniform(5, 60) * NS_PER_S)
                patch = rng.choice(
                    ({"spec": {"suspend": True}}, {"spec": {"schedule": "*/3 * * * *"}})
                )
                self.writes.append(PatchObject(later_ns, "cronjobs", "shop", name, patch))

    def troubles(self) -> None:
        """Refusals, quota, restarts."""
        rng = self.rng
        if rng.random() < 0.2:
            from_ns = self.at()
            self.refusals.append(
                Refusal(
                    "pods",
                    "create",
                    rng.choice((None, "shop")),
                    from_ns,
                    from_ns + int(rng.uniform(1, 20) * NS_PER_S),
                    'admission webhook "w.example.com" denied the request',
                )
            )
        if rng.random() < 0.15:
            self.quota["bank"] = rng.choice((1, 3, 10))
        if rng.random() < 0.25:
            died_ns = self.at()
            self.restarts.append(Restart(died_ns, died_ns + int(rng.uniform(0, 5) * NS_PER_S)))
        if rng.random() < 0.1:
            self.writes.append(DeleteObject(self.at(), "namespaces", "", "bank"))
