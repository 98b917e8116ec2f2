"""The TTL-after-finished controller in its process.

Upstream: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go:Run, worker.
"""

from __future__ import annotations

from tracekit.base.kube.views import JobView
from tracekit.model.cluster.api_server import ApiServer
from tracekit.model.process.client import Calls
from tracekit.model.process.context import ControllerContext
from tracekit.model.process.informer import Handlers, Informer
from tracekit.model.process.workers import Workers
from tracekit.ports.cronjob.actions import Answer
from tracekit.ports.ttl.controller import (
    DeleteExpiredJob,
    TtlResult,
    add_job,
    process,
    process_next_work_item,
    update_job,
)
from tracekit.ports.workqueue.rate_limiters import default_controller_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue


class TtlController:
    """One TTL controller in one process."""

    def __init__(self, context: ControllerContext, jobs: Informer[JobView]) -> None:
        self._context = context
        self._jobs = jobs
        clock = context.life.loop.clock
        self.queue: RateLimitingQueue[str] = RateLimitingQueue(
            clock, default_controller_rate_limiter(clock, context.constants)
        )
        self._workers = Workers(
            context.life,
            self.queue,
            context.workers,
            lambda: process_next_work_item(self.queue, self._process_job),
            context.draws,
        )
        jobs.handle(
            Handlers(
                lambda job: add_job(job, self.queue),
                lambda old, new: update_job(old, new, self.queue),
                lambda _: None,
                self._workers.wake,
            )
        )

    def start(self) -> None:
        """Start the workers: the cache has synced."""
        self._workers.start()

    def _process_job(self, key: str) -> TtlResult:
        context = self._context
        context.compute()
        namespace, _, name = key.partition("/")
        port = _Port(context.server, context.client.goroutine())
        return process(self._jobs.get(namespace, name), context.life.now_ns, port)


class _Port:
    """The port of one look at a key (`controllers.ttl.controller.TtlApi`)."""

    __slots__ = ("_calls", "_server")

    def __init__(self, server: ApiServer, calls: Calls) -> None:
        self._server = server
        self._calls = calls

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        """Live GET of a Job."""
        reply = self._calls.call(lambda: self._server.get("jobs", namespace, name))
        if reply.obj is None:
            return Answer(reply.outcome, reply.message)
        return self._server.views.job(reply.obj)

    def delete_job(self, intent: DeleteExpiredJob) -> Answer:
        """DELETE a Job."""
        reply = self._calls.call(
            lambda: self._server.delete(
                "jobs",
                intent.namespace,
                intent.name,
                uid=intent.uid,
                propagation=intent.propagation,
            )
        )
        return Answer(reply.outcome, reply.message)
