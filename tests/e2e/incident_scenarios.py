"""The incidents of docs/incidents, each made to happen once; the table is at the end.

Each is a function of a `Stage` that reads top to bottom like the story it makes. What it needs
from the control plane (version, controllers, whether caches are made to lag) stands in the table.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.e2e.api import RawObject, namespaced
from tests.e2e.cluster import CONTROLLER_MANAGER, CONTROLLERS, Cluster
from tests.e2e.cron_scenarios import EVERY_MINUTE
from tests.e2e.lagging import LaggingView
from tests.e2e.scene import JOBS, Scene, pod_template

#: Longer than the controller's expectations live.
EXPECTATIONS_SECONDS = 5 * 60 + 5
NIGHT = timedelta(hours=8)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where an incident happens."""

    cluster: Cluster
    scene: Scene
    view: LaggingView  # the controller manager's way to the API server

    def stop_controllers(self) -> None:
        """Kill the controller manager."""
        self.cluster.kill(CONTROLLER_MANAGER)

    def start_controllers(self) -> None:
        """Start a controller manager; it works once the old lease has run out."""
        self.cluster.start_process(CONTROLLER_MANAGER)

    def cron(self, name: str, plan: RawObject, **spec: object) -> None:
        """Create a CronJob that is due every minute."""
        path = self.scene.around.cron_path
        template = {"spec": {"template": pod_template(plan, labels={"app": name})}}
        body = {
            "apiVersion": path.removesuffix("/cronjobs"),
            "kind": "CronJob",
            "metadata": {"name": name},
            "spec": {"schedule": EVERY_MINUTE, "jobTemplate": template, **spec},
        }
        self.scene.admin.create(namespaced(path, self.scene.namespace), body)

    def ended_pod(self, name: str) -> RawObject:
        """Wait until a pod has ended and return it as it is then."""
        path = namespaced("pods", self.scene.namespace, name)
        found: RawObject = {}

        def ended() -> bool:
            found.update(self.scene.admin.get(path))
            return found["status"]["phase"] in ("Succeeded", "Failed")

        self.scene.until(ended)
        return found

    def job_status(self, name: str) -> RawObject:
        """The status of a Job as it stands."""
        job = self.scene.admin.get(namespaced(JOBS, self.scene.namespace, name))
        status: RawObject = job.get("status", {})
        return status

    def cron_status(self, name: str) -> RawObject:
        """The status of a CronJob as it stands."""
        path = namespaced(self.scene.around.cron_path, self.scene.namespace, name)
        status: RawObject = self.scene.admin.get(path).get("status", {})
        return status


def until_second(second: int) -> None:
    """Sleep to the next moment that is so far past a minute."""
    time.sleep((second - time.time()) % 60)


def failed_pods_vanish(stage: Stage) -> None:
    """The same failing program under both restart policies."""
    crash = {"run": 1, "exit": 1}
    stage.scene.job("on-failure", crash, restart="OnFailure", backoffLimit=2)
    stage.scene.job("never", crash, restart="Never", backoffLimit=1)
    stage.scene.finished("on-failure")
    stage.scene.finished("never")
    time.sleep(3)


def missed_start(stage: Stage) -> None:
    """No controller manager at 20 s to 25 s around a tick, with a starting deadline of 15 s."""
    until_second(40)
    stage.cron("report", {"run": 1}, startingDeadlineSeconds=15)
    until_second(15)
    until_second(50)
    stage.stop_controllers()
    until_second(25)
    stage.start_controllers()
    until_second(20)


def too_many_missed(stage: Stage) -> None:
    """One run, then a night without controllers that a patch of the status puts in."""
    until_second(45)
    stage.cron("sync", {"run": 1})
    until_second(25)  # the polling controller of old looks every 10 s
    stage.stop_controllers()
    before = datetime.fromisoformat(stage.cron_status("sync")["lastScheduleTime"])
    evening = (before.astimezone(UTC) - NIGHT).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = namespaced(stage.scene.around.cron_path, stage.scene.namespace, "sync", "status")
    stage.scene.alice.patch(path, {"status": {"lastScheduleTime": evening}})
    time.sleep(5)
    until_second(10)  # past another tick: the newest time that was missed has no Job yet
    stage.start_controllers()
    time.sleep(20)
    until_second(15)


def deadline_overrun(stage: Stage) -> None:
    """A pod fails at once, and its retry's timer takes the place of the deadline's."""
    first_fails = {"run": 60, "byOrdinal": {"0": {"run": 0.5, "exit": 1}}}
    stage.scene.job("import", first_fails, activeDeadlineSeconds=20, backoffLimit=4)
    time.sleep(45)
    if "conditions" not in stage.job_status("import"):
        labels = {"metadata": {"labels": {"woken": "by-hand"}}}
        stage.scene.alice.patch(namespaced(JOBS, stage.scene.namespace, "import"), labels)
    stage.scene.finished("import")
    time.sleep(3)


def deadline_without_controller(stage: Stage) -> None:
    """The deadline passes while no controller manager is there to act on it."""
    stage.scene.job("import", {"run": 600}, activeDeadlineSeconds=15)
    stage.scene.running("import")
    time.sleep(5)
    stage.stop_controllers()
    time.sleep(30)
    stage.start_controllers()
    stage.scene.finished("import")
    time.sleep(3)


def pods_outlive_history(stage: Stage) -> None:
    """The history limit deletes three Jobs, the last ones while no garbage collector runs."""
    until_second(50)
    stage.cron("backup", {"run": 1}, successfulJobsHistoryLimit=0)
    until_second(15)
    stage.stop_controllers()
    stage.cluster.controllers = [name for name in CONTROLLERS if name != "garbagecollector"]
    stage.start_controllers()
    until_second(15)
    until_second(15)


def duplicate_pod(stage: Stage) -> None:
    """Five minutes without news of pods: the controller no longer expects the one it created."""
    stage.view.hold("pods")
    stage.scene.job("import", {"run": 600}, completions=1, parallelism=1)
    time.sleep(EXPECTATIONS_SECONDS)
    labels = {"metadata": {"labels": {"team": "payments"}}}
    stage.scene.alice.patch(namespaced(JOBS, stage.scene.namespace, "import"), labels)
    time.sleep(8)
    stage.view.release("pods")
    time.sleep(5)


def counted_twice(stage: Stage) -> None:
    """A new controller manager lists the pods as they were before the first one was counted."""
    plan = {"run": 25, "byOrdinal": {"0": {"run": 2}}}
    stage.scene.job("import", plan, completions=2, parallelism=1)
    first = stage.scene.running("import", seconds_max=90)[0]["metadata"]["name"]
    ended = stage.ended_pod(first)
    if not ended["metadata"].get("finalizers"):
        raise TimeoutError("the pod was counted before its end was seen")
    stage.scene.until(lambda: bool(stage.job_status("import").get("succeeded")))
    stage.scene.running("import")
    stage.stop_controllers()
    stage.view.hold("pods")
    stage.view.list_as_of("pods", ended["metadata"]["resourceVersion"])
    stage.start_controllers()
    stage.scene.finished("import")
    time.sleep(5)
    stage.view.release("pods")
    time.sleep(20)


def finalizer_left(stage: Stage) -> None:
    """A Job fails in the eyes of a controller manager that does not know all of its pods yet."""
    plan = {"run": 30, "byIndex": {"0": {"run": 0.3, "exit": 1}}}
    spec = {"completionMode": "Indexed", "completions": 6, "parallelism": 6}
    stage.cluster.kcm_flags = ("--kube-api-qps=2", "--kube-api-burst=2")  # pods come one by one
    stage.stop_controllers()
    stage.start_controllers()
    time.sleep(30)  # so slow a client needs its time to start, too
    stage.scene.job("import", plan, backoffLimit=0, **spec)
    stage.scene.until(lambda: bool(stage.scene.pods("import")), 90)
    ended = stage.ended_pod(stage.scene.pods("import")[0]["metadata"]["name"])
    stage.scene.until(lambda: len(stage.scene.pods("import")) == 6)
    stage.stop_controllers()
    stage.cluster.kcm_flags = ()
    stage.view.hold("pods")
    stage.view.list_as_of("pods", ended["metadata"]["resourceVersion"])
    stage.start_controllers()
    stage.scene.finished("import")
    time.sleep(4)
    stage.view.release("pods")
    time.sleep(30)
    stage.scene.delete_job("import")
    time.sleep(5)


@dataclass(frozen=True, kw_only=True)
class Incident:
    """One incident and what it needs."""

    run: Callable[[Stage], None]
    thread: int  # of kubernetes/kubernetes
    version: str
    feature_gates: str = ""
    lags: bool = False  # the controller manager goes through the relay
    note: str = ""


_LATE_VIEW = "a relay between controller manager and API server "
INCIDENTS: dict[str, Incident] = {
    "counted-twice": Incident(
        run=counted_twice,
        thread=105200,
        version="v1.36.3",
        lags=True,
        note=_LATE_VIEW + "answered the new controller manager's first list of pods as of the "
        "revision at which the first pod had just ended, and held the watch back for some seconds",
    ),
    "deadline-no-controller": Incident(
        run=deadline_without_controller,
        thread=107226,
        version="v1.36.3",
        note="the controller manager was killed before the deadline and was back 30 s later",
    ),
    "deadline-overrun": Incident(run=deadline_overrun, thread=107226, version="v1.20.15"),
    "duplicate-pod": Incident(
        run=duplicate_pod,
        thread=130683,
        version="v1.35.4",
        lags=True,
        note=_LATE_VIEW + "held the watch of pods back for 5 minutes",
    ),
    "failed-pods-vanish": Incident(run=failed_pods_vanish, thread=74848, version="v1.36.3"),
    "finalizer-left": Incident(
        run=finalizer_left,
        thread=109485,
        version="v1.30.14",
        lags=True,
        note="the first controller manager ran with --kube-api-qps=2 --kube-api-burst=2; "
        + _LATE_VIEW
        + "answered the second one's first list of pods as of the revision at which index 0 had "
        "just failed, and held the watch back for some seconds",
    ),
    "missed-start": Incident(
        run=missed_start,
        thread=101148,
        version="v1.36.3",
        note="the controller manager was killed 10 s before a tick and was back 25 s after it",
    ),
    "pods-outlive-history": Incident(
        run=pods_outlive_history,
        thread=118834,
        version="v1.36.3",
        note="after the first tick the controller manager was started again without its garbage "
        "collector",
    ),
    "too-many-missed": Incident(
        run=too_many_missed,
        thread=42649,
        version="v1.20.15",
        note="the night is a patch of status.lastScheduleTime, 8 hours back, made while no "
        "controller manager ran",
    ),
}
