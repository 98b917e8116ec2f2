"""A trace under other rules: what a reader holds, and what the room `whatif` makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from tracekit.diff.trace import judge_groups
from tracekit.eras.era import Era
from tracekit.eras.gates import GATES, Gate
from tracekit.eras.job import JobRules
from tracekit.eras.texts import parse_feature_gates
from tracekit.errors import UsageError
from tracekit.judging.judged import Judge, resolve_era
from tracekit.kube.selectors import selector_from_text, selector_matches
from tracekit.kube.views import JobView
from tracekit.process.manager import ManagerFlags
from tracekit.replay.feed import COLUMNS
from tracekit.replay.key_facts import KeyFacts
from tracekit.replay.rerun import Rerunner
from tracekit.trace.reading.reader import TraceReader
from tracekit.whatif.answers import Answers, Prover, needs_model
from tracekit.whatif.changes import Setting
from tracekit.whatif.three_worlds import Baselines, Plan, ThreeWorlds, outdone
from tracekit.worlds.drawing import JobWorld, job_worlds
from tracekit.worlds.pace import Pace


@dataclass(frozen=True, slots=True)
class Selected:
    """Which Jobs are asked about; None asks for no part."""

    namespace: str | None = None
    job: str | None = None  # namespace/name
    selector: str | None = None

    @property
    def part(self) -> str:
        """The part in words; empty for all."""
        parts = [
            f"with labels {self.selector}" if self.selector else "",
            f"named {self.job}" if self.job else "",
            f"in namespace {self.namespace}" if self.namespace else "",
        ]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Running:
    """How the model is run: the flags of the two controller managers, and how many times."""

    flags: ManagerFlags | None = None  # of the record; None: as its calls tell
    target_flags: ManagerFlags | None = None
    draws: int = 1
    causes: bool = True  # whether the rows are looked for that make each difference


#: Of more Jobs than that only those are run that fork.
MODELLED_MAX = 1_000
#: Of more Jobs than that no world is drawn, and those that fork are uncalibrated.
WORLDS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Target:
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


def answer_all(
    reader: TraceReader,
    recorded: Era,
    targets: Sequence[Era],
    selected: Selected,
    settings: tuple[Setting, ...] = (),
    running: Running | None = None,
) -> list[Answers]:
    """What each of the targets would have done with the Jobs that are asked about.

    Raises:
        UsageError: The selection names nothing that is there.
    """
    judge = Judge(reader, recorded)
    wanted = _wanted(judge, selected)
    context = judge.run_context
    running = running or Running()
    provers = [
        Prover(recorded, target, context, settings, causes=running.causes) for target in targets
    ]
    answers = [Answers(recorded, target, settings) for target in targets]
    groups = reader.groups(COLUMNS)
    worlds: dict[str, JobWorld] = {}
    pace = Pace()
    rules = JobRules.of(recorded)
    for judged in judge_groups(groups, rules, context):
        needed = False
        rerunner = Rerunner(KeyFacts(judged.replay.history, rules, context))
        for prover, found in zip(provers, answers, strict=True):
            jobs = list(prover.answers(judged.replay, rerunner, wanted))
            found.jobs += jobs
            # Where the queue is the same, no run is asked about what is proved.
            served = running.target_flags is None and prover.same_queue
            needed = needed or any(needs_model(job) or (job.proved and not served) for job in jobs)
        pace.add(judged.replay.syncs, judged.timing.calls_ns)
        if needed and len(worlds) < WORLDS_MAX:
            worlds |= {world.job.uid: world for world in job_worlds(judged.replay)}
    if selected.part and not any(wanted(answer.job) for answer in answers[0].jobs):
        raise UsageError(f"the trace has no Job {selected.part}: see `tracekit jobs`")
    flags = running.flags or ManagerFlags(*pace.throttle())
    timing = pace.timing()
    baselines: Baselines = {}
    for prover, found in zip(provers, answers, strict=True):
        found.draws = running.draws
        plan = Plan(
            recorded,
            found.target,
            context,
            flags,
            with_flags(flags, running.target_flags),
            settings,
            running.draws,
            timing,
        )
        _run_model(found, ThreeWorlds(plan, worlds, baselines), prover, wanted)
        found.jobs = [answer for answer in found.jobs if wanted(answer.job)]
        found.jobs.sort(key=lambda a: (a.job.namespace, a.job.name, a.job.created_ns, a.job.uid))
    return answers


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
    if same or len(forks) + len(others) > MODELLED_MAX:
        others = []
    if not forks and not others:
        return
    told = model.answer([*forks, *others])
    for place, job in enumerate(found.jobs):
        answer = told.get(job.job.uid)
        if answer is None or (job.proved and not outdone(job, answer)):
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
        )

    return wanted


def _names(job: JobView) -> tuple[tuple[str, str], ...]:
    """By which names a Job may be asked for: its own, and that of its CronJob."""
    owner = job.controller
    names = [job.name] if owner is None or owner.kind != "CronJob" else [job.name, owner.name]
    return tuple((job.namespace, name) for name in names)
