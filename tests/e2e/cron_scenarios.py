"""The scenario of cronjobs: every policy, edits between ticks, and deletions.

Schedules are to the minute, so it takes minutes: it runs to the end of the time it is given.
"""

import time
from typing import Any

from tests.e2e.api import ApiError, RawObject, namespaced
from tests.e2e.scene import JOBS, Scene, pod_template

EVERY_MINUTE = "* * * * *"


def cronjobs(scene: Scene) -> None:
    ends_at = time.monotonic() + scene.around.seconds
    _create_all(scene)
    await_tick(scene, after_seconds=35)  # 35 s past a tick: later than a startingDeadline of 20 s
    _edit(scene, "resumed", suspend=False)
    _edit(scene, "too-late", suspend=False)
    _edit(scene, "rescheduled", schedule="*/2 * * * *")
    _edit(scene, "shortened", successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0)
    _delete_child(scene, "forbid")
    await_tick(scene, after_seconds=8)
    _edit(scene, "paused", suspend=True)
    _edit(scene, "allow", concurrencyPolicy="Forbid")
    if time.monotonic() + 70 < ends_at:
        await_tick(scene, after_seconds=20)
    _delete(scene, "deleted", "Background")
    _delete(scene, "orphaning", "Orphan")
    time.sleep(max(0.0, ends_at - time.monotonic()))


def relabelled(scene: Scene) -> None:
    """Whoever deploys a CronJob anew often gives its Jobs other labels, while one of them runs."""
    ends_at = time.monotonic() + min(scene.around.seconds, 200)
    cron(scene, "forbids", {"run": 100}, concurrencyPolicy="Forbid")
    cron(scene, "as-before", {"run": 100}, concurrencyPolicy="Forbid")
    cron(scene, "every", {"run": 1}, schedule="@every 65s")  # each run in a minute of its own
    await_tick(scene, after_seconds=15)
    labels = {"cron": "forbids", "release": "2"}
    _edit(scene, "forbids", jobTemplate={"metadata": {"labels": labels}})
    time.sleep(max(0.0, ends_at - time.monotonic()))


def _create_all(scene: Scene) -> None:
    failing = {"run": 1, "exit": 1}
    cron(scene, "allow", {"run": 80})
    cron(scene, "forbid", {"run": 75}, concurrencyPolicy="Forbid")
    cron(scene, "replace", {"run": 90, "grace": 1}, concurrencyPolicy="Replace")
    cron(scene, "failing", failing, job={"backoffLimit": 0}, failedJobsHistoryLimit=1)
    cron(scene, "keeps-none", {"run": 1}, successfulJobsHistoryLimit=0)
    cron(scene, "keeps-one", {"run": 2}, successfulJobsHistoryLimit=1)
    cron(scene, "shortened", {"run": 1})
    cron(scene, "resumed", {"run": 1}, suspend=True)
    cron(scene, "too-late", {"run": 1}, suspend=True, startingDeadlineSeconds=20)
    cron(scene, "paused", {"run": 1})
    cron(scene, "rescheduled", {"run": 1})
    cron(scene, "every", {"run": 1}, schedule="@every 45s", startingDeadlineSeconds=20)
    cron(scene, "never", {"run": 1}, schedule="0 0 31 2 *")
    cron(scene, "hourly", {"run": 1}, schedule="@hourly")
    cron(scene, "deleted", {"run": 40})
    cron(scene, "orphaning", {"run": 40})
    cron(scene, "with-ttl", {"run": 1}, job={"ttlSecondsAfterFinished": 5})
    cron(
        scene,
        "parallel",
        {"run": 2},
        job={"completions": 3, "parallelism": 3},
        concurrencyPolicy="Forbid",
    )
    if scene.around.minor >= 22:
        cron(scene, "job-suspended", {"run": 1}, job={"suspend": True})
    if scene.around.minor >= 25:
        cron(scene, "zoned", {"run": 1}, schedule="*/1 * * * *", timeZone="Asia/Kolkata")
        cron(scene, "zoned-half", {"run": 1}, schedule="*/2 * * * *", timeZone="Asia/Kathmandu")
    cron(scene, "taken", {"run": 1})
    if scene.around.minor >= 21:
        _take_next_name(scene, "taken")


def cron(
    scene: Scene,
    name: str,
    plan: RawObject,
    *,
    schedule: str = EVERY_MINUTE,
    job: RawObject | None = None,
    **spec: Any,
) -> None:
    template = {
        "metadata": {"labels": {"cron": name}, "annotations": {"team": "e2e"}},
        "spec": {**(job or {}), "template": pod_template(plan, labels={"app": name})},
    }
    path = scene.around.cron_path
    body = {
        "apiVersion": path.removesuffix("/cronjobs"),
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }
    scene.admin.create(namespaced(path, scene.namespace), body)


def _take_next_name(scene: Scene, name: str) -> None:
    """Create a job under the name that the controller will want at the next tick."""
    minutes = int(time.time()) // 60 + 1
    scene.job(f"{name}-{minutes}", {"run": 1}, completions=1)


def await_tick(scene: Scene, *, after_seconds: int) -> None:
    """Sleep to the next moment that is `after_seconds` past a minute, a tick ahead at least."""
    now = time.time()
    wait = 60 - now % 60 + after_seconds
    time.sleep(min(wait, scene.around.seconds))


def _edit(scene: Scene, name: str, **spec: Any) -> None:
    path = namespaced(scene.around.cron_path, scene.namespace, name)
    scene.alice.patch(path, {"spec": spec})


def _delete(scene: Scene, name: str, propagation: str) -> None:
    path = namespaced(scene.around.cron_path, scene.namespace, name)
    scene.alice.delete(path, {"propagationPolicy": propagation})


def _delete_child(scene: Scene, name: str) -> None:
    """Delete the newest job of a cronjob, as a user would."""
    answer = scene.admin.get(namespaced(JOBS, scene.namespace), {"labelSelector": f"cron={name}"})
    newest = sorted(answer["items"], key=lambda job: str(job["metadata"]["name"]))[-1:]
    for job in newest:
        try:
            scene.delete_job(job["metadata"]["name"])
        except ApiError as error:
            if error.status != 404:
                raise
