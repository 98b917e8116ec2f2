"""Judges everything that happened to the CronJobs of a record.

`judge_cron_jobs` takes the lines of a watch log and gives one judgement per action of the CronJob
controller: every Job that it created or deleted, every status that it wrote, every Event, and every
action that its rules demanded and that did not happen. Nothing else is needed: no audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tracekit.controllers.cronjob.actions import CreateJob, DeleteJob, Intent, UpdateCronJobStatus
from tracekit.controllers.cronjob.body import scheduled_ns_of_name
from tracekit.cron.gotime import rfc3339
from tracekit.diff.foreign import CONTROLLER_MANAGERS
from tracekit.diff.job_body import job_body_differences
from tracekit.diff.pod_body import FieldDifference
from tracekit.diff.verdict import Judgement, ObjectRef, Verdict
from tracekit.kube.cronjob_views import CronJobStatus
from tracekit.kube.timestamps import NS_PER_S, format_rfc3339
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
from tracekit.replay.cron_runner import CronRunner
from tracekit.replay.cron_surroundings import BlindTime, CronSurroundings
from tracekit.replay.cron_walk import CronExplanation, CronWalk

CONTROLLER = "cronjob"
CRON_JOB_ACTIONS = ("job-create", "job-delete", "status-update", "event")
#: Streams arrive this far apart at most.
ARRIVAL_NS = 5 * NS_PER_S
_MANUAL = "cronjob.kubernetes.io/instantiate"


def judge_cron_jobs(
    rows: Iterable[WatchRow], runner: CronRunner, surroundings: CronSurroundings
) -> list[Judgement]:
    """Judge every CronJob of a watch log, by time."""
    found: list[Judgement] = []
    histories = cron_histories(rows)
    writes_ns = sorted(write.recv_ns for history in histories for write in history.writes)
    for history in histories:
        found += judge_cron_job(history, runner, surroundings, writes_ns)
    found.sort(key=lambda j: (j.time_ns, j.object, j.resource_version, j.action, j.subject))
    return found


def judge_cron_job(
    history: CronHistory,
    runner: CronRunner,
    surroundings: CronSurroundings,
    writes_ns: Sequence[int] = (),
) -> list[Judgement]:
    """Judge one CronJob; `writes_ns` is when the controller's writes to all of them were seen."""
    return _Judge(history, runner, surroundings, writes_ns).run()


@dataclass(slots=True)
class _Judge:
    history: CronHistory
    runner: CronRunner
    surroundings: CronSurroundings
    writes_ns: Sequence[int]
    found: list[Judgement] = field(default_factory=list)

    def run(self) -> list[Judgement]:
        foreign = dict(self._foreign())
        walk = CronWalk(self.history, self.runner, self.surroundings.ends())
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
            if write.kind is WriteKind.JOB_CREATE:
                evidence = _foreign_creation(write)
            elif write.kind is WriteKind.STATUS_UPDATE and write.cron_job is not None:
                evidence = _other_manager(write.cron_job.raw, write.cron_job.previous, "status")
            if evidence is not None:
                yield write.index, evidence

    def _deletion_evidence(self, write: CronWrite) -> str | None:
        """Who may have deleted a Job that no sync of the controller deletes."""
        assert write.job is not None  # noqa: S101 - deletions have one
        job = write.job.view
        told = f"Deleted job {job.name}"
        if any(e.reason == "SuccessfulDelete" and e.message == told for e in self.history.events):
            return None
        for namespace, since_ns in self.surroundings.terminating:
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

    def _explained(
        self, write: CronWrite, explanation: CronExplanation, late: dict[str, Duty]
    ) -> None:
        intent = explanation.intents[write.index]
        fields: tuple[FieldDifference, ...] = ()
        verdict = Verdict.MATCH if not explanation.unseen else Verdict.MATCH_LAGGED
        why = _why(write, intent, explanation)
        if isinstance(intent, CreateJob) and write.job is not None:
            fields = tuple(job_body_differences(intent, write.job.raw))
            duty = late.get(intent.name)
            if fields:
                verdict = Verdict.DIFFERENT
            elif duty is not None and write.recv_ns > duty.deadline_ns:
                verdict = Verdict.LATE
                why = f"{why}; {_lateness(write, duty)}"
        self._add(write, verdict, why, fields=fields, explanation=explanation)

    def _unexplained(self, write: CronWrite, diagnosis: CronExplanation | None) -> None:
        if write.kind is WriteKind.JOB_DELETE:
            evidence = self._deletion_evidence(write)
            if evidence is not None:
                self._add(write, Verdict.FOREIGN, evidence)
                return
        blind = self.surroundings.blind_at(write.recv_ns, self.runner.bound_ns)
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
        seen_rv = self.surroundings.seen_rv
        near = write.recv_ns > self.surroundings.end_ns - ARRIVAL_NS
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
                f"its slot {_time(slot_ns)} was {ahead_s:.3f} s ahead when the Job was seen at "
                f"{_time(write.recv_ns)}: a start is possible from the slot on"
            )
            self._add(write, Verdict.EARLY, why, explanation=diagnosis)
        elif wanted:
            assert write.job is not None  # noqa: S101 - creations have one
            fields = [FieldDifference("metadata.name", wanted[0].name, write.subject)]
            fields += job_body_differences(wanted[0], write.job.raw)
            why = f"{_due(diagnosis)}: the Job of that slot is {wanted[0].name}"
            self._add(write, Verdict.DIFFERENT, why, tuple(fields), diagnosis)
        else:
            reason = diagnosis.result.reason or _nothing_due(view.base_ns, upcoming_ns)
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
            expected = _with_observed_refs(expected, observed)
        fields = tuple(_status_differences(expected, observed))
        if fields:
            self._add(write, Verdict.DIFFERENT, "the rules give another status", fields, diagnosis)
        else:
            self._add(
                write, Verdict.MATCH, _why(write, changed[-1], diagnosis), explanation=diagnosis
            )

    def _lacking(self, write: CronWrite, intent: Intent, diagnosis: CronExplanation) -> None:
        subject = intent.name if isinstance(intent, CreateJob | DeleteJob) else "status"
        action = "job-create" if isinstance(intent, CreateJob) else "job-delete"
        why = (
            f"{_due(diagnosis)}: the sync that wrote the status at {_time(write.recv_ns)} must "
            f"have {'created' if isinstance(intent, CreateJob) else 'deleted'} the Job {subject} "
            "before, and the record has no such write"
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
                f"slot {_time(duty.slot_ns)} was due (last run or creation "
                f"{_time(duty.cron_job.base_ns)}, schedule {duty.cron_job.spec.schedule!r}) and "
                f"nothing stood against the Job {duty.subject}"
            )
        elif duty.kind is WriteKind.JOB_DELETE:
            what = f"the Job {duty.subject} was surplus history"
        else:
            what = "the status no longer told the state of the Jobs"
        why = (
            f"{what}; nothing of it happened until {_time(duty.deadline_ns)}, {bound_s:.0f} s "
            f"after the controller was woken at {_time(duty.trigger_ns)}"
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
            *self.surroundings.blind,
            *(
                BlindTime(since_ns, self.surroundings.end_ns, "the namespace terminates")
                for namespace, since_ns in self.surroundings.terminating
                if namespace == self.history.namespace
            ),
        ]
        return DutyCheck(
            self.history, self.runner, self.surroundings.end_ns, blind, self.writes_ns
        ).run()

    def _event(self, event: CronEvent, *, is_explained: bool) -> None:
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


def _foreign_creation(write: CronWrite) -> str | None:
    assert write.job is not None  # noqa: S101 - creations have one
    if write.job.view.annotations.get(_MANUAL) == "manual":
        return f"the Job's annotation {_MANUAL} says manual: kubectl create job --from"
    return _other_manager(write.job.raw, None, "")


def _other_manager(raw: object, previous: object, subresource: str) -> str | None:
    """Who wrote a revision if managedFields say that it was not the controller manager."""
    entries = _managers(raw)
    before = _managers(getattr(previous, "raw", None))
    changed = [entry for entry in entries if entry not in before]
    relevant = [entry for entry in changed if entry[1] in ("", subresource)]
    lost = {e[0] for e in before} - {e[0] for e in entries}
    if not relevant or any(entry[0] in CONTROLLER_MANAGERS for entry in relevant):
        return None
    if lost & CONTROLLER_MANAGERS:
        return None
    names = ", ".join(sorted({entry[0] for entry in relevant}))
    return f"managedFields name {names} as the writer of this revision"


def _managers(raw: object) -> list[tuple[str, str, str]]:
    meta = raw.get("metadata") if isinstance(raw, dict) else None
    entries = meta.get("managedFields") if isinstance(meta, dict) else None
    return [
        (str(e.get("manager")), str(e.get("subresource") or ""), str(e.get("time")))
        for e in entries or ()
        if isinstance(e, dict)
    ]


def _status_differences(
    expected: CronJobStatus, observed: CronJobStatus
) -> Iterator[FieldDifference]:
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


def _with_observed_refs(expected: CronJobStatus, observed: CronJobStatus) -> CronJobStatus:
    """The expected status with the uids that only the server could give."""
    by_name = {ref.name: ref for ref in observed.active}
    return replace(expected, active=tuple(by_name.get(r.name, r) for r in expected.active))


def _why(write: CronWrite, intent: Intent, explanation: CronExplanation) -> str:
    if isinstance(intent, CreateJob):
        delay_s = (write.recv_ns - intent.scheduled_ns) / NS_PER_S
        return f"{_due(explanation)}; started {delay_s:.3f} s after it"
    if isinstance(intent, DeleteJob):
        spec = explanation.cron_job.view.spec
        return (
            f"surplus history or replaced: successfulJobsHistoryLimit {spec.successful_limit}, "
            f"failedJobsHistoryLimit {spec.failed_limit}, concurrencyPolicy "
            f"{spec.concurrency_policy}"
        )
    before = explanation.cron_job.view.status
    after = intent.status if isinstance(intent, UpdateCronJobStatus) else before
    told = sorted({e.reason for e in explanation.events})
    return (
        f"active {len(before.active)} -> {len(after.active)}, last run "
        f"{_time(after.last_schedule_ns)}" + (f" ({', '.join(told)})" if told else "")
    )


def _due(explanation: CronExplanation) -> str:
    view = explanation.cron_job.view
    slot_ns = explanation.result.due_ns
    if slot_ns is None:
        return f"no slot was due (last run or creation {_time(view.base_ns)})"
    return (
        f"slot {_time(slot_ns)} was due (last run or creation {_time(view.base_ns)}, schedule "
        f"{view.spec.schedule!r})"
    )


def _nothing_due(base_ns: int, upcoming_ns: int | None) -> str:
    upcoming = "never" if upcoming_ns is None else _time(upcoming_ns)
    return f"no slot was due (last run or creation {_time(base_ns)}, next slot {upcoming})"


def _lateness(write: CronWrite, duty: Duty) -> str:
    return (
        f"it was possible from {_time(duty.trigger_ns)} on and had to happen by "
        f"{_time(duty.deadline_ns)}, {(write.recv_ns - duty.deadline_ns) / NS_PER_S:.3f} s before"
    )


def _time(at_ns: int | None) -> str:
    return "never" if at_ns is None else rfc3339(at_ns)
