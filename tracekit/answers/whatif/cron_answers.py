"""The answer about each CronJob: its class, whether it is proved, which rows make the difference.

The classes are the Jobs' own. For a CronJob `outcome` is another number of ticks that were started,
missed or skipped, `timing` the same number started, but one of them more than 2 s apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from tracekit.answers.whatif.answers import (
    SAME_TIME_S,
    Cause,
    Drawn,
    JobAnswer,
    RowSearch,
    severity_of,
)
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.cron_changes import CronSetting, cron_change
from tracekit.answers.whatif.cron_course import (
    CronCourse,
    RecordedCronJob,
    Start,
    recorded_cron_jobs,
)
from tracekit.answers.whatif.cron_proof import CronKeyProof
from tracekit.answers.whatif.steps import Difference, Proof, Severity
from tracekit.base.cron.zones import Zone
from tracekit.base.kube.cronjob_views import ALLOW, CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.cron_keys import CronReplay
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.run_context import RunContext
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import Era
from tracekit.versions.rows import Row, differing_rows, with_rows

#: Starts are whole seconds of the API, of the tick and of the Job both.
_SAME_TIME_NS = int(SAME_TIME_S * NS_PER_S)


class CronAnswer(Struct, frozen=True):
    """What would have become of one CronJob."""

    cron_job: CronJobView
    recorded: CronCourse
    verdict: str
    proved: bool = False
    extrapolated: bool = False
    baseline: CronCourse | None = None
    target: CronCourse | None = None
    because: tuple[Cause, ...] = ()
    #: Why it is uncalibrated or unknowable; empty for the others.
    why: str = ""
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    drawn: Drawn | None = None

    @property
    def uid(self) -> str:
        """The CronJob's."""
        return self.cron_job.uid

    @property
    def key(self) -> str:
        """Its name, as users write it."""
        return self.cron_job.key

    @property
    def fork(self) -> Difference | None:
        """The first step after which the record is no guide."""
        return next((d for d in self.differences if d.fork), None)

    @property
    def only(self) -> tuple[tuple[Start, ...], tuple[Start, ...]]:
        """The starts of one side alone: the old rules', the new rules'."""
        if self.target is None:
            return (), ()
        return starts_apart(self.baseline or self.recorded, self.target)


def cron_difference(old: CronCourse, new: CronCourse) -> Severity:
    """How far two courses of one CronJob are apart."""
    if old.counts != new.counts:
        return Severity.OUTCOME
    pairs = zip(old.starts, new.starts, strict=False)
    if any(abs(left.started_ns - right.started_ns) > _SAME_TIME_NS for left, right in pairs):
        return Severity.TIMING
    return Severity.SAME


def cron_misfit(recorded: CronCourse, baseline: CronCourse, bound_ns: int) -> str:
    """The first thing in which the model's CronJob is not the recorded one; empty if it is."""
    for name, count in recorded.counts.items():
        modelled = baseline.counts[name]
        if count != modelled:
            return f"{count} {name} in the record, {modelled} in the model"
    for left, right in zip(recorded.starts, baseline.starts, strict=False):
        apart_ns = abs(left.started_ns - right.started_ns)
        if apart_ns > bound_ns:
            return f"{left.job} starts {apart_ns / NS_PER_S:.0f} s apart in the model"
    return ""


def starts_apart(old: CronCourse, new: CronCourse) -> tuple[tuple[Start, ...], tuple[Start, ...]]:
    """The ticks that one of two courses started and the other did not.

    Where both drift (`@every` counts from the last start), as many starts are the same as both
    have, whatever ticks they are for.
    """
    dues = [{start.due_ns for start in course.starts} for course in (old, new)]
    sides = []
    for course, others in ((old, dues[1]), (new, dues[0])):
        alone = [start for start in course.starts if start.due_ns not in others]
        more = max(0, len(course.starts) - len(others))
        drifts = len(dues[0] & dues[1]) * 2 < min(len(dues[0]), len(dues[1]))
        sides.append(tuple(alone[len(alone) - more :] if drifts else alone))
    return sides[0], sides[1]


class CronProver:
    """Answers what can be proved of each CronJob, and looks for the rows that make a difference."""

    def __init__(
        self,
        recorded: Era,
        target: Era,
        run_context: RunContext,
        settings: tuple[CronSetting, ...] = (),
        *,
        zone: Zone,
        causes: bool = True,
    ) -> None:
        self.causes = causes
        self.recorded = recorded
        self.target = target
        self.run_context = run_context
        self.zone = zone
        self.ours = CronRunner(CronJobEra.of(recorded), zone)
        self.search = RowSearch(differing_rows(recorded, target), settings)
        self.change = cron_change(settings)
        self._runners: dict[frozenset[Row], CronRunner] = {}

    def answers(self, replay: CronReplay) -> Iterator[CronAnswer]:
        """What the syncs of one name prove of each of its CronJobs."""
        proofs = self._proofs(replay, frozenset())
        for record in recorded_cron_jobs(replay.history, self.run_context, self.ours):
            uid = record.cron_job.uid
            proof = proofs.get(uid) or Proof(uid)
            hidden = _hidden(record, self.run_context)
            if hidden:
                yield CronAnswer(
                    record.cron_job, record.course, "unknowable", reason="gap", why=hidden
                )
                continue
            answer = _answer(record, proof)
            if self.causes and proof.differences and not proof.lost:

                def measured(rows: frozenset[Row], uid: str = uid) -> tuple[bool, int] | None:
                    found = self._proofs(replay, rows).get(uid)
                    return None if found is None else found.measure

                because = self.search.because(proof.measure, measured)
                answer = replace(answer, because=because)
            yield answer

    def _proofs(self, replay: CronReplay, set_back: frozenset[Row]) -> dict[str, Proof]:
        runner = self._runners.get(set_back)
        if runner is None:
            era = with_rows(self.target, self.recorded, set_back)
            runner = self._runners[set_back] = CronRunner(CronJobEra.of(era), self.zone)
        return CronKeyProof(replay, self.run_context, self.ours, runner, self.change).run()


def _hidden(record: RecordedCronJob, run_context: RunContext) -> str:
    """Why nothing follows from what the CronJob did not do; empty if it does."""
    coverage, namespace = run_context.coverage, record.cron_job.namespace
    for stream in ("cronjobs", "jobs") if coverage.spans else ():
        if not coverage.watches(stream, namespace):
            return f"nobody watched {stream} where it ran: nothing tells what it did"
    return ""


def _answer(record: RecordedCronJob, proof: Proof) -> CronAnswer:
    found = CronAnswer(record.cron_job, record.course, "same", differences=tuple(proof.differences))
    if proof.lost:
        return replace(found, verdict="unknowable", reason=proof.reason, why=proof.lost)
    fork = proof.fork
    if fork is not None:
        why = f"from {fork.text} on, only a run of the model can tell"
        return replace(found, verdict="uncalibrated", reason="fork", why=why)
    verdict = proof.severity.name.lower()
    return replace(found, verdict=verdict, proved=True, target=record.course)


def hangs_on_jobs(answer: CronAnswer, jobs: list[JobAnswer]) -> bool:
    """Whether what the other rules make of its Jobs can decide what the CronJob starts."""
    if answer.cron_job.spec.concurrency_policy == ALLOW:
        return False
    return any(severity_of(job.verdict) > Severity.FIELDS or job.fork is not None for job in jobs)


def with_job_causes(answer: CronAnswer, jobs: list[JobAnswer]) -> tuple[Cause, ...]:
    """The rows that its own steps proved, and those that move its Jobs where it hangs on them."""
    found = dict.fromkeys(answer.because)
    if hangs_on_jobs(answer, jobs):
        for job in jobs:
            if severity_of(job.verdict) > Severity.FIELDS:
                found |= dict.fromkeys(job.because)
    return tuple(found)


def not_started(job: JobAnswer, cron_job: CronAnswer) -> JobAnswer:
    """The answer about a Job that its CronJob does not start by the other rules."""
    return replace(
        job,
        verdict="outcome",
        proved=False,
        target=JobCourse(None, "", 0, 0, 0, None),
        because=cron_job.because,
        why=f"CronJob {cron_job.key} does not start it",
        reason="not-started",
        drawn=cron_job.drawn,
    )
