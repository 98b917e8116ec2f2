"""The Job controller's event handlers with plain collaborators, and what they asked of the queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.views import JobView, PodView
from tracekit.ports.job.event_handlers import JobEventHandlers
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.orphans import OrphanKey
from tracekit.versions.job import JobRules


class Wake(NamedTuple):
    """One request to sync a key."""

    key: str
    delay_ns: int


@dataclass
class Jobs:
    """Jobs by key."""

    jobs: Mapping[str, JobView] = field(default_factory=dict)

    def get_pod_jobs(self, pod: PodView) -> list[JobView]:
        return [
            job
            for job in self.jobs.values()
            if job.namespace == pod.namespace and selector_matches(job.spec.selector, pod.labels)
        ]

    def get(self, namespace: str, name: str) -> JobView | None:
        return self.jobs.get(f"{namespace}/{name}")


@dataclass
class Pods:
    """Pods in a list."""

    held: list[PodView] = field(default_factory=list)

    def get(self, namespace: str, name: str) -> PodView | None:
        return next((p for p in self.held if (p.namespace, p.name) == (namespace, name)), None)

    def select(self, namespace: str, selector: Mapping[str, Any] | None) -> Iterable[PodView]:
        return [
            p
            for p in self.held
            if p.namespace == namespace and selector_matches(selector, p.labels)
        ]


@dataclass
class Requests:
    """A Job queue and an orphan queue that only note what they were asked."""

    retries: Callable[[str], int] = lambda _: 0
    woken: list[Wake] = field(default_factory=list)
    orphans: list[OrphanKey] = field(default_factory=list)
    delayed_orphans: list[OrphanKey] = field(default_factory=list)

    def add_after(self, key: str, delay_ns: int) -> None:
        self.woken.append(Wake(key, delay_ns))

    def num_requeues(self, key: str) -> int:
        return self.retries(key)

    def add(self, key: OrphanKey) -> None:
        self.orphans.append(key)

    def add_rate_limited(self, key: OrphanKey) -> None:
        self.delayed_orphans.append(key)


@dataclass
class Controller:
    """Handlers over these Jobs and pods; `requests` has what they asked for."""

    rules: JobRules
    jobs: Mapping[str, JobView] = field(default_factory=dict)
    pods: list[PodView] = field(default_factory=list)
    memories: dict[str, JobMemory] = field(default_factory=dict)
    requests: Requests = field(default_factory=Requests)

    @property
    def handlers(self) -> JobEventHandlers:
        return JobEventHandlers(
            self.rules,
            Jobs(self.jobs),
            Pods(self.pods),
            self.requests,
            self.requests,
            self.memories.get,
        )

    def woken(self, event: Callable[[JobEventHandlers], None]) -> tuple[Wake, ...]:
        """The keys that one event enqueued."""
        self.requests.woken.clear()
        event(self.handlers)
        return tuple(self.requests.woken)


def pod_observed(
    memory: JobMemory,
    old: PodView | None,
    new: PodView,
    job: JobView,
    rules: JobRules,
    *,
    deleted: bool = False,
) -> None:
    """One event of the pod informer, as it changes the memory of the Job's key."""
    handlers = Controller(rules, {job.key: job}, memories={job.key: memory}).handlers
    if deleted:
        handlers.delete_pod(new, final=True)
    elif old is None:
        handlers.add_pod(new)
    else:
        handlers.update_pod(old, replace(new, rv=old.rv + 1))


def pod_added(pod: PodView, jobs: Mapping[str, JobView], rules: JobRules) -> tuple[Wake, ...]:
    return Controller(rules, jobs).woken(lambda handlers: handlers.add_pod(pod))


def pod_updated(
    old: PodView,
    new: PodView,
    jobs: Mapping[str, JobView],
    rules: JobRules,
    retries: Callable[[str], int],
) -> tuple[Wake, ...]:
    controller = Controller(rules, jobs, requests=Requests(retries))
    return controller.woken(lambda handlers: handlers.update_pod(old, new))


def pod_deleted(pod: PodView, jobs: Mapping[str, JobView], rules: JobRules) -> tuple[Wake, ...]:
    return Controller(rules, jobs).woken(lambda handlers: handlers.delete_pod(pod, final=True))


def job_updated(old: JobView, new: JobView, rules: JobRules, *, now_ns: int) -> tuple[Wake, ...]:
    return Controller(rules).woken(lambda handlers: handlers.update_job(old, new, now_ns=now_ns))
