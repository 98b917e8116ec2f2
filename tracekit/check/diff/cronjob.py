"""Judges everything that happened to the CronJobs of a record.

One judgement for each action of the CronJob controller: every Job that it created or deleted, every
status that it wrote, every Event, and every action that its rules demanded and that did not happen.
The search (`replay.cron_search`) finds the cuts, `cron_pending` since when something was wanted,
and `lateness` whether the process must have come to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.field_managers import CONTROLLER_MANAGERS
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.compare.fields import FieldDifference
from tracekit.check.compare.job_body import job_body_differences
from tracekit.check.diff.collected import CRONJOB_GOES, CRONJOB_GONE
from tracekit.check.diff.cron_answers import Answers
from tracekit.check.diff.cron_events import reported_events
from tracekit.check.diff.cron_keys import CronJobKeys, CronReplay
from tracekit.check.diff.cron_pending import Wanted, WantedCheck, subject_of
from tracekit.check.diff.cron_why import (
    due_text,
    nothing_due,
    reason_of,
    slot_text,
    status_differences,
    time_text,
    with_observed_refs,
)
from tracekit.check.diff.cross_key_timing import CrossKeyTiming, TimingSummary
from tracekit.check.diff.key_queue import first_write
from tracekit.check.diff.lateness import (
    QUEUED,
    Behind,
    KeyTiming,
    Pace,
    PendingAction,
    Seen,
    Service,
    left_open,
    shown_in,
)
from tracekit.check.diff.other_writers import named_writes, other_manager
from tracekit.check.diff.ttl import FOREGROUND
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.cron_api import CronProblem
from tracekit.check.replay.cron_history import COMPONENT, CronHistory
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.cron_search import CronExplanation, CronWalker, Others, Unexplained
from tracekit.check.replay.history import EventRow, Revision, Write, WriteKind
from tracekit.check.replay.interruptions import cut_off
from tracekit.check.replay.reported_events import EVENT_LAG_NS
from tracekit.check.replay.run_context import INFORMER_LAG_NS, RunContext
from tracekit.check.replay.search_state import WithoutSync, WriteWithoutSync
from tracekit.check.verdict import Judgement, ObjectRef, Reason, Verdict
from tracekit.ports.cronjob.actions import CreateJob, DeleteJob, UpdateCronJobStatus
from tracekit.ports.cronjob.body import scheduled_ns_of_name
from tracekit.versions.constants import CRON_POLL_PERIOD_NS

CONTROLLER = "cronjob"
_MANUAL = "cronjob.kubernetes.io/instantiate"
#: A pass of the polling controller makes at most so many calls for one CronJob that starts nothing.
_CALLS_PER_PASS = 4


class CronJobsSummary(Struct, frozen=True):
    """What some CronJobs have told, as it is sent from one process to another."""

    judgements: list[Judgement]
    cron_jobs: int
    summary: TimingSummary


@dataclass(slots=True)
class CronJobJudge(CronJobKeys):
    """Judges the CronJobs of a trace."""

    #: What the CronJobs tell of the process; it shares the informers with other controllers'.
    cross_key: CrossKeyTiming = field(default_factory=CrossKeyTiming)
    #: The CronJobs that are judged, as (namespace, name); None: all.
    only: Collection[tuple[str, str]] | None = None
    _judgements: list[Judgement] = field(default_factory=list)
    _cron_jobs: int = 0

    def key(self, history: CronHistory) -> None:
        """Judge a CronJob."""
        if self.only is not None and (history.namespace, history.name) not in self.only:
            return
        judged = CronKeyJudge(history, self.runner, self.context)
        judged.run()
        self._judgements += judged.found
        self.cross_key.add(judged.timing)
        self._cron_jobs += 1

    def summary(self) -> CronJobsSummary:
        """What was found of its CronJobs, once all of them were taken in."""
        self.enter(None)
        return CronJobsSummary(self._judgements, self._cron_jobs, self.cross_key.summary())

    def merge(self, summary: CronJobsSummary) -> None:
        """Take in what was found of other CronJobs."""
        self._judgements += summary.judgements
        self._cron_jobs += summary.cron_jobs
        self.cross_key.merge(summary.summary)

    def report(self) -> list[Judgement]:
        """The judgements of all CronJobs, once everything was taken in."""
        self.enter(None)
        pace = QUEUED
        if self.runner.polls:
            # A pass begins 10 s after the last one ended, and asks a throttled client for each.
            calls = _CALLS_PER_PASS * self._cron_jobs
            throttle = self.context.throttle
            pass_ns = throttle.wait_ns(max(0, calls - int(throttle.burst)), 0)
            rest_ns = CRON_POLL_PERIOD_NS
            pace = Pace(rest_ns + 2 * pass_ns, pass_ns, rest_ns, passes=True)
        settled = self.cross_key.settled(self.context, pace)
        return [*map(settled.of, self._judgements), *settled.missing]


class CronKeyJudge:
    """Judges one CronJob."""

    def __init__(self, history: CronHistory, runner: CronRunner, context: RunContext) -> None:
        self.history = history
        self.runner = runner
        self.context = context
        self.found: list[Judgement] = []
        self._lacked: set[tuple[str, str]] = set()  # (action, subject) of those found missing
        self.timing = KeyTiming((), (), (), (), (), ())
        named = {**_in_the_foreground(history), **named_writes(history.writes, COMPONENT)}
        others = Others(named, self._managed_by_others, self._deletion_evidence)
        self._walker = CronWalker(history, runner, context, others)

    def replay(self) -> CronReplay:
        """The search alone, without verdicts."""
        entries = self._walker.run()
        return CronReplay(self.history, entries, dict(self._walker.foreign))

    def run(self) -> None:
        """Judge every action; `timing` is what only the process as a whole can tell."""
        _, entries, others = replay = self.replay()
        syncs = replay.syncs
        for index, evidence in others.items():
            self._add(self.history.writes[index], Verdict.FOREIGN, evidence)
        for entry in entries:
            match entry:
                case CronExplanation():
                    for write in entry.writes:
                        self._explained(write, entry)
                case WriteWithoutSync():
                    foreign = entry.reason is WithoutSync.FOREIGN
                    verdict = Verdict.FOREIGN if foreign else Verdict.UNKNOWABLE
                    self._add(entry.write, verdict, entry.why, reason=entry.unknowable)
                case Unexplained():
                    self._unexplained(entry.write, entry.diagnosis)
        restarted_ns = [restart.until_ns for restart in self.context.restarts]
        events = reported_events(
            self.history, self.runner, syncs, restarted_ns, self.context.width_ns
        )
        for event, explained in events:
            self._event(event, is_explained=explained)
        self._time(syncs)

    # Who else may have written.

    def _managed_by_others(self) -> Mapping[int, str]:
        found: dict[int, str] = {}
        for write in self.history.writes:
            actor = write.actor
            if actor is not None and actor.controller is not None:
                continue
            evidence = None
            if write.kind is WriteKind.JOB_CREATE and write.job is not None:
                if write.job.view.annotations.get(_MANUAL) == "manual":
                    evidence = f"the Job's annotation {_MANUAL} says manual: kubectl create job"
                else:
                    evidence = other_manager(write.job, CONTROLLER_MANAGERS, subresource="")
            elif write.cron_job is not None:
                evidence = other_manager(write.cron_job, CONTROLLER_MANAGERS, subresource="status")
            if evidence is not None:
                found[write.index] = evidence
        return found

    def _deletion_evidence(self, write: Write) -> str | None:
        """Who may have deleted a Job that no sync of the controller deletes."""
        assert write.job is not None  # noqa: S101 - deletions have one
        if write.actor is not None and write.actor.controller == COMPONENT:
            return None
        message = f"Deleted job {write.job.view.name}"
        if any(
            e.reason == "SuccessfulDelete" and e.message == message for e in self.history.events
        ):
            return None
        return self._deletion_by_others(write, write.job.view)

    def _deletion_by_others(self, write: Write, job: JobView) -> str:
        ending_rv = self.context.namespaces_ending.get(job.namespace)
        if ending_rv is not None and ending_rv <= write.rv:
            return "its namespace terminates: the namespace controller deletes the Job"
        owner = job.controller
        live = self.history.live_cron_job(write.rv)
        if owner is None:
            return "the Job belongs to no CronJob any more"
        if live is None or live.view.uid != owner.uid:
            return CRONJOB_GONE
        if live.view.deleted_ns is not None:
            return CRONJOB_GOES
        if job.spec.ttl_s is not None and job.status.finished is not None:
            return "the Job has a ttlSecondsAfterFinished: the TTL controller deletes it"
        return (
            "no Event SuccessfulDelete of the CronJob controller names the Job, and none of its "
            "rules asks for the deletion: a user's or another controller's"
        )

    # Verdicts.

    def _explained(self, write: Write, sync: CronExplanation) -> None:
        intent = sync.intents[write.index]
        fields: tuple[FieldDifference, ...] = ()
        verdict = Verdict.MATCH if not sync.unseen else Verdict.MATCH_LAGGED
        if isinstance(intent, CreateJob) and write.job is not None:
            fields = self._body_differences(intent, write.job)
            verdict = Verdict.DIFFERENT if fields else verdict
        self._add(write, verdict, reason_of(write, intent, sync), fields, sync)
        if sync.rest is not None and write.index == max(w.index for w in sync.writes):
            self._open_end(write, sync.rest)

    def _open_end(self, last: Write, rest: CronProblem) -> None:
        """Say so where a sync that the record's end cut off may have left something out."""
        if cut_off(self.context, last.recv_ns) is not None:
            return
        what = f"the {rest.kind.value} of {subject_of(rest.intent)}"
        doubt = left_open(self.context, last.recv_ns, shown_in(CONTROLLER, rest.kind.value), what)
        if doubt:
            judged = self.found[-1]
            self.found[-1] = replace(judged, why=f"{judged.why}; {doubt}", ambiguous=True)

    def _body_differences(
        self, intent: CreateJob, job: Revision[JobView]
    ) -> tuple[FieldDifference, ...]:
        dropped = self.runner.era.dropped_job_fields
        return tuple(job_body_differences(intent, _posted(job), dropped))

    def _unexplained(self, write: Write, diagnosis: CronExplanation | None) -> None:
        if self._may_lack_company(write):
            why = "no cut explains it, but the record of the other kind ends before it"
            self._add(write, Verdict.UNKNOWABLE, why, reason=Reason.CENSORED)
        elif gap := self.context.gap_near(write.recv_ns, INFORMER_LAG_NS):
            why = f"no cut explains it, but it came beside a {gap.why}"
            self._add(write, Verdict.UNKNOWABLE, why, reason=Reason.GAP)
        elif diagnosis is None:
            why = "the record has no earlier state of the CronJob"
            self._add(write, Verdict.UNKNOWABLE, why, reason=Reason.BEFORE_RECORD)
        elif write.kind is WriteKind.JOB_CREATE:
            self._bad_creation(write, diagnosis)
        elif write.kind is WriteKind.STATUS_UPDATE:
            self._bad_status(write, diagnosis)
        else:
            why = "the history limits and the concurrency policy keep this Job"
            self._add(write, Verdict.EXTRA, why)

    def _may_lack_company(self, write: Write) -> bool:
        """Whether the record ends so soon after that not everything before it arrived."""
        near = write.recv_ns > self.context.end_ns - INFORMER_LAG_NS
        return near and write.rv > min(
            self.context.seen_rv.get(stream, 0) for stream in ("jobs", "cronjobs")
        )

    def _bad_creation(self, write: Write, diagnosis: CronExplanation) -> None:
        """A Job that no cut starts: of another name, too early, or not to be started at all."""
        wanted = [i for i in diagnosis.result.intents if isinstance(i, CreateJob)]
        era, view = self.runner.era, diagnosis.cron_job.view
        slot_ns = scheduled_ns_of_name(write.subject, self.history.name, era.controller)
        upcoming_ns = self.runner.next_slot_ns(view, write.recv_ns)
        if write in diagnosis.writes:
            # The start itself is right: what its sync lacks is reported where it is missing.
            self._explained(write, diagnosis)
        elif slot_ns is not None and slot_ns > write.recv_ns and slot_ns == upcoming_ns:
            ahead_s = (slot_ns - write.recv_ns) / NS_PER_S
            why = (
                f"its slot {time_text(slot_ns)} was {ahead_s:.3f} s ahead when the Job was seen at "
                f"{time_text(write.recv_ns)}: a start is possible from the slot on"
            )
            self._add(write, Verdict.EARLY, why, sync=diagnosis)
        elif wanted:
            assert write.job is not None  # noqa: S101 - creations have one
            name = FieldDifference("metadata.name", wanted[0].name, write.subject)
            why = f"{due_text(diagnosis)}: the Job of that slot is {wanted[0].name}"
            fields = (name, *self._body_differences(wanted[0], write.job))
            self._add(write, Verdict.DIFFERENT, why, fields, diagnosis)
        else:
            reason = diagnosis.result.reason or nothing_due(view.base_ns, upcoming_ns)
            self._add(write, Verdict.EXTRA, f"no Job may start: {reason}", sync=diagnosis)

    def _bad_status(self, write: Write, diagnosis: CronExplanation) -> None:
        """A status that no cut writes; what else its sync lacks is reported beside it."""
        assert write.cron_job is not None  # noqa: S101 - status writes have one
        observed = write.cron_job.view.status
        lacking = [p for p in diagnosis.problems if p.kind is not WriteKind.STATUS_UPDATE]
        for problem in lacking:
            self._lacking(write, problem, diagnosis)
        puts = [i for i in diagnosis.result.intents if isinstance(i, UpdateCronJobStatus)]
        before = write.cron_job.previous
        changed = [i for i in puts if before is None or i.status != before.view.status]
        if not changed:
            why = diagnosis.result.reason or "nothing happened that its status would tell of"
            self._add(write, Verdict.EXTRA, f"no status was to be written: {why}")
            return
        expected = changed[-1].status
        if lacking:
            expected = with_observed_refs(expected, observed)
        fields = tuple(status_differences(expected, observed))
        if fields:
            self._add(write, Verdict.DIFFERENT, "the rules give another status", fields, diagnosis)
        else:
            self._add(
                write, Verdict.MATCH, reason_of(write, changed[-1], diagnosis), sync=diagnosis
            )

    def _lacking(self, write: Write, problem: CronProblem, diagnosis: CronExplanation) -> None:
        assert isinstance(problem.intent, CreateJob | DeleteJob)  # noqa: S101 - no status
        verb = "created" if isinstance(problem.intent, CreateJob) else "deleted"
        subject = problem.intent.name
        why = (
            f"{due_text(diagnosis)}: the sync that wrote the status at "
            f"{time_text(write.recv_ns)} must have {verb} the Job {subject} before, and the "
            "record has no such write"
        )
        if not self._is_reported(problem.kind, subject):
            judged = self._judgement(problem.kind, Verdict.MISSING, write, subject, why)
            self.found.append(judged)
            self._lacked.add((problem.kind.value, subject))

    def _is_reported(self, kind: WriteKind, subject: str) -> bool:
        """Whether that action was reported as missing before."""
        return (kind.value, subject) in self._lacked

    def _event(self, event: EventRow, *, is_explained: bool) -> None:
        outage = None
        if not is_explained:
            near = self.context.interruptions_near(event.recv_ns - EVENT_LAG_NS, event.recv_ns)
            outage = next(near, None)
        listed_ns = self._walker.blind.first_ns or event.recv_ns
        reason = None
        if is_explained:
            verdict, why = Verdict.MATCH, f"{event.reason}: handed out by a sync of that time"
        elif outage is not None:
            verdict, reason = Verdict.UNKNOWABLE, Reason.GAP
            why = f"the sync that handed it out may lie in a time that was not seen: {outage.why}"
        elif listed_ns < event.recv_ns <= listed_ns + EVENT_LAG_NS and not self._saw_begin():
            verdict, reason = Verdict.UNKNOWABLE, Reason.BEFORE_RECORD
            why = "the sync that handed it out may have run before the record began"
        else:
            verdict = Verdict.EXTRA
            why = f"no sync of that time hands out {event.reason} {event.message!r}"
        ref = self._ref(self._uid())
        judged = Judgement(
            CONTROLLER, ref, "event", verdict, event.recv_ns, str(event.rv), event.reason, why
        )
        self.found.append(replace(judged, reason=reason))

    def _saw_begin(self) -> bool:
        first = self.history.cron_jobs[0]
        return first.type == "ADDED"

    # Timing.

    def _time(self, syncs: list[CronExplanation]) -> None:
        """What only the process as a whole can tell: late, missing, of stale caches."""
        started_ns = [restart.until_ns for restart in self.context.restarts_by_end]
        wanted = WantedCheck(self.history, self.runner, self.context.end_ns, started_ns).run()
        answers = Answers(wanted, self.history.writes)
        services = []
        before: CronExplanation | None = None
        for sync in syncs:
            services.append(self._service(sync, before, answers))
            before = sync
        calls_ns = [write.called_ns for sync in syncs for write in sync.writes]
        calls_ns += [e.recv_ns for e in self.history.events if e.component == COMPONENT]
        if self.runner.deletes_pods:
            calls_ns += self.history.pods_deleted_ns  # one call each, before the Job's own
        self.timing = KeyTiming(
            tuple(services),
            tuple(calls_ns),
            (),
            tuple(self._pending(syncs, answers)),
            () if self.runner.polls else tuple(_seen(syncs)),
            () if self.runner.polls else tuple(self._behind(syncs)),
        )

    def _service(
        self, sync: CronExplanation, before: CronExplanation | None, answers: Answers
    ) -> Service:
        first = sync.writes[0]
        lack = answers.met_by(sync.writes)
        certain_ns = first.recv_ns if lack is None else lack.certain_ns
        earliest_ns = 0
        if before is not None:
            earliest_ns = before.writes[-1].recv_ns - CLOCK_SLACK_NS
        elif self._saw_begin():
            earliest_ns = self.history.cron_jobs[0].recv_ns
        return Service(
            first_write(self.history.key, first),
            first.called_ns,
            earliest_ns,
            certain_ns,
            timed=self.runner.polls or (lack is not None and lack.timed),
            judged=lack is not None and self._is_judged(lack, first.recv_ns),
        )

    def _is_judged(self, lack: Wanted, until_ns: int) -> bool:
        """Whether nothing that the record could not see may have held it up."""
        if self._walker.refusals(lack.since_ns) or self._walker.refusals(until_ns):
            return False
        ending_rv = self.context.namespaces_ending.get(self.history.namespace)
        if ending_rv is not None and self.history.cron_jobs[-1].rv >= ending_rv:
            return False
        return not self.context.interrupted(lack.since_ns, until_ns)

    def _pending(self, syncs: list[CronExplanation], answers: Answers) -> Iterator[PendingAction]:
        for lack in answers.unmet():
            until_ns = self.context.end_ns if lack.until_ns is None else lack.until_ns
            if self._is_reported(lack.kind, lack.subject) or not self._is_judged(lack, until_ns):
                continue
            missing = self._missing(lack)
            yield PendingAction(
                lack.certain_ns, missing, lack.timed or self.runner.polls, until_ns=lack.until_ns
            )
        last = syncs[-1] if syncs else None
        if last is not None and last.rest is not None:
            wrote_ns = max(last.writes, key=lambda write: write.index).recv_ns
            if cut_off(self.context, wrote_ns) is not None:
                return  # another process may have gone on with it otherwise
            at = last.writes[-1]
            subject = subject_of(last.rest.intent)
            why = "the sync that made the writes before has to go on with it"
            judged = self._judgement(last.rest.kind, Verdict.MISSING, at, subject, why)
            yield PendingAction(at.recv_ns, replace(judged, time_ns=self.context.end_ns))

    def _missing(self, lack: Wanted) -> Judgement:
        view = lack.cron_job
        if lack.slot_ns is not None:
            what = (
                f"{slot_text(lack.slot_ns, view)} and nothing stood against the Job {lack.subject}"
            )
        elif lack.kind is WriteKind.JOB_DELETE:
            what = f"the Job {lack.subject} was surplus history"
        else:
            what = "the status no longer told the state of the Jobs"
        why = f"{what}; the controller was woken at {time_text(lack.since_ns)}"
        if lack.slot_ns is not None:
            why += self._zone_text(view)
        ref = self._ref(view.uid)
        at_ns = lack.slot_ns or lack.since_ns
        return Judgement(
            CONTROLLER,
            ref,
            lack.kind.value,
            Verdict.MISSING,
            at_ns,
            str(lack.rv),
            lack.subject,
            why,
        )

    def _behind(self, syncs: list[CronExplanation]) -> Iterator[Behind]:
        """The syncs that only caches explain which lack what was old when they wrote."""
        crons, jobs = self.history.cron_jobs, self.history.jobs
        for sync in syncs:
            first = sync.writes[0]
            shown_ns = jobs[sync.jobs_cut - 1].recv_ns if sync.jobs_cut else 0
            began_ns = max(sync.cron_job.recv_ns, shown_ns)
            position = sync.cron_job.position + 1
            lacking: list[tuple[str, Revision[JobView] | Revision[CronJobView]]] = [
                *(("jobs", revision) for revision in jobs[sync.jobs_cut : sync.jobs_cut + 1]),
                *(("cronjobs", revision) for revision in crons[position : position + 1]),
            ]
            for stream, revision in lacking:
                if revision.shown_ns <= first.recv_ns - INFORMER_LAG_NS:
                    key = first_write(self.history.key, first)
                    yield Behind(
                        key, began_ns, first.recv_ns, stream, revision.rv, revision.shown_ns
                    )

    # Judgements.

    def _ref(self, uid: str) -> ObjectRef:
        return ObjectRef("CronJob", self.history.namespace, self.history.name, uid)

    def _uid(self) -> str:
        return self.history.cron_jobs[-1].view.uid if self.history.cron_jobs else ""

    def _add(
        self,
        write: Write,
        verdict: Verdict,
        why: str,
        fields: tuple[FieldDifference, ...] = (),
        sync: CronExplanation | None = None,
        reason: Reason | None = None,
    ) -> None:
        if write.kind is WriteKind.JOB_CREATE and verdict in (Verdict.EARLY, Verdict.EXTRA):
            live = self.history.live_cron_job(write.rv)
            why += "" if live is None else self._zone_text(live.view)
        judged = self._judgement(write.kind, verdict, write, write.subject, why)
        if sync is not None:
            judged = replace(
                judged,
                lag_observations=sync.unseen,
                lag_ns=sync.lag_ns,
                assumptions=sync.assumptions,
            )
        self.found.append(replace(judged, fields=fields, reason=reason))

    def _zone_text(self, view: CronJobView) -> str:
        """In which zone the schedule was read, where it names none."""
        if view.spec.time_zone or "TZ=" in view.spec.schedule:
            return ""
        return (
            f"; its schedule names no zone and is read in {self.runner.process_zone.name}, which "
            "--process-zone changes"
        )

    def _judgement(
        self, kind: WriteKind, verdict: Verdict, write: Write, subject: str, why: str
    ) -> Judgement:
        live = self.history.live_cron_job(write.rv)
        uid = live.view.uid if live is not None else self._uid()
        ref = self._ref(uid)
        return Judgement(
            CONTROLLER, ref, kind.value, verdict, write.recv_ns, str(write.rv), subject, why
        )


def _in_the_foreground(history: CronHistory) -> dict[int, str]:
    """Deletions that none of this controller's can be: it never asks for the foreground."""
    found: dict[int, str] = {}
    for write in history.writes:
        if write.kind is not WriteKind.JOB_DELETE or write.job is None:
            continue
        before = write.job.previous
        held = () if before is None else before.view.finalizers
        if FOREGROUND in write.job.view.finalizers and FOREGROUND not in held:
            found[write.index] = (
                f"the deletion set the finalizer {FOREGROUND}, which the CronJob controller never "
                "asks for: a user's, or the TTL controller's"
            )
    return found


def _seen(syncs: list[CronExplanation]) -> Iterator[Seen]:
    """How far the informer had got, where a sync leaves no doubt."""
    for sync in syncs:
        if any(write.cron_job is not None for write in sync.writes):
            # A PUT succeeds on this revision only.
            yield Seen(sync.writes[0].recv_ns, "cronjobs", sync.cron_job.rv)


def _posted(job: Revision[JobView]) -> Mapping[str, object]:
    """What of a Job's body its creator posted, and the server's additions."""
    view, evidence = job.view, job.evidence
    owners = [
        {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.name,
            "uid": owner.uid,
            "controller": owner.controller,
            "blockOwnerDeletion": owner.blocks_deletion,
        }
        for owner in evidence.owners()
    ]
    return {
        "metadata": {
            "labels": view.labels,
            "annotations": view.annotations,
            "ownerReferences": owners,
        },
        "spec": evidence.pod_spec(),
    }
