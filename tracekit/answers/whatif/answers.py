"""The answer about each Job: its class, whether it is proved, which rows make the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tracekit.answers.whatif.causes import job_rows
from tracekit.answers.whatif.changes import Setting, job_change
from tracekit.answers.whatif.course import JobCourse, RecordedJob, recorded_jobs
from tracekit.answers.whatif.lanes import PodLane, recorded_lanes
from tracekit.answers.whatif.proof import JobProof, KeyProof
from tracekit.answers.whatif.shapes import Shape, kinds, shape
from tracekit.answers.whatif.steps import Difference, Severity
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.replay.history import History
from tracekit.check.replay.rerun import Rerunner
from tracekit.check.replay.run_context import RunContext
from tracekit.check.replay.search_state import KeyReplay
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules
from tracekit.versions.job_handlers import HandlerRules
from tracekit.versions.references import REFERENCES
from tracekit.versions.rows import Row, with_rows

if TYPE_CHECKING:
    from tracekit.answers.whatif.cron_answers import CronAnswer
    from tracekit.answers.whatif.cron_changes import CronSetting

#: Jobs that end so close together, in seconds, have ended at the same time: a batch period, and
#: the whole seconds that the API keeps.
SAME_TIME_S = 2.0

#: A Job that was not synced for so long has nothing to be done for it.
_FIRST_STEP_NS = 10 * NS_PER_S
#: So many sets of rows that explained other Jobs are tried before all rows are.
_KNOWN = 16

VERDICTS = ("same", "fields", "timing", "pods", "outcome", "uncalibrated", "unknowable")


class Named(Protocol):
    """What the user set, with its name."""

    @property
    def name(self) -> str:
        """As it is told."""


class Cause(NamedTuple):
    """What makes a difference: a row of the version table, or what the user set."""

    kind: str  # gate, behavior, constant, setting, flag
    name: str


class Drawn(NamedTuple):
    """In how many runs of the model an answer came out."""

    agree: int  # had this class
    of: int  # reproduced the record, and were not cut off


class Way(NamedTuple):
    """A course that some of the runs took."""

    course: JobCourse
    times: int


class JobAnswer(Struct, frozen=True):
    """What would have become of one Job."""

    job: JobView
    recorded: JobCourse
    verdict: str
    proved: bool = False
    extrapolated: bool = False
    baseline: JobCourse | None = None
    target: JobCourse | None = None
    because: tuple[Cause, ...] = ()
    #: Why it is uncalibrated or unknowable; empty for the others.
    why: str = ""
    #: Why in one word: censored, gap, before-record, …
    reason: str = ""
    differences: tuple[Difference, ...] = ()

    #: Of so many draws so many had this class; empty where it is proved.
    drawn: Drawn | None = None
    #: Where runs end differently, or with other pods or counts: each way, the most usual first.
    courses: tuple[Way, ...] = ()
    #: Where they are asked for: its pods by the old rules (else as recorded), and by the new ones.
    lanes: tuple[tuple[PodLane, ...], tuple[PodLane, ...]] | None = None

    @property
    def uid(self) -> str:
        """The Job's."""
        return self.job.uid

    @property
    def key(self) -> str:
        """Its name, as users write it."""
        return self.job.key

    @property
    def fork(self) -> Difference | None:
        """The first step after which the record is no guide."""
        return next((d for d in self.differences if d.fork), None)


@dataclass(slots=True)
class Answers:
    """What other rules would have done with the Jobs of a record."""

    recorded: Era
    target: Era
    settings: tuple[Setting, ...] = ()
    draws: int = 1
    jobs: list[JobAnswer] = field(default_factory=list)
    cron_jobs: list[CronAnswer] = field(default_factory=list)
    cron_settings: tuple[CronSetting, ...] = ()

    def counts(self) -> dict[str, int]:
        """Jobs by verdict."""
        found = dict.fromkeys(VERDICTS, 0)
        for answer in self.jobs:
            found[answer.verdict] += 1
        return found

    def cron_counts(self) -> dict[str, int]:
        """CronJobs by verdict."""
        found = dict.fromkeys(VERDICTS, 0)
        for answer in self.cron_jobs:
            found[answer.verdict] += 1
        return found

    @property
    def forking(self) -> list[JobAnswer]:
        """The Jobs whose pods' world is another from some step on."""
        return [answer for answer in self.jobs if answer.fork is not None]

    @property
    def calibrated(self) -> float | None:
        """Of the Jobs that fork, the share of which the model can tell; None if none forks."""
        forking = self.forking
        if not forking:
            return None
        return sum(1 for a in forking if a.verdict != "uncalibrated") / len(forking)

    def worst(self) -> Severity:
        """The worst class of all Jobs and CronJobs."""
        verdicts = [job.verdict for job in self.jobs] + [cron.verdict for cron in self.cron_jobs]
        return max(map(severity_of, verdicts), default=Severity.SAME)


def needs_model(answer: JobAnswer) -> bool:
    """Whether only a run of the model can tell how the Job goes on."""
    return answer.verdict == "uncalibrated" and answer.reason == "fork"


def severity_of(verdict: str) -> Severity:
    """The class of a verdict; what is not decided counts as none."""
    return Severity[verdict.upper()] if verdict.upper() in Severity.__members__ else Severity.SAME


def difference_class(recorded: JobCourse, target: JobCourse) -> Severity:
    """How far two courses of one Job are apart; FIELDS for counters only."""
    failed_otherwise = recorded.ended == "Failed" and recorded.reason != target.reason
    if recorded.ended != target.ended or failed_otherwise:
        return Severity.OUTCOME
    if recorded.pods != target.pods:
        return Severity.PODS
    left, right = recorded.finished_after_s, target.finished_after_s
    if left is not None and right is not None and abs(left - right) > SAME_TIME_S:
        return Severity.TIMING
    return Severity.SAME if recorded == target else Severity.FIELDS


class Prover:
    """Answers what can be proved of each key, and looks for the rows that make a difference."""

    def __init__(
        self,
        recorded: Era,
        target: Era,
        run_context: RunContext,
        settings: tuple[Setting, ...] = (),
        *,
        causes: bool = True,
        lanes: bool = False,
    ) -> None:
        self.causes = causes
        self.lanes = lanes
        self.recorded = recorded
        self.target = target
        self.settings = settings
        self.run_context = run_context
        self.search = RowSearch(job_rows(recorded, target), settings)
        ours, theirs = JobRules.of(recorded), JobRules.of(target)
        #: Whether the other rules would have been served at the very same times, and after as many
        #: retries as they ask for.
        self.same_queue = (
            _of_jobs(ours.handlers) == _of_jobs(theirs.handlers)
            and ours.retries == theirs.retries
            and _counts_retries(ours) == _counts_retries(theirs)
        )
        #: Whether by the other rules a race decides what is counted at a Job's end.
        self.overwrites_status = theirs.overwrites_status
        self._rules: dict[frozenset[Row], JobRules] = {}

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows in which the two eras differ."""
        return self.search.rows

    def answers(
        self, replay: KeyReplay, rerunner: Rerunner, wanted: Callable[[JobView], bool]
    ) -> Iterator[JobAnswer]:
        """What the steps of a key prove of each of its Jobs; the causes for those wanted.

        `rerunner` knows the key by the record's rules; all provers of a record can share it.
        """
        history = replay.history
        records = list(recorded_jobs(history))
        proofs = self._proofs(rerunner, replay, frozenset())
        for record in records:
            uid = record.job.uid
            proof = proofs.get(uid) or JobProof(uid)
            answer = self._answer(record, proof, history)
            if self.lanes and answer.verdict != "same":
                own = recorded_lanes(history, uid, self.run_context.end_ns)
                answer = replace(answer, lanes=(own, ()))
            if self.causes and wanted(record.job) and proof.differences and not proof.lost:
                answer = replace(answer, because=self._because(rerunner, replay, record.job, proof))
            yield answer

    def _proofs(
        self, rerunner: Rerunner, replay: KeyReplay, set_back: frozenset[Row]
    ) -> dict[str, JobProof]:
        rules = self._rules.get(set_back)
        if rules is None:
            rules = JobRules.of(with_rows(self.target, self.recorded, set_back))
            self._rules[set_back] = rules
        return KeyProof(rerunner, rules, job_change(rules, self.settings)).run(replay)

    def _answer(self, record: RecordedJob, proof: JobProof, history: History) -> JobAnswer:
        answer = JobAnswer(record.job, record.course, "same", differences=tuple(proof.differences))
        if proof.lost:
            return _undecided(answer, "unknowable", proof.reason, proof.lost)
        hidden = _hidden(record, self.run_context)
        if hidden:
            return _undecided(answer, "unknowable", "gap", hidden)
        fork = proof.fork
        if fork is not None:
            why = f"from {fork.text} on, only a run of the model can tell"
            return _undecided(answer, "uncalibrated", "fork", why)
        status = proof.status or record.job.status
        moves = _may_move(record, proof, history, self.run_context)
        if moves and (status.finished is None or record.job.status.finished is None):
            return _undecided(answer, "unknowable", "censored", moves)
        if record.listed and proof.steps == 0 and status.finished is None:
            why = "it was there before the record began, and no step of it was seen"
            return _undecided(answer, "unknowable", "before-record", why)
        target = record.course
        if proof.status is not None:
            target = JobCourse.of(proof.status, record.job.created_ns, record.course.pods)
        severity = max(difference_class(record.course, target), proof.severity)
        return JobAnswer(
            record.job,
            record.course,
            severity.name.lower(),
            proved=True,
            target=target,
            differences=tuple(proof.differences),
        )

    # Because.

    def _because(
        self, rerunner: Rerunner, replay: KeyReplay, job: JobView, proof: JobProof
    ) -> tuple[Cause, ...]:
        """The smallest set of rows which, set back, makes the worst difference go."""

        def measured(rows: frozenset[Row]) -> tuple[bool, int] | None:
            found = self._proofs(rerunner, replay, rows).get(job.uid)
            return None if found is None else found.measure

        # Which rows make a fork hangs on more than its text says.
        alike = kinds(proof.differences) if proof.fork is None else ()
        return self.search.because(proof.measure, measured, shape(job, proof.differences), alike)


def _of_jobs(handlers: HandlerRules) -> HandlerRules:
    """The rules by which Jobs are served: not when an orphan, whose Job is done with, is again."""
    return replace(handlers, orphan_finalizer_retried=True)


def _counts_retries(rules: JobRules) -> bool:
    """Whether the back-off limit is held against the queue's own count, as other rules fill it."""
    counting = rules.counting
    return not rules.tracking_always and not (
        counting.backoff_limit_ignores_active_pods or counting.backoff_limit_counts_failed_pods
    )


class RowSearch:
    """Looks for the rows that make what the steps show of one object after the other.

    Delta debugging over the rows that differ, or over a set that was enough for another object.
    """

    def __init__(self, rows: tuple[Row, ...], settings: Sequence[Named]) -> None:
        self.rows = rows
        self._settings = settings
        #: Sets of rows that were enough for others, the last one found last.
        self._known: dict[tuple[Row, ...], None] = {}
        #: What was found for an object of a shape, and the smallest set for one that differs alike.
        self._of_shape: dict[Shape, tuple[Cause, ...]] = {}
        self._of_kinds: dict[Shape, tuple[Row, ...]] = {}

    def because(
        self,
        worst: tuple[bool, int],
        measured: Callable[[frozenset[Row]], tuple[bool, int] | None],
        of_shape: Shape = (),
        of_kinds: Shape = (),
    ) -> tuple[Cause, ...]:
        """The smallest set; `measured` says how bad the steps look with some rows set back.

        For all of one shape it is looked for once. What was the smallest for an object whose steps
        differ alike is tried first, and taken if it is enough.
        """
        found = self._of_shape.get(of_shape)
        if found is None:
            found = self._found(worst, measured, of_kinds)
            if of_shape:
                self._of_shape[of_shape] = found
        return found

    def _found(
        self,
        worst: tuple[bool, int],
        measured: Callable[[frozenset[Row]], tuple[bool, int] | None],
        of_kinds: Shape,
    ) -> tuple[Cause, ...]:
        def gone(rows: Sequence[Row]) -> bool:
            if not rows:
                return False
            found = measured(frozenset(rows))
            return found is None or found < worst

        alike = self._of_kinds.get(of_kinds, ())
        if gone(alike):
            return tuple(Cause(*row) for row in alike)
        start = next((rows for rows in self._known if gone(rows)), None)
        if start is None:
            if not gone(self.rows):
                return tuple(Cause("setting", setting.name) for setting in self._settings)
            start = self.rows
        found = tuple(smallest(start, gone))
        if of_kinds:
            self._of_kinds[of_kinds] = found
        self._known.pop(found, None)
        self._known[found] = None
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]
        return tuple(Cause(*row) for row in found)


def smallest(rows: Sequence[Row], enough: Callable[[Sequence[Row]], bool]) -> list[Row]:
    """A smallest part of `rows` that is still enough: no row of it can be left out.

    Of rows that each would do, one stays that upstream discussed.
    """
    kept = sorted(rows, key=lambda row: (row.kind, row.name) in REFERENCES)
    size = max(1, len(kept) // 2)
    while True:
        place = 0
        while place < len(kept):
            without = kept[:place] + kept[place + size :]
            if enough(without):
                kept = without
            else:
                place += size
        if size == 1:
            return sorted(kept, key=list(rows).index)
        size = max(1, size // 2)


def _undecided(answer: JobAnswer, verdict: str, reason: str, why: str) -> JobAnswer:
    return replace(answer, verdict=verdict, reason=reason, why=why)


def _hidden(record: RecordedJob, run_context: RunContext) -> str:
    """Why a gap hides what became of the Job; empty if none does."""
    finished = record.job.status.finished
    ended_ns = finished.last_transition_ns if finished is not None else None
    if ended_ns is None:
        ended_ns = run_context.end_ns
    coverage, namespace = run_context.coverage, record.job.namespace
    for stream in ("jobs", "pods") if coverage.spans else ():
        if not coverage.watches(stream, namespace):
            return f"nobody watched {stream} where it ran: nothing tells what it did"
    for gap in run_context.gaps_touching(record.job.created_ns, ended_ns):
        concerns = gap.stream in ("", "jobs", "pods")
        if concerns and gap.from_ns < ended_ns and gap.until_ns > record.job.created_ns:
            return "nobody watched for a time while it ran: a gap of the record hides what it did"
    return ""


def _may_move(
    record: RecordedJob, proof: JobProof, history: History, run_context: RunContext
) -> str:
    """Why the Job may have gone on after what was recorded of it; empty if nothing can move it."""
    if record.deleted:
        return ""
    if proof.pending_ns is not None and proof.pending_ns > run_context.end_ns:
        return "a timer of its was still to go off when the record ended"
    last = {pod.view.uid: pod for pod in history.pods if pod.view.uid in record.pods}
    alive = [p for p in last.values() if p.type != "DELETED" and not p.view.terminal]
    if alive:
        return f"{len(alive)} of its pods had not ended when the record did"
    spec = record.job.spec
    lived_ns = run_context.end_ns - record.job.created_ns
    early = lived_ns < _FIRST_STEP_NS
    if record.job.status.finished is None and not spec.suspend and not proof.steps and early:
        return "the record ends before its first step"
    if record.job.status.finished is None and spec.active_deadline_s is not None:
        return "its deadline was still to come when the record ended"
    return ""
