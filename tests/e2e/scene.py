"""What a scenario works with: one namespace, short ways to create and edit, and expected ends.

A scenario is a function of a `Scene`. It creates objects as `admin`, edits and deletes as `alice`
(so that foreign writes have an actor of their own), and says how each job must end. `check` looks
at the end whether they did.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.e2e.api import Api, ApiError, RawObject, namespaced
from tests.e2e.plan import ANNOTATION

JOBS = "batch/v1/jobs"
POLL_SECONDS = 0.15
FINISHED = ("Complete", "Failed")


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is the same for all scenarios of a run."""

    admin: Api
    alice: Api
    minor: int
    gates: Mapping[str, bool]
    seconds: float  # how long a scenario may take, for those that have no end of their own
    seed: int = 0
    churn_jobs: int = 0

    def has(self, gate: str, *, beta_minor: int) -> bool:
        """Say whether a feature that is on by default from 1.`beta_minor` is on in this run."""
        return self.gates.get(gate, self.minor >= beta_minor)

    @property
    def cron_path(self) -> str:
        """The resource of cronjobs, which moved to batch/v1 in 1.21."""
        return "batch/v1/cronjobs" if self.minor >= 21 else "batch/v1beta1/cronjobs"


@dataclass(kw_only=True)
class Scene:
    """One scenario's namespace."""

    around: Surroundings
    name: str
    expected: dict[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The scenario's own namespace."""
        return f"t-{self.name}"

    @property
    def admin(self) -> Api:
        """The user that creates."""
        return self.around.admin

    @property
    def alice(self) -> Api:
        """The user that edits and deletes."""
        return self.around.alice

    def open(self) -> None:
        """Create the namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.admin.create("/api/v1/namespaces", body)

    # Jobs

    def job(
        self,
        name: str,
        plan: RawObject | None = None,
        *,
        end: str = "",
        labels: Mapping[str, str] | None = None,
        containers: tuple[str, ...] = ("main",),
        restart: str = "Never",
        pod_labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> RawObject:
        """Create a job whose pods follow `plan` and that must end as `end` (see `check`)."""
        if end:
            self.expected[name] = end
        template = pod_template(
            plan,
            containers=containers,
            restart=restart,
            labels={"app": name} if pod_labels is None else pod_labels,
        )
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, **({"labels": dict(labels)} if labels else {})},
            "spec": {**spec, "template": template},
        }
        return self.admin.create(namespaced(JOBS, self.namespace), body)

    def edit(self, name: str, **spec: Any) -> RawObject:
        """Change fields of a job's spec as alice."""
        return self.alice.patch(namespaced(JOBS, self.namespace, name), {"spec": spec})

    def delete_job(self, name: str, propagation: str = "Background") -> None:
        """Delete a job as alice."""
        options = {"propagationPolicy": propagation}
        self.alice.delete(namespaced(JOBS, self.namespace, name), options)

    def finished(self, name: str, seconds_max: float = 60) -> None:
        """Wait until a job is Complete or Failed."""
        self.until(lambda: job_end(self._job(name)).split(":")[0] in FINISHED, seconds_max)

    # Pods

    def pods(self, job: str) -> list[RawObject]:
        """Return the pods that a job's controller reference names, oldest first."""
        answer = self.admin.get(namespaced("pods", self.namespace))
        mine = [pod for pod in answer["items"] if _owner(pod) == job]
        return sorted(mine, key=lambda p: int(p["metadata"]["resourceVersion"]))

    def running(self, job: str, count: int = 1, seconds_max: float = 30) -> list[RawObject]:
        """Wait for `count` running pods of a job and return them."""
        found: list[RawObject] = []

        def enough() -> bool:
            found[:] = [p for p in self.pods(job) if is_running(p)]
            return len(found) >= count

        self.until(enough, seconds_max)
        return found

    def delete_pod(self, pod: RawObject | str, grace_seconds: int | None = None) -> None:
        """Delete a pod as alice."""
        name = pod if isinstance(pod, str) else pod["metadata"]["name"]
        options = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        self.alice.delete(namespaced("pods", self.namespace, name), options)

    def evict(self, pod: RawObject) -> None:
        """Evict a pod as alice."""
        name = pod["metadata"]["name"]
        version = "policy/v1" if self.around.minor >= 22 else "policy/v1beta1"
        body = {
            "apiVersion": version,
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
        }
        self.alice.create(namespaced("pods", self.namespace, name, "eviction"), body)

    def label_pod(self, pod: RawObject, labels: Mapping[str, str | None]) -> None:
        """Change labels of a pod as alice."""
        path = namespaced("pods", self.namespace, pod["metadata"]["name"])
        self.alice.patch(path, {"metadata": {"labels": dict(labels)}})

    # Waiting and judging

    def until(self, holds: Callable[[], bool], seconds_max: float = 30) -> None:
        """Wait until `holds`; a scenario that waits too long is an error."""
        deadline = time.monotonic() + seconds_max
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: waited {seconds_max:g} s in vain")
            time.sleep(POLL_SECONDS)

    def check(self) -> list[str]:
        """Return a sentence for each job that did not end as it must."""
        wrong = []
        for name, end in self.expected.items():
            seen = job_end(self._job(name))
            if seen != end and seen.split(":")[0] != end:
                wrong.append(f"{self.namespace}/{name} is {seen}, expected {end}")
        return wrong

    def _job(self, name: str) -> RawObject | None:
        try:
            return self.admin.get(namespaced(JOBS, self.namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise


def pod_template(
    plan: RawObject | None,
    *,
    labels: Mapping[str, str],
    containers: tuple[str, ...] = ("main",),
    restart: str = "Never",
) -> RawObject:
    """Return a pod template with a plan in its annotation."""
    metadata: RawObject = {"labels": dict(labels)}
    metadata["annotations"] = {ANNOTATION: orjson.dumps(plan or {}).decode()}
    return {
        "metadata": metadata,
        "spec": {
            "restartPolicy": restart,
            "containers": [
                {
                    "name": name,
                    "image": "busybox:1",
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["true"],
                }
                for name in containers
            ],
        },
    }


def job_end(job: RawObject | None) -> str:
    """Return Gone, Complete, Failed:<reason>, Suspended or Active."""
    if job is None:
        return "Gone"
    for condition in job.get("status", {}).get("conditions", []):
        if condition["status"] != "True":
            continue
        if condition["type"] == "Complete":
            return "Complete"
        if condition["type"] == "Failed":
            return f"Failed:{condition['reason']}"
    return "Suspended" if job["spec"].get("suspend") else "Active"


def is_running(pod: RawObject) -> bool:
    """Say whether a pod runs and is not being deleted."""
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def _owner(pod: RawObject) -> str:
    owners = pod["metadata"].get("ownerReferences", [])
    return next((str(o["name"]) for o in owners if o.get("controller")), "")
