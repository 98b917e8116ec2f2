"""Scenarios in which much happens at once or against the controllers: what `bench fidelity` records.

Jobs are those of the churn; what is done to them comes from the run's seed. Unlike the other
scenarios these expect no end of any job: what matters is what the controllers did meanwhile.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from zlib import crc32

from tests.e2e.api import JSON_PATCH, STRATEGIC_MERGE_PATCH, ApiError, RawObject, namespaced
from tests.e2e.churn import SETTLED, TAIL_SECONDS, Act, random_job, timetable, void
from tests.e2e.cron_scenarios import cron
from tests.e2e.scene import JOBS, Scene, is_running
from tests.e2e.webhook import RefusingWebhook

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
HOLD = "e2e.tracekit.dev/hold"
REFUSED = (*SETTLED, 400, 403, 429, 500)  # what a webhook, a quota or the API's rules forbid
HANDS = 12


def burst(scene: Scene) -> None:
    """Hundreds of Jobs within seconds, twice, and what a churn does to them."""
    span = max(20.0, scene.around.seconds - TAIL_SECONDS)
    acts = []
    births = {}
    for act in sorted(_own_timetable(scene)):
        births.setdefault(act.name, act.at)
        half = 0.0 if crc32(act.name.encode()) % 2 else span / 2
        squeezed = half + births[act.name] / span * 3  # all within 3 s
        acts.append(Act(squeezed + act.at - births[act.name], act.name, act.do))
    play(scene, acts)


def meddle(scene: Scene) -> None:
    """An administrator's hands in everything: finalizers, statuses, owners, labels, names."""
    chance = _chance(scene)
    span = max(20.0, scene.around.seconds - TAIL_SECONDS)
    acts = []
    for number in range(scene.around.churn_jobs):
        made = random_job(chance, number, scene.around)
        at = chance.uniform(0, span - 8)
        acts.append(Act(at, made.name, made.create))
        for _ in range(chance.randint(1, 3)):
            do = chance.choice(MEDDLINGS)
            job, seed = made.name, chance.randrange(2**32)
            acts.append(Act(at + chance.uniform(0.1, 7), job, _meddling(do, job, seed)))
            if do is _remake:
                acts.append(Act(acts[-1].at + chance.uniform(0.01, 2), job, made.create))
    play(scene, acts)


def drain(scene: Scene) -> None:
    """A node that is drained again and again: every running pod is evicted or deleted at once."""
    chance = _chance(scene)
    acts = _own_timetable(scene)
    span = max(20.0, scene.around.seconds - TAIL_SECONDS)
    at = 6.0
    while at < span:
        do = chance.choice((_evict_all, _evict_all, _delete_all, _force_all))
        acts.append(Act(at, "", do))
        at += chance.uniform(9, 16)
    play(scene, acts)


def webhook(scene: Scene) -> None:
    """A webhook that refuses a part of what the controllers write, on and off."""
    refusing = RefusingWebhook(scene.around.seed, one_in=4)
    try:
        acts = _own_timetable(scene)
        at, span = 3.0, max(20.0, scene.around.seconds - TAIL_SECONDS)
        while at + 12 < span:
            acts.append(Act(at, "", lambda s: refusing.register(s.admin, s.namespace)))
            acts.append(Act(at + 8, "", lambda s: refusing.withdraw(s.admin, s.namespace)))
            at += 14
        play(scene, acts)
    finally:
        refusing.close()


def quotas(scene: Scene) -> None:
    """A quota of pods that an administrator raises and lowers under a churn."""
    chance = _chance(scene)
    path = namespaced("resourcequotas", scene.namespace, "pods")
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods"},
        "spec": {"hard": {"pods": "6"}},
    }
    scene.admin.create(namespaced("resourcequotas", scene.namespace), body)
    acts = _own_timetable(scene)
    at, span = 5.0, max(20.0, scene.around.seconds - TAIL_SECONDS)
    while at < span:
        hard = {"pods": str(chance.choice((0, 3, 8, 30)))}
        acts.append(Act(at, "", lambda s, h=hard: void(s.alice.patch(path, {"spec": {"hard": h}}))))
        at += chance.uniform(6, 15)
    everything = {"spec": {"hard": {"pods": "1000"}}}
    acts.append(Act(span, "", lambda s: void(s.alice.patch(path, everything))))
    play(scene, acts)


def crons(scene: Scene) -> None:
    """CronJobs of every policy, edited, suspended, deleted and made anew at random."""
    chance = _chance(scene)
    span = max(60.0, scene.around.seconds - TAIL_SECONDS)
    acts = []
    for number in range(max(6, scene.around.churn_jobs // 8)):
        name = f"k{number:03d}"
        spec: RawObject = {
            "schedule": chance.choice(("* * * * *",) * 4 + ("*/2 * * * *", "@every 40s")),
            "concurrencyPolicy": chance.choice(("Allow", "Forbid", "Replace")),
            "successfulJobsHistoryLimit": chance.choice((0, 1, 3)),
            "failedJobsHistoryLimit": chance.choice((0, 1, 2)),
        }
        if chance.random() < 0.3:
            spec["startingDeadlineSeconds"] = chance.choice((11, 20, 70))
        plan: RawObject = {"run": round(chance.choice((0.5, 3, 30, 75)), 1)}
        job: RawObject = {}
        if chance.random() < 0.3:
            plan["exit"], job["backoffLimit"] = 1, 0
        if chance.random() < 0.3:
            job["ttlSecondsAfterFinished"] = chance.choice((0, 3, 30))
        make = _maker(name, plan, job, spec)
        acts.append(Act(chance.uniform(0, span / 3), name, make))
        edits: list[RawObject] = [
            {"suspend": True}, {"suspend": False}, {"schedule": "*/3 * * * *"},
            {"schedule": "* * * * *"}, {"concurrencyPolicy": "Forbid"},
            {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0},
        ]  # fmt: skip
        for _ in range(chance.randint(0, 3)):
            edit = chance.choice(edits)
            acts.append(Act(chance.uniform(span / 3, span), name, _cron_edit(name, edit)))
        if chance.random() < 0.2:
            at = chance.uniform(span / 2, span)
            acts.append(Act(at, name, _cron_delete(name, chance.choice(("Background", "Orphan")))))
            acts.append(Act(at + chance.uniform(0.5, 6), name, make))
    play(scene, acts)


def play(scene: Scene, acts: Sequence[Act]) -> None:
    """Do everything at its time, a dozen hands at once; what the server refuses is part of it."""
    started = time.monotonic()
    failures: list[Exception] = []

    def attempt(act: Act) -> None:
        try:
            act.do(scene)
        except ApiError as error:
            if error.status not in REFUSED:
                failures.append(error)

    with ThreadPoolExecutor(HANDS) as hands:
        for act in sorted(acts):
            time.sleep(max(0.0, started + act.at - time.monotonic()))
            hands.submit(attempt, act)
    time.sleep(TAIL_SECONDS)
    if failures:
        raise failures[0]


# What an administrator does to a job


def _take_finalizer(scene: Scene, job: str, chance: random.Random) -> None:
    pods = scene.pods(job)
    if pods:
        _without_finalizer(scene, chance.choice(pods), TRACKING_FINALIZER)


def _without_finalizer(scene: Scene, pod: RawObject, finalizer: str) -> None:
    finalizers = pod["metadata"].get("finalizers", [])
    if finalizer in finalizers:
        at = f"/metadata/finalizers/{finalizers.index(finalizer)}"
        operations = [{"op": "test", "path": at, "value": finalizer}, {"op": "remove", "path": at}]
        scene.alice.patch(_pod_path(scene, pod), operations, kind=JSON_PATCH)


def _hold_pod(scene: Scene, job: str, chance: random.Random) -> None:
    """Keep a pod with a finalizer of one's own, delete it, and let it go some seconds later."""
    pods = scene.pods(job)
    if not pods:
        return
    path = _pod_path(scene, chance.choice(pods))
    kept = [*scene.admin.get(path)["metadata"].get("finalizers", []), HOLD]
    scene.alice.patch(path, {"metadata": {"finalizers": kept}})
    scene.alice.delete(path)

    def let_go() -> None:
        try:
            _without_finalizer(scene, scene.admin.get(path), HOLD)
        except ApiError as error:
            if error.status not in REFUSED:
                raise

    threading.Timer(chance.uniform(0.5, 4), let_go).start()


def _overwrite_status(scene: Scene, job: str, chance: random.Random) -> None:
    field = chance.choice(("active", "active", "ready", "failed", "succeeded"))
    patch = {"status": {field: chance.randint(0, 4)}}
    scene.alice.patch(namespaced(JOBS, scene.namespace, job, "status"), patch)


def _disown(scene: Scene, job: str, chance: random.Random) -> None:
    pods = scene.pods(job)
    if pods:
        body = {"metadata": {"ownerReferences": None}}
        scene.alice.patch(_pod_path(scene, chance.choice(pods)), body)


def _relabel(scene: Scene, job: str, chance: random.Random) -> None:
    pods = scene.pods(job)
    if pods:
        pod = chance.choice(pods)
        uids = [key for key in pod["metadata"]["labels"] if key.endswith("controller-uid")]
        scene.label_pod(pod, dict.fromkeys(uids))


def _end_pod(scene: Scene, job: str, chance: random.Random) -> None:
    pods = [pod for pod in scene.pods(job) if is_running(pod)]
    if pods:
        path = f"{_pod_path(scene, chance.choice(pods))}/status"
        body = {"status": {"phase": chance.choice(("Failed", "Succeeded"))}}
        scene.alice.patch(path, body, kind=STRATEGIC_MERGE_PATCH)


def _kill_all(scene: Scene, job: str, chance: random.Random) -> None:
    grace = chance.choice((None, None, 0))
    for pod in scene.pods(job):
        _gently(lambda pod=pod: scene.delete_pod(pod, grace_seconds=grace))


def _kill_one(scene: Scene, job: str, chance: random.Random) -> None:
    pods = scene.pods(job)
    if pods:
        scene.delete_pod(chance.choice(pods), grace_seconds=chance.choice((None, None, 0)))


def _respecify(scene: Scene, job: str, chance: random.Random) -> None:
    fields: list[RawObject] = [
        {"parallelism": chance.randint(0, 6)}, {"backoffLimit": chance.randint(0, 3)},
        {"activeDeadlineSeconds": chance.randint(1, 9)}, {"suspend": True}, {"suspend": False},
        {"ttlSecondsAfterFinished": chance.choice((0, 2, 7))},
    ]  # fmt: skip
    width = chance.randint(1, 6)
    fields.append({"completions": width, "parallelism": width})  # an Indexed Job's, from 1.27 on
    scene.edit(job, **chance.choice(fields))


def _annotate(scene: Scene, job: str, chance: random.Random) -> None:
    note = {"metadata": {"annotations": {"note": str(chance.random())}, "labels": {"team": "x"}}}
    scene.alice.patch(namespaced(JOBS, scene.namespace, job), note)
    for pod in scene.pods(job)[:3]:
        _gently(lambda pod=pod: void(scene.alice.patch(_pod_path(scene, pod), note)))


def _remake(scene: Scene, job: str, chance: random.Random) -> None:
    """Delete the job; the caller makes it anew."""
    scene.delete_job(job, chance.choice(("Background", "Foreground", "Orphan")))


def _free_job(scene: Scene, job: str, chance: random.Random) -> None:
    """Delete the job in the foreground, and lose patience with its finalizer."""
    scene.delete_job(job, "Foreground")
    path = namespaced(JOBS, scene.namespace, job)
    time.sleep(chance.uniform(0, 1))
    scene.alice.patch(path, {"metadata": {"finalizers": None}})


MEDDLINGS: tuple[Callable[[Scene, str, random.Random], None], ...] = (
    _take_finalizer, _take_finalizer, _hold_pod, _overwrite_status, _disown, _relabel, _end_pod,
    _kill_all, _kill_one, _kill_one, _respecify, _respecify, _respecify, _annotate, _remake,
    _free_job,
)  # fmt: skip


def _meddling(
    do: Callable[[Scene, str, random.Random], None], job: str, seed: int
) -> Callable[[Scene], None]:
    return lambda scene: do(scene, job, random.Random(seed))


# Drains


def _evict_all(scene: Scene) -> None:
    for pod in _running(scene):
        _gently(lambda pod=pod: scene.evict(pod))


def _delete_all(scene: Scene) -> None:
    for pod in _running(scene):
        _gently(lambda pod=pod: scene.delete_pod(pod))


def _force_all(scene: Scene) -> None:
    for pod in _running(scene):
        _gently(lambda pod=pod: scene.delete_pod(pod, grace_seconds=0))


def _running(scene: Scene) -> list[RawObject]:
    return [
        p for p in scene.admin.get(namespaced("pods", scene.namespace))["items"] if is_running(p)
    ]


def _gently(do: Callable[[], None]) -> None:
    try:
        do()
    except ApiError as error:
        if error.status not in REFUSED:
            raise


# CronJobs


def _maker(name: str, plan: RawObject, job: RawObject, spec: RawObject) -> Callable[[Scene], None]:
    return lambda scene: void(cron(scene, name, plan, job=job, **spec))


def _cron_edit(name: str, fields: RawObject) -> Callable[[Scene], None]:
    def edit(scene: Scene) -> None:
        path = namespaced(scene.around.cron_path, scene.namespace, name)
        scene.alice.patch(path, {"spec": fields})

    return edit


def _cron_delete(name: str, policy: str) -> Callable[[Scene], None]:
    def delete(scene: Scene) -> None:
        path = namespaced(scene.around.cron_path, scene.namespace, name)
        scene.alice.delete(path, {"propagationPolicy": policy})

    return delete


def _pod_path(scene: Scene, pod: RawObject) -> str:
    return namespaced("pods", scene.namespace, pod["metadata"]["name"])


def _own_timetable(scene: Scene) -> list[Act]:
    seed = crc32(f"{scene.name}-{scene.around.seed}".encode())
    return timetable(replace(scene.around, seed=seed))


def _chance(scene: Scene) -> random.Random:
    """The scenario's own dice: the same seed in two scenarios must not mean the same jobs."""
    return random.Random(f"{scene.name}-{scene.around.seed}")
