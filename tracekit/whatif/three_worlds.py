"""Three worlds for the Jobs that fork: the record, the old rules in the model, the new ones in it.

Only the new rules against the old ones in the same model are a finding, and only where the model
with the old rules reproduces the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tracekit.eras.era import Era
from tracekit.eras.job import JobRules
from tracekit.eras.rows import Row, with_rows
from tracekit.eras.table import KINDS
from tracekit.process.manager import ManagerFlags
from tracekit.replay.run_context import RunContext
from tracekit.simulate.draws import SeededDraws, Timing
from tracekit.simulate.world import Restart
from tracekit.whatif.answers import Cause, JobAnswer, difference_class, severity_of, smallest
from tracekit.whatif.changes import Setting
from tracekit.whatif.course import JobCourse
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


#: Runs of the old rules by seed, reading and Jobs: they are the same for each target.
Baselines = dict[tuple[int, bool, tuple[str, ...]], dict[str, ModelledJob]]
_Pairs = dict[str, list[tuple[ModelledJob, ModelledJob]]]


class ThreeWorlds:
    """Answers by runs of the model."""

    def __init__(
        self, plan: Plan, worlds: Mapping[str, JobWorld], baselines: Baselines | None = None
    ) -> None:
        self.plan = plan
        self.worlds = worlds
        self._baselines: Baselines = {} if baselines is None else baselines
        self._tried: dict[
            tuple[tuple[str, ...], frozenset[Row], int, bool], dict[str, ModelledJob]
        ] = {}
        self._looked = 0  # runs for causes
        self._asked: tuple[str, ...] = ()
        self._seeds: dict[str, int] = {}  # of the first run that reproduces a Job
        self._restarts = [
            Restart(outage.from_ns, outage.until_ns) for outage in plan.run_context.restarts
        ]

    def baseline(
        self, uids: Sequence[str], seed: int, *, by_pod: bool = False
    ) -> dict[str, ModelledJob]:
        """The old rules in the model."""
        key = (seed, by_pod, tuple(uids))
        if key not in self._baselines:
            plan = self.plan
            self._baselines[key] = self._run(
                uids, plan.recorded, plan.flags, seed, (), by_pod=by_pod
            )
        return self._baselines[key]

    def target(
        self, uids: Sequence[str], seed: int, *, by_pod: bool = False
    ) -> dict[str, ModelledJob]:
        """The new rules in the model."""
        key = (tuple(uids), _NO_ROWS, seed, by_pod)
        if key not in self._tried:
            plan = self.plan
            self._tried[key] = self._run(
                uids, plan.target, plan.target_flags, seed, plan.settings, by_pod=by_pod
            )
        return self._tried[key]

    def _run(
        self,
        uids: Sequence[str],
        era: Era,
        flags: ManagerFlags,
        seed: int,
        settings: tuple[Setting, ...],
        *,
        by_pod: bool = False,
    ) -> dict[str, ModelledJob]:
        return run_jobs(
            [self.worlds[uid] for uid in uids],
            era,
            flags,
            SeededDraws(seed, self.plan.timing),
            end_ns=self.plan.run_context.end_ns,
            restarts=self._restarts,
            settings=settings,
            by_pod=by_pod,
        )

    def answer(self, asked: Sequence[JobAnswer]) -> dict[str, JobAnswer]:
        """The answers about these Jobs, by uid."""
        by_uid = {a.job.uid: a for a in asked if self._possible(a) == ""}
        uids = tuple(by_uid)
        self._asked = uids
        pairs = self._pairs(by_uid, uids, by_pod=False)
        evicted = tuple(uid for uid in uids if self.worlds[uid].evicted)
        others = self._pairs(by_uid, evicted, by_pod=True) if evicted else {}
        found = {}
        for answer in asked:
            uid = answer.job.uid
            why = self._possible(answer)
            if why:
                found[uid] = replace(answer, verdict="uncalibrated", reason="world", why=why)
                continue
            found[uid] = self._judged(answer, self.baseline(uids, 0)[uid], pairs[uid])
            if others.get(uid):
                other = self._judged(answer, self.baseline(uids, 0)[uid], others[uid])
                found[uid] = of_both_readings(found[uid], other)
        return found

    def _draws(self, uids: Sequence[str]) -> int:
        """How many runs stand behind each answer."""
        plan = self.plan
        rules = JobRules.of(plan.target)
        raced = rules.overwrites_status or rules.handlers.pod_failure_delays_sync
        if raced and len(uids) <= FEW:
            return max(plan.draws, RACED_DRAWS)
        return plan.draws

    def _pairs(
        self, by_uid: Mapping[str, JobAnswer], wanted: Sequence[str], *, by_pod: bool
    ) -> _Pairs:
        """Runs of both rules in which the old ones reproduce the record, by Job.

        Further seeds are tried for Jobs that the first ones do not reproduce: a record shows but
        one of the courses that a race can take.
        """
        uids = tuple(by_uid)
        pairs: _Pairs = {uid: [] for uid in wanted}
        more = MORE_SEEDS if len(uids) <= FEW else FEWER_SEEDS
        draws = self._draws(uids)
        for seed in range(draws + more):
            late = seed >= draws
            left = [uid for uid in wanted if not (late and pairs[uid])]
            if not left:
                break
            old = self.baseline(uids, seed, by_pod=by_pod)
            for uid in left:
                if not misfit(by_uid[uid].recorded, old[uid].course):
                    if not by_pod:
                        self._seeds.setdefault(uid, seed)
                    pairs[uid].append((old[uid], self.target(uids, seed, by_pod=by_pod)[uid]))
        return pairs

    def _possible(self, answer: JobAnswer) -> str:
        world = self.worlds.get(answer.job.uid)
        if world is None:
            return "its part of the world is not in the record"
        if world.driven_by:
            return f"{world.driven_by} reacts to its status, and is no part of the model"
        return world.incomplete

    def _judged(
        self,
        answer: JobAnswer,
        first: ModelledJob,
        pairs: Sequence[tuple[ModelledJob, ModelledJob]],
    ) -> JobAnswer:
        if not pairs:
            why = misfit(answer.recorded, first.course)
            return replace(
                answer,
                verdict="uncalibrated",
                reason="model",
                why=f"the model does not reproduce it: {why}",
                baseline=first.course,
                target=None,
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
            )
        ways = Counter(counted(new.course) for _, new in known)
        usual, often = ways.most_common(1)[0]
        if often < AGREED_PART * len(known):
            told = sorted({said(new.course) for _, new in known})
            return replace(
                answer,
                verdict="unknowable",
                reason="race",
                why=f"a race decides: {often} of {len(known)} runs agree; {'; '.join(told[:3])}",
                proved=False,
                baseline=old.course,
                target=None,
            )
        known = [pair for pair in known if counted(pair[1].course) == usual]
        classes = [difference_class(old.course, new.course) for old, new in known]
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
        )

    # Because.

    def because(self, answer: JobAnswer, rows: Sequence[Row]) -> tuple[Cause, ...]:
        """The smallest part of `rows` which, set back, makes the difference of a Job go.

        Few Jobs are run together as they were, many each alone: where a Job alone shows no
        difference, the rows of its steps stand.
        """
        uid = answer.job.uid
        if answer.baseline is None or answer.target is None or self._looked >= RUNS_MAX:
            return answer.because
        limit = difference_class(answer.baseline, answer.target)
        if limit <= Severity.FIELDS:
            return answer.because
        seed = self._seeds.get(uid, 0)
        together = self._asked if len(self._asked) <= TOGETHER_MAX else (uid,)
        base = self.baseline(together, seed)[uid].course

        def goes(back: Sequence[Row]) -> bool | None:
            """Whether the difference goes; None where no run is left to find out."""
            found = self._set_back(together, frozenset(back), seed)
            return None if found is None else difference_class(base, found[uid].course) < limit

        def gone(back: Sequence[Row]) -> bool:
            return goes(back) is True

        if gone(()):
            return answer.because
        start = [Row(cause.kind, cause.name) for cause in answer.because if cause.kind in KINDS]
        enough = goes(start) if start else False
        if enough is False:
            start = list(rows)
            enough = goes(start)
        if enough is None:
            return answer.because
        return tuple(Cause(*row) for row in smallest(start, gone)) if enough else self._asked_for()

    def _asked_for(self) -> tuple[Cause, ...]:
        """What the user set: fields of the spec, flags of the controller manager."""
        plan = self.plan
        flags = [
            Cause("flag", f"{name.replace('_', '-')}={getattr(plan.target_flags, name)}")
            for name in ("kube_api_qps", "concurrent_job_syncs")
            if getattr(plan.target_flags, name) != getattr(plan.flags, name)
        ]
        return (*(Cause("setting", setting.name) for setting in plan.settings), *flags)

    def _set_back(
        self, uids: Sequence[str], rows: frozenset[Row], seed: int
    ) -> dict[str, ModelledJob] | None:
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
            self._tried[key] = self._run(uids, era, plan.target_flags, seed, plan.settings)
        return self._tried[key]


_NO_ROWS: Final[frozenset[Row]] = frozenset()


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
