"""Three worlds for the Jobs that fork: the record, the old rules in the model, the new ones in it.

Only the new rules against the old ones in the same model are a finding, and only where the model
with the old rules reproduces the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from tracekit.eras.era import Era
from tracekit.eras.job import JobRules
from tracekit.eras.rows import Row, with_rows
from tracekit.eras.table import KINDS
from tracekit.process.manager import ManagerFlags
from tracekit.replay.run_context import RunContext
from tracekit.simulate.draws import SeededDraws, Timing
from tracekit.simulate.world import Restart
from tracekit.whatif.answers import (
    Cause,
    Drawn,
    JobAnswer,
    difference_class,
    severity_of,
    smallest,
)
from tracekit.whatif.causes import rows_for
from tracekit.whatif.changes import Setting
from tracekit.whatif.course import JobCourse
from tracekit.whatif.cron_changes import CronSetting
from tracekit.whatif.model import ModelledJob, run_jobs
from tracekit.whatif.steps import Severity
from tracekit.worlds.drawing import JobWorld

#: The model reproduces a record if the Job ends so close, in seconds, or in part of its time.
END_BOUND_S: Final = 3.0
END_BOUND_PART: Final = 0.1
#: So many Jobs are run together when rows are tried; of more each is run alone.
TOGETHER_MAX: Final = 40
#: So many runs look for causes. Once they are used up, what the steps proved stands as it is, and
#: of a set that was being made smaller the rows that could not be tried count as needed.
RUNS_MAX: Final = 150
#: So many Jobs are run often; of more, fewer runs are made.
FEW: Final = 200
#: Further seeds that are tried for Jobs that the first ones do not reproduce.
MORE_SEEDS: Final = 11
FEWER_SEEDS: Final = 4
#: So many runs stand behind each answer where the rules lose races that runs win: statuses that are
#: written over with what a stale cache says, and failures that the queue meets one by one. Then an
#: answer is told only where nine in ten agree.
RACED_DRAWS: Final = 5
AGREED_PART: Final = 0.9


@dataclass(frozen=True, slots=True)
class Plan:
    """What the runs of one question have in common."""

    recorded: Era
    target: Era
    run_context: RunContext
    flags: ManagerFlags
    target_flags: ManagerFlags
    settings: tuple[Setting, ...] = ()
    draws: int = 1
    timing: Timing = field(default_factory=Timing)
    cron_settings: tuple[CronSetting, ...] = ()
    lanes: bool = False  # whether the pods' lanes are wanted, to be drawn


A = TypeVar("A", bound=Any)  # a JobAnswer, or a CronAnswer
M = TypeVar("M", bound=Any)  # how one of them went in a run

#: Runs of the old rules by seed, reading and uids: they are the same for each target.
Baselines = dict[tuple[int, bool, tuple[str, ...]], dict[str, M]]
_Pairs = dict[str, list[tuple[M, M]]]


class Worlds(Generic[A, M]):
    """Answers by runs of the model, about whatever a kind of object is."""

    def __init__(self, plan: Plan, baselines: Baselines[M] | None = None) -> None:
        self.plan = plan
        self._baselines: Baselines[M] = {} if baselines is None else baselines
        self._tried: dict[tuple[tuple[str, ...], frozenset[Row], int, bool], dict[str, M]] = {}
        self._looked = 0  # runs for causes
        self._asked: tuple[str, ...] = ()
        self._seeds: dict[str, int] = {}  # of the first run that reproduces a Job
        self.restarts = [
            Restart(outage.from_ns, outage.until_ns, leads=True)
            for outage in plan.run_context.restarts
        ]

    # What a kind of object says of itself.

    def run(
        self,
        uids: Sequence[str],
        era: Era,
        flags: ManagerFlags,
        seed: int,
        *,
        settings: bool,
        by_pod: bool = False,
    ) -> dict[str, M]:
        """One run; `settings` says whether what the user set holds."""
        raise NotImplementedError

    def possible(self, answer: A) -> str:
        """Why the model cannot run it; empty if it can."""
        raise NotImplementedError

    def misfit(self, recorded: Any, baseline: Any) -> str:
        """The first thing in which the model's course is not the recorded one; empty if it is."""
        raise NotImplementedError

    def difference(self, old: Any, new: Any) -> Severity:
        """How far two courses are apart."""
        raise NotImplementedError

    def counted(self, course: Any) -> Any:
        """What two courses have in common that went alike."""
        raise NotImplementedError

    def said(self, course: Any) -> str:
        """A course in words."""
        raise NotImplementedError

    def draws(self, uids: Sequence[str]) -> int:
        """How many runs stand behind each answer."""
        del uids
        return self.plan.draws

    def rows_of(self, answer: A, rows: Sequence[Row]) -> Sequence[Row]:
        """Those of the rows that can make a difference to an object."""
        del answer
        return rows

    def evicted(self, uid: str) -> bool:
        """Whether somebody deleted pods of it, which can be read in two ways."""
        del uid
        return False

    def of_both(self, by_time: A, by_pod: A) -> A:
        """One answer of the two readings."""
        del by_pod
        return by_time

    def told(self, old: M, new: M | None) -> dict[str, Any]:
        """What else of two runs stands in an answer, by field."""
        del old, new
        return {}

    def baseline(self, uids: Sequence[str], seed: int, *, by_pod: bool = False) -> dict[str, M]:
        """The old rules in the model."""
        key = (seed, by_pod, tuple(uids))
        if key not in self._baselines:
            plan = self.plan
            self._baselines[key] = self.run(
                uids, plan.recorded, plan.flags, seed, settings=False, by_pod=by_pod
            )
        return self._baselines[key]

    def target(self, uids: Sequence[str], seed: int, *, by_pod: bool = False) -> dict[str, M]:
        """The new rules in the model."""
        key = (tuple(uids), _NO_ROWS, seed, by_pod)
        if key not in self._tried:
            plan = self.plan
            self._tried[key] = self.run(
                uids, plan.target, plan.target_flags, seed, settings=True, by_pod=by_pod
            )
        return self._tried[key]

    def answer(self, asked: Sequence[A]) -> dict[str, A]:
        """The answers about these, by uid."""
        by_uid = {a.uid: a for a in asked if self.possible(a) == ""}
        uids = tuple(by_uid)
        self._asked = uids
        pairs = self._pairs(by_uid, uids, by_pod=False)
        evicted = tuple(uid for uid in uids if self.evicted(uid))
        others: _Pairs[M] = self._pairs(by_uid, evicted, by_pod=True) if evicted else {}
        found = {}
        for answer in asked:
            uid = answer.uid
            why = self.possible(answer)
            if why:
                found[uid] = replace(answer, verdict="uncalibrated", reason="world", why=why)
                continue
            found[uid] = self._judged(answer, self.baseline(uids, 0)[uid], pairs[uid])
            if others.get(uid):
                other = self._judged(answer, self.baseline(uids, 0)[uid], others[uid])
                found[uid] = self.of_both(found[uid], other)
        return found

    def _pairs(self, by_uid: Mapping[str, A], wanted: Sequence[str], *, by_pod: bool) -> _Pairs[M]:
        """Runs of both rules in which the old ones reproduce the record, by Job.

        Further seeds are tried for Jobs that the first ones do not reproduce: a record shows but
        one of the courses that a race can take.
        """
        uids = tuple(by_uid)
        pairs: _Pairs[M] = {uid: [] for uid in wanted}
        more = MORE_SEEDS if len(uids) <= FEW else FEWER_SEEDS
        draws = self.draws(uids)
        for seed in range(draws + more):
            late = seed >= draws
            left = [uid for uid in wanted if not (late and pairs[uid])]
            if not left:
                break
            old = self.baseline(uids, seed, by_pod=by_pod)
            for uid in left:
                if not self.misfit(by_uid[uid].recorded, old[uid].course):
                    if not by_pod:
                        self._seeds.setdefault(uid, seed)
                    pairs[uid].append((old[uid], self.target(uids, seed, by_pod=by_pod)[uid]))
        return pairs

    def _judged(
        self,
        answer: A,
        first: M,
        pairs: Sequence[tuple[M, M]],
    ) -> A:
        if not pairs:
            why = self.misfit(answer.recorded, first.course)
            return replace(
                answer,
                verdict="uncalibrated",
                reason="model",
                why=f"the model does not reproduce it: {why}",
                baseline=first.course,
                target=None,
                **self.told(first, None),
            )
        known = [(old, new) for old, new in pairs if not new.censored]
        old, new = pairs[0]
        if not known:
            return replace(
                answer,
                verdict="unknowable",
                reason="censored",
                why=new.censored,
                proved=False,
                baseline=old.course,
                target=None,
                **self.told(old, None),
            )
        ways = Counter(self.counted(new.course) for _, new in known)
        usual, often = ways.most_common(1)[0]
        if often < AGREED_PART * len(known):
            told = sorted({self.said(new.course) for _, new in known})
            return replace(
                answer,
                verdict="unknowable",
                reason="race",
                why=f"a race decides: {often} of {len(known)} runs agree; {'; '.join(told[:3])}",
                proved=False,
                drawn=Drawn(often, len(known)),
                baseline=old.course,
                target=None,
                **self.told(old, None),
            )
        every = len(known)
        known = [pair for pair in known if self.counted(pair[1].course) == usual]
        classes = [self.difference(old.course, new.course) for old, new in known]
        counts = Counter(classes)
        worst = max(counts, key=lambda c: (counts[c], c))
        old, new = next(p for p, c in zip(known, classes, strict=True) if c is worst)
        # Steps differ, or the Job would not be here: the same course is one of other fields.
        severity = max(worst, Severity.FIELDS)
        return replace(
            answer,
            verdict=severity.name.lower(),
            proved=False,
            extrapolated=new.extrapolated,
            baseline=old.course,
            target=new.course,
            why="",
            reason="",
            drawn=Drawn(counts[worst], every),
            **self.told(old, new),
        )

    # Because.

    def because(self, answer: A, rows: Sequence[Row]) -> tuple[Cause, ...]:
        """The smallest part of `rows` which, set back, makes the difference of a Job go.

        Few Jobs are run together as they were, many each alone: where a Job alone shows no
        difference, the rows of its steps stand.
        """
        uid = answer.uid
        proved: tuple[Cause, ...] = answer.because
        if answer.baseline is None or answer.target is None or self._looked >= RUNS_MAX:
            return proved
        limit = self.difference(answer.baseline, answer.target)
        counts = self.counted(answer.baseline) != self.counted(answer.target)
        if limit <= Severity.FIELDS and not counts:
            return proved
        seed = self._seeds.get(uid, 0)
        together = self._asked if len(self._asked) <= TOGETHER_MAX else (uid,)
        base = self.baseline(together, seed)[uid].course

        def goes(back: Sequence[Row]) -> bool | None:
            """Whether the difference goes; None where no run is left to find out."""
            found = self._set_back(together, frozenset(back), seed)
            if found is None:
                return None
            if limit <= Severity.FIELDS:
                return bool(self.counted(base) == self.counted(found[uid].course))
            return self.difference(base, found[uid].course) < limit

        def gone(back: Sequence[Row]) -> bool:
            return goes(back) is True

        if gone(()):
            return proved
        rows = self.rows_of(answer, rows)
        start = [Row(cause.kind, cause.name) for cause in proved if cause.kind in KINDS]
        enough = goes(start) if start else False
        if enough is False:
            start = list(rows)
            enough = goes(start)
        if enough is None:
            return proved
        return tuple(Cause(*row) for row in smallest(start, gone)) if enough else self._asked_for()

    def _asked_for(self) -> tuple[Cause, ...]:
        """What the user set: fields of the spec, flags of the controller manager."""
        plan = self.plan
        flags = [
            Cause("flag", f"{name.replace('_', '-')}={getattr(plan.target_flags, name)}")
            for name in ("kube_api_qps", "concurrent_job_syncs")
            if getattr(plan.target_flags, name) != getattr(plan.flags, name)
        ]
        names = [setting.name for setting in plan.settings]
        names += [setting.name for setting in plan.cron_settings]
        return (*(Cause("setting", name) for name in names), *flags)

    def _set_back(
        self, uids: Sequence[str], rows: frozenset[Row], seed: int
    ) -> dict[str, M] | None:
        """The new rules but for some rows, in the model; None where no run is left."""
        key = (tuple(uids), rows, seed, False)
        if key not in self._tried:
            if self._looked >= RUNS_MAX:
                return None
            self._looked += 1
            if not rows:
                return self.target(uids, seed)
            plan = self.plan
            era = with_rows(plan.target, plan.recorded, rows)
            self._tried[key] = self.run(uids, era, plan.target_flags, seed, settings=True)
        return self._tried[key]


_NO_ROWS: Final[frozenset[Row]] = frozenset()


class ThreeWorlds(Worlds[JobAnswer, ModelledJob]):
    """Answers about Jobs."""

    def __init__(
        self,
        plan: Plan,
        worlds: Mapping[str, JobWorld],
        baselines: Baselines[ModelledJob] | None = None,
    ) -> None:
        super().__init__(plan, baselines)
        self.worlds = worlds

    def run(
        self,
        uids: Sequence[str],
        era: Era,
        flags: ManagerFlags,
        seed: int,
        *,
        settings: bool,
        by_pod: bool = False,
    ) -> dict[str, ModelledJob]:
        """Run Jobs together."""
        return run_jobs(
            [self.worlds[uid] for uid in uids],
            era,
            flags,
            SeededDraws(seed, self.plan.timing),
            end_ns=self.plan.run_context.end_ns,
            restarts=self.restarts,
            settings=self.plan.settings if settings else (),
            by_pod=by_pod,
            lanes=self.plan.lanes,
        )

    def possible(self, answer: JobAnswer) -> str:
        """Why the model cannot run a Job."""
        world = self.worlds.get(answer.uid)
        if world is None:
            return "its part of the world is not in the record"
        if world.driven_by:
            return f"{world.driven_by} reacts to its status, and is no part of the model"
        return world.incomplete

    def misfit(self, recorded: JobCourse, baseline: JobCourse) -> str:
        """As `misfit`."""
        return misfit(recorded, baseline)

    def difference(self, old: JobCourse, new: JobCourse) -> Severity:
        """As `difference_class`."""
        return difference_class(old, new)

    def counted(self, course: JobCourse) -> tuple[object, ...]:
        """As `counted`."""
        return counted(course)

    def said(self, course: JobCourse) -> str:
        """As `said`."""
        return said(course)

    def draws(self, uids: Sequence[str]) -> int:
        """How many runs stand behind each answer."""
        plan = self.plan
        rules = JobRules.of(plan.target)
        raced = rules.overwrites_status or rules.handlers.pod_failure_delays_sync
        if raced and len(uids) <= FEW:
            return max(plan.draws, RACED_DRAWS)
        return plan.draws

    def of_both(self, by_time: JobAnswer, by_pod: JobAnswer) -> JobAnswer:
        """As `of_both_readings`."""
        return of_both_readings(by_time, by_pod)

    def rows_of(self, answer: JobAnswer, rows: Sequence[Row]) -> Sequence[Row]:
        """Those that a Job with the fields of its spec can tell."""
        return rows_for(rows, self.plan.recorded, self.plan.target, answer.job.spec.raw)

    def evicted(self, uid: str) -> bool:
        """Whether somebody deleted pods of a Job."""
        return self.worlds[uid].evicted

    def told(self, old: ModelledJob, new: ModelledJob | None) -> dict[str, Any]:
        """The lanes of both sides."""
        return {"lanes": (old.lanes, new.lanes if new is not None else ())}


def of_both_readings(by_time: JobAnswer, by_pod: JobAnswer) -> JobAnswer:
    """One answer of two: deletions of pods bound to their time, and bound to the age of the pod."""
    if by_time.verdict == "uncalibrated":
        return by_pod
    if by_time.target is None or by_pod.target is None:
        return by_time if by_time.target is None else by_pod
    if counted(by_time.target) == counted(by_pod.target):
        return by_time
    why = (
        "somebody deleted pods of it: had that come at the same time, it would have been "
        f"{said(by_time.target)}; at the same age of the pod, {said(by_pod.target)}"
    )
    return replace(
        by_time, verdict="unknowable", reason="reading", why=why, proved=False, target=None
    )


def counted(course: JobCourse) -> tuple[str | None, str, int, int, int]:
    """What two courses have in common that went alike."""
    return course.ended, course.reason, course.pods, course.succeeded, course.failed


def said(course: JobCourse) -> str:
    """A course in words."""
    return (
        f"{course.ended or 'not ended'} with {course.pods} pods, {course.succeeded} succeeded and "
        f"{course.failed} failed"
    )


def outdone(proved: JobAnswer, modelled: JobAnswer) -> bool:
    """Whether a run of the model says more than the steps prove.

    Steps are taken at the times of the record. Where the other rules' queue serves a Job at other
    times, the model that reproduces the record may find what no step shows.
    """
    if modelled.verdict == "unknowable":
        return modelled.reason in ("censored", "race", "reading")
    severity = severity_of(modelled.verdict)
    return severity >= Severity.TIMING and severity > severity_of(proved.verdict)


def misfit(recorded: JobCourse, baseline: JobCourse) -> str:
    """The first thing in which the model's Job is not the recorded one; empty if it is."""
    for name in ("ended", "reason", "pods", "succeeded", "failed"):
        left, right = getattr(recorded, name), getattr(baseline, name)
        if left != right:
            return f"{name} {left!r} in the record, {right!r} in the model"
    left, right = recorded.finished_after_s, baseline.finished_after_s
    if left is not None and right is not None:
        bound = max(END_BOUND_S, END_BOUND_PART * left)
        if abs(left - right) > bound:
            return f"it ends after {left:.0f} s in the record, after {right:.0f} s in the model"
    return ""
