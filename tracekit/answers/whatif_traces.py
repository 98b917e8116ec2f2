"""A trace under other rules: what a reader holds, and what the room `whatif` makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import asdict, replace

from tracekit.answers.whatif.answers import Answers, JobAnswer, Prover, needs_model, severity_of
from tracekit.answers.whatif.beside_proof import on_time, outdone, with_lots
from tracekit.answers.whatif.changes import Setting
from tracekit.answers.whatif.cron_answers import (
    CronAnswer,
    CronProver,
    hangs_on_jobs,
    not_started,
    with_job_causes,
)
from tracekit.answers.whatif.cron_changes import CronSetting
from tracekit.answers.whatif.cron_model import CronWorlds, ModelledCronJob
from tracekit.answers.whatif.edges import on_edge
from tracekit.answers.whatif.episodes import episodes
from tracekit.answers.whatif.model import ModelledJob
from tracekit.answers.whatif.plan import Plan
from tracekit.answers.whatif.steps import Severity
from tracekit.answers.whatif.three_worlds import FEW, Baselines, ThreeWorlds
from tracekit.answers.whatif_inputs.cronjobs import CronWorld, cron_worlds
from tracekit.answers.whatif_inputs.jobs import JobWorld, job_worlds
from tracekit.answers.whatif_inputs.latencies import Pace
from tracekit.base.collecting import collecting_rarely
from tracekit.base.errors import UsageError
from tracekit.base.kube.selectors import selector_from_text, selector_matches
from tracekit.base.kube.views import JobView
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.check.diff.cron_keys import CronJobKeys, CronReplay
from tracekit.check.diff.cronjob import CronKeyJudge
from tracekit.check.diff.trace import judge_groups
from tracekit.check.replay.cron_history import CronHistory
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.rerun import Rerunner
from tracekit.check.replay.search_state import KeyReplay
from tracekit.judge.clocks import on_clock
from tracekit.judge.judged import Judge, resolve_era
from tracekit.model.process.manager import ManagerFlags
from tracekit.ports.cronjob.children import OWNER_KIND
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.era import Era
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.job import JobRules
from tracekit.versions.texts import parse_feature_gates


class Selected(Struct, frozen=True):
    """Which Jobs are asked about; None asks for no part."""

    namespace: str | None = None
    job: str | None = None  # namespace/name
    selector: str | None = None
    within: TimeRange = ALWAYS  # in which they were there

    @property
    def part(self) -> str:
        """The part in words; empty for all."""
        parts = [
            f"with labels {self.selector}" if self.selector else "",
            f"named {self.job}" if self.job else "",
            f"in namespace {self.namespace}" if self.namespace else "",
            str(self.within),
        ]
        return " ".join(part for part in parts if part)


class Running(Struct, frozen=True):
    """How the model is run: the flags of the two controller managers, and how many times."""

    flags: ManagerFlags | None = None  # of the record; None: as its calls tell
    target_flags: ManagerFlags | None = None
    draws: int = 1
    lanes: bool = False  # whether the lanes of pods are kept, to be drawn
    causes: bool = True  # whether the rows are looked for that make each difference


#: So many Jobs are run together; of more, those that lived at the same time.
MODELLED_MAX = 1_000
#: Of more Jobs than that no world is drawn, and those that fork are uncalibrated.
WORLDS_MAX = 10_000
#: CronJobs are run up to so many recorded Jobs of theirs in all; the next ones are uncalibrated.
CRON_RUN_JOBS_MAX = 5_000


class Target(Struct, frozen=True):
    """The rules that are asked about: a version, gates; None keeps the record's own."""

    version: str | None = None
    feature_gates: str | None = None


def target_era(reader: TraceReader, recorded: Era, target: Target) -> Era:
    """The rules that are asked about; gates that the cluster set itself stay set."""
    if target.version is not None:
        return resolve_era(reader, target.version, target.feature_gates)
    typed = parse_feature_gates(target.feature_gates)
    kept = {
        gate.value: recorded.enabled(gate)
        for gate in _settable(recorded)
        if gate.value not in typed
    }
    return replace(Era.resolve(recorded.basis, {**kept, **typed}), version=recorded.version)


def _settable(era: Era) -> Iterator[Gate]:
    return (gate for gate in Gate if GATES[gate].is_settable(era.basis))


class Settings(Struct, frozen=True):
    """What users' objects are to have otherwise than they had."""

    jobs: tuple[Setting, ...] = ()
    cron_jobs: tuple[CronSetting, ...] = ()


@dataclass(slots=True)
class _CronJobs(CronJobKeys):
    """The CronJobs of a trace, searched but not judged."""

    found: list[CronReplay] = field(default_factory=list)

    def key(self, history: CronHistory) -> None:
        """Search one name."""
        self.found.append(CronKeyJudge(history, self.runner, self.context).replay())


@dataclass(slots=True)
class _Drawn:
    """What the model needs of the record."""

    worlds: dict[str, JobWorld] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    #: The searched keys, of few Jobs: which of them hang on when they are served.
    searched: list[tuple[Rerunner, KeyReplay]] = field(default_factory=list)
    jobs: int = 0

    @property
    def few(self) -> bool:
        """Whether all Jobs of the record can be run, and often."""
        return self.jobs <= FEW

    @property
    def turns_ns(self) -> tuple[int, ...]:
        """How long keys waited for a worker, for runs of another pace."""
        return self.pace.turns_ns() if self.few else ()

    @property
    def company(self) -> tuple[str, ...]:
        """The Jobs whose calls others had to wait for: all, where the client was throttled."""
        if not (self.few and self.pace.throttled()):
            return ()
        worlds = self.worlds.items()
        return tuple(uid for uid, w in worlds if not (w.driven_by or w.incomplete))

    def on_edge(self, plan: Plan) -> frozenset[str]:
        """The Jobs whose syncs, a turn of the queue earlier or later, would decide otherwise."""
        rules = JobRules.of(plan.target)
        found = (on_edge(*searched, rules, plan.turn_ns) for searched in self.searched)
        return frozenset().union(*found)


@collecting_rarely()
def answer_all(
    reader: TraceReader,
    recorded: Era,
    targets: Sequence[Era],
    selected: Selected,
    settings: Settings | None = None,
    running: Running | None = None,
) -> list[Answers]:
    """What each of the targets would have done with the Jobs and CronJobs that are asked about.

    Raises:
        UsageError: The selection names nothing that is there.
    """
    judge = Judge(reader, recorded)
    wanted = _wanted(judge, selected)
    context = judge.run_context
    settings, running = settings or Settings(), running or Running()
    causes = running.causes
    provers = [
        Prover(recorded, target, context, settings.jobs, causes=causes, lanes=running.lanes)
        for target in targets
    ]
    answers = [
        Answers(recorded, target, settings.jobs, cron_settings=settings.cron_jobs)
        for target in targets
    ]
    cron_jobs = _CronJobs(judge.cron_runner, judge.cron_context)
    drawn = _prove(judge, reader, provers, answers, cron_jobs, running, wanted)
    flags = replace(
        running.flags or ManagerFlags(*drawn.pace.throttle()), zone=cron_jobs.runner.process_zone
    )
    timing = drawn.pace.timing()
    baselines: Baselines[ModelledJob] = {}
    cron_baselines: Baselines[ModelledCronJob] = {}
    for prover, found in zip(provers, answers, strict=True):
        found.draws = running.draws
        plan = Plan(
            recorded,
            found.target,
            context,
            flags,
            with_flags(flags, running.target_flags),
            settings.jobs,
            running.draws,
            timing,
            drawn.turns_ns,
            drawn.company,
            cron_settings=settings.cron_jobs,
            lanes=running.lanes,
        )
        model = ThreeWorlds(plan, drawn.worlds, baselines, drawn.on_edge(plan))
        _run_model(found, model, prover, wanted)
        cron_plan = replace(plan, run_context=cron_jobs.context)
        _answer_cron_jobs(found, cron_plan, cron_jobs.found, drawn.worlds, cron_baselines, causes)
        _leave_out_jobs(found)
    if (
        selected.part
        and not any(wanted(a.job) for a in answers[0].jobs)
        and not any(
            _asked_about(a, answers[0].jobs, selected, wanted) for a in answers[0].cron_jobs
        )
    ):
        raise UsageError(f"the trace has no Job {selected.part}: see `tracekit jobs`")
    for found in answers:
        found.cron_jobs = [
            a for a in found.cron_jobs if _asked_about(a, found.jobs, selected, wanted)
        ]
        found.jobs = [answer for answer in found.jobs if wanted(answer.job)]
        found.jobs.sort(key=lambda a: (a.job.namespace, a.job.name, a.job.created_ns, a.job.uid))
    return answers


def _prove(
    judge: Judge,
    reader: TraceReader,
    provers: Sequence[Prover],
    answers: Sequence[Answers],
    cron_jobs: _CronJobs,
    running: Running,
    wanted: Callable[[JobView], bool],
) -> _Drawn:
    """Go through the record once: the proofs of all Jobs, and what the model needs."""
    drawn = _Drawn()
    rules = JobRules.of(judge.era)
    groups = on_clock(reader.groups(COLUMNS), judge.run_context.clock)
    context, known = judge.run_context, judge.sampled()
    for judged in judge_groups(cron_jobs.passing(groups), rules, context, known=known):
        needed = False
        history = judged.replay.history
        cron_jobs.job(history)
        rerunner = Rerunner(KeyEvidence(history, rules, context))
        for prover, found in zip(provers, answers, strict=True):
            jobs = list(prover.answers(judged.replay, rerunner, wanted))
            found.jobs += jobs
            # Where the queue is the same, no run is asked about what is proved.
            served = running.target_flags is None and prover.same_queue
            raced = prover.overwrites_status and bool(prover.rows)
            needed = needed or any(
                needs_model(job) or (job.proved and (not served or raced)) for job in jobs
            )
        drawn.pace.add(judged.replay.syncs, judged.timing.calls_ns)
        drawn.jobs += len({r.view.uid for r in history.jobs})
        if drawn.few:
            drawn.searched.append((rerunner, judged.replay))
        else:
            drawn.searched.clear()
        needed = needed or any(owner_of(r.view) is not None for r in history.jobs)
        if (needed or drawn.few) and len(drawn.worlds) < WORLDS_MAX:
            drawn.worlds |= {world.job.uid: world for world in job_worlds(judged.replay)}
    return drawn


def owner_of(job: JobView) -> str | None:
    """The uid of the CronJob that owns a Job; None if none does."""
    owner = job.controller
    return owner.uid if owner is not None and owner.kind == OWNER_KIND else None


def _answer_cron_jobs(
    found: Answers,
    plan: Plan,
    replays: Sequence[CronReplay],
    job_worlds: Mapping[str, JobWorld],
    baselines: Baselines[ModelledCronJob],
    causes: bool,
) -> None:
    """The CronJobs of one target."""
    prover = CronProver(
        plan.recorded,
        plan.target,
        plan.run_context,
        plan.cron_settings,
        zone=plan.flags.zone,
        causes=causes,
    )
    jobs: dict[str, list[JobAnswer]] = {}
    for job in found.jobs:
        uid = owner_of(job.job)
        if uid is not None:
            jobs.setdefault(uid, []).append(job)
    worlds: dict[str, CronWorld] = {}
    asked: list[CronAnswer] = []
    running = 0
    for replay in replays:
        some = list(prover.answers(replay))
        found.cron_jobs += some
        needed = [
            a
            for a in some
            if a.reason == "fork" or (a.proved and hangs_on_jobs(a, jobs.get(a.uid, [])))
        ]
        running += sum(len(jobs.get(a.uid, [])) for a in needed)
        if needed and running <= CRON_RUN_JOBS_MAX:
            worlds |= {world.cron_job.uid: world for world in cron_worlds(replay, job_worlds)}
        asked += needed
    if asked:
        model = CronWorlds(plan, worlds, baselines)
        answered = model.answer(asked)
        if causes:
            for uid, answer in answered.items():
                if severity_of(answer.verdict) > Severity.FIELDS:
                    # What makes its Jobs end otherwise is the first that is tried.
                    first = replace(answer, because=with_job_causes(answer, jobs.get(uid, [])))
                    because = model.because(first, prover.search.rows)
                    answered[uid] = replace(answer, because=because)
        found.cron_jobs = [answered.get(a.uid, a) for a in found.cron_jobs]


def _leave_out_jobs(found: Answers) -> None:
    """Answer for the Jobs that their CronJob does not start."""
    lost = {
        (a.uid, start.job): a
        for a in found.cron_jobs
        if a.verdict == "outcome"
        for start in a.only[0]
    }
    for place, job in enumerate(found.jobs):
        cron_job = lost.get((owner_of(job.job) or "", job.job.name))
        if cron_job is not None:
            found.jobs[place] = not_started(job, cron_job)


def _asked_about(
    answer: CronAnswer,
    jobs: Sequence[JobAnswer],
    selected: Selected,
    wanted: Callable[[JobView], bool],
) -> bool:
    """Whether a CronJob is asked about: by its name, or by the labels of one of its Jobs."""
    if selected.namespace not in (None, answer.cron_job.namespace):
        return False
    if selected.job is not None and answer.key not in (
        selected.job,
        f"{selected.namespace}/{selected.job}",
    ):
        return False
    if not selected.within.meets(answer.cron_job.created_ns, answer.cron_job.deleted_ns):
        return False
    if selected.selector is None:
        return True
    return any(owner_of(job.job) == answer.uid and wanted(job.job) for job in jobs)


def with_flags(flags: ManagerFlags, asked: ManagerFlags | None) -> ManagerFlags:
    """The record's flags with those that are asked about."""
    if asked is None:
        return flags
    named = {name: value for name, value in asdict(asked).items() if value is not None}
    return replace(flags, **{name: value for name, value in named.items() if name != "zone"})


def _run_model(
    found: Answers, model: ThreeWorlds, prover: Prover, wanted: Callable[[JobView], bool]
) -> None:
    """Let the model answer where no proof does; all Jobs share its process, as they did."""
    forks = [job for job in found.jobs if needs_model(job)]
    others = [job for job in found.jobs if job.proved]
    # What the steps prove a run can contradict only where the queue is another.
    same = prover.same_queue and model.plan.flags == model.plan.target_flags
    # But how a race goes that decides counts, no step can prove; the record's own rules had theirs.
    raced = {job.uid for job in others if prover.rows and model.raced(job.recorded)}
    edged = model.on_edge & {job.uid for job in others} if len(forks) <= FEW else frozenset()
    asked = [*forks, *(job for job in others if not same or job.uid in raced | edged)]
    parts = [asked] if len(asked) <= MODELLED_MAX else episodes(asked, MODELLED_MAX)
    some: dict[str, JobAnswer] = {}
    for part in parts:
        some |= model.answer(part, len(asked))
    for place, job in enumerate(found.jobs):
        answer = some.get(job.job.uid)
        if answer is None:
            continue
        if job.proved and ((same and job.uid in edged) or not outdone(job, answer)):
            modelled = job
            if job.uid in raced:
                modelled = with_lots(job, answer, model.plan.recorded)
            if job.uid in edged and modelled is job:
                modelled = on_time(job, answer)
            found.jobs[place] = modelled
            continue
        if prover.causes and wanted(answer.job):
            answer = replace(answer, because=model.because(answer, prover.rows))
        found.jobs[place] = answer


def _wanted(judge: Judge, selected: Selected) -> Callable[[JobView], bool]:
    selector = None
    if selected.selector is not None:
        try:
            selector = selector_from_text(selected.selector)
        except ValueError as error:
            raise UsageError(
                f"-l {selected.selector!r} cannot be read from {str(error)!r} on; write it like "
                "app=shop,tier in (a,b)"
            ) from error
    if selected.namespace is not None:
        judge.objects.check_namespace(selected.namespace)
    key = None
    if selected.job is not None:
        key = judge.objects.key(selected.job, selected.namespace)

    def wanted(job: JobView) -> bool:
        return (
            selected.namespace in (None, job.namespace)
            and (key is None or key in _names(job))
            and (selector is None or selector_matches(selector, job.labels))
            and selected.within.meets(job.created_ns, _over_ns(job))
        )

    return wanted


def _over_ns(job: JobView) -> int | None:
    """When a Job had ended, or was deleted before that."""
    finished = job.status.finished
    ended_ns = finished.last_transition_ns if finished is not None else None
    return job.deleted_ns if ended_ns is None else ended_ns


def _names(job: JobView) -> tuple[tuple[str, str], ...]:
    """By which names a Job may be asked for: its own, and that of its CronJob."""
    owner = job.controller
    names = [job.name] if owner is None or owner.kind != "CronJob" else [job.name, owner.name]
    return tuple((job.namespace, name) for name in names)
