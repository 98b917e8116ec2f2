"""One sync of the queue-based CronJob controller (v2): bookkeeping, start, history, status.

Three outer shapes exist (`Shell`): status written in every sync with the clean-up last (to 1.23),
one write where something changed (1.24), and the clean-up before scheduling (1.29 and backports).
The steps inside are numbered as in the specification, part D.3.

Upstream: pkg/controller/cronjob/cronjob_controllerv2.go:sync, syncCronJob, from v1.20 on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.cron.zones import UTC, Zone
from tracekit.ports.cronjob.actions import (
    CronJobApi,
    Recorder,
    SyncContext,
    SyncResult,
)
from tracekit.ports.cronjob.bookkeeping import bookkeeping
from tracekit.ports.cronjob.history import delete_surplus, has_limits
from tracekit.ports.cronjob.start import Halt, start_if_due
from tracekit.versions.cronjob import Shell

if TYPE_CHECKING:
    from tracekit.base.kube.cronjob_views import CronJobView
    from tracekit.base.kube.views import JobView
    from tracekit.versions.cronjob import CronJobEra


class _Inner(Struct, frozen=True):
    """What the inner part hands to the shell."""

    cron_job: CronJobView
    dirty: bool
    requeue_after_ns: int | None = None
    error: str | None = None
    cached: CronJobView | None = None  # the shell's own copy, where a live read took its place


def sync(
    cron_job: CronJobView | None,
    jobs: Sequence[JobView],
    now_ns: int,
    era: CronJobEra,
    api: CronJobApi,
    *,
    process_zone: Zone = UTC,
) -> SyncResult:
    """Sync one key: the cached CronJob (None where the cache has none) and its cached children.

    The worker adds the key back rate-limited on an error, with `requeue_after_ns` where that is
    not None, and not at all where both are None; `forgets` says whether its failures are forgotten.
    """
    recorder = Recorder(api)
    result = recorder.result()
    if cron_job is not None:
        result = _SHELLS[era.shell](
            cron_job, jobs, SyncContext(now_ns, era, recorder, process_zone)
        )
    idle = result.requeue_after_ns is None
    return replace(result, forgets=result.error is None and (era.forgets_idle_key or not idle))


def _sync_writing_always(
    cron_job: CronJobView, jobs: Sequence[JobView], ctx: SyncContext
) -> SyncResult:
    recorder, era = ctx.recorder, ctx.era
    inner = _sync_cron_job(cron_job, jobs, ctx)
    if inner.error is not None:
        return recorder.result(error=inner.error)
    if has_limits(inner.cron_job):
        cleaned, _ = delete_surplus(inner.cron_job, jobs, era, recorder)
        _, answer = recorder.put_status(cleaned)
        if not answer.ok:
            return recorder.result(error=answer.message)  # the timer of this sync is lost
    return recorder.result(requeue_after_ns=inner.requeue_after_ns)


def _sync_cleaning_last(
    cron_job: CronJobView, jobs: Sequence[JobView], ctx: SyncContext
) -> SyncResult:
    recorder, era = ctx.recorder, ctx.era
    inner = _sync_cron_job(cron_job, jobs, ctx)
    if inner.error is not None:
        if inner.dirty:
            _, answer = recorder.put_status(inner.cron_job)
            if not answer.ok:
                return recorder.result(error=answer.message)
        return recorder.result(error=inner.error)
    cleaned, deleted = delete_surplus(inner.cron_job, jobs, era, recorder)
    if inner.dirty or deleted:
        _, answer = recorder.put_status(cleaned)
        if not answer.ok:
            return recorder.result(error=answer.message)
    return recorder.result(requeue_after_ns=inner.requeue_after_ns)


def _sync_cleaning_first(
    cron_job: CronJobView, jobs: Sequence[JobView], ctx: SyncContext
) -> SyncResult:
    recorder, era = ctx.recorder, ctx.era
    cleaned, deleted = delete_surplus(cron_job, jobs, era, recorder)
    inner = _sync_cron_job(cleaned, jobs, ctx)
    if inner.dirty or deleted:
        # A live read takes the place of the cached object for the inner part only: what is
        # written is the cached copy, which the server then normally refuses.
        _, answer = recorder.put_status(inner.cached or inner.cron_job)
        if not answer.ok:
            return recorder.result(error=answer.message)
    if inner.requeue_after_ns is not None:
        return recorder.result(requeue_after_ns=inner.requeue_after_ns)
    return recorder.result(error=inner.error)


def _sync_cron_job(cron_job: CronJobView, jobs: Sequence[JobView], ctx: SyncContext) -> _Inner:
    recorder, era = ctx.recorder, ctx.era
    always = era.shell is Shell.WRITES_ALWAYS
    books = bookkeeping(cron_job, jobs, era, recorder)
    cron_job = books.cron_job
    if books.error is not None:
        return _Inner(cron_job, books.dirty, error=books.error, cached=books.cached)
    if always:
        cron_job, answer = recorder.put_status(cron_job)
        if not answer.ok:
            return _Inner(cron_job, dirty=False, error=answer.message)
    outcome = start_if_due(cron_job, ctx)
    if isinstance(outcome, Halt):
        return _Inner(
            outcome.cron_job,
            books.dirty or outcome.dirty,
            outcome.requeue_after_ns,
            outcome.error,
            books.cached,
        )
    if always:
        written, answer = recorder.put_status(outcome.cron_job)
        if not answer.ok:
            return _Inner(outcome.cron_job, dirty=False, error=answer.message)
        # Some releases clean up with the revision from before this write and get a conflict.
        after = outcome.cron_job if era.stale_after_create else written
        return _Inner(after, dirty=False, requeue_after_ns=outcome.requeue_after_ns)
    return _Inner(
        outcome.cron_job,
        dirty=True,
        requeue_after_ns=outcome.requeue_after_ns,
        cached=books.cached,
    )


_SHELLS: Final[dict[Shell, Callable[[CronJobView, Sequence[JobView], SyncContext], SyncResult]]] = {
    Shell.WRITES_ALWAYS: _sync_writing_always,
    Shell.WRITES_CHANGES: _sync_cleaning_last,
    Shell.CLEANS_FIRST: _sync_cleaning_first,
}
