"""What goes wrong on a morning after: the findings of `tracekit diagnose`, each beside a near miss.

Meant to be run with `--restart-after 75 --away-seconds 80`: a tick, a deadline and a TTL fall into
the time in which no controller manager leads.
"""

import time
from datetime import UTC, datetime, timedelta

from tests.e2e.api import JSON_PATCH, RawObject, namespaced
from tests.e2e.cron_scenarios import cron
from tests.e2e.scene import JOBS, Scene

_CRASH: RawObject = {"run": 0.5, "exit": 1}
_ONE: RawObject = {"completions": 1, "parallelism": 1}
#: How far back the night is put in, by a patch of a CronJob's status.
NIGHT = timedelta(hours=8)


def troubles(scene: Scene) -> None:
    """Jobs and CronJobs in every kind of trouble."""
    began = time.monotonic()
    _jobs(scene)
    _crons(scene)
    _held(scene)
    _recreated(scene)
    time.sleep((65 - time.time()) % 60)  # 5 s past a tick
    _night(scene)
    time.sleep(max(0.0, began + scene.around.seconds - time.monotonic()))


def refused(scene: Scene) -> None:
    """No pod may be created: one Job waits for ever, another only until the quota is raised."""
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    scene.admin.create(namespaced("resourcequotas", scene.namespace), body)
    path = namespaced("resourcequotas", scene.namespace, "none")
    scene.until(lambda: "hard" in scene.admin.get(path).get("status", {}))
    scene.job("never-admitted", {"run": 1}, end="Active", **_ONE)
    scene.job("refused-past-deadline", {"run": 1}, activeDeadlineSeconds=10, **_ONE)


def _jobs(scene: Scene) -> None:
    exceeded = "Failed:BackoffLimitExceeded"
    killed = {"run": 1, "exit": 137, "exitReason": "OOMKilled"}
    scene.job("oom", killed, end=exceeded, backoffLimit=1, **_ONE)
    scene.job("oom-once", {**killed, "failFirst": 1}, end="Complete", **_ONE)
    evicted = {"run": 1, "exit": 1, "reason": "Evicted"}
    scene.job("evicted", evicted, end=exceeded, backoffLimit=0, **_ONE)
    unpulled = {"waiting": "ImagePullBackOff"}
    scene.job("no-image", unpulled, activeDeadlineSeconds=12, **_ONE)
    scene.job("slow-image", {**unpulled, "start": 4, "run": 1}, end="Complete", **_ONE)
    scene.job("no-room", {"unschedulable": True}, end="Active", **_ONE)
    scene.job("no-room-deadline", {"unschedulable": True}, activeDeadlineSeconds=8, **_ONE)
    scene.job("same-exit", {**_CRASH, "exit": 3}, end=exceeded, backoffLimit=2, **_ONE)
    exits = {"run": 0.5, "byOrdinal": {str(n): {"exit": n + 1} for n in range(3)}}
    scene.job("other-exits", exits, end=exceeded, backoffLimit=2, **_ONE)
    index = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    always = {"run": 0.5, "byIndex": {"1": {"exit": 9}}}
    scene.job("one-index-fails", always, end="Failed", backoffLimitPerIndex=1, **index)
    once = {"run": 0.5, "byIndex": {"1": {"exit": 9, "failFirst": 1}}}
    scene.job("one-index-recovers", once, end="Complete", backoffLimitPerIndex=2, **index)
    scene.job("suspended", {"run": 1}, end="Suspended", suspend=True, **_ONE)
    scene.job("too-long", {"run": 100}, end="Failed:DeadlineExceeded", activeDeadlineSeconds=7)
    # These fall into the time without a controller manager.
    scene.job("overrun", {"run": 300}, activeDeadlineSeconds=95, **_ONE)
    scene.job("ttl-late", {"run": 1}, ttlSecondsAfterFinished=95, **_ONE)
    scene.job("ttl-kept", {"run": 1}, end="Gone", ttlSecondsAfterFinished=4, **_ONE)


def _held(scene: Scene) -> None:
    """A Job that a finalizer holds, and pods that a finalizer lets outlive their Job."""
    hold = [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]}]
    scene.job("held", {"run": 1}, end="Complete", **_ONE)
    scene.admin.patch(namespaced(JOBS, scene.namespace, "held"), {"metadata": {
        "finalizers": ["example.com/hold"]}})  # fmt: skip
    scene.job("outlived", {"run": 60, "grace": 1}, end="Gone", completions=2, parallelism=2)
    scene.job("collected", {"run": 60, "grace": 1}, end="Gone", completions=2, parallelism=2)
    for pod in scene.running("outlived", 2):
        path = namespaced("pods", scene.namespace, pod["metadata"]["name"])
        held = pod["metadata"].get("finalizers", [])
        value = [{**hold[0], "value": [*held, "example.com/hold"]}]
        scene.admin.patch(path, value, kind=JSON_PATCH)
    scene.running("collected", 2)
    scene.finished("held")
    for name in ("held", "outlived", "collected"):
        scene.delete_job(name)


def _recreated(scene: Scene) -> None:
    """The same name again while the old pods still end; and again once they are gone."""
    scene.job("again", {"run": 60, "grace": 20}, completions=2, parallelism=2)
    scene.job("again-later", {"run": 1}, **_ONE)
    scene.running("again", 2)
    scene.delete_job("again")
    scene.finished("again-later")
    scene.delete_job("again-later")
    time.sleep(1)
    scene.job("again", {"run": 2}, end="Complete", completions=2, parallelism=2)
    scene.until(lambda: not scene.pods("again-later"))
    scene.job("again-later", {"run": 1}, end="Complete", **_ONE)


def _crons(scene: Scene) -> None:
    short = {"run": 1}
    cron(scene, "strict", short, startingDeadlineSeconds=15)
    cron(scene, "hangs", {"run": 400}, concurrencyPolicy="Forbid")
    cron(scene, "in-time", short, concurrencyPolicy="Forbid")
    cron(scene, "every", short, schedule="@every 45s", startingDeadlineSeconds=20)
    cron(scene, "never", short, schedule="0 0 31 2 *")
    cron(scene, "friday-13th", short, schedule="0 0 13 * 5")
    cron(scene, "thirteenth", short, schedule="0 0 13 * *")
    cron(scene, "forgets", _CRASH, job={"backoffLimit": 0}, failedJobsHistoryLimit=0)
    cron(scene, "remembers", _CRASH, job={"backoffLimit": 0}, failedJobsHistoryLimit=5)
    cron(scene, "edited", short, schedule="@hourly")
    cron(scene, "paused", short, suspend=True)
    cron(scene, "sleeps", short, schedule="* * * * *")


def _night(scene: Scene) -> None:
    """An edit that starts a run for a time before it, and a night put in by hand."""
    edited = namespaced(scene.around.cron_path, scene.namespace, "edited")
    scene.alice.patch(edited, {"spec": {"schedule": "* * * * *"}})
    evening = (datetime.now(UTC) - NIGHT).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = namespaced(scene.around.cron_path, scene.namespace, "sleeps", "status")
    scene.alice.patch(path, {"status": {"lastScheduleTime": evening}})
