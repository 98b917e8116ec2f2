"""Twins: the same Jobs for releases that do different things with them.

`python -m bench whatif` asks for each of them whether the record of one release foretells what another one
did, and `traces/upgrades` keeps one pair for each change that surprises. A plan is by the pod's place in
its Job, never by chance, so that only the release decides.
"""

import time
from typing import TYPE_CHECKING

from tests.e2e.policy_scenarios import DISRUPTED
from tests.e2e.scene import Scene

if TYPE_CHECKING:
    from tests.e2e.api import RawObject


def suspended(scene: Scene) -> None:
    """Suspended Jobs, one of which has nothing to do."""
    scene.job("zero-suspended", {"run": 1}, completions=0, parallelism=1, suspend=True)
    scene.job("zero", {"run": 1}, completions=0, parallelism=1)
    scene.job("late-start", {"run": 1}, completions=2, parallelism=2, suspend=True)
    time.sleep(4)
    scene.edit("late-start", suspend=False)


def slow_death(scene: Scene) -> None:
    """A failed Job whose pods take their time to stop."""
    fails = {"run": 60, "grace": 12, "byOrdinal": {"0": {"run": 1, "exit": 1}}}
    scene.job("one-fails", fails, completions=2, parallelism=2, backoffLimit=0)
    slow = {"run": 60, "grace": 10}
    scene.job("deadline", slow, completions=2, parallelism=2, activeDeadlineSeconds=4)


def replacement(scene: Scene) -> None:
    """A user deletes a pod that takes its time to stop."""
    slow = {"run": 25, "grace": 8}
    scene.job("killed", slow, completions=1, parallelism=1, backoffLimit=3)
    scene.job("killed-two", slow, completions=2, parallelism=2, backoffLimit=3)
    scene.job("strict", slow, completions=1, parallelism=1, backoffLimit=0)
    _kill_after(scene, 5, "killed", "killed-two", "strict")


def failure_policy(scene: Scene) -> None:
    """The same where a podFailurePolicy asks for the phase; and failures that it ignores."""
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [DISRUPTED]},
    ]
    one: RawObject = {"completions": 1, "parallelism": 1, "podFailurePolicy": {"rules": rules}}
    scene.job("killed", {"run": 12, "grace": 8}, backoffLimit=3, **one)
    disrupted = {"run": 1, "failFirst": 2, "exit": 1, "condition": "DisruptionTarget"}
    scene.job("ignored", disrupted, backoffLimit=3, **one)
    scene.job("fatal", {"run": 1, "byOrdinal": {"1": {"exit": 42}}}, **(one | {"completions": 3}))
    _kill_after(scene, 4, "killed")


def failing_together(scene: Scene) -> None:
    """Pods that fail in the same second, and one that fails twice."""
    all_fail = {"run": 1, "exit": 1}
    scene.job("all-fail", all_fail, completions=10, parallelism=10, backoffLimit=6)
    half = {"run": 1, "byOrdinal": {str(n): {"exit": 1} for n in (0, 2, 4, 6)}}
    scene.job("half-fail", half, completions=8, parallelism=4, backoffLimit=10)
    twice = {"run": 1, "byOrdinal": {str(n): {"exit": 1} for n in (0, 1)}}
    scene.job("twice", twice, completions=1, parallelism=1, backoffLimit=4)
    staggered = {"run": 6, "byOrdinal": {str(n): {"run": 1 + n, "exit": 1} for n in (0, 1)}}
    scene.job("beyond-limit", staggered, completions=5, parallelism=4, backoffLimit=1)


def on_failure(scene: Scene) -> None:
    """Containers that are started again within their pod."""
    scene.job(
        "restarts", {"run": 3, "restarts": 3}, restart="OnFailure", backoffLimit=2, parallelism=2
    )
    some = {"run": 3, "restarts": 1}
    scene.job("some", some, restart="OnFailure", backoffLimit=3, completions=2, parallelism=2)
    scene.job("none", {"run": 2, "restarts": 1}, restart="OnFailure", backoffLimit=0)
    scene.job("forever", {"run": 1, "exit": 1}, restart="OnFailure", backoffLimit=3)


def deadline_failed(scene: Scene) -> None:
    """A deadline with pods that failed, succeeded and run."""
    mixed = {"run": 30, "byOrdinal": {"0": {"run": 1, "exit": 1}, "1": {"run": 1}}}
    scene.job("mixed", mixed, completions=5, parallelism=3, activeDeadlineSeconds=8)
    scene.job("running", {"run": 30}, completions=3, parallelism=3, activeDeadlineSeconds=5)


def suspend_midway(scene: Scene) -> None:
    """Suspended while pods run, and resumed."""
    scene.job("paused", {"run": 6}, completions=4, parallelism=2, activeDeadlineSeconds=40)
    time.sleep(8)
    scene.edit("paused", suspend=True)
    time.sleep(4)
    scene.edit("paused", suspend=False)


def backoff_told(scene: Scene) -> None:
    """A pod fails beside one that is ready, and another one ends while replacements are held back."""
    plan = {"run": 20, "byOrdinal": {"0": {"run": 1, "exit": 1}, "1": {"run": 4}}}
    scene.job("ready-beside", plan, completions=3, parallelism=3, backoffLimit=4)


def recreated(scene: Scene) -> None:
    """A Job that failed often, deleted and created anew under its name."""
    fails = {"run": 1, "exit": 1}
    scene.job("again", fails, completions=1, parallelism=1, backoffLimit=2)
    scene.finished("again", 90)
    scene.delete_job("again")
    time.sleep(1)
    scene.job("again", {"run": 1}, completions=1, parallelism=1, backoffLimit=2)


def scaled(scene: Scene) -> None:
    """Parallelism that goes up and down, with pods that start, run and end meanwhile."""
    scene.job("elastic", {"run": 5}, completions=8, parallelism=2)
    scene.job("shrinks", {"run": 8, "start": 2, "grace": 2}, completions=6, parallelism=6)
    time.sleep(2.5)
    scene.edit("elastic", parallelism=6)
    scene.edit("shrinks", parallelism=2)
    time.sleep(2)
    scene.edit("elastic", parallelism=1)


def finished_deleted(scene: Scene) -> None:
    """A user who deletes Jobs as soon as they have ended."""
    scene.job("complete", {"run": 1}, completions=1)
    scene.job("failed", {"run": 1, "exit": 1}, backoffLimit=0)
    for name in ("complete", "failed"):
        scene.finished(name)
        scene.delete_job(name)


def _kill_after(scene: Scene, seconds: float, *jobs: str) -> None:
    """Delete the youngest pod of each Job, so long after they were created."""
    started = time.monotonic()
    for name in jobs:
        scene.running(name)
    time.sleep(max(0.0, started + seconds - time.monotonic()))
    for name in jobs:
        scene.delete_pod(scene.pods(name)[-1])
