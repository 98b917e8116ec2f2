"""Three worlds for CronJobs: runs of the model in which their controller starts their Jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from tracekit.answers.whatif.cron_answers import CronAnswer, cron_difference, cron_misfit
from tracekit.answers.whatif.cron_changes import raw_settings
from tracekit.answers.whatif.cron_course import CronCourse, SeenJob, course_of, started_jobs
from tracekit.answers.whatif.model import (
    STOPPED,
    calls_max,
    noticed_ns,
    ran_ns,
    with_user_settings,
)
from tracekit.answers.whatif.plan import Plan
from tracekit.answers.whatif.steps import Severity
from tracekit.answers.whatif.three_worlds import Baselines, Worlds
from tracekit.answers.whatif_inputs.cronjobs import CronPodLifetimes, CronWorld
from tracekit.base.kube.cronjob_views import FORBID, CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import job_from_raw
from tracekit.check.diff.cron_ticks import SeenCronJob, Surroundings
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.draws import SeededDraws
from tracekit.model.simulate.run import Row, simulate
from tracekit.model.simulate.world import World
from tracekit.versions.constants import CRON_POLL_PERIOD_NS
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import Era

#: A start of the model may lie so far from the recorded one; a pass of the polling controller
#: begins whenever it does, so there a period more.
START_BOUND_NS: Final = 3 * NS_PER_S


class ModelledCronJob(Struct, frozen=True):
    """How one CronJob went in a run."""

    course: CronCourse
    extrapolated: bool = False
    censored: str = ""
    #: Whether the run was stopped before its end.
    stopped: bool = False


class CronWorlds(Worlds[CronAnswer, ModelledCronJob]):
    """Answers about CronJobs."""

    def __init__(
        self,
        plan: Plan,
        worlds: Mapping[str, CronWorld],
        baselines: Baselines[ModelledCronJob] | None = None,
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
    ) -> dict[str, ModelledCronJob]:
        """Run CronJobs together in one process."""
        del by_pod  # pods that somebody deleted are deleted at that time
        plan = self.plan
        worlds = [self.worlds[uid] for uid in uids]
        lifetimes = CronPodLifetimes.of(worlds)
        cron = raw_settings(plan.cron_settings) if settings else {}
        change = with_user_settings(plan.settings if settings else (), cron)
        present = [change(there) for world in worlds for there in world.present]
        writes = [change(write) for world in worlds for write in world.writes]
        writes.sort(key=lambda write: write.at_ns)
        begin_ns = min((w.at_ns for w in (*present, *writes)), default=plan.run_context.end_ns)
        run = simulate(
            World(
                start_ns=begin_ns - NS_PER_S,
                end_ns=plan.run_context.end_ns,
                writes=writes,
                lifetimes=lifetimes,
                refusals=[refusal for world in worlds for refusal in world.refusals],
                pod_quota={
                    w.cron_job.namespace: w.pod_quota for w in worlds if w.pod_quota is not None
                },
                restarts=self.restarts,
                renews_lease=bool(self.restarts),
                present=present,  # type: ignore[arg-type] # a change keeps the kind of write
            ),
            era,
            flags,
            SeededDraws(seed, plan.timing),
            calls_max=calls_max(
                len(present) + len(writes) + sum(len(world.lifetimes) for world in worlds)
            ),
        )
        if run.stopped:
            stopped = ModelledCronJob(CronCourse(), censored=STOPPED, stopped=True)
            return dict.fromkeys(uids, stopped)
        reading = _Reading(uids, self._around(), CronRunner(CronJobEra.of(era), flags.zone))
        for row in run.rows:
            reading.take(row)
        return {uid: reading.of(uid, lifetimes) for uid in uids}

    def _around(self) -> Surroundings:
        context = self.plan.run_context
        return Surroundings(
            context.end_ns,
            context.coverage,
            [(outage.from_ns, outage.until_ns) for outage in context.restarts],
        )

    def possible(self, answer: CronAnswer) -> str:
        """Why the model cannot run a CronJob."""
        world = self.worlds.get(answer.uid)
        return "more CronJobs fork than are run" if world is None else world.incomplete

    def misfit(self, recorded: CronCourse, baseline: CronCourse) -> str:
        """As `cron_misfit`."""
        polls = CronRunner(CronJobEra.of(self.plan.recorded)).polls
        bound_ns = START_BOUND_NS + (CRON_POLL_PERIOD_NS if polls else 0)
        return cron_misfit(recorded, baseline, bound_ns)

    def counted(self, course: CronCourse) -> tuple[int, ...]:
        """The counts of its ticks."""
        return tuple(course.counts.values())

    def difference(self, old: CronCourse, new: CronCourse) -> Severity:
        """As `cron_difference`."""
        return cron_difference(old, new)


class _Reading:
    """What the recorder of a run saw of its CronJobs."""

    def __init__(self, uids: Sequence[str], around: Surroundings, runner: CronRunner) -> None:
        self._around = around
        self._runner = runner
        self._seen: dict[str, list[SeenCronJob]] = {uid: [] for uid in uids}
        self._jobs: dict[str, list[SeenJob]] = {uid: [] for uid in uids}
        self._pods: dict[str, dict[str, list[Row]]] = {}  # of each Job, by uid

    def take(self, row: Row) -> None:
        """One more row."""
        if row.type in ("LIST_BEGIN", "LIST_END"):
            return
        if row.stream == "cronjobs":
            view = CronJobView.from_raw(row.obj)
            if view.uid in self._seen:
                self._seen[view.uid].append(SeenCronJob(row.recv_ns, row.type, view))
        elif row.stream == "jobs":
            job = job_from_raw(row.obj)
            if job.controller is not None and job.controller.uid in self._jobs:
                self._jobs[job.controller.uid].append(SeenJob(row.recv_ns, row.type, job))
        elif row.stream == "pods":
            meta = row.obj["metadata"]
            for ref in meta.get("ownerReferences", ()):
                pods = self._pods.setdefault(ref["uid"], {})
                pods.setdefault(meta["uid"], []).append(row)

    def of(self, uid: str, lifetimes: CronPodLifetimes) -> ModelledCronJob:
        """How one of them went; without a revision its API server has refused it."""
        seen = self._seen[uid]
        if not seen:
            return ModelledCronJob(CronCourse())
        view, jobs = seen[-1].view, started_jobs(self._jobs[uid], uid)
        return ModelledCronJob(
            course_of(seen, jobs, self._around, self._runner),
            (view.namespace, view.name) in lifetimes.extrapolated,
            self._censored(uid, lifetimes) if view.spec.concurrency_policy == FORBID else "",
        )

    def _censored(self, uid: str, lifetimes: CronPodLifetimes) -> str:
        """Why it cannot be told how long its Jobs ran, where that decides what it starts."""
        for job in {seen.view.uid: seen for seen in self._jobs[uid]}:
            for pod, rows in self._pods.get(job, {}).items():
                given = lifetimes.filled.given.get(pod)
                if given is None or given.cut_off_ns is None or given.beyond:
                    continue
                if ran_ns(rows, self._around.end_ns) - given.cut_off_ns > noticed_ns(given):
                    return (
                        "a pod of its Jobs lives on where its life was cut off in the record, and "
                        "nobody saw how it would have gone on"
                    )
        return ""
