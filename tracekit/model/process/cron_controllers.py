"""Both CronJob controllers in their process: a pass every ten seconds, or a queue with workers.

Upstream: pkg/controller/cronjob/cronjob_controller.go:Run, cronjob_controllerv2.go:Run,
processNextWorkItem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tracekit.base.cron.zones import Zone
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.views import JobView
from tracekit.model.process.broadcaster import Broadcaster, Reference
from tracekit.model.process.client import Calls
from tracekit.model.process.context import ControllerContext
from tracekit.model.process.cron_port import CronPort
from tracekit.model.process.informer import Handlers, Informer
from tracekit.model.process.workers import Workers
from tracekit.ports.cronjob.actions import (
    Answer,
    CronJobApi,
    RecordEvent,
    SyncResult,
)
from tracekit.ports.cronjob.children import children_of
from tracekit.ports.cronjob.handlers import (
    Enqueue,
    cron_job_added,
    cron_job_updated,
    job_added,
    job_deleted,
    job_updated,
)
from tracekit.ports.cronjob.sync_all import sync_all
from tracekit.ports.cronjob.sync_queued import sync
from tracekit.ports.cronjob.worker import process_next_work_item
from tracekit.ports.workqueue.rate_limiters import default_controller_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.cronjob import CronJobEra

_COMPONENT = "cronjob-controller"


class QueuedCronJobController:
    """The controller with a queue (v2)."""

    def __init__(
        self,
        context: ControllerContext,
        cron_jobs: Informer[CronJobView],
        jobs: Informer[JobView],
        era: CronJobEra,
        zone: Zone,
    ) -> None:
        life = context.life
        self._context = context
        self._cron_jobs = cron_jobs
        self._jobs = jobs
        self._era = era
        self._zone = zone
        self._broadcaster = Broadcaster(life, context.server, context.client, _COMPONENT)
        clock = life.loop.clock
        self.queue: RateLimitingQueue[str] = RateLimitingQueue(
            clock, default_controller_rate_limiter(clock, context.constants)
        )
        self._workers = Workers(
            life,
            self.queue,
            context.workers,
            lambda: process_next_work_item(self.queue, self._sync),
            context.draws,
        )
        find = cron_jobs.get
        cron_jobs.handle(
            Handlers(
                lambda new: self._do(new, cron_job_added(new)),
                lambda old, new: self._do(new, cron_job_updated(old, new, life.now_ns, era, zone)),
                lambda old: self._do(old, cron_job_added(old)),
                self._workers.wake,
            )
        )
        jobs.handle(
            Handlers(
                lambda new: self._do(None, job_added(new, find)),
                lambda old, new: self._do(None, job_updated(old, new, find)),
                lambda old: self._do(None, job_deleted(old, find)),
                self._workers.wake,
            )
        )

    def _do(self, cron_job: CronJobView | None, asked: Iterable[Enqueue | RecordEvent]) -> None:
        for what in asked:
            if isinstance(what, Enqueue):
                self.queue.add_after(what.key, what.delay_ns)
            elif cron_job is not None:
                self._broadcaster.record(
                    Reference.to("CronJob", self._era.owner_api, cron_job),
                    what.type,
                    what.reason,
                    what.message,
                )

    def start(self) -> None:
        """Start the workers: the caches have synced."""
        self._workers.start()

    def _sync(self, key: str) -> SyncResult:
        context, era = self._context, self._era
        context.compute()
        now_ns = context.life.now_ns
        namespace, _, name = key.partition("/")
        cron_job = self._cron_jobs.get(namespace, name)
        if cron_job is None:
            return sync(None, (), now_ns, era, _NoPort(), process_zone=self._zone)
        listed = context.draws.shuffled(list(self._jobs.in_namespace(namespace)))
        children = children_of(cron_job, listed, era)
        calls = context.client.goroutine()
        port = CronPort(context.server, calls, self._broadcaster, cron_job, era.owner_api)
        return sync(cron_job, children, now_ns, era, port, process_zone=self._zone)


class _NoPort:
    """For a key whose CronJob is gone: nothing is asked."""

    def perform(self, intent: object) -> Answer:
        raise AssertionError(intent)

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        raise AssertionError(namespace, name)

    def get_cron_job(self, namespace: str, name: str) -> CronJobView | Answer:
        raise AssertionError(namespace, name)


class PollingCronJobController:
    """The controller that looks at everything every ten seconds (v1); it has no cache."""

    def __init__(self, context: ControllerContext, era: CronJobEra, zone: Zone) -> None:
        self._life = context.life
        self._server = context.server
        self.views = context.server.views
        self._era = era
        self._period_ns = context.constants.cron_poll_period_ns
        self._client = context.client
        self._zone = zone
        self._broadcaster = Broadcaster(context.life, context.server, context.client, _COMPONENT)

    def start(self) -> None:
        """Begin the passes: the next one follows ten seconds after one has ended."""
        self._life.task(self._run)

    def _run(self) -> None:
        loop = self._life.loop
        while True:
            sync_all(_Pass(self, self._client.goroutine()), self._era, process_zone=self._zone)
            loop.sleep_until(loop.now_ns + self._period_ns)

    def pages(
        self, calls: Calls, kind: str, view: Callable[..., object], size: int | None
    ) -> Iterable[Sequence[object] | Answer]:
        """List a kind, page by page."""
        listed = calls.call(lambda: list(self._server.store.all(kind)))
        step = size or max(1, len(listed))
        for first in range(0, max(1, len(listed)), step):
            if first:
                calls.call(lambda: None)
            yield [view(obj) for obj in listed[first : first + step]]

    def port(self, calls: Calls, cron_job: CronJobView) -> CronPort:
        """The port for one CronJob of a pass."""
        return CronPort(self._server, calls, self._broadcaster, cron_job, self._era.owner_api)

    @property
    def now_ns(self) -> int:
        """The process's clock."""
        return self._life.now_ns


class _Pass:
    """What one pass asks (`ports.cronjob.sync_all.PassApi`)."""

    def __init__(self, controller: PollingCronJobController, calls: Calls) -> None:
        self._controller = controller
        self._calls = calls

    def list_jobs(self, page_size: int | None) -> Iterable[Sequence[JobView] | Answer]:
        return self._controller.pages(self._calls, "jobs", self._controller.views.job, page_size)  # type: ignore[return-value]

    def list_cron_jobs(self, page_size: int | None) -> Iterable[Sequence[CronJobView] | Answer]:
        return self._controller.pages(  # type: ignore[return-value]
            self._calls, "cronjobs", CronJobView.from_raw, page_size
        )

    def now_ns(self) -> int:
        return self._controller.now_ns

    def of(self, cron_job: CronJobView) -> CronJobApi:
        return self._controller.port(self._calls, cron_job)
