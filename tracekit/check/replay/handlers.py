"""The Job controller's handlers, run on the pods of one key as its informer shows them.

A search wants their effect on the key's memory, and whether they wake the key; when it is served is
read off the record, and what the orphan queue gets does not come back to the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.views import JobView, PodView
from tracekit.check.replay.history import History, Revision
from tracekit.ports.job.event_handlers import JobEventHandlers
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.orphans import OrphanKey
from tracekit.versions.job import JobRules


def may_tell(revision: Revision[PodView], memory: JobMemory) -> bool:
    """Whether a memory waits for what a revision may show; else no handler changes it.

    It waits for finalizers to go, and counts pods that come and go from its first write on.
    """
    pod = revision.view
    if pod.uid in memory.finalizers:
        return True
    goes = revision.type == "DELETED" or pod.deleted_ns is not None
    return memory.expectations is not None and (goes or revision.previous is None)


class PodHandlers:
    """The pod handlers of one key's Jobs, by the rules of one version."""

    def __init__(self, history: History, rules: JobRules) -> None:
        # By then none had finished: pods of finished Jobs wake nobody who would ask the memory.
        self._jobs: dict[str, JobView] = {}
        for revision in history.jobs:
            self._jobs.setdefault(revision.view.uid, revision.view)
        self._uid = ""
        self._memory: JobMemory | None = None
        self._woke = False
        self._handlers = JobEventHandlers(rules, self, self, self, self, self._memory_of)

    def tell(self, memory: JobMemory, revision: Revision[PodView], job_uid: str) -> None:
        """Let the memory of the Job's key have what the handlers make of one revision."""
        self._uid, self._memory = job_uid, memory
        if revision.type == "DELETED":
            self._handlers.delete_pod(revision.view, final=True)
        elif revision.previous is None:
            self._handlers.add_pod(revision.view)
        else:
            self._handlers.update_pod(revision.previous.view, revision.view)

    def wake(self, revision: Revision[PodView], job_uid: str) -> bool:
        """Whether a revision puts the key into the queue: what befalls a lost pod may not."""
        self._woke = False
        self.tell(JobMemory(), revision, job_uid)
        return self._woke

    def _memory_of(self, key: str) -> JobMemory | None:
        del key
        return self._memory

    # As lister of Jobs and pods.

    def get(self, namespace: str, name: str) -> Any:
        """The one Job whose memory it is."""
        del namespace, name
        return self._jobs.get(self._uid)

    def get_pod_jobs(self, pod: PodView) -> Iterable[JobView]:
        """The same, if its selector matches the pod."""
        job = self._jobs.get(self._uid)
        matches = job is not None and selector_matches(job.spec.selector, pod.labels)
        return (job,) if job is not None and matches else ()

    def select(self, namespace: str, selector: Mapping[str, Any] | None) -> Iterable[PodView]:
        """Nobody asks for a Job's orphans."""
        del namespace, selector
        return ()

    # As queue.

    def add_after(self, key: str, delay_ns: int) -> None:
        """The times of the syncs are in the record."""
        del key, delay_ns
        self._woke = True

    def num_requeues(self, key: str) -> int:
        """They decide times only."""
        del key
        return 0

    def add(self, key: OrphanKey) -> None:
        """The orphan worker's patches are in the record."""

    add_rate_limited = add
