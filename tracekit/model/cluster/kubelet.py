"""Scheduler and kubelet: they bind a pod, run it as its life says, and end it when it is deleted.

Upstream: pkg/kubelet/status, pkg/kubelet/pod_workers.go (what is written to a pod's status, and
that a deleted pod goes with a second DELETE of grace 0).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import completion_index
from tracekit.model.cluster.api_server import ApiServer
from tracekit.model.cluster.draws import Draws
from tracekit.model.cluster.pod_life import PodLife, PodLifetimes, Slot
from tracekit.model.cluster.statuses import time_text
from tracekit.model.cluster.store import Change, Raw

KUBELET: Final = "kubelet"
SCHEDULER: Final = "kube-scheduler"
API_SERVER: Final = "kube-apiserver"
_NODE: Final = "node-1"
#: The shortest spell of a container that restarts.
_RESTART_NS: Final = 100_000_000


@dataclass(slots=True, eq=False)
class _Pod:
    namespace: str
    name: str
    uid: str
    slot: Slot
    life: PodLife
    containers: tuple[str, ...]
    restart_policy: str
    started_ns: int | None = None  # status.startTime
    spell_ns: int = 0  # when the containers' present run began
    first_spell_ns: int = 0  # when their first one did
    exits: int = 0  # how often its containers ended and were started again
    restarts: int = 0  # more where one status shows several
    last_state: Raw = field(default_factory=dict)
    running: bool = False
    ended: bool = False
    deleted: bool = False  # in the store
    deleting: bool = False  # and the kubelet knows it
    gone: bool = False


def _stop(pod: _Pod) -> None:
    pod.deleting = True


class Kubelet:
    """Every node of the cluster, and the scheduler."""

    def __init__(self, server: ApiServer, lifetimes: PodLifetimes, draws: Draws) -> None:
        self._server = server
        self._loop = server.store.loop
        self._lifetimes = lifetimes
        self._draws = draws
        self._pods: dict[str, _Pod] = {}
        self._ordinals: dict[str, int] = defaultdict(int)
        self._attempts: dict[tuple[str, int | None], int] = defaultdict(int)
        server.store.watch(self._see, "pods")

    def pods_of(self, namespace: str, job: str) -> list[tuple[Slot, str]]:
        """The pods of a Job that are there, by slot, with their names; the oldest first."""
        return [
            (pod.slot, pod.name)
            for pod in self._pods.values()
            if (pod.slot.namespace, pod.slot.job) == (namespace, job)
        ]

    def disrupt(self, namespace: str, name: str, condition: str) -> None:
        """What an eviction does to a pod before it deletes it, where the API server knows that.

        Upstream: pkg/registry/core/pod/storage/eviction.go:addConditionAndDeletePod.
        """
        pod = next(
            (p for p in self._pods.values() if (p.namespace, p.name) == (namespace, name)), None
        )
        if pod is None or not condition or not self._server.rules.disruption_conditions:
            return
        self._status(pod, {"conditions": [self._condition(condition, on=True)]}, API_SERVER)

    def _see(self, change: Change) -> None:
        meta = change.obj["metadata"]
        uid = meta["uid"]
        if change.type == "DELETED":
            pod = self._pods.pop(uid, None)
            if pod is not None:
                pod.gone = True
            return
        if change.type == "ADDED":
            pod = self._pods[uid] = self._admit(change.obj)
            if pod.life.bind_ns is not None:
                self._after(pod.life.bind_ns, pod, self._bind)
            else:
                self._after(50_000_000, pod, self._refuse)
            if pod.life.deleted_ns is not None:
                self._after(pod.life.deleted_ns, pod, self._delete)
        pod = self._pods[uid]
        if meta.get("deletionTimestamp") is not None and not pod.deleted:
            pod.deleted = True
            # Until the kubelet knows, and while its writes are under way, the life goes on.
            lag_ns = self._draws.kubelet_lag_ns()
            if lag_ns:
                self._after(lag_ns, pod, _stop)
            else:
                _stop(pod)
            # Grace 0 means that the server waits for finalizers only: no kubelet is asked.
            grace_s = meta.get("deletionGracePeriodSeconds", 0)
            if grace_s and change.obj["spec"].get("nodeName"):
                delay_ns = min(pod.life.grace_ns, grace_s * NS_PER_S)
                self._after(delay_ns, pod, self._end_deleted, even_deleting=True)

    def _admit(self, obj: Raw) -> _Pod:
        meta, spec = obj["metadata"], obj["spec"]
        owner = next(
            (ref for ref in meta.get("ownerReferences", ()) if ref.get("controller")), None
        )
        job_uid = owner["uid"] if owner is not None else meta["uid"]
        known = completion_index(meta.get("annotations", {}))
        index = known if known >= 0 else None
        slot = Slot(
            namespace=meta["namespace"],
            job=owner["name"] if owner is not None else "",
            job_uid=job_uid,
            cron_job=self._cron_job(meta["namespace"], owner),
            ordinal=self._ordinals[job_uid],
            completion_index=index,
            attempt=self._attempts[job_uid, index],
        )
        self._ordinals[job_uid] += 1
        self._attempts[job_uid, index] += 1
        return _Pod(
            namespace=meta["namespace"],
            name=meta["name"],
            uid=meta["uid"],
            slot=slot,
            life=self._lifetimes.life_of(slot, obj),
            containers=tuple(c["name"] for c in spec.get("containers", ())),
            restart_policy=spec.get("restartPolicy", "Always"),
        )

    def _cron_job(self, namespace: str, owner: Raw | None) -> str:
        job = self._server.store.get("jobs", namespace, owner["name"]) if owner else None
        refs = job["metadata"].get("ownerReferences", ()) if job is not None else ()
        return next((ref["name"] for ref in refs if ref["kind"] == "CronJob"), "")

    def _after(
        self,
        delay_ns: int,
        pod: _Pod,
        step: Callable[[_Pod], None],
        *,
        even_deleting: bool = False,
    ) -> None:
        def guarded() -> None:
            if not pod.gone and (even_deleting or not pod.deleting):
                step(pod)

        self._loop.after(delay_ns, guarded)

    # Steps of a life.

    def _bind(self, pod: _Pod) -> None:
        if pod.deleted:
            return  # the API server refuses to bind it

        def bound(obj: Raw) -> None:
            obj["spec"]["nodeName"] = _NODE
            obj["status"]["conditions"] = [self._condition("PodScheduled", on=True)]

        self._change(pod, bound, manager=SCHEDULER)
        life = pod.life
        if life.waiting:
            self._after(50_000_000, pod, self._wait)
        if life.start_ns is not None:
            self._after(life.start_ns, pod, self._run)

    def _delete(self, pod: _Pod) -> None:
        """What somebody else does to it."""
        if pod.deleted:
            return
        grace_s = pod.life.deleted_grace_s
        if not pod.ended:
            self.disrupt(pod.namespace, pod.name, pod.life.condition)
        self._server.delete("pods", pod.namespace, pod.name, uid=pod.uid, grace_s=grace_s)

    def _refuse(self, pod: _Pod) -> None:
        self._status(pod, {"conditions": [self._condition("PodScheduled", on=False)]}, SCHEDULER)

    def _wait(self, pod: _Pod) -> None:
        if pod.running:
            return
        pod.started_ns = pod.started_ns or self._loop.now_ns
        state = {"waiting": {"reason": pod.life.waiting}}
        self._status(
            pod,
            {
                "phase": "Pending",
                "startTime": time_text(pod.started_ns),
                "conditions": self._ready(on=False),
                "containerStatuses": self._containers(pod, lambda _: state, ready=False),
            },
        )

    def _run(self, pod: _Pod) -> None:
        pod.running = True
        pod.spell_ns = self._loop.now_ns
        pod.started_ns = pod.started_ns or pod.spell_ns
        ready_ns = pod.life.ready_ns
        self._status(pod, self._running(pod, ready=ready_ns == 0))
        if ready_ns:
            self._after(ready_ns, pod, self._become_ready)
        self._plan_next_exit(pod)

    def _become_ready(self, pod: _Pod) -> None:
        if not pod.ended:
            self._status(pod, self._running(pod, ready=True))

    def _plan_next_exit(self, pod: _Pod) -> None:
        life = pod.life
        if life.restarts_at_ns:
            self._plan_by_times(pod)
            return
        if life.run_ns is None:
            return
        spell_ns = life.run_ns // (life.restarts + 1)
        fails_for_ever = pod.restart_policy == "OnFailure" and life.exit_code != 0
        if pod.restarts < life.restarts or fails_for_ever:
            self._after(max(spell_ns, _RESTART_NS), pod, self._restart)
        else:
            self._after(spell_ns, pod, self._end)

    def _plan_by_times(self, pod: _Pod) -> None:
        """The next of the exits whose times are known."""
        life = pod.life
        if pod.exits == 0:
            pod.first_spell_ns = pod.spell_ns
        passed_ns = pod.spell_ns - pod.first_spell_ns
        if pod.exits < len(life.restarts_at_ns):
            self._after(max(0, life.restarts_at_ns[pod.exits] - passed_ns), pod, self._restart)
        elif life.run_ns is not None:
            self._after(max(0, life.run_ns - passed_ns), pod, self._end)

    def _restart(self, pod: _Pod) -> None:
        ended = self._terminated(pod, pod.life.exit_code or 1)
        pod.last_state = {"terminated": ended}
        counts = pod.life.restart_counts
        pod.restarts += counts[pod.exits] if counts else 1
        pod.exits += 1
        pod.spell_ns = self._loop.now_ns
        self._status(pod, self._running(pod, ready=True))
        self._plan_next_exit(pod)

    def _end(self, pod: _Pod) -> None:
        pod.ended = True
        life = pod.life
        codes = {name: life.exit_codes.get(name, life.exit_code) for name in pod.containers}
        status = self._ended(pod, codes)
        if any(codes.values()):
            if life.condition:
                status["conditions"].append(self._condition(life.condition, on=True))
            if life.reason:
                status["reason"] = life.reason
                status["message"] = f"The pod ended early: {life.reason}."
        self._status(pod, status)

    def _end_deleted(self, pod: _Pod) -> None:
        pod.deleting = True
        if not pod.ended and not pod.life.silent:
            codes = dict.fromkeys(pod.containers, pod.life.term_exit_code)
            self._status(pod, self._ended(pod, codes))
            pod.ended = True
            if pod.life.gone_ns:
                self._after(pod.life.gone_ns, pod, self._remove, even_deleting=True)
                return
        self._remove(pod)

    def _remove(self, pod: _Pod) -> None:
        self._server.delete("pods", pod.namespace, pod.name, uid=pod.uid, grace_s=0)

    # Statuses.

    def _change(self, pod: _Pod, change: Callable[[Raw], None], *, manager: str) -> None:
        self._server.change(
            "pods",
            pod.namespace,
            pod.name,
            change,
            manager=manager,
            uid=pod.uid,
            subresource="status",
        )

    def _status(self, pod: _Pod, status: Raw, manager: str = KUBELET) -> None:
        def merged(obj: Raw) -> None:
            kept = {c["type"]: c for c in obj["status"].get("conditions", ())}
            for new in status.get("conditions", ()):
                if kept.get(new["type"], {}).get("status") != new["status"]:
                    kept[new["type"]] = new
            obj["status"].update(status)
            obj["status"]["conditions"] = list(kept.values())

        self._change(pod, merged, manager=manager)

    def _running(self, pod: _Pod, *, ready: bool) -> Raw:
        state = {"running": {"startedAt": time_text(pod.spell_ns)}}
        return {
            "phase": "Running",
            "conditions": self._ready(on=ready),
            "hostIP": "192.0.2.1",
            "startTime": time_text(pod.started_ns),
            "containerStatuses": self._containers(pod, lambda _: state, ready=ready),
        }

    def _ended(self, pod: _Pod, codes: dict[str, int]) -> Raw:
        if not pod.running:  # its containers never ran: no exit code to report
            return {"phase": "Failed", "conditions": self._ready(on=False)}
        return {
            "phase": "Failed" if any(codes.values()) else "Succeeded",
            "conditions": self._ready(on=False),
            "containerStatuses": self._containers(
                pod, lambda name: {"terminated": self._terminated(pod, codes[name])}, ready=False
            ),
        }

    def _containers(
        self, pod: _Pod, state: Callable[[str], Any], *, ready: bool
    ) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "state": state(name),
                "lastState": pod.last_state,
                "ready": ready,
                "restartCount": pod.restarts,
                "image": "busybox:1",
                "imageID": "",
            }
            for name in pod.containers
        ]

    def _terminated(self, pod: _Pod, code: int) -> Raw:
        return {
            "exitCode": code,
            "reason": pod.life.exit_reason if code else "Completed",
            "startedAt": time_text(pod.spell_ns),
            "finishedAt": time_text(self._loop.now_ns),
        }

    def _ready(self, *, on: bool) -> list[dict[str, Any]]:
        return [self._condition("ContainersReady", on=on), self._condition("Ready", on=on)]

    def _condition(self, kind: str, *, on: bool) -> dict[str, Any]:
        return {
            "type": kind,
            "status": "True" if on else "False",
            "lastProbeTime": None,
            "lastTransitionTime": time_text(self._loop.now_ns),
        }
