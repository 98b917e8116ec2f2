"""Three worlds for the Jobs that fork: the record, the old rules in the model, the new ones in it.

Only the new rules against the old ones in the same model are a finding, and only where the model
with the old rules reproduces the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from tracekit.answers.whatif.answers import (
    Cause,
    Drawn,
    JobAnswer,
    Way,
    difference_class,
    smallest,
)
from tracekit.answers.whatif.causes import rows_for
from tracekit.answers.whatif.course import JobCourse, counted
from tracekit.answers.whatif.model import ModelledJob, run_jobs
from tracekit.answers.whatif.plan import Plan
from tracekit.answers.whatif.shapes import Shape, shape
from tracekit.answers.whatif.steps import Severity
from tracekit.answers.whatif_inputs.jobs import JobWorld
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.draws import SeededDraws
from tracekit.model.simulate.world import Restart
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules
from tracekit.versions.rows import Row, with_rows
from tracekit.versions.table import KINDS

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
#: So many of these are tried with all the others where more than TOGETHER_MAX run.
CROWDED_SEEDS: Final = 4
#: So many runs stand behind each answer where the rules lose races that runs win: statuses that are
#: written over with what a stale cache says, and failures that the queue meets one by one.
RACED_DRAWS: Final = 5
#: A Job for which fewer than nine in ten runs agree is run so often in all.
AGREED_PART: Final = 0.9
OPEN_DRAWS: Final = 20
#: A busy controller comes to a new Job within that time: a deletion before may come first.
_FIRST_SYNC_NS: Final = NS_PER_S
#: In so many tries: not every run reproduces the record.
_OPEN_TRIES: Final = 40


A = TypeVar("A", bound=Any)  # a JobAnswer, or a CronAnswer
M = TypeVar("M", bound=Any)  # how one of them went in a run

#: Runs of the old rules by seed, reading, uids and whether the new ones have races.
Baselines = dict[tuple[int, bool, tuple[str, ...], bool], dict[str, M]]


class Pair(NamedTuple, Generic[M]):
    """One object by both rules, in the same run of the model otherwise."""

    old: M
    new: M
    uids: tuple[str, ...]  # who ran together
    seed: int


_Pairs = dict[str, list[Pair[M]]]


class Worlds(Generic[A, M]):
    """Answers by runs of the model, about whatever a kind of object is."""

    def __init__(self, plan: Plan, baselines: Baselines[M] | None = None) -> None:
        self.plan = plan
        self.baselines: Baselines[M] = {} if baselines is None else baselines
        self._tried: dict[tuple[tuple[str, ...], frozenset[Row], int, bool], dict[str, M]] = {}
        self._of = 0  # how many are asked about in all
        self._looked = 0  # runs for causes
        self._because: dict[Shape, tuple[Cause, ...]] = {}
        self._shown: dict[str, Pair[M]] = {}  # the run that an answer shows
        self._stopped = set[str]()  # those that went on and on in a run, and run in no more
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

    def draws(self, uid: str) -> int:
        """How many runs stand behind an answer."""
        del uid
        return self.plan.draws

    def rows_of(self, answer: A, rows: Sequence[Row]) -> Sequence[Row]:
        """Those of the rows that can make a difference to an object."""
        del answer
        return rows

    def evicted(self, uid: str) -> bool:
        """Whether somebody deleted pods of it, which can be read in two ways."""
        del uid
        return False

    def raced(self, course: Any) -> bool:
        """Whether by the new rules a race decides what is counted of a course, run by run."""
        del course
        return False

    def hangs(self, uid: str) -> bool:
        """Whether few runs that agree say little of it, for the record shows how close it was."""
        del uid
        return False

    def other_luck(self, uid: str, recorded: Any, baseline: Any) -> bool:
        """Whether the model's course is the recorded one but for what a race decides."""
        del uid, recorded, baseline
        return False

    def ways(self, courses: Sequence[Any]) -> dict[str, Any]:
        """What stands in an answer of how all runs went, by field."""
        del courses
        return {}

    def held(self, recorded: Any, found: M) -> Any:
        """The course of a run that is held against the recorded one."""
        del recorded
        return found.course

    def shape(self, answer: A) -> Shape | None:
        """Objects of one shape differ for the same reason; None: no other is like it."""
        del answer
        return None

    def extra_fields(self, old: M, new: M | None) -> dict[str, Any]:
        """What else of two runs stands in an answer, by field."""
        del old, new
        return {}

    def baseline(self, uids: Sequence[str], seed: int, *, by_pod: bool = False) -> dict[str, M]:
        """The old rules in the model."""
        key = (seed, by_pod, tuple(uids), self.plan.raced)
        if key not in self.baselines:
            plan = self.plan
            self.baselines[key] = self.run(
                uids, plan.recorded, plan.flags, seed, settings=False, by_pod=by_pod
            )
        return self.baselines[key]

    def target(self, uids: Sequence[str], seed: int, *, by_pod: bool = False) -> dict[str, M]:
        """The new rules in the model."""
        key = (tuple(uids), _NO_ROWS, seed, by_pod)
        if key not in self._tried:
            plan = self.plan
            self._tried[key] = self.run(
                uids, plan.target, plan.target_flags, seed, settings=True, by_pod=by_pod
            )
        return self._tried[key]

    def answer(self, asked: Sequence[A], of: int = 0) -> dict[str, A]:
        """The answers about these, by uid; of so many in all, which say how often each is run."""
        self._of = max(of, len(asked))
        by_uid = {a.uid: a for a in asked if self.possible(a) == ""}
        uids = tuple(by_uid)
        evicted = tuple(uid for uid in uids if self.evicted(uid))
        readings = (self._pairs(by_uid, uids), self._pairs(by_uid, evicted, by_pod=True))
        found = {}
        for answer in asked:
            uid = answer.uid
            why = self.possible(answer)
            if why:
                found[uid] = replace(answer, verdict="uncalibrated", reason="world", why=why)
                continue
            first = self.baseline(uids, 0)[uid]
            found[uid] = self._judged(answer, first, [r[uid] for r in readings if r.get(uid)])
        return found

    def _pairs(
        self, by_uid: Mapping[str, A], uids: tuple[str, ...], *, by_pod: bool = False
    ) -> _Pairs[M]:
        """Runs of both rules in which the old ones reproduce the record, by object.

        All run together first. Further seeds are tried for those that the first ones do not
        reproduce, since a record shows but one of the courses that a race can take: of few
        objects with all the others again, then among themselves. So are those run on whose runs
        do not agree, or hang on a race. The luck that the record had is nobody's rule: once some
        run reproduces it, those that had other luck count as well.
        """
        pairs: _Pairs[M] = {uid: [] for uid in uids}
        unlucky: _Pairs[M] = {uid: [] for uid in uids}

        def run(together: tuple[str, ...], wanted: Sequence[str], seed: int) -> None:
            together = self._ending(together)
            old = self.baseline(together, seed, by_pod=by_pod)
            self._stopped.update(uid for uid in together if old[uid].stopped)
            for uid in (uid for uid in wanted if uid in old):
                recorded = by_uid[uid].recorded
                held = self.held(recorded, old[uid])
                fits = not self.misfit(recorded, held)
                if fits or self.other_luck(uid, recorded, held):
                    new = self.target(together, seed, by_pod=by_pod)
                    self._stopped.update(uid for uid in together if new[uid].stopped)
                    found = pairs if fits else unlucky
                    found[uid].append(Pair(old[uid], new[uid], together, seed))

        often = {uid: self.draws(uid) for uid in uids}
        draws = max(often.values(), default=0)
        more, crowded = _seeds(self._of)
        crowded += draws
        for seed in range(draws + more):
            left = [u for u in self._ending(uids) if seed < often[u] or not pairs[u]]
            if seed >= crowded:
                # What is proved stands without a run that reproduces it.
                left = [uid for uid in left if not by_uid[uid].proved]
            if left:
                run(uids if seed < crowded else tuple(left), left, seed)
        opened = [
            u
            for u in self._ending(uids)
            if self._of <= FEW and (self.hangs(u) or self._is_open([*pairs[u], *unlucky[u]]))
        ]
        together = uids if len(uids) <= TOGETHER_MAX else ()
        for seed in range(draws + more, draws + more + _OPEN_TRIES):
            left = [u for u in self._ending(opened) if len(pairs[u]) + len(unlucky[u]) < OPEN_DRAWS]
            if left:  # a run of all tells of all of them
                run(
                    together or tuple(left),
                    [u for u in together if pairs[u] or unlucky[u]] or left,
                    seed,
                )
        return {
            uid: [*found, *unlucky[uid]] if found or self._stands(by_uid[uid]) else []
            for uid, found in pairs.items()
        }

    def _ending(self, uids: Iterable[str]) -> tuple[str, ...]:
        """Those that came to an end in every run so far."""
        return tuple(uid for uid in uids if uid not in self._stopped)

    def _stands(self, answer: A) -> bool:
        """Whether runs are asked only what else might come of what is proved."""
        return bool(answer.proved) and self.hangs(answer.uid)

    def _is_open(self, pairs: Sequence[Pair[M]]) -> bool:
        """Whether the runs do not agree on how an object goes, or hang on a race."""
        if any(self.raced(pair.new.course) for pair in pairs):
            return True
        ways = Counter(self.counted(pair.new.course) for pair in pairs if not pair.new.censored)
        return bool(ways) and max(ways.values()) < AGREED_PART * ways.total()

    def _judged(self, answer: A, first: M, readings: Sequence[Sequence[Pair[M]]]) -> A:
        """The answer of the runs; each reading is as likely as the other."""
        if not readings and first.stopped:
            return replace(answer, verdict="unknowable", reason="censored", why=first.censored)
        if not readings:
            why = self.misfit(answer.recorded, self.held(answer.recorded, first))
            return replace(
                answer,
                verdict="uncalibrated",
                reason="model",
                why=f"the model does not reproduce it: {why}",
                baseline=first.course,
                target=None,
                **self.extra_fields(first, None),
            )
        known = [[pair for pair in pairs if not pair.new.censored] for pairs in readings]
        # A course that only runs without an unseen life take is not the course of all.
        unseen = next(
            (
                place
                for place, (pairs, every) in enumerate(zip(known, readings, strict=True))
                if len(pairs) < AGREED_PART * len(every)
            ),
            None,
        )
        # Of what is proved a run at another pace says what else might come, not that all is unseen;
        # but how races go that no step can prove, only runs do.
        opens = self._stands(answer) and not self.plan.raced
        if unseen is not None and not (opens and all(known)):
            old, new, *_ = next(pair for pair in readings[unseen] if pair.new.censored)
            return replace(
                answer,
                verdict="unknowable",
                reason="censored",
                why=new.censored,
                proved=False,
                baseline=old.course,
                target=None,
                **self.extra_fields(old, None),
            )
        as_often = max(map(len, known))
        every = [pair for pairs in known for pair in islice(cycle(pairs), as_often)]
        ways = Counter(self.counted(pair.new.course) for pair in every)
        usual = max(ways, key=lambda way: ways[way])
        alike = [pair for pair in every if self.counted(pair.new.course) == usual]
        classes = Counter(self.difference(old.course, new.course) for old, new, *_ in alike)
        worst = max(classes, key=lambda c: (classes[c], c))
        shown = next(p for p in alike if self.difference(p.old.course, p.new.course) is worst)
        self._shown[answer.uid] = shown
        # Steps differ, or the Job would not be here: the same course is one of other fields.
        severity = max(worst, Severity.FIELDS)
        return replace(
            answer,
            verdict=severity.name.lower(),
            proved=False,
            extrapolated=any(pair.new.extrapolated for pair in alike),
            baseline=every[0].old.course,
            target=shown.new.course,
            why="",
            reason="",
            drawn=Drawn(classes[worst], len(every)),
            **self.extra_fields(shown.old, shown.new),
            **self.ways([pair.new.course for pair in every]),
        )

    # Because.

    def because(self, answer: A, rows: Sequence[Row]) -> tuple[Cause, ...]:
        """The smallest part of `rows` which, set back, makes the difference of a Job go.

        It is looked for once for all of one shape. Few Jobs are run together as they were, many
        each alone: where a Job alone shows no difference, the rows of its steps stand.
        """
        proved: tuple[Cause, ...] = answer.because
        if answer.baseline is None or answer.target is None:
            return proved
        limit = self.difference(answer.baseline, answer.target)
        counts = self.counted(answer.baseline) != self.counted(answer.target)
        if limit <= Severity.FIELDS and not counts:
            return proved
        of_shape = self.shape(answer)
        known = self._because.get(of_shape) if of_shape is not None else None
        if known is None:
            known = self._found(answer, rows, limit)
            if of_shape is not None and known is not None:
                self._because[of_shape] = known
        return proved if known is None else known

    def _found(self, answer: A, rows: Sequence[Row], limit: Severity) -> tuple[Cause, ...] | None:
        """The smallest part of the rows; None where the model cannot tell."""
        uid = answer.uid
        proved: tuple[Cause, ...] = answer.because
        together, seed = self._ending(self._shown[uid].uids), self._shown[uid].seed
        if len(together) > TOGETHER_MAX:
            together = (uid,)
            if self._looked >= RUNS_MAX:
                return None
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
            return None
        rows = self.rows_of(answer, rows)
        start = [Row(cause.kind, cause.name) for cause in proved if cause.kind in KINDS]
        enough = goes(start) if start else False
        if enough is False:
            start = list(rows)
            enough = goes(start)
        if enough is None:
            return None
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


def _seeds(objects: int) -> tuple[int, int]:
    """How many further seeds are tried for so many objects, and how many of these with all."""
    if objects > FEW:
        return FEWER_SEEDS, 0
    return MORE_SEEDS, MORE_SEEDS if objects <= TOGETHER_MAX else CROWDED_SEEDS


_NO_ROWS: Final[frozenset[Row]] = frozenset()


class ThreeWorlds(Worlds[JobAnswer, ModelledJob]):
    """Answers about Jobs."""

    def __init__(
        self,
        plan: Plan,
        worlds: Mapping[str, JobWorld],
        baselines: Baselines[ModelledJob] | None = None,
        on_edge: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(plan, baselines)
        self.worlds = worlds
        #: Jobs of which the record shows that they hang on when they are served.
        self.on_edge = on_edge

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
        together = dict.fromkeys((*uids, *self.plan.company))
        return run_jobs(
            [self.worlds[uid] for uid in together],
            era,
            flags,
            SeededDraws(seed, self.plan.timing_of(seed)),
            end_ns=self.plan.run_context.end_ns,
            restarts=self.restarts,
            settings=self.plan.settings if settings else (),
            by_pod=by_pod,
            # The first run has the very times of the record, the others draw theirs.
            anew=seed > 0,
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

    def draws(self, uid: str) -> int:
        """How many runs stand behind an answer."""
        plan = self.plan
        raced = plan.raced or uid in self.on_edge or bool(plan.turns_ns and plan.company)
        if raced and self._of <= FEW:
            return max(plan.draws, RACED_DRAWS)
        return plan.draws

    def raced(self, course: JobCourse) -> bool:
        """Whether a sync that has not seen the Job's end can write its counts over."""
        return JobRules.of(self.plan.target).overwrites_status and course.ended == "Failed"

    def hangs(self, uid: str) -> bool:
        """Whether it is on an edge, or a user's deletion races with its first sync."""
        young = self.plan.raced and self.worlds[uid].deleted_within(_FIRST_SYNC_NS)
        return young or uid in self.on_edge

    def other_luck(self, uid: str, recorded: JobCourse, baseline: JobCourse) -> bool:
        """Whether it was served at other times, or counts alone differ, which were written over."""
        if uid in self.on_edge:
            return True
        old = JobRules.of(self.plan.recorded)
        if not (old.overwrites_status and recorded.ended == "Failed"):
            return False
        lucky = replace(baseline, succeeded=recorded.succeeded, failed=recorded.failed)
        return not misfit(recorded, lucky)

    def held(self, recorded: JobCourse, found: ModelledJob) -> JobCourse:
        """A run goes on after the record: of a Job that had not ended, how it stood then."""
        return found.course if recorded.ended or found.then is None else found.then

    def rows_of(self, answer: JobAnswer, rows: Sequence[Row]) -> Sequence[Row]:
        """Those that a Job with the fields of its spec can tell."""
        return rows_for(rows, self.plan.recorded, self.plan.target, answer.job.spec.raw)

    def evicted(self, uid: str) -> bool:
        """Whether somebody deleted pods of a Job."""
        return self.worlds[uid].evicted

    def shape(self, answer: JobAnswer) -> Shape | None:
        """The same wish, the same steps, the same two courses."""
        sides = [counted(c) for c in (answer.baseline, answer.target) if c is not None]
        return shape(answer.job, answer.differences, answer.verdict, *sides)

    def extra_fields(self, old: ModelledJob, new: ModelledJob | None) -> dict[str, Any]:
        """The lanes of both sides."""
        return {"lanes": (old.lanes, new.lanes if new is not None else ())}

    def ways(self, courses: Sequence[JobCourse]) -> dict[str, Any]:
        """Each course that runs took, the most usual first; none where all went alike."""
        times = Counter(map(counted, courses))
        if len(times) == 1:
            return {"courses": ()}
        first = {counted(course): course for course in reversed(courses)}
        return {"courses": tuple(Way(first[way], n) for way, n in times.most_common())}


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
