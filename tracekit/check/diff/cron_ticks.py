"""What became of each time at which a CronJob was due: started, skipped, missed, and by which rule.

The schedules in force come from the recorded revisions of the CronJob; a Job belongs to the tick
that its annotation names (1.28 and later) or its name ends with (minutes since 1970, seconds under
the polling controller). What was not started is explained by the first of these that holds:
suspended, Jobs or CronJobs not seen then, the Job's name taken, Forbid with a Job still running,
too late for startingDeadlineSeconds, no leader, the controller gave up (Event FailedNeedsStart), a
later tick started instead, no timer since a name was taken by somebody else's Job (from 1.37 on).

The view `cron_ticks`, `explain`, the findings and `whatif` all count by this.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Struct, field

from tracekit.base.coverage import Coverage
from tracekit.base.cron.schedule import EverySchedule
from tracekit.base.durations import span
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.base.spans import Spans
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.versions.cronjob import Controller, Exists

SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
#: A tick so close to the end may still have been started afterwards (the polling controller looks
#: every 10 s, the queued one starts at once).
END_SLACK_NS: Final = 15 * NS_PER_S
#: So many ticks of a CronJob are listed, and so many more for each row about it or its Jobs: a
#: schedule goes on for as long as somebody says that a record does, and costs nothing to write.
TICKS_AT_LEAST: Final = 5_000
TICKS_A_ROW: Final = 100
#: What became of the rest.
UNLISTED: Final = "unlisted"
#: Of a time at which Jobs or CronJobs were not seen.
UNSEEN: Final = "gap"
#: Of times of a schedule that by the rules can never be due.
NEVER_DUE: Final = "never-due"
_MINUTE_NS: Final = 60 * NS_PER_S
#: Numbers at the end of a Job's name above this are seconds, below it minutes.
_SECONDS_FROM: Final = 1_000_000_000


#: The streams that show whether a Job was started.
_NEEDED: Final = ("cronjobs", "jobs")


class SeenCronJob(NamedTuple):
    """One revision of a CronJob; of its view spec, creation and lastScheduleTime count."""

    recv_ns: int
    type: str  # LIST, ADDED, MODIFIED, DELETED
    view: CronJobView


class Tick(NamedTuple):
    """A time at which a CronJob was due, and what became of it."""

    due_ns: int
    outcome: str  # started, skipped, suspended, missed, pending, unknown
    policy: str | None
    job: str | None  # that was started for it
    started_ns: int | None
    schedule: str
    why: str


class _Fate(NamedTuple):
    """What became of a tick, by which rule, and why in words."""

    outcome: str
    policy: str | None
    why: str


class _Rule(Struct, frozen=True):
    """What a CronJob's spec said from one revision on."""

    from_ns: int
    cron_job: CronJobView
    text: str
    policy: str
    suspended: bool
    deadline_ns: int | None


class StartedJob(Struct, frozen=True):
    """One Job of a CronJob, and the tick that its annotation or its name tells."""

    name: str
    created_ns: int
    finished_ns: int | None
    gone_ns: int | None
    due_ns: int | None
    due_minute: int | None

    @classmethod
    def of(
        cls,
        name: str,
        scheduled: str | None,
        created_ns: int,
        finished_ns: int | None,
        gone_ns: int | None,
    ) -> StartedJob:
        """From its name and the annotation with the time that it was scheduled for."""
        due_ns = parse_rfc3339(scheduled) if scheduled else None
        minute = None
        suffix = name.rpartition("-")[2]
        if due_ns is None and suffix.isascii() and suffix.isdigit() and len(suffix) < 12:  # noqa: PLR2004
            number = int(suffix)
            if number >= _SECONDS_FROM:
                due_ns = number * NS_PER_S
            else:
                minute = number
        return cls(name, created_ns, finished_ns, gone_ns, due_ns, minute)

    def running_at(self, at_ns: int) -> bool:
        """Whether the Job was unfinished then, as far as the record tells."""
        return self.created_ns <= at_ns < self.ends_ns

    @property
    def ends_ns(self) -> int:
        """When it finished or went, as far as the record tells."""
        ends = [ns for ns in (self.finished_ns, self.gone_ns) if ns is not None]
        return min(ends, default=1 << 62)


class Surroundings(Struct, frozen=True, dict=True):
    """What else decides about ticks; spans are (from, until) in ns."""

    end_ns: int  # of the record
    #: Where and when Jobs and CronJobs were seen; without a span nobody says it: all of the time.
    coverage: Coverage = Coverage()
    leaderless: Sequence[tuple[int, int]] = ()
    #: Of Events FailedNeedsStart, by the CronJob's namespace and name.
    gave_up: Mapping[tuple[str, str], Sequence[tuple[int, int]]] = field(default_factory=dict)
    #: When a Job of no CronJob was there, by namespace and name.
    others: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def pause_at(self, at_ns: int) -> tuple[int, int] | None:
        """The first time without a leader that holds a time."""
        return _inside(self.leaderless, self._leaderless_spans, at_ns)

    @cached_property
    def _leaderless_spans(self) -> Spans:
        return Spans(self.leaderless)


def ticks_of_cron_job(
    revisions: Sequence[SeenCronJob],
    jobs: Sequence[StartedJob],
    around: Surroundings,
    runner: CronRunner,
) -> Iterator[Tick]:
    """Every due time of one CronJob while it was seen, in order; by the rules of one version."""
    return _CronJob(revisions, jobs, around, runner).ticks()


class _CronJob:
    def __init__(
        self,
        revisions: Sequence[SeenCronJob],
        jobs: Sequence[StartedJob],
        around: Surroundings,
        runner: CronRunner,
    ) -> None:
        self.revisions = revisions
        self.runner = runner
        self.era = runner.era
        self.key = (revisions[0].view.namespace, revisions[0].view.name)
        #: Somebody else's Job that stood under a wanted name, since when no timer is armed.
        self.stopped_by: str | None = None
        self.jobs = sorted(jobs, key=lambda job: job.created_ns)
        self.by_name = {job.name: job for job in reversed(self.jobs)}
        self.gone_ns = [seen.recv_ns for seen in revisions if seen.type == "DELETED"]
        #: Jobs that a tick to come may find unfinished, and how many have been looked at.
        self.unfinished: list[StartedJob] = []
        self.taken_in = 0
        self.around = around
        #: By stream, the times of which nothing follows from there being no Job.
        self.holes = {
            stream: list(around.coverage.holes(stream, self.key[0], 0, around.end_ns))
            for stream in (_NEEDED if around.coverage.spans else ())
        }
        self.gave_up = around.gave_up.get(self.key, ())
        self.gave_up_spans = Spans(self.gave_up)
        self.rules = [_rule(seen) for seen in revisions if seen.type != "DELETED"]
        self.by_due = {job.due_ns: job for job in self.jobs if job.due_ns is not None}
        self.by_minute = {job.due_minute: job for job in self.jobs if job.due_minute is not None}

    def ticks(self) -> Iterator[Tick]:
        """Every due time while the CronJob was seen, with what became of it.

        Where there are more than its rows can be about, the last one stands for the rest.
        """
        most = TICKS_AT_LEAST + TICKS_A_ROW * (len(self.revisions) + len(self.jobs))
        due = list(islice(self._due(), most + 1))
        rest = due.pop() if len(due) > most else None
        matched = [self._job_for(at_ns, due, place) for place, (at_ns, _) in enumerate(due)]
        # For each tick the next Job that was started for a later one.
        laters: list[StartedJob | None] = [None] * len(due)
        later: StartedJob | None = None
        for place in range(len(due) - 1, -1, -1):
            laters[place] = later
            later = matched[place] or later
        for (at_ns, rule), job, next_job in zip(due, matched, laters, strict=True):
            self._take_in(at_ns)
            if job is not None and job.created_ns >= at_ns:
                fate = self._started(at_ns, rule, job)
                self.stopped_by = None
            else:
                fate = self._not_started(at_ns, rule, next_job)
            started = job if fate.outcome == "started" else None
            yield Tick(
                at_ns,
                fate.outcome,
                fate.policy,
                started.name if started is not None else None,
                started.created_ns if started is not None else None,
                rule.text,
                fate.why,
            )
        if rest is not None:
            at_ns, rule = rest
            why = (
                f"it was due more than {most:,} times, far more than there are rows about it: from "
                "here on its times are not listed"
            )
            yield Tick(at_ns, "unknown", UNLISTED, None, None, rule.text, why)

    def _take_in(self, at_ns: int) -> None:
        """Know the Jobs that are unfinished at a time just before, times coming in their order."""
        before_ns = at_ns - 1
        self.unfinished = [job for job in self.unfinished if job.ends_ns > before_ns]
        while self.taken_in < len(self.jobs) and self.jobs[self.taken_in].created_ns <= at_ns:
            self.unfinished.append(self.jobs[self.taken_in])
            self.taken_in += 1

    def _due(self) -> Iterator[tuple[int, _Rule]]:
        if not self.rules:
            return
        first, last = self.revisions[0], self.revisions[-1]
        until_ns = last.recv_ns if last.type == "DELETED" else self.around.end_ns
        seen_ns = first.recv_ns if first.type == "LIST" else 0
        # A list without times may show a CronJob that does not say since when it is there.
        known_ns = next((seen.recv_ns for seen in self.revisions if seen.recv_ns > 0), None)
        at_ns = first.view.base_ns or known_ns
        if at_ns is None:
            return
        starts = [rule.from_ns for rule in self.rules]
        changes_ns: list[int | None] = [None] * len(self.rules)
        for place in range(len(self.rules) - 2, -1, -1):
            after = self.rules[place + 1]
            differs = after.text != self.rules[place].text
            changes_ns[place] = after.from_ns if differs else changes_ns[place + 1]
        while True:
            place = max(0, bisect_right(starts, at_ns) - 1)
            rule = self.rules[place]
            upcoming = self.runner.next_slot_ns(rule.cron_job, at_ns)
            changed_ns = changes_ns[place]
            if changed_ns is not None and (upcoming is None or upcoming >= changed_ns):
                at_ns = max(changed_ns, at_ns + 1)
                continue
            if upcoming is None or upcoming > until_ns:
                return
            at_ns = upcoming
            if at_ns >= seen_ns:
                yield at_ns, self.rules[max(0, bisect_right(starts, at_ns) - 1)]

    def _job_for(
        self, at_ns: int, due: Sequence[tuple[int, _Rule]], place: int
    ) -> StartedJob | None:
        job = self.by_due.get(at_ns)
        if job is not None:
            return job
        minute = at_ns // _MINUTE_NS
        job = self.by_minute.get(minute)
        if job is None:
            return None
        # A schedule finer than minutes: the name fits several ticks, the last one before it counts.
        following = due[place + 1][0] if place + 1 < len(due) else None
        if (
            following is not None
            and following // _MINUTE_NS == minute
            and following <= job.created_ns + NS_PER_S
        ):
            return None
        return job

    def _started(self, at_ns: int, rule: _Rule, job: StartedJob) -> _Fate:
        replaced = [
            other.name
            for other in self.unfinished
            if other is not job and other.running_at(at_ns - 1) and other.gone_ns is not None
            and abs(other.gone_ns - job.created_ns) < END_SLACK_NS
        ]  # fmt: skip
        # A creationTimestamp has whole seconds.
        late_ns = job.created_ns - at_ns
        delay = span(late_ns) if late_ns else "less than 1 s"
        why = f"Job {job.name} was created {delay} after it was due"
        if rule.policy == "Replace" and replaced:
            why += f", in place of {', '.join(replaced)}, which still ran"
        return _Fate("started", rule.policy, why)

    def _not_started(self, at_ns: int, rule: _Rule, later: StartedJob | None) -> _Fate:
        if rule.suspended:
            return _Fate("suspended", "suspend", "spec.suspend was true")
        unseen = self._unseen(at_ns)
        if unseen:
            return _Fate("unknown", UNSEEN, f"nothing tells whether it was started: {unseen}")
        taken = self._name_taken(at_ns)
        if taken is not None:
            return taken
        running = [job.name for job in self.unfinished if job.running_at(at_ns)]
        if rule.policy == "Forbid" and running:
            why = f"{', '.join(running)} still ran, and concurrencyPolicy is Forbid"
            return _Fate("skipped", "Forbid", why)
        known = self._deleted_before_it_came(at_ns) or self._never_due(rule)
        return known or self._missed(at_ns, rule, later)

    def _unseen(self, at_ns: int) -> str:
        """Why a Job of that time need not have been seen; empty if it must have been."""
        for stream, holes in self.holes.items():
            place = bisect_left(holes, at_ns, key=_until)
            if place < len(holes) and holes[place][0] <= at_ns + END_SLACK_NS:
                return self.around.coverage.why(stream, self.key[0], at_ns)
        return ""

    def _never_due(self, rule: _Rule) -> _Fate | None:
        """No time of its schedule is ever due by the rules."""
        if rule.deadline_ns is None:
            return None
        schedule, seconds = self.runner.schedule(rule.cron_job), rule.deadline_ns // NS_PER_S
        why = "startingDeadlineSeconds is 0: no time lies in such a window"
        if seconds:
            if not isinstance(schedule, EverySchedule) or seconds >= schedule.delay_s:
                return None
            why = (
                f"it counts from the beginning of startingDeadlineSeconds ({seconds} s), which is "
                "shorter than its interval: its next time always lies ahead"
            )
        return _Fate("missed", NEVER_DUE, why)

    def _missed(self, at_ns: int, rule: _Rule, later: StartedJob | None) -> _Fate:
        pause = self.around.pause_at(at_ns)
        if pause is not None:
            why = f"no controller manager led for {span(pause[1] - pause[0])}"
            if rule.deadline_ns is not None and pause[1] - at_ns > rule.deadline_ns:
                # What lies before the deadline's window is not even looked at: no rule can tell it.
                why += (
                    f"; the next one led {span(pause[1] - at_ns)} after it was due, "
                    f"past startingDeadlineSeconds ({rule.deadline_ns // NS_PER_S} s): such a "
                    "time is dropped without an Event"
                )
            return _Fate("missed", "no-leader", why)
        if _inside(self.gave_up, self.gave_up_spans, at_ns) is not None:
            why = (
                "the controller gave up (Event FailedNeedsStart): more than 100 times were due "
                "since the last run, and it lists them all"
            )
            return _Fate("missed", "too-many-missed", why)
        if self.around.end_ns - at_ns < END_SLACK_NS:
            return _Fate("pending", None, "due just before the record ends")
        if rule.deadline_ns is not None:
            limit = f"{rule.deadline_ns // NS_PER_S} s"
            why = f"not started within startingDeadlineSeconds ({limit}), which no Event tells"
            return _Fate("missed", "startingDeadlineSeconds", why)
        if later is not None:
            why = f"only the most recent due time is started: {later.name} was started instead"
            return _Fate("missed", "most-recent-only", why)
        if self.stopped_by is not None:
            why = (
                f"the controller armed no timer when it met {self.stopped_by}, which is not its "
                "own: it comes back when the CronJob or a Job of it changes"
            )
        else:
            why = "nothing in the record explains why it was not started"
        return _Fate("missed", "name-taken" if self.stopped_by else None, why)

    def _deleted_before_it_came(self, at_ns: int) -> _Fate | None:
        """The CronJob went so soon after the time that the controller need not have seen it due."""
        slack_ns = END_SLACK_NS if self.era.controller is Controller.POLLING else NS_PER_S
        place = bisect_left(self.gone_ns, at_ns)
        gone_ns = self.gone_ns[place] if place < len(self.gone_ns) else None
        if gone_ns is None or gone_ns >= at_ns + slack_ns:
            return None
        after = span(gone_ns - at_ns)
        why = f"the CronJob was deleted {after} after it was due, before it was looked at"
        return _Fate("pending", "deleted", why)

    def _name_taken(self, at_ns: int) -> _Fate | None:
        """A Job of the wanted name that was there before, the CronJob's own or another's."""
        namespace, cron_job = self.key
        number = at_ns // (NS_PER_S if self.era.controller is Controller.POLLING else _MINUTE_NS)
        name = f"{cron_job}-{number}"
        own = self.by_name.get(name)
        if own is not None and own.created_ns < at_ns < (own.gone_ns or 1 << 62):
            why = f"{name}, which names the CronJob as its owner, was there already"
            return _Fate("missed", "name-taken", why)
        created_ns, gone_ns = self.around.others.get((namespace, name), (1 << 62, 0))
        if not created_ns < at_ns < gone_ns:
            return None
        if self.era.exists is Exists.RECOVER:
            self.stopped_by = name
        why = f"{name}, which is not the CronJob's, was there already"
        return _Fate("missed", "name-taken", why)


def _inside(spans: Sequence[tuple[int, int]], index: Spans, at_ns: int) -> tuple[int, int] | None:
    """The first span that holds the time."""
    near = (spans[place] for place in index.near(at_ns, at_ns))
    return next((s for s in near if s[0] <= at_ns <= s[1]), None)


def _until(span: tuple[int, int]) -> int:
    return span[1]


def _rule(seen: SeenCronJob) -> _Rule:
    view = seen.view
    spec = view.spec
    deadline_s = spec.starting_deadline_s
    return _Rule(
        seen.recv_ns,
        view,
        f"{spec.schedule} ({spec.time_zone})" if spec.time_zone else spec.schedule,
        spec.concurrency_policy,
        spec.suspend,
        None if deadline_s is None else deadline_s * NS_PER_S,
    )
