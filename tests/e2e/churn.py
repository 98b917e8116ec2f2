"""The scenario `churn`: random jobs of every kind, edited, killed and deleted at random.

All choices come from one `random.Random(seed)` before the first write, so a seed names the same
jobs and the same edits at the same times; only the answers of the real controllers differ.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.api import ApiError, RawObject
from tests.e2e.scene import Scene, Surroundings

TAIL_SECONDS = 25.0  # quiet time at the end, for the controllers to catch up
SETTLED = (404, 409, 422)  # the job or pod is gone or finished: an edit that came too late


@dataclass(order=True)
class Act:
    """One thing to do, `at` seconds after the start."""

    at: float
    name: str
    do: Callable[[Scene], None] = field(compare=False)


def churn(scene: Scene) -> None:
    """Create `churn_jobs` jobs over the time given and disturb about half of them."""
    acts = sorted(timetable(scene.around))
    started = time.monotonic()
    for act in acts:
        time.sleep(max(0.0, started + act.at - time.monotonic()))
        try:
            act.do(scene)
        except ApiError as error:
            if error.status not in SETTLED:
                raise
    time.sleep(TAIL_SECONDS)


def timetable(around: Surroundings) -> list[Act]:
    """Return everything that will be done, from the seed alone."""
    chance = random.Random(around.seed)
    span = max(10.0, around.seconds - TAIL_SECONDS)
    acts: list[Act] = []
    for number in range(around.churn_jobs):
        made = random_job(chance, number, around)
        at = round(chance.uniform(0, span - 8), 3)
        acts.append(Act(at, made.name, made.create))
        acts += _disturbances(chance, made, at)
    return acts


@dataclass(frozen=True, kw_only=True)
class ChurnJob:
    """One random job before it is made."""

    name: str
    plan: RawObject
    spec: RawObject
    restart: str = "Never"

    def create(self, scene: Scene) -> None:
        scene.job(self.name, self.plan, restart=self.restart, **self.spec)


def random_job(chance: random.Random, number: int, around: Surroundings) -> ChurnJob:
    """Return the `number`-th job of a churn, of a kind that the version knows."""
    kinds = _kinds(around)
    kind = chance.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
    plan: RawObject = {
        "run": round(chance.uniform(0.2, 4), 2),
        "start": round(chance.uniform(0.05, 0.8), 2),
    }
    if chance.random() < 0.15:
        plan["grace"] = round(chance.uniform(0.5, 4), 2)
    if chance.random() < 0.08:
        plan["termExit"] = 0
    completions = chance.randint(1, 6)
    spec: RawObject = {"completions": completions, "parallelism": chance.randint(1, 4)}
    spec["backoffLimit"] = chance.choice((0, 1, 2, 3, 6))
    restart = kinds[kind][1](chance, plan, spec) or "Never"
    return ChurnJob(name=f"c{number:04d}-{kind}", plan=plan, spec=spec, restart=restart)


_Shape = Callable[[random.Random, RawObject, RawObject], str | None]


def _kinds(around: Surroundings) -> dict[str, tuple[int, _Shape]]:
    """Return name → (weight, what makes a job of that kind) for what the version knows."""
    kinds: dict[str, tuple[int, _Shape]] = {
        "plain": (8, _plain),
        "queue": (5, _queue),
        "fail": (4, _fail),
        "mixed": (7, _mixed),
        "restart": (4, _restart),
        "deadline": (4, _deadline),
        "ttl": (5, _ttl),
    }
    if around.has("IndexedJob", beta_minor=22):
        kinds["idx"] = (7, _indexed)
    if around.has("SuspendJob", beta_minor=22):
        kinds["born-suspended"] = (3, _suspended)
    if around.has("JobPodFailurePolicy", beta_minor=26):
        kinds["policy"] = (6, _policy)
    if around.has("JobBackoffLimitPerIndex", beta_minor=29):
        kinds["per-index"] = (6, _per_index)
    if around.has("JobPodReplacementPolicy", beta_minor=29):
        kinds["replace"] = (4, _replace)
    if around.has("JobSuccessPolicy", beta_minor=31):
        kinds["success"] = (5, _success)
    return kinds


def _plain(_chance: random.Random, _plan: RawObject, _spec: RawObject) -> None:
    """Leave the job as it is."""


def _queue(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    del spec["completions"]
    if chance.random() < 0.4:
        plan["byOrdinal"] = _failures(chance, 3)


def _fail(chance: random.Random, plan: RawObject, _spec: RawObject) -> None:
    plan["exit"] = chance.choice((1, 2, 42, 137))


def _mixed(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    if chance.random() < 0.5:
        plan["failFirst"] = chance.randint(1, 3)
    else:
        plan["byOrdinal"] = _failures(chance, spec["completions"] + 1)


def _restart(chance: random.Random, plan: RawObject, _spec: RawObject) -> str:
    plan["restarts"] = chance.randint(1, 4)
    return "OnFailure"


def _deadline(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    spec["activeDeadlineSeconds"] = chance.randint(1, 6)
    if chance.random() < 0.3:
        plan["exit"] = 1


def _ttl(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    spec["ttlSecondsAfterFinished"] = chance.choice((0, 1, 2, 5, 9))
    if chance.random() < 0.3:
        plan["exit"] = 1
        spec["backoffLimit"] = 0


def _indexed(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    spec["completionMode"] = "Indexed"
    if chance.random() < 0.5:
        plan["byIndex"] = {
            str(chance.randrange(spec["completions"])): {"failFirst": chance.randint(1, 2)}
        }


def _suspended(_chance: random.Random, _plan: RawObject, spec: RawObject) -> None:
    spec["suspend"] = True


def _policy(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    spec["podFailurePolicy"] = {
        "rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {
                "action": "Ignore",
                "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
            },
            {"action": "Count", "onExitCodes": {"operator": "In", "values": [3]}},
        ]
    }
    ends: list[RawObject] = [{"exit": 42}, {"exit": 1, "condition": "DisruptionTarget"}]
    ends += [{"exit": 3}, {"exit": 5}]
    plan["byOrdinal"] = {
        str(ordinal): chance.choice(ends) for ordinal in range(4) if chance.random() < 0.4
    }


def _per_index(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    spec.pop("backoffLimit")
    spec["completionMode"] = "Indexed"
    spec["backoffLimitPerIndex"] = chance.randint(0, 2)
    if chance.random() < 0.5:
        spec["maxFailedIndexes"] = chance.randint(0, min(2, spec["completions"]))
    if chance.random() < 0.4:
        rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [9]}}
        spec["podFailurePolicy"] = {"rules": [rule]}
    plan["byIndex"] = {
        str(index): chance.choice(({"exit": 9}, {"exit": 1}, {"failFirst": 1}, {"failFirst": 2}))
        for index in range(spec["completions"])
        if chance.random() < 0.4
    }


def _replace(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    spec["podReplacementPolicy"] = chance.choice(("Failed", "Failed", "TerminatingOrFailed"))
    plan["grace"] = round(chance.uniform(1, 4), 2)


def _success(chance: random.Random, plan: RawObject, spec: RawObject) -> None:
    count = spec["completions"] = chance.randint(2, 6)
    spec["parallelism"] = min(count, 4)
    spec["completionMode"] = "Indexed"
    rule: RawObject = {}
    if chance.random() < 0.6:
        rule["succeededIndexes"] = f"0-{chance.randrange(1, count)}"
    if not rule or chance.random() < 0.3:
        rule["succeededCount"] = 1 if rule else chance.randint(1, count)
    spec["successPolicy"] = {"rules": [rule]}
    plan["byIndex"] = {
        str(index): {"run": round(chance.uniform(0.3, 8), 2)} for index in range(count)
    }
    if chance.random() < 0.3:
        plan["byIndex"][str(chance.randrange(count))]["failFirst"] = 1


def _failures(chance: random.Random, count: int) -> RawObject:
    picked = chance.sample(range(count), k=min(count, chance.randint(1, 2)))
    return {str(ordinal): {"exit": chance.randint(1, 9)} for ordinal in picked}


def _disturbances(chance: random.Random, made: ChurnJob, created_at: float) -> list[Act]:
    """Return what a user does to this job later on; often nothing."""

    def later(low: float, high: float) -> float:
        return round(created_at + chance.uniform(low, high), 3)

    def edit(at: float, **spec: Any) -> Act:
        return Act(at, made.name, lambda scene: void(scene.edit(made.name, **spec)))

    acts: list[Act] = []
    if made.spec.get("suspend"):
        acts.append(edit(later(1, 5), suspend=False))
    roll = chance.random()
    if roll < 0.10:
        acts.append(edit(later(0.5, 4), parallelism=chance.randint(0, 6)))
        acts.append(edit(later(4, 8), parallelism=chance.randint(1, 6)))
    elif roll < 0.18:
        acts.append(edit(later(0.3, 3), suspend=True))
        acts.append(edit(later(3.5, 8), suspend=False))
    elif roll < 0.24:
        policy = chance.choice(("Background", "Foreground", "Orphan"))
        acts.append(
            Act(later(0.2, 6), made.name, lambda scene: scene.delete_job(made.name, policy))
        )
    elif roll < 0.36:
        acts += [_kill_pod(chance, made.name, later(0.5, 5)) for _ in range(chance.randint(1, 2))]
    elif roll < 0.42:
        acts += _release_pod(chance, made.name, later(0.8, 4))
    elif roll < 0.46:
        acts.append(edit(later(0.5, 4), activeDeadlineSeconds=chance.randint(1, 9)))
    elif roll < 0.50:
        acts.append(edit(later(1, 7), ttlSecondsAfterFinished=chance.choice((0, 2, 6))))
    return acts


def _kill_pod(chance: random.Random, job: str, at: float) -> Act:
    pick, grace = chance.random(), chance.choice((None, None, None, 1, 0))

    def do(scene: Scene) -> None:
        pods = scene.pods(job)
        if pods:
            scene.delete_pod(pods[int(pick * len(pods))], grace_seconds=grace)

    return Act(at, job, do)


def _release_pod(chance: random.Random, job: str, at: float) -> list[Act]:
    pick, comes_back = chance.random(), chance.random() < 0.5
    taken: list[tuple[RawObject, str, str]] = []

    def release(scene: Scene) -> None:
        pods = scene.pods(job)
        if not pods:
            return
        pod = pods[int(pick * len(pods))]
        labels = pod["metadata"]["labels"]
        key = next(k for k in sorted(labels) if k.endswith("controller-uid"))
        taken.append((pod, key, labels[key]))
        scene.label_pod(pod, dict.fromkeys(k for k in labels if k.endswith("controller-uid")))

    def come_back(scene: Scene) -> None:
        for pod, _key, value in taken:
            labels = pod["metadata"]["labels"]
            scene.label_pod(pod, {k: value for k in labels if k.endswith("controller-uid")})

    acts = [Act(at, job, release)]
    if comes_back:
        acts.append(Act(at + 3, job, come_back))
    return acts


def void(_result: object) -> None:
    """Drop a result where a callback must return nothing."""
