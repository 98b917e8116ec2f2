"""Time per write of one giant Job, as it came and with one lie in it: `python -m bench giant`.

A Job of N pods is run by the ported controller against a small model of the API server, one sync a
second; its record is then judged. The figure is CPU time per write, beside that of the smallest Job
in the same run: of a version that puts a status on one revision of the Job only, and of one that
puts it over any.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from msgspec.structs import replace

from tests.support.fake_api import FakeApi
from tests.support.handlers import pod_observed
from tests.support.objects import NOW_NS, job, rules
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobStatus, JobView, OwnerRef, PodView
from tracekit.check.diff.judge import judge_key
from tracekit.check.replay.history import History, Manager, Revision, WriteKind, build_history
from tracekit.check.replay.run_context import RunContext
from tracekit.ports.actions import Created, CreatePod, Outcome
from tracekit.ports.job.context import Choices, SyncClock
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.sync import sync_job

VERSIONS = ("v1.36.3", "v1.19.16")
SIZES = (10, 100, 1000, 5000)
NS_PER_MS = 1_000_000


@dataclass(slots=True)
class _Evidence:
    """What a row would tell of a pod."""

    view: Any
    spec: Mapping[str, Any] = field(default_factory=dict)
    generated: str = ""

    def managers(self) -> tuple[Manager, ...]:
        return ()

    def pod_spec(self) -> Mapping[str, Any]:
        return self.spec

    def generate_name(self) -> str:
        return self.generated

    def owners(self) -> tuple[OwnerRef, ...]:
        return tuple(self.view.owners)


class _World(FakeApi):
    """The fake API server, with a record of every revision."""

    def begin(self, start: JobView) -> None:
        self.rv = 1
        self.job_rows: list[Revision[JobView]] = []
        self.pod_rows: list[Revision[PodView]] = []
        self.bodies: dict[str, CreatePod] = {}
        self._put(start, "ADDED")

    def _stamp(self) -> int:
        self.rv += 1
        self.now_ns += NS_PER_MS
        return self.rv

    def _put(self, view: JobView, kind: str) -> JobView:
        view = replace(view, rv=self._stamp())
        row = Revision(view.rv, self.now_ns, view.rv, kind, view, _Evidence(view))
        self.job_rows.append(row)
        return view

    def change(self, pod: PodView, kind: str = "MODIFIED") -> PodView:
        pod = replace(pod, rv=self._stamp())
        self.pods[pod.name] = pod
        body = self.bodies[pod.name]
        evidence = _Evidence(pod, body.spec, body.generate_name)
        self.pod_rows.append(Revision(pod.rv, self.now_ns, pod.rv, kind, pod, evidence))
        return pod

    def create_pods(self, job: JobView, intents: list[CreatePod]) -> list[Created]:
        answers = super().create_pods(job, intents)
        for intent, answer in zip(intents, answers, strict=True):
            self.bodies[answer.name] = intent
            self.change(replace(self.pods[answer.name], created_ns=self.now_ns), "ADDED")
        return answers

    def remove_finalizer(self, pod: PodView) -> Outcome:
        now = self.pods[pod.name]
        self.change(replace(now, finalizers=(), has_tracking_finalizer=False))
        return Outcome.OK

    def update_status(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        whole = NS_PER_S  # the API keeps whole seconds
        status = replace(
            status,
            start_ns=_floor(status.start_ns, whole),
            completion_ns=_floor(status.completion_ns, whole),
            conditions=tuple(
                c._replace(
                    last_probe_ns=_floor(c.last_probe_ns, whole),
                    last_transition_ns=_floor(c.last_transition_ns, whole),
                )
                for c in status.conditions
            ),
        )
        return Outcome.OK, self._put(replace(job, status=status), "MODIFIED")


def _floor(at_ns: int | None, unit: int) -> int | None:
    return None if at_ns is None else at_ns // unit * unit


def record(size: int, version: str) -> History:
    """The history of a Job of `size` pods, run by the port, one sync a second."""
    ported = rules(version)
    rng = random.Random(size)  # noqa: S311 - a seed, no secret
    start = job("giant", parallelism=size, completions=size)
    world = _World(now_ns=NOW_NS)
    world.begin(start)
    memory, seen = JobMemory(), 0
    cache: dict[str, PodView] = {}
    running: dict[str, int] = {}
    clock_ns = NOW_NS
    while world.job_rows[-1].view.status.finished is None:
        clock_ns += NS_PER_S
        world.now_ns = max(clock_ns, world.now_ns)
        for row in world.pod_rows[seen:]:
            old = cache.get(row.view.uid)
            cache[row.view.uid] = row.view
            pod_observed(memory, old, row.view, start, ported)
        seen = len(world.pod_rows)
        clock = SyncClock(world.now_ns + 7)
        sync_job(
            world.job_rows[-1].view, list(cache.values()), memory, world,
            clock=clock, rules=ported, choices=Choices(),
        )  # fmt: skip
        world.now_ns = max(world.now_ns, clock_ns)
        for name, pod in sorted(world.pods.items()):
            if pod.phase == "Pending":
                world.change(replace(pod, phase="Running", ready=True, node_name="n"))
                running[name] = clock_ns + rng.randrange(2, 40) * NS_PER_S
            elif pod.phase == "Running" and clock_ns >= running[name]:
                world.change(replace(pod, phase="Succeeded", ready=False))
        world.now_ns = max(world.now_ns, clock_ns + NS_PER_S // 2)
    return build_history(start.namespace, start.name, world.job_rows, world.pod_rows, ())


def lie(history: History) -> History:
    """The same record with one status in its midst that counts one ready pod too few."""
    statuses = [w for w in history.writes if w.kind is WriteKind.STATUS_UPDATE]
    chosen = statuses[len(statuses) // 2].job
    jobs = []
    for row in history.jobs:
        view = row.view
        if chosen is not None and row.rv == chosen.rv:
            ready = (view.status.ready or 0) + 1
            view = replace(view, status=replace(view.status, ready=ready))
        jobs.append(Revision(row.rv, row.recv_ns, row.seq, row.type, view, row.evidence))
    pods = [
        Revision(row.rv, row.recv_ns, row.seq, row.type, row.view, row.evidence)
        for row in history.pods
    ]
    return build_history(history.namespace, history.name, jobs, pods, ())


def main() -> None:
    """Print the table."""
    print(f"{'':9} {'pods':>6} {'writes':>7} {'clean':>10} {'lie':>10}  CPU ms per write, verdicts")
    for version, size in product(VERSIONS, SIZES):
        honest = record(size, version)
        end = RunContext(honest.jobs[-1].recv_ns + 60 * NS_PER_S)
        figures, found = [], []
        for history in (honest, lie(honest)):
            begun = time.process_time()
            judged = judge_key(history, rules(version), end)
            figures.append((time.process_time() - begun) * 1000 / len(history.writes))
            found.append(sum(judgement.divergent for judgement in judged.judgements))
        print(
            f"{version:9} {size:>6} {len(honest.writes):>7} {figures[0]:>10.3f} {figures[1]:>10.3f}"
            f"  {found[0]} and {found[1]} divergences"
        )


if __name__ == "__main__":
    main()
