"""The controllers that are judged beside the Job controller: one row each, more can be added.

The Job controller's search is what all others stand on: it takes a trace apart by Jobs and hands
the history of each on. What else a row of the trace tells, a controller takes in as it passes.
docs/extending.md adds one as an example.

    register(Controller("pod-gc", ("pod-delete",), PodGcJudge.of, PodGcSummary))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.cron.zones import load_zone
from tracekit.check.diff.cronjob import CronJobJudge, CronJobsSummary
from tracekit.check.diff.cross_key_timing import CrossKeyTiming
from tracekit.check.diff.ttl import TtlJudge, TtlSummary
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.feed import RowGroup
from tracekit.check.replay.history import History
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import ACTIONS, CRON_JOB_ACTIONS, TTL_ACTIONS, Judgement
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import Era

Key = tuple[str, str]


class ControllerJudge(Protocol):
    """Judges one controller's work in a trace, or in a part of it that another process may have."""

    #: What the trace as a whole tells; `whole` is taken back if a part of it could not be judged.
    context: RunContext
    #: What it tells of the process, and knows of it: queue, calls, informers.
    cross_key: CrossKeyTiming

    def passing(self, groups: Iterable[RowGroup]) -> Iterable[RowGroup]:
        """The same groups of rows, in order of namespace and Job, after what it needs was taken."""

    def job(self, history: History) -> None:
        """Take in what happened to the Jobs of one name, their pods and Events."""

    def summary(self) -> Any:
        """What it found in its part: a Struct of plain data, as `Controller.told` says."""

    def merge(self, summary: Any) -> None:
        """Take in what was found in another part; parts come in any order."""

    def report(self) -> list[Judgement]:
        """All judgements, once everything was taken in; in any order."""


class Scope(Struct, frozen=True):
    """What a judge is made for."""

    era: Era
    context: RunContext  # of the trace as a whole
    jobs: CrossKeyTiming  # of the Job controller, which runs in the same process
    #: Of a part of a trace: the CronJobs that it is about, as (namespace, name); None: all.
    cron_jobs: Collection[Key] | None = None


class Controller(Struct, frozen=True):
    """One controller: what it is called, what it does, and who judges it."""

    name: str
    actions: tuple[str, ...]  # in the order of the report
    judge: Callable[[Scope], ControllerJudge]
    summary: type[Struct]  # what its judges tell each other


def _cron_jobs(scope: Scope) -> ControllerJudge:
    runner = CronRunner(CronJobEra.of(scope.era), load_zone(scope.era.process_zone))
    context = scope.context.watching("jobs", "cronjobs")
    return CronJobJudge(runner, context, scope.jobs.beside("cronjob"), scope.cron_jobs)


def _ttl(scope: Scope) -> ControllerJudge:
    context = scope.context.watching("jobs")
    return TtlJudge(CronJobEra.of(scope.era), context, scope.jobs.beside("ttl"))


_CONTROLLERS: dict[str, Controller] = {
    controller.name: controller
    for controller in (
        Controller("cronjob", CRON_JOB_ACTIONS, _cron_jobs, CronJobsSummary),
        Controller("ttl", TTL_ACTIONS, _ttl, TtlSummary),
    )
}


def register(controller: Controller) -> None:
    """Have another controller judged from now on, wherever a trace is.

    Raises:
        ValueError: There is one of that name.
    """
    if controller.name in ACTIONS:
        raise ValueError(f"there is a controller {controller.name!r} already")
    _CONTROLLERS[controller.name] = controller
    ACTIONS[controller.name] = controller.actions


def unregister(name: str) -> None:
    """Undo `register`."""
    del _CONTROLLERS[name], ACTIONS[name]


def summary_types() -> dict[str, type]:
    """What the judges of each controller tell each other, by the controller's name."""
    return {controller.name: controller.summary for controller in _CONTROLLERS.values()}


class Others:
    """The judges of all controllers but the Job controller, as one."""

    def __init__(self, scope: Scope) -> None:
        self.judges = {c.name: c.judge(scope) for c in _CONTROLLERS.values()}

    def passing(self, groups: Iterable[RowGroup]) -> Iterable[RowGroup]:
        """The groups of rows, after each took what it needs."""
        for judge in self.judges.values():
            groups = judge.passing(groups)
        return groups

    def job(self, history: History) -> None:
        """Hand the Jobs of one name on."""
        for judge in self.judges.values():
            judge.job(history)

    def summary(self) -> dict[str, Any]:
        """What each found in a part of a trace, by the controller's name."""
        return {name: judge.summary() for name, judge in self.judges.items()}

    def merge(self, summary: dict[str, Any]) -> None:
        """Take in what was found in another part."""
        for name, found in summary.items():
            self.judges[name].merge(found)

    def distrust_silence(self) -> None:
        """Conclude nothing from what is not there: a part of the trace could not be judged."""
        for judge in self.judges.values():
            judge.context = replace(judge.context, whole=False)

    def report(self) -> list[Judgement]:
        """What was found of all of them."""
        return [judgement for judge in self.judges.values() for judgement in judge.report()]
