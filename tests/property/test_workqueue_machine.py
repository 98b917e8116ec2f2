"""The rate-limiting queue against a naive model, over any sequence of operations.

The model keeps whole lists and looks through all of them at each step; it shares no code and no
data structure with the queue.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue

KEYS = st.sampled_from(["ns/a", "ns/b", "ns/c", "ns/d"])
BASE, CAP = 3, 40


class QueueMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.clock = VirtualClock()
        self.queue = RateLimitingQueue(self.clock, ItemExponentialFailureRateLimiter(BASE, CAP))
        self.now = 0
        self.waiting = []  # keys, oldest first
        self.working = []  # keys handed out
        self.again = []  # keys handed out and added meanwhile
        self.timers = []  # [ready, order of first request, key]
        self.requests = 0
        self.failures = {}
        self.closed = False

    # The model.

    def model_add(self, key):
        if self.closed or key in self.waiting or key in self.again:
            return
        (self.again if key in self.working else self.waiting).append(key)

    def model_after(self, key, delay):
        if self.closed:
            return
        if delay <= 0:
            self.model_add(key)
            return
        for timer in self.timers:
            if timer[2] == key:
                timer[0] = min(timer[0], self.now + delay)
                return
        self.requests += 1
        self.timers.append([self.now + delay, self.requests, key])

    def model_fire(self):
        for timer in sorted(t for t in self.timers if t[0] <= self.now):
            self.timers.remove(timer)
            self.model_add(timer[2])

    # What may happen.

    @rule(key=KEYS)
    def add(self, key):
        self.model_fire()
        self.queue.poll()
        self.queue.add(key)
        self.model_add(key)

    @rule(key=KEYS, delay=st.integers(-2, 30))
    def add_after(self, key, delay):
        self.model_fire()
        self.queue.poll()
        self.queue.add_after(key, delay)
        self.model_after(key, delay)

    @rule(key=KEYS)
    def add_rate_limited(self, key):
        self.model_fire()
        self.queue.poll()
        self.queue.add_rate_limited(key)
        count = self.failures.get(key, 0)
        self.failures[key] = count + 1
        self.model_after(key, min(BASE * 2**count, CAP))

    @rule(key=KEYS)
    def forget(self, key):
        self.queue.forget(key)
        self.failures.pop(key, None)

    @rule()
    def get(self):
        self.model_fire()
        expected = self.waiting.pop(0) if self.waiting else None
        assert self.queue.get() == expected
        if expected is not None:
            self.working.append(expected)

    @rule(data=st.data())
    def done(self, data):
        if not self.working:
            return
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.working.remove(key)
        if key in self.again:
            self.again.remove(key)
            self.waiting.append(key)
        self.queue.done(key)

    @rule(span=st.integers(0, 25))
    def time_passes(self, span):
        self.now += span
        self.clock.advance(span)

    @rule(sure=st.integers(0, 20))
    def shut_down(self, sure):
        if sure == 0:
            self.model_fire()
            self.queue.poll()
            self.queue.shut_down()
            self.closed = True

    # What must hold.

    @invariant()
    def both_hold_the_same(self):
        self.model_fire()
        assert len(self.queue) == len(self.waiting)
        assert list(self.queue.waiting()) == self.waiting
        for key in ("ns/a", "ns/b", "ns/c", "ns/d"):
            assert self.queue.is_processing(key) == (key in self.working)
            assert self.queue.is_dirty(key) == (key in self.waiting or key in self.again)
            assert self.queue.num_requeues(key) == self.failures.get(key, 0)
            timers = [timer[0] for timer in self.timers if timer[2] == key]
            assert self.queue.pending_ns(key) == (timers[0] if timers else None)
        assert self.queue.next_ready_ns() == min((t[0] for t in self.timers), default=None)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=150, stateful_step_count=40)
