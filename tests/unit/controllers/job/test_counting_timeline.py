"""The counting controller on its queue: what failing pods make of the clock.

A small world with ideal caches: every write is seen at once, every pod fails one second after its
creation. Queue, limiter, handlers and sync are the product's; only the API server is made up here.
"""

from dataclasses import dataclass, field

import pytest
from counting_world import NOW, Api, S, job, pod, rules
from msgspec.structs import replace

from tests.support.handlers import job_updated, pod_added, pod_updated
from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.actions import Created, Outcome
from tracekit.ports.job.context import Choices, SyncClock
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.sync_counting import sync_counting_job
from tracekit.ports.workqueue.rate_limiters import job_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

KEY = "ns/job"


@dataclass
class World(Api):
    """One Job whose pods all fail after a second."""

    version: str = "1.17.17"
    limit: int = 2
    parallelism: int = 1
    created_at: list = field(default_factory=list)

    def __post_init__(self):
        era = Era.resolve(self.version)
        self.clock = VirtualClock(NOW)
        self.queue = RateLimitingQueue(self.clock, job_rate_limiter(era.constants))
        self.wake_rules = JobRules.of(era)
        self.rules = rules(self.version)
        self.job = job(self.parallelism, self.parallelism, self.limit)
        self.pods = {}
        self.fails_at = {}
        self.memory = JobMemory()

    def wake(self, wakes):
        for wake in wakes:
            self.queue.add_after(wake.key, wake.delay_ns)

    def create_pods(self, job, intents):
        del job
        answers = []
        for _ in intents:
            name = f"p{len(self.pods)}"
            self.pods[name] = pod(name, created_ns=self.clock.now_ns)
            self.fails_at[name] = self.clock.now_ns + S
            self.created_at.append((self.clock.now_ns - NOW) // S)
            self.memory.creation_observed()
            answers.append(Created(Outcome.OK, name))
            self.later.append(name)
        return answers

    def update_status(self, job, status):
        del job
        old, self.job = self.job, replace(self.job, status=status, rv=self.job.rv + 1)
        self.wake(job_updated(old, self.job, self.wake_rules, now_ns=self.clock.now_ns))
        return Outcome.OK, self.job

    def sync(self):
        self.later = []
        self.memory.requeues = self.queue.num_requeues(KEY)
        result = sync_counting_job(
            self.job,
            list(self.pods.values()),
            self.memory,
            self,
            clock=SyncClock(self.clock.now_ns),
            rules=self.rules,
            choices=Choices(),
        )
        for name in self.later:
            self.wake(pod_added(self.pods[name], {KEY: self.job}, self.wake_rules))
        if result.error:
            self.queue.add_rate_limited(KEY)
        elif result.forget:
            self.queue.forget(KEY)

    def run(self, until_s):
        self.queue.add(KEY)
        while True:
            key = self.queue.get()
            if key is not None:
                self.sync()
                self.queue.done(key)
                continue
            times = [*self.fails_at.values(), self.queue.next_ready_ns()]
            next_ns = min((at for at in times if at is not None), default=None)
            if next_ns is None or next_ns > NOW + until_s * S:
                return self
            self.clock.advance_to(next_ns)
            for name in [n for n, at in self.fails_at.items() if at <= next_ns]:
                del self.fails_at[name]
                old = self.pods[name]
                self.pods[name] = replace(old, phase="Failed", rv=old.rv + 1)
                self.wake(
                    pod_updated(
                        old,
                        self.pods[name],
                        {KEY: self.job},
                        self.wake_rules,
                        self.queue.num_requeues,
                    )
                )


@pytest.mark.parametrize("version", ["1.12.0", "1.17.17", "1.19.12", "1.20.8", "1.21.14"])
def test_the_first_failure_is_replaced_at_once_and_the_next_ones_after_10_and_20_seconds(version):
    """Spec 13: pods at 0, 1 and 11 s; the third failure is acted upon at 31 s."""
    world = World(version=version).run(600)
    assert world.created_at == [0, 1, 11]
    (ending,) = world.job.status.conditions
    assert ending.reason == "BackoffLimitExceeded"
    assert (ending.last_transition_ns - NOW) // S == 31
    assert world.job.status.failed == 3
    assert world.queue.num_requeues(KEY) == 0


def test_the_delays_double_up_to_six_minutes():
    world = World(limit=8).run(3000)
    gaps = [b - a for a, b in zip(world.created_at, world.created_at[1:], strict=False)]
    assert gaps == [1, 10, 20, 40, 80, 160, 320, 360]


@pytest.mark.parametrize(("version", "failed"), [("1.19.12", 40), ("1.20.8", 20)])
def test_with_parallelism_10_and_limit_10_only_1_20_keeps_near_the_limit(version, failed):
    """Up to 1.19 a retry of ten pods counts once."""
    world = World(version=version, limit=10 if version > "1.20" else 3, parallelism=10).run(3000)
    assert world.job.status.conditions[0].reason == "BackoffLimitExceeded"
    assert world.job.status.failed == failed


def test_a_users_edit_pre_empts_the_delay():
    world = World(limit=6).run(5)
    assert world.created_at == [0, 1]
    old, world.job = world.job, replace(world.job, generation=2)
    world.wake(job_updated(old, world.job, world.wake_rules, now_ns=world.clock.now_ns))
    world.run(6)
    assert world.created_at == [0, 1, 2]
