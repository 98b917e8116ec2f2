"""Judges everything that happened to the CronJobs of a record.

`judge_cron_jobs` takes the lines of a watch log and gives one judgement per action of the CronJob
controller: every Job that it created or deleted, every status that it wrote, every Event, and every
action that its rules demanded and that did not happen. Nothing else is needed: no audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tracekit.compare.fields import FieldDifference
from tracekit.compare.job_body import job_body_differences
from tracekit.controllers.cronjob.actions import CreateJob, DeleteJob, Intent, UpdateCronJobStatus
from tracekit.controllers.cronjob.body import scheduled_ns_of_name
from tracekit.kube.timestamps import NS_PER_S
from tracekit.replay.cron_duties import Duty, DutyCheck
from tracekit.replay.cron_events import explain_events
from tracekit.replay.cron_history import (
    CronEvent,
    CronHistory,
    CronWrite,
    WatchRow,
    WriteKind,
    cron_histories,
)
from tracekit.replay.cron_reasons import (
    due_text,
    foreign_creation,
    lateness,
    nothing_due,
    other_manager,
    reason_of,
    status_differences,
    time_text,
    with_observed_refs,
)
from tracekit.replay.cron_run_context import BlindTime, CronRunContext
from tracekit.replay.cron_runner import CronRunner
from tracekit.replay.cron_walk import CronExplanation, CronWalk
from tracekit.replay.key_facts import EVENT_LAG_NS
from tracekit.verdict import Judgement, ObjectRef, Reason, Verdict

CONTROLLER = "cronjob"
#: What the controller is called by its user name or agent.
CONTROLLER_NAME = "cronjob-controller"
#: Streams arrive this far apart at most.
ARRIVAL_NS = 5 * NS_PER_S


def judge_cron_jobs(
    rows: Iterable[WatchRow], runner: CronRunner, run_context: CronRunContext
) -> list[Judgement]:
    """Judge every CronJob of a watch log, by time."""
    found: list[Judgement] = []
    histories = cron_histories(rows)
    writes_ns = sorted(write.recv_ns for history in histories for write in history.writes)
    for history in histories:
        found += judge_cron_job(history, runner, run_context, writes_ns)
    found.sort(key=lambda j: (j.time_ns, j.object, j.resource_version, j.action, j.subject))
    return found


def judge_cron_job(
    history: CronHistory,
    runner: CronRunner,
    run_context: CronRunContext,
    writes_ns: Sequence[int] = (),
) -> list[Judgement]:
    """Judge one CronJob; `writes_ns` is when the controller's writes to all of them were seen."""
    return _Judge(history, runner, run_context, writes_ns).run()


@dataclass(slots=True)
class _Judge:
    history: CronHistory
    runner: CronRunner
    run_context: CronRunContext
    writes_ns: Sequence[int]
    found: list[Judgement] = field(default_factory=list)

    def run(self) -> list[Judgement]:
        foreign = dict(self._foreign())
        walk = CronWalk(self.history, self.runner, self.run_context.ends(), self.writes_ns)
        walk.walk(frozenset(foreign))
        for index, evidence in foreign.items():
            self._add(self.history.writes[index], Verdict.FOREIGN, evidence)
        duties = self._duties()
        late = {duty.subject: duty for duty in duties if duty.slot_ns is not None}
        for explanation in walk.explanations:
            for write in explanation.writes:
                self._explained(write, explanation, late)
        for write, diagnosis in walk.unexplained:
            self._unexplained(write, diagnosis)
        for duty in duties:
            created = any(
                write.kind is duty.kind and write.subject == duty.subject
                for write in self.history.writes
                if write.kind is WriteKind.JOB_CREATE
            )
            if not created:
                self._missing(duty)
        for event, is_explained in explain_events(self.history, self.runner, walk.explanations):
            self._event(event, is_explained=is_explained)
        return self.found

    # Who else may have written.

    def _foreign(self) -> Iterator[tuple[int, str]]:
        for write in self.history.writes:
            evidence = None
            actor = write.actor
            if actor is not None and actor.controller is not None:
                if actor.controller != CONTROLLER_NAME:
                    yield write.index, f"the audit log names {actor} as the writer"
                continue
            if write.kind is WriteKind.JOB_CREATE:
                evidence = foreign_creation(write)
            elif write.kind is WriteKind.STATUS_UPDATE and write.cron_job is not None:
                evidence = other_manager(write.cron_job.raw, write.cron_job.previous, "status")
            if evidence is not None:
                yield write.index, evidence

    def _deletion_evidence(self, write: CronWrite) -> str | None:
        """Who may have deleted a Job that no sync of the controller deletes."""
        assert write.job is not None  # noqa: S101 - deletions have one
        job = write.job.view
        told = f"Deleted job {job.name}"
        if any(e.reason == "SuccessfulDelete" and e.message == told for e in self.history.events):
            return None
        for namespace, since_ns in self.run_context.terminating:
            if namespace == job.namespace and since_ns <= write.recv_ns + NS_PER_S:
                return "its namespace terminates: the namespace controller deletes the Job"
        owner = job.controller
        live = self.history.live_cron_job(write.rv)
        if live is None or owner is None or live.view.uid != owner.uid:
            return "its CronJob is gone: the garbage collector deletes the Job"
        if live.view.deleted_ns is not None:
            return "its CronJob is being deleted: the garbage collector deletes the Job"
        if job.spec.ttl_s is not None and job.status.finished is not None:
            return "the Job has a ttlSecondsAfterFinished: the TTL controller deletes it"
        return (
            "no Event SuccessfulDelete of the CronJob controller names the Job, and none of its "
            "rules asks for the deletion: a user's or another controller's"
        )

    # Verdicts.

    def _body_differences(
        self, intent: CreateJob, raw: Mapping[str, Any]
    ) -> tuple[FieldDifference, ...]:
        return tuple(job_body_differences(intent, raw, self.runner.era.dropped_job_fields))

    def _explained(
        self, write: CronWrite, explanation: CronExplanation, late: dict[str, Duty]
    ) -> None:
        intent = explanation.intents[write.index]
        fields: tuple[FieldDifference, ...] = ()
        verdict = Verdict.MATCH if not explanation.unseen else Verdict.MATCH_LAGGED
        why = reason_of(write, intent, explanation)
        if isinstance(intent, CreateJob) and write.job is not None:
            fields = self._body_differences(intent, write.job.raw)
            duty = late.get(intent.name)
            if fields:
                verdict = Verdict.DIFFERENT
            elif duty is not None and write.recv_ns > duty.deadline_ns:
                verdict = Verdict.LATE
                why = f"{why}; {lateness(write, duty)}"
        self._add(write, verdict, why, fields=fields, explanation=explanation)

    def _unexplained(self, write: CronWrite, diagnosis: CronExplanation | None) -> None:
        own = write.actor is not None and write.actor.controller == CONTROLLER_NAME
        if write.kind is WriteKind.JOB_DELETE and not own:
            evidence = self._deletion_evidence(write)
            if evidence is not None:
                self._add(write, Verdict.FOREIGN, evidence)
                return
        blind = self.run_context.blind_at(write.recv_ns, self.runner.bound_ns)
        if blind is not None:
            self._add(write, Verdict.UNKNOWABLE, f"no cut explains it, but {blind.why}")
        elif self._may_lack_company(write):
            why = "no cut explains it, but the record of the other kind ends before it"
            self._add(write, Verdict.UNKNOWABLE, why)
        elif diagnosis is None:
            self._add(write, Verdict.UNKNOWABLE, "the record has no earlier state of the CronJob")
        elif write.kind is WriteKind.JOB_CREATE:
            self._bad_creation(write, diagnosis)
        elif write.kind is WriteKind.STATUS_UPDATE:
            self._bad_status(write, diagnosis)
        else:
            why = "the history limits and the concurrency policy keep this Job"
            self._add(write, Verdict.EXTRA, why)

    def _may_lack_company(self, write: CronWrite) -> bool:
        """Whether the record ends so soon after that not everything before it arrived."""
        seen_rv = self.run_context.seen_rv
        near = write.recv_ns > self.run_context.end_ns - ARRIVAL_NS
        return near and seen_rv is not None and write.rv > seen_rv

    def _bad_creation(self, write: CronWrite, diagnosis: CronExplanation) -> None:
        """A Job that no cut starts: of another name, too early, or not to be started at all."""
        wanted = [i for i in diagnosis.result.intents if isinstance(i, CreateJob)]
        era, view = self.runner.era, diagnosis.cron_job.view
        slot_ns = scheduled_ns_of_name(write.subject, self.history.name, era.controller)
        upcoming_ns = self.runner.next_slot_ns(view, write.recv_ns)
        for taken in diagnosis.writes:
            if taken is write:
                # The start itself is right: what its sync lacks is reported where it is missing.
                self._explained(write, diagnosis, {})
                return
        if slot_ns is not None and slot_ns > write.recv_ns and slot_ns == upcoming_ns:
            ahead_s = (slot_ns - write.recv_ns) / NS_PER_S
            why = (
                f"its slot {time_text(slot_ns)} was {ahead_s:.3f} s ahead when the Job was seen at "
                f"{time_text(write.recv_ns)}: a start is possible from the slot on"
            )
            self._add(write, Verdict.EARLY, why, explanation=diagnosis)
        elif wanted:
            assert write.job is not None  # noqa: S101 - creations have one
            fields = [FieldDifference("metadata.name", wanted[0].name, write.subject)]
            fields += self._body_differences(wanted[0], write.job.raw)
            why = f"{due_text(diagnosis)}: the Job of that slot is {wanted[0].name}"
            self._add(write, Verdict.DIFFERENT, why, tuple(fields), diagnosis)
        else:
            reason = diagnosis.result.reason or nothing_due(view.base_ns, upcoming_ns)
            self._add(write, Verdict.EXTRA, f"no Job may start: {reason}", explanation=diagnosis)

    def _bad_status(self, write: CronWrite, diagnosis: CronExplanation) -> None:
        """A status that no cut writes; what else its sync lacks is reported beside it."""
        assert write.cron_job is not None  # noqa: S101 - status writes have one
        observed = write.cron_job.view.status
        lacking = [p for p in diagnosis.problems if p.kind is not WriteKind.STATUS_UPDATE]
        for problem in lacking:
            self._lacking(write, problem.intent, diagnosis)
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
                write,
                Verdict.MATCH,
                reason_of(write, changed[-1], diagnosis),
                explanation=diagnosis,
            )

    def _lacking(self, write: CronWrite, intent: Intent, diagnosis: CronExplanation) -> None:
        subject = intent.name if isinstance(intent, CreateJob | DeleteJob) else "status"
        action = "job-create" if isinstance(intent, CreateJob) else "job-delete"
        verb = "created" if isinstance(intent, CreateJob) else "deleted"
        why = (
            f"{due_text(diagnosis)}: the sync that wrote the status at "
            f"{time_text(write.recv_ns)} must have {verb} the Job {subject} before, and the "
            "record has no such write"
        )
        if not self._told(action, subject):
            self.found.append(self._judgement(action, Verdict.MISSING, write, subject, why))

    def _told(self, action: str, subject: str) -> bool:
        """Whether that action was reported as missing before."""
        return any(
            j.verdict is Verdict.MISSING and (j.action, j.subject) == (action, subject)
            for j in self.found
            if subject != "status"
        )

    def _missing(self, duty: Duty) -> None:
        if self._told(duty.kind.value, duty.subject):
            return
        bound_s = (duty.deadline_ns - duty.trigger_ns) / NS_PER_S
        if duty.kind is WriteKind.JOB_CREATE and duty.slot_ns is not None:
            what = (
                f"slot {time_text(duty.slot_ns)} was due (last run or creation "
                f"{time_text(duty.cron_job.base_ns)}, schedule {duty.cron_job.spec.schedule!r}) "
                f"and nothing stood against the Job {duty.subject}"
            )
        elif duty.kind is WriteKind.JOB_DELETE:
            what = f"the Job {duty.subject} was surplus history"
        else:
            what = "the status no longer told the state of the Jobs"
        why = (
            f"{what}; nothing of it happened until {time_text(duty.deadline_ns)}, {bound_s:.0f} s "
            f"after the controller was woken at {time_text(duty.trigger_ns)}"
        )
        ref = ObjectRef("CronJob", self.history.namespace, self.history.name, duty.cron_job.uid)
        self.found.append(
            Judgement(
                CONTROLLER,
                ref,
                duty.kind.value,
                Verdict.MISSING,
                duty.slot_ns or duty.trigger_ns,
                str(duty.rv),
                duty.subject,
                why,
            )
        )

    def _duties(self) -> Sequence[Duty]:
        blind = [
            *self.run_context.owes_nothing,
            *(
                BlindTime(since_ns, self.run_context.end_ns, "the namespace terminates")
                for namespace, since_ns in self.run_context.terminating
                if namespace == self.history.namespace
            ),
        ]
        return DutyCheck(
            self.history, self.runner, self.run_context.end_ns, blind, self.writes_ns
        ).run()

    def _event(self, event: CronEvent, *, is_explained: bool) -> None:
        blind = None if is_explained else self.run_context.blind_at(event.recv_ns, EVENT_LAG_NS)
        if blind is not None:
            why = f"the sync that handed it out may lie in a time that was not seen: {blind.why}"
            ref = ObjectRef("CronJob", self.history.namespace, self.history.name, self._uid())
            judged = Judgement(
                CONTROLLER, ref, "event", Verdict.UNKNOWABLE, event.recv_ns, event.rv,
                event.reason, why, reason=Reason.GAP,
            )  # fmt: skip
            self.found.append(judged)
            return
        verdict = Verdict.MATCH if is_explained else Verdict.EXTRA
        why = (
            f"{event.reason}: handed out by a sync of that time"
            if is_explained
            else f"no sync of that time hands out {event.reason} {event.message!r}"
        )
        ref = ObjectRef("CronJob", self.history.namespace, self.history.name, self._uid())
        self.found.append(
            Judgement(CONTROLLER, ref, "event", verdict, event.recv_ns, event.rv, event.reason, why)
        )

    def _uid(self) -> str:
        return self.history.cron_jobs[-1].view.uid if self.history.cron_jobs else ""

    def _add(
        self,
        write: CronWrite,
        verdict: Verdict,
        why: str,
        fields: tuple[FieldDifference, ...] = (),
        explanation: CronExplanation | None = None,
    ) -> None:
        judged = self._judgement(write.kind.value, verdict, write, write.subject, why)
        if explanation is not None:
            judged = replace(judged, lag_observations=explanation.unseen, lag_ns=explanation.lag_ns)
        self.found.append(replace(judged, fields=fields))

    def _judgement(
        self, action: str, verdict: Verdict, write: CronWrite, subject: str, why: str
    ) -> Judgement:
        live = self.history.live_cron_job(write.rv)
        uid = live.view.uid if live is not None else self._uid()
        ref = ObjectRef("CronJob", self.history.namespace, self.history.name, uid)
        return Judgement(
            CONTROLLER, ref, action, verdict, write.recv_ns, str(write.rv), subject, why
        )
