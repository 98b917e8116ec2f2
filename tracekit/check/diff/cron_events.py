"""Which Events of the CronJob controller does some admissible sync explain?

Many syncs leave nothing but an Event behind: a refused start, a schedule that does not parse, a
status write that met a conflict. So an Event is explained where the ported controller hands it to
its broadcaster under some cut of the time around it. A missing Event says nothing: they are
dropped, merged and aggregated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.events import COMBINED
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.cron_api import DryCronApi
from tracekit.check.replay.cron_history import COMPONENT, CronHistory
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.cron_search import CronExplanation
from tracekit.check.replay.history import EventRow, Revision
from tracekit.check.replay.reported_events import EVENT_LAG_NS
from tracekit.ports.cronjob.actions import (
    RecordEvent,
)
from tracekit.ports.cronjob.handlers import cron_job_updated

#: Messages that end in an error's text, which the record cannot tell.
_OPEN_ENDED = {
    "FailedCreate": "Error creating job: ",
    "FailedDelete": "Deleted job",
    "FailedGet": "Get job: ",
    "FailedUpdate": "Update job: ",
    "FailedList": "List job-pods: ",
}
#: What is told of a Job by name, and once unless it comes again.
_DONE_ONCE = ("SuccessfulCreate", "SuccessfulDelete")
_Identity = tuple[str, str, str]  # type, reason, message


def reported_events(
    history: CronHistory,
    runner: CronRunner,
    explanations: Iterable[CronExplanation],
    restarted_ns: Sequence[int],
    width_ns: Callable[[int], int],
) -> Iterator[tuple[EventRow, bool]]:
    """Every Event row of the controller, and whether it is explained.

    `width_ns`: to within what the times of writes are known then.
    """
    reported_ns: dict[_Identity, int] = {}
    for found in explanations:
        at_ns = min([found.now_ns, *(write.recv_ns for write in found.writes)])
        for e in found.events:
            key = (e.type, e.reason, e.message)
            reported_ns[key] = min(reported_ns.get(key, at_ns), at_ns)
    posted: dict[tuple[str, _Identity], EventRow] = {}
    for event in history.events:
        if event.component != COMPONENT or event.type == "LIST":
            continue
        key = (event.event_type, event.reason, event.message.removeprefix(COMBINED))
        first = posted.setdefault((event.involved_uid, key), event)
        if (
            event.reason in _DONE_ONCE
            and first.name != event.name
            and not any(first.recv_ns < at_ns <= event.recv_ns for at_ns in restarted_ns)
        ):
            # One process counts a repeated Event up; a second object is not its work.
            yield event, False
            continue
        handed_ns = reported_ns.get(key)
        by_ns = event.recv_ns + width_ns(event.recv_ns)
        in_time = handed_ns is not None and handed_ns <= by_ns + CLOCK_SLACK_NS
        yield event, in_time or _is_possible(history, runner, replace(event, recv_ns=by_ns), key)


def _is_possible(
    history: CronHistory, runner: CronRunner, event: EventRow, key: tuple[str, str, str]
) -> bool:
    """Whether some cut of the time before the Event makes the controller emit it."""
    wanted = _comparable(*key)
    shown_ns = event.recv_ns + CLOCK_SLACK_NS  # streams arrive side by side, not in one order
    newest_rv = history.newest_rv(shown_ns)
    # Those that were current at some time shortly before.
    recent = history.current_between(event.recv_ns - EVENT_LAG_NS, event.recv_ns + NS_PER_S)
    revisions = [revision for revision in recent if revision.type != "DELETED"]
    for revision in reversed(revisions):
        before = revision.previous
        if before is not None and wanted in _handler_events(runner, before, revision):
            return True
        for jobs in _job_states(history, event.recv_ns):
            for now_ns in _clocks(runner, revision, event.recv_ns):
                for refuses in (False, True):
                    api = DryCronApi(
                        revision.view, lambda name: history.live_job(name, newest_rv), refuses
                    )
                    runner.run(revision.view, jobs, now_ns, api)
                    if wanted in _events_of(api.writes):
                        return True
    return False


def _clocks(runner: CronRunner, revision: Revision[CronJobView], at_ns: int) -> Iterator[int]:
    """The time of the Event, and before each slot that its sync may not have reached."""
    yield at_ns
    earliest_ns = max(revision.recv_ns, at_ns - EVENT_LAG_NS)
    for slot_ns in runner.slots_ns(revision.view, earliest_ns, at_ns):
        yield slot_ns - 1


def _handler_events(
    runner: CronRunner,
    before: Revision[CronJobView],
    revision: Revision[CronJobView],
) -> set[tuple[str, str, str]]:
    if runner.polls:
        return set()
    emitted = cron_job_updated(
        before.view, revision.view, revision.recv_ns, runner.era, runner.process_zone
    )
    return _events_of(emitted)


def _events_of(intents: Iterable[object]) -> set[tuple[str, str, str]]:
    return {_comparable(i.type, i.reason, i.message) for i in intents if isinstance(i, RecordEvent)}


def _comparable(event_type: str, reason: str, message: str) -> tuple[str, str, str]:
    head = _OPEN_ENDED.get(reason)
    return (event_type, reason, head if head is not None and message.startswith(head) else message)


def _job_states(history: CronHistory, at_ns: int) -> Iterator[tuple[JobView, ...]]:
    """The states of the Jobs shortly before an instant, newest first."""
    last: object = None
    for position in range(history.jobs_came_by(at_ns + NS_PER_S), -1, -1):
        if position and history.jobs[position - 1].recv_ns > at_ns + NS_PER_S:
            continue
        state = history.jobs_at(position)
        if state != last:
            last = state
            yield state
        if position and history.jobs[position - 1].recv_ns < at_ns - EVENT_LAG_NS:
            return
