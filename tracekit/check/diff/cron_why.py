"""The words behind the verdicts on CronJobs: the arithmetic of the schedule, fields that differ."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tracekit.base.cron.gotime import rfc3339
from tracekit.base.kube.cronjob_views import CronJobStatus, CronJobView
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.check.compare.fields import FieldDifference
from tracekit.check.replay.cron_search import CronExplanation
from tracekit.check.replay.history import Write
from tracekit.ports.cronjob.actions import CreateJob, DeleteJob, Intent, UpdateCronJobStatus


def status_differences(
    expected: CronJobStatus, observed: CronJobStatus
) -> Iterator[FieldDifference]:
    """Every field of a status that is not as it should be."""
    for path, left, right in (
        (
            "status.active",
            [ref.name for ref in expected.active],
            [ref.name for ref in observed.active],
        ),
        (
            "status.lastScheduleTime",
            format_rfc3339(expected.last_schedule_ns),
            format_rfc3339(observed.last_schedule_ns),
        ),
        (
            "status.lastSuccessfulTime",
            format_rfc3339(expected.last_successful_ns),
            format_rfc3339(observed.last_successful_ns),
        ),
    ):
        if left != right:
            yield FieldDifference(path, left, right)
    if [ref.name for ref in expected.active] == [ref.name for ref in observed.active]:
        for index, (left_ref, right_ref) in enumerate(
            zip(expected.active, observed.active, strict=True)
        ):
            if left_ref != right_ref:
                yield FieldDifference(
                    f"status.active[{index}]", left_ref._asdict(), right_ref._asdict()
                )


def with_observed_refs(expected: CronJobStatus, observed: CronJobStatus) -> CronJobStatus:
    """The expected status with the uids that only the server could give."""
    by_name = {ref.name: ref for ref in observed.active}
    return replace(expected, active=tuple(by_name.get(r.name, r) for r in expected.active))


def reason_of(write: Write, intent: Intent, explanation: CronExplanation) -> str:
    """Why the rules ask for a write, with its numbers."""
    if isinstance(intent, CreateJob):
        delay_s = (write.recv_ns - intent.scheduled_ns) / NS_PER_S
        return f"{due_text(explanation)}; started {delay_s:.3f} s after it"
    if isinstance(intent, DeleteJob):
        spec = explanation.cron_job.view.spec
        return (
            f"surplus history or replaced: successfulJobsHistoryLimit {spec.successful_limit}, "
            f"failedJobsHistoryLimit {spec.failed_limit}, concurrencyPolicy "
            f"{spec.concurrency_policy}"
        )
    before = explanation.cron_job.view.status
    after = intent.status if isinstance(intent, UpdateCronJobStatus) else before
    reasons = sorted({e.reason for e in explanation.events})
    return (
        f"active {len(before.active)} -> {len(after.active)}, last run "
        f"{time_text(after.last_schedule_ns)}" + (f" ({', '.join(reasons)})" if reasons else "")
    )


def due_text(explanation: CronExplanation) -> str:
    """Which slot was due in a sync, and from what that follows."""
    view = explanation.cron_job.view
    slot_ns = explanation.result.due_ns
    if slot_ns is None:
        return f"no slot was due (last run or creation {time_text(view.base_ns)})"
    return slot_text(slot_ns, view)


def slot_text(slot_ns: int, view: CronJobView) -> str:
    """That a slot was due, and from what that follows."""
    return (
        f"slot {time_text(slot_ns)} was due (last run or creation {time_text(view.base_ns)}, "
        f"schedule {view.spec.schedule!r})"
    )


def nothing_due(base_ns: int, upcoming_ns: int | None) -> str:
    """Why no slot was due."""
    upcoming = "never" if upcoming_ns is None else time_text(upcoming_ns)
    return f"no slot was due (last run or creation {time_text(base_ns)}, next slot {upcoming})"


def time_text(at_ns: int | None) -> str:
    """An instant in RFC 3339."""
    return "never" if at_ns is None else rfc3339(at_ns)
