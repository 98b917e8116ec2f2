"""A stand-in for the scheduler and one kubelet: binds pods and moves their status along a plan.

One thread lists and watches pods and turns what it sees into timed steps; a heap of steps feeds a
few worker threads that do the writes. Which pod does what stands in its annotation (see plan.py),
so a scenario needs nothing but the objects it creates.
"""

import heapq
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import orjson
import urllib3

from tests.e2e.api import STRATEGIC_MERGE_PATCH, Api, ApiError, RawObject, namespaced
from tests.e2e.kubelet_logs import ContainerLogs
from tests.e2e.plan import INDEX_ANNOTATION, Plan, plan_of

NODE = "node-1"
WORKERS = 6
RESTART_SECONDS_MIN = 0.5
RETRIES = 15  # an API server that restarts is away for some seconds

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class _Pod:
    """What the kubelet knows of one pod; touched under the kubelet's lock or by its own steps."""

    namespace: str
    name: str
    uid: str
    plan: Plan
    containers: tuple[str, ...]
    restart_policy: str
    started_at: str = ""
    run_started_at: str = ""
    restart_count: int = 0
    started: bool = False
    ended: bool = False
    deleting: bool = False
    last_state: RawObject = field(default_factory=dict)


class Kubelet:
    """Runs every pod of the cluster on one node."""

    def __init__(self, api: Api, logs: ContainerLogs | None = None) -> None:
        """`logs` serves what containers say: the lines `say` of their pod's plan."""
        self._api = api
        self._logs = logs
        self._pods: dict[str, _Pod] = {}
        self._ordinals: Counter[str] = Counter()
        self._attempts: Counter[tuple[str, str]] = Counter()
        self._steps: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = itertools.count()
        self._wake = threading.Condition()
        self._stopped = threading.Event()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="kubelet")
        self.errors: Counter[str] = Counter()

    def start(self) -> None:
        """Register the node and start the threads."""
        self._register()
        for target in (self._follow, self._run_steps):
            threading.Thread(target=target, daemon=True).start()

    def stop(self) -> None:
        """Do nothing more; pods stay as they are."""
        self._stopped.set()
        with self._wake:
            self._wake.notify()
        self._workers.shutdown(wait=True, cancel_futures=True)

    # Seeing

    def _register(self) -> None:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        try:
            self._api.create("/api/v1/nodes", body)
        except ApiError as error:
            if error.status != 409:
                raise
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        reached = {}
        if self._logs is not None:
            reached = {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self._logs.port}},
            }
        capacity = {"cpu": "1000", "memory": "1Ti", "pods": "10000"}
        status = {"conditions": [ready], "capacity": capacity, "allocatable": capacity, **reached}
        self._api.patch(
            f"/api/v1/nodes/{NODE}/status", {"status": status}, kind=STRATEGIC_MERGE_PATCH
        )

    def _follow(self) -> None:
        version = ""
        while not self._stopped.is_set():
            try:
                if not version:
                    answer = self._api.get("/api/v1/pods")
                    for item in answer["items"]:
                        self._see(item)
                    version = answer["metadata"]["resourceVersion"]
                version = self._watch(version)
            except (ApiError, urllib3.exceptions.HTTPError, OSError) as error:
                log.debug("pod watch: %s", error)
                version = ""
                time.sleep(0.3)

    def _watch(self, version: str) -> str:
        query = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
        with self._api.stream("/api/v1/pods", query, silence_seconds_max=90) as lines:
            for line in lines:
                if self._stopped.is_set():
                    break
                frame = orjson.loads(line)
                kind, seen = frame["type"], frame["object"]
                if kind == "ERROR":
                    return ""
                version = seen["metadata"]["resourceVersion"]
                if kind == "DELETED":
                    gone = self._pods.pop(seen["metadata"]["uid"], None)
                    if gone is not None and self._logs is not None:
                        self._logs.forget(gone.namespace, gone.name)
                elif kind != "BOOKMARK":
                    self._see(seen)
        return version

    def _see(self, seen: RawObject) -> None:
        meta = seen["metadata"]
        pod = self._pods.get(meta["uid"])
        if pod is None:
            pod = self._pods[meta["uid"]] = self._admit(seen)
            if not meta.get("deletionTimestamp") and not pod.ended:
                step = self._refuse if pod.plan.unschedulable else self._bind
                self._after(pod.plan.bind_seconds, pod, step)
        if meta.get("deletionTimestamp") and not pod.deleting:
            pod.deleting = True
            # grace 0 means that the server waits for finalizers only: no kubelet is asked
            if meta.get("deletionGracePeriodSeconds") and seen["spec"].get("nodeName"):
                grace_seconds = min(pod.plan.grace_seconds, meta["deletionGracePeriodSeconds"])
                self._after(grace_seconds, pod, self._end_deleted, even_deleting=True)

    def _admit(self, seen: RawObject) -> _Pod:
        meta, spec = seen["metadata"], seen["spec"]
        owners = [o["uid"] for o in meta.get("ownerReferences", []) if o.get("controller")]
        owner = owners[0] if owners else meta["uid"]
        annotations = meta.get("annotations", {})
        index = annotations.get(INDEX_ANNOTATION, "")
        plan = plan_of(
            annotations, ordinal=self._ordinals[owner], attempt=self._attempts[owner, index]
        )
        self._ordinals[owner] += 1
        self._attempts[owner, index] += 1
        return _Pod(
            namespace=meta["namespace"],
            name=meta["name"],
            uid=meta["uid"],
            plan=plan,
            containers=tuple(container["name"] for container in spec["containers"]),
            restart_policy=spec.get("restartPolicy", "Always"),
            ended=seen["status"].get("phase") in ("Succeeded", "Failed"),
        )

    # Timing

    def _after(
        self,
        seconds: float,
        pod: _Pod,
        step: Callable[[_Pod], None],
        *,
        even_deleting: bool = False,
    ) -> None:
        def guarded() -> None:
            if pod.uid in self._pods and (even_deleting or not pod.deleting):
                self._tried(pod, step)

        with self._wake:
            due = time.monotonic() + seconds
            heapq.heappush(self._steps, (due, next(self._sequence), guarded))
            self._wake.notify()

    def _run_steps(self) -> None:
        while not self._stopped.is_set():
            with self._wake:
                wait = self._steps[0][0] - time.monotonic() if self._steps else 60.0
                if wait > 0:
                    self._wake.wait(wait)
                    continue
                step = heapq.heappop(self._steps)[2]
            if not self._stopped.is_set():
                self._workers.submit(step)

    def _tried(self, pod: _Pod, step: Callable[[_Pod], None]) -> None:
        """Do one step; a server that is away is tried again, a pod that is gone is not."""
        last = ""
        for attempt in range(RETRIES):
            try:
                step(pod)
            except ApiError as error:
                if error.status in (404, 409):
                    return  # deleted or replaced meanwhile: the watch will say so
                last = str(error)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                last = type(error).__name__
            except Exception:
                log.exception("step %s of pod %s/%s", step.__name__, pod.namespace, pod.name)
                return
            else:
                return
            if self._stopped.wait(min(1.0, 0.2 * (attempt + 1))):
                return
        self.errors[f"{step.__name__} given up: {last}"] += 1

    # Steps of a life

    def _bind(self, pod: _Pod) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
        }
        self._api.create(namespaced("pods", pod.namespace, pod.name, "binding"), body)
        if pod.plan.waiting:
            self._after(0.05, pod, self._wait)
        if not pod.plan.waiting or pod.plan.run_seconds is not None:
            self._after(pod.plan.start_seconds, pod, self._run)

    def _wait(self, pod: _Pod) -> None:
        pod.started_at = pod.started_at or _now()
        state = {"waiting": {"reason": pod.plan.waiting}}
        statuses = [_container(pod, name, state, ready=False) for name in pod.containers]
        self._patch(
            pod,
            {
                "phase": "Pending",
                "startTime": pod.started_at,
                "conditions": _conditions(ready=False),
                "containerStatuses": statuses,
            },
        )

    def _refuse(self, pod: _Pod) -> None:
        self._patch(
            pod, {"conditions": [_condition("PodScheduled", on=False, why="Unschedulable")]}
        )

    def _run(self, pod: _Pod) -> None:
        pod.run_started_at = _now()
        pod.started_at = pod.started_at or pod.run_started_at
        pod.started = True
        self._log(pod, starts=True)
        ready = pod.plan.ready_seconds <= 0
        self._patch(pod, self._running_status(pod, ready=ready))
        if not ready:
            self._after(pod.plan.ready_seconds, pod, self._become_ready)
        self._plan_next_exit(pod)

    def _become_ready(self, pod: _Pod) -> None:
        if not pod.ended:
            self._patch(pod, self._running_status(pod, ready=True))

    def _plan_next_exit(self, pod: _Pod) -> None:
        if pod.plan.run_seconds is None:
            return
        spell = pod.plan.run_seconds / (pod.plan.restarts + 1)
        fails_forever = pod.restart_policy == "OnFailure" and pod.plan.exit_code != 0
        if pod.restart_count < pod.plan.restarts or fails_forever:
            self._after(max(spell, RESTART_SECONDS_MIN), pod, self._restart)
        else:
            self._after(spell, pod, self._end)

    def _log(self, pod: _Pod, *, starts: bool = False, ends: str = "") -> None:
        """Have the pod's containers say what their plan says at their start, or their last words."""
        if self._logs is None:
            return
        for name in pod.containers:
            where = (pod.namespace, pod.name, name)
            if starts:
                self._logs.start(*where)
                self._logs.say(*where, *pod.plan.say)
            if ends:
                self._logs.say(*where, ends)
                self._logs.end(*where)

    def _restart(self, pod: _Pod) -> None:
        code = pod.plan.exit_code or 1
        failed = _terminated(code, pod.run_started_at, _now(), pod.plan.exit_reason)
        again = replace(
            pod,
            last_state={"terminated": failed},
            restart_count=pod.restart_count + 1,
            run_started_at=_now(),
        )
        self._log(pod, ends=f"run {pod.restart_count} failed")
        self._log(pod, starts=True)
        self._patch(again, self._running_status(again, ready=True))
        pod.last_state, pod.restart_count = again.last_state, again.restart_count
        pod.run_started_at = again.run_started_at
        self._plan_next_exit(pod)

    def _end(self, pod: _Pod) -> None:
        pod.ended = True
        self._log(pod, ends=f"{pod.name} ends")
        codes = {name: pod.plan.exit_of(name) for name in pod.containers}
        failed = any(codes.values())
        status = self._ended_status(pod, codes)
        if failed and pod.plan.condition:
            status["conditions"].append(
                _condition(pod.plan.condition, on=True, why="EvictionByTest")
            )
        if failed and pod.plan.reason:
            status["reason"] = pod.plan.reason
            status["message"] = f"The pod ended early: {pod.plan.reason}."
        self._patch(pod, status)

    def _end_deleted(self, pod: _Pod) -> None:
        if not pod.ended:
            self._log(pod, ends=f"{pod.name} was told to stop")
        if not pod.ended and not pod.plan.silent:
            codes = dict.fromkeys(pod.containers, pod.plan.term_exit_code)
            self._patch(pod, self._ended_status(pod, codes))
            pod.ended = True  # not before: a step that fails is tried again from its start
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        self._api.delete(namespaced("pods", pod.namespace, pod.name), options)

    # Statuses

    def _patch(self, pod: _Pod, status: RawObject) -> None:
        # the uid makes the server refuse a pod of the same name that came later
        body = {"metadata": {"uid": pod.uid}, "status": status}
        path = namespaced("pods", pod.namespace, pod.name, "status")
        self._api.patch(path, body, kind=STRATEGIC_MERGE_PATCH)

    def _running_status(self, pod: _Pod, *, ready: bool) -> RawObject:
        state = {"running": {"startedAt": pod.run_started_at}}
        return {
            "phase": "Running",
            "conditions": _conditions(ready=ready),
            "hostIP": "127.0.0.1",
            "podIP": "10.1.0.1",
            "podIPs": [{"ip": "10.1.0.1"}],
            "startTime": pod.started_at,
            "containerStatuses": [
                _container(pod, name, state, ready=ready) for name in pod.containers
            ],
        }

    def _ended_status(self, pod: _Pod, codes: dict[str, int]) -> RawObject:
        now = _now()
        if not pod.started:  # its containers never ran: no exit code to report
            return {"phase": "Failed", "conditions": _conditions(ready=False)}
        return {
            "phase": "Failed" if any(codes.values()) else "Succeeded",
            "conditions": _conditions(ready=False),
            "containerStatuses": [
                _container(
                    pod,
                    name,
                    {
                        "terminated": _terminated(
                            code, pod.run_started_at, now, pod.plan.exit_reason
                        )
                    },
                    ready=False,
                )
                for name, code in codes.items()
            ],
        }


def _container(pod: _Pod, name: str, state: RawObject, *, ready: bool) -> RawObject:
    return {
        "name": name,
        "state": state,
        "lastState": pod.last_state,
        "ready": ready,
        "restartCount": pod.restart_count,
        "image": "busybox:1",
        "imageID": "",
    }


def _terminated(code: int, started_at: str, finished_at: str, why: str) -> RawObject:
    return {
        "exitCode": code,
        "reason": why if code else "Completed",
        "startedAt": started_at,
        "finishedAt": finished_at,
    }


def _conditions(*, ready: bool) -> list[RawObject]:
    return [_condition("ContainersReady", on=ready), _condition("Ready", on=ready)]


def _condition(kind: str, *, on: bool, why: str = "") -> RawObject:
    made: dict[str, Any] = {
        "type": kind,
        "status": "True" if on else "False",
        "lastTransitionTime": _now(),
    }
    return made | ({"reason": why} if why else {})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
