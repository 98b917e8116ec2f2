"""The proof: other rules at every cut that explained an observed write, step by step.

Both rules get the same caches, clock and answers of the API server; each has its own memory and its
own status of the Job, as its own steps made them. As long as the others do the same to the pods,
what the record shows of the pods is what they would have met, too: the walk stays sound, and
statuses, conditions and Events that differ are told. Where they would have been in the queue and
the record's rules had nothing to do, they are asked as well (`_between`). The first step that does
something else to the pods, or that their queue would not have served then, is the *fork*: from
there on only a model can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from tracekit.answers.whatif.queue_delays import held_back, job_delay
from tracekit.answers.whatif.steps import (
    Difference,
    Proof,
    Severity,
    acts,
    call_differences,
    status_differences,
)
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobStatus, JobView, PodView
from tracekit.check.replay.handlers import PodHandlers
from tracekit.check.replay.history import Revision
from tracekit.check.replay.recorded_api import Assumptions
from tracekit.check.replay.rerun import Course, Rerunner
from tracekit.check.replay.search_state import Explanation, KeyReplay, WithoutSync
from tracekit.ports.job.memory import JobMemory
from tracekit.versions.job import JobRules

#: A state of the caches that stood so much longer than the queue's delay was certainly served.
SERVED_AFTER_NS = 3 * NS_PER_S // 10
#: Rows may reach the recorder so much closer together, or further apart, than they were made.
_JITTER_NS = NS_PER_S // 5
#: Syncs that a timer of the others' own asks for, one after the other, between two recorded ones.
_TIMERS = 16

Change = Callable[[JobView], JobView]


@dataclass(slots=True)
class JobProof(Proof):
    """What the steps of one Job show."""

    #: The Job's last status by the other rules; None where it is the recorded one.
    status: JobStatus | None = None
    #: A timer of the others that was still to go off when the record ended.
    pending_ns: int | None = None


class _Override(NamedTuple):
    position: int  # of the Job's revision from which on it holds
    status: JobStatus | None  # None: the recorded one


class KeyProof:
    """Walks other rules through the explained syncs of one key."""

    def __init__(
        self, rerunner: Rerunner, rules: JobRules, change: Change = lambda job: job
    ) -> None:
        self.rerunner = rerunner
        self.facts = rerunner.facts
        self.history = rerunner.facts.history
        self.rules = rules
        self._handlers = PodHandlers(self.history, rules)
        self.change = change
        self.proofs: dict[str, JobProof] = {}
        self._begin("")

    def _begin(self, uid: str) -> None:
        self.now = self.proofs.setdefault(uid, JobProof(uid)) if uid else JobProof("")
        self.memory = JobMemory()
        self.handled_upto = 0
        self.overrides: list[_Override] = []
        self.timer_ns: int | None = None

    def run(self, replay: KeyReplay) -> dict[str, JobProof]:
        """The proofs of the key's Jobs, by uid."""
        before: Explanation | None = None
        for sync in replay.syncs:
            if sync.job is None or sync.began is None or sync.problems:
                self._lose(sync, "the record's own rules do not explain all that was observed")
                continue
            uid = sync.job.view.uid
            if uid != self.now.uid:
                self._after(before)
                self._begin(uid)
                before = None
            if self._open:
                self._between(before, sync)
            if self._open:
                self._step(before, sync)
            before = sync
        self._after(before)
        for unsynced in replay.of(WithoutSync.UNKNOWABLE):
            job = unsynced.write.job
            owner = unsynced.write.pod.view.controller if unsynced.write.pod is not None else None
            uid = job.view.uid if job is not None else owner.uid if owner is not None else ""
            if uid in self.proofs and not self.proofs[uid].lost:
                self.proofs[uid].lost = unsynced.why or "a write that the record cannot tell of"
        return self.proofs

    @property
    def _open(self) -> bool:
        return self.now.fork is None and not self.now.lost

    def _lose(self, sync: Explanation, why: str) -> None:
        job = sync.job or self.history.job_before(sync.writes[0].rv + 1)
        if job is not None:
            proof = self.proofs.setdefault(job.view.uid, JobProof(job.view.uid))
            proof.lost = proof.lost or why

    # One recorded step.

    def _step(self, before: Explanation | None, sync: Explanation) -> None:
        began, job = sync.began, sync.job
        assert began is not None and job is not None  # noqa: S101, PT018 - run() saw to it
        ours = self.rerunner.explained(sync)
        if ours is None or ours.result is None:
            self.now.lost = "the record ends, or its controller died, within a sync"
            return
        if not self._queue_serves(before, sync):
            return
        self._remember(before, began.memory, began.handled)
        view = self._view(job)
        theirs = self.rerunner.by_other_rules(
            view, sync.pod_cut, self.memory, self.rules, ours, start=began.state.index
        )
        self.now.steps += 1
        written = [write.job for write in sync.writes if write.job is not None]
        place = written[-1].position if written else job.position
        self._compare(ours, theirs, sync.writes[0].recv_ns, str(sync.writes[0].rv))
        self._keep(ours, theirs, place)
        self._arm(ours, theirs)

    def _view(self, job: Revision[JobView]) -> JobView:
        """The Job as the other rules would have found it."""
        status: JobStatus | None = None
        for override in self.overrides:
            if override.position <= job.position:
                status = override.status
        view = job.view if status is None else replace(job.view, status=status)
        return self.change(view)

    def _remember(self, before: Explanation | None, memory: JobMemory, handled: int) -> None:
        """Bring their memory to where the sync began; where the record's was lost, so is theirs."""
        expected = before.state.memory.copy() if before is not None else JobMemory()
        start = before.state.handled if before is not None else 0
        for revision in self.history.pods[start:handled]:
            self.facts.pod_handlers.tell(expected, revision, self.now.uid)
        if expected != memory:
            self.memory = memory.copy()
            self.handled_upto = handled
        else:
            self._tell(handled)

    def _tell(self, upto: int) -> None:
        for revision in self.history.pods[self.handled_upto : upto]:
            self._handlers.tell(self.memory, revision, self.now.uid)
        self.handled_upto = max(self.handled_upto, upto)

    def _compare(self, ours: Course, theirs: Course, at_ns: int, rv: str) -> None:
        self.now.differences += call_differences(ours, theirs, at_ns, rv)

    def _keep(self, ours: Course, theirs: Course, position: int) -> None:
        """The statuses that both are left with."""
        left, right = ours.job, theirs.job
        assert left is not None and right is not None  # noqa: S101, PT018 - set where it began
        differing = status_differences(left.status, right.status)
        if not differing:
            if self.overrides and self.overrides[-1].status is not None:
                self.overrides.append(_Override(position, None))
            return
        self.overrides.append(_Override(position, right.status))
        if left.status.finished is None and right.status.finished is None:
            text = f"status: {', '.join(differing)} differ"
        else:
            text = _endings(left.status, right.status, differing)
        if not any(d.text == text for d in self.now.differences):
            self.now.differences.append(
                Difference(Severity.FIELDS, "status", text, theirs.now_ns, str(left.rv))
            )

    def _arm(self, ours: Course, theirs: Course) -> None:
        assert ours.result is not None and theirs.result is not None  # noqa: S101, PT018
        left, right = ours.result.wake_after_ns, theirs.result.wake_after_ns
        self.timer_ns = theirs.now_ns + right if right is not None and left != right else None

    # Whether their queue would have served the key then.

    def _queue_serves(self, before: Explanation | None, sync: Explanation) -> bool:
        mine, other = self.facts.rules, self.rules
        if mine.handlers == other.handlers and mine.retries == other.retries:
            return True
        served_ns = sync.writes[0].recv_ns + _JITTER_NS
        ready: list[int] = []
        same = True
        for recv_ns, left, right in self._wakes(before, sync):
            if left is None or right is None:
                text = "its queue holds the Job back for other times when a pod has failed"
                return self._queue_fork(text, sync)
            same = same and left == right
            ready.append(recv_ns + right)
        if before is not None and before.error and mine.retries != other.retries:
            return self._queue_fork("a sync that failed is retried after another time", sync)
        if same or not ready or min(ready) <= served_ns or sync.timed:
            return True
        # They would have come a batch later: the same, unless something else had come by then.
        late = min(ready)
        newer = self.history.pods[sync.pod_cut : sync.pod_cut + 1]
        if newer and newer[0].recv_ns <= late:
            return self._queue_fork("its queue gathers pod events that came one by one", sync)
        return True

    def _queue_fork(self, text: str, sync: Explanation) -> bool:
        self.now.differences.append(
            Difference(
                Severity.TIMING,
                "queue",
                text,
                sync.writes[0].recv_ns,
                str(sync.writes[0].rv),
                fork=True,
            )
        )
        return False

    def _wakes(
        self, before: Explanation | None, sync: Explanation
    ) -> Iterator[tuple[int, int | None, int | None]]:
        """What put the key into the queue: when it came, and the delay by either side's rules."""
        first = before.pod_cut if before is not None else 0
        for pod in self.history.pods[first : sync.pod_cut]:
            yield pod.recv_ns, *self._pod_delays(pod)
        assert sync.job is not None  # noqa: S101 - run() saw to it
        start = before.job.position + 1 if before is not None and before.job is not None else 0
        for job in self.history.jobs[start : sync.job.position + 1]:
            left, right = (job_delay(job, rules) for rules in (self.facts.rules, self.rules))
            yield job.recv_ns, left, right

    def _pod_delays(self, pod: Revision[PodView]) -> tuple[int | None, int | None]:
        """The delays; None where they are the key's back-off and these differ."""
        mine, other = self.facts.rules, self.rules
        held = [held_back(pod, rules) for rules in (mine, other)]
        if held[0] != held[1] or (held[0] and mine.retries != other.retries):
            return None, None
        return mine.handlers.batch_ns, other.handlers.batch_ns

    # Syncs that left nothing.

    def _between(self, before: Explanation | None, sync: Explanation) -> None:
        """Ask the others where the record's rules were surely served and had nothing to do."""
        if before is None or sync.began is None or sync.job is None:
            return
        until_ns = sync.writes[0].recv_ns
        inputs = self._inputs(before, sync.job.position + 1, sync.pod_cut)
        start, skip = sync.began.state.index, sync.began.state.done
        self._ask(before, inputs, until_ns, start, skip)

    def _after(self, before: Explanation | None) -> None:
        """Ask the others until the record, or the Job, ends."""
        if before is None or before.job is None or not self._open:
            self._close()
            return
        jobs = [job for job in self.history.jobs if job.view.uid == self.now.uid]
        gone = next((job for job in jobs if job.type == "DELETED"), None)
        until_ns = gone.recv_ns if gone is not None else self.facts.run_context.end_ns
        pods = self.history.pods_below(gone.rv) if gone is not None else len(self.history.pods)
        inputs = self._inputs(before, jobs[-1].position + (gone is None), pods)
        end = len(self.history.writes)
        self._ask(before, inputs, until_ns, end, before.state.done)
        self._close()

    def _close(self) -> None:
        if not self.now.uid:
            return
        last = self.overrides[-1] if self.overrides else None
        self.now.status = last.status if last is not None else None
        self.now.pending_ns = self.timer_ns

    def _inputs(
        self, before: Explanation, jobs_end: int, pods_end: int
    ) -> list[tuple[int, Revision[JobView], int]]:
        """The states of the caches since a sync: since when, the Job, the position of the pods."""
        assert before.job is not None  # noqa: S101 - callers saw to it
        written = [write.job.position for write in before.writes if write.job is not None]
        place = max([before.job.position, *written])
        rows = [(r.rv, r.recv_ns, r) for r in self.history.jobs[place + 1 : jobs_end]]
        pods = [(r.rv, r.recv_ns, None) for r in self.history.pods[before.pod_cut : pods_end]]
        job, pod_cut = self.history.jobs[place], before.pod_cut
        found = [(before.writes[-1].recv_ns, job, pod_cut)]
        latest = before.writes[-1].recv_ns
        for _, recv_ns, revision in sorted([*rows, *pods], key=lambda row: row[0]):
            latest = max(latest, recv_ns)
            if revision is None:
                pod_cut += 1
            elif revision.type != "DELETED":
                job = revision
            found.append((latest, job, pod_cut))
        return found

    def _ask(
        self,
        before: Explanation,
        inputs: list[tuple[int, Revision[JobView], int]],
        until_ns: int,
        start: int,
        skip: frozenset[int],
    ) -> None:
        delay = self.rules.handlers.batch_ns + SERVED_AFTER_NS
        ours = before.state.memory.copy()
        handled = before.state.handled
        for place, (since_ns, job, pod_cut) in enumerate(inputs):
            stands_until = inputs[place + 1][0] if place + 1 < len(inputs) else until_ns
            for revision in self.history.pods[handled:pod_cut]:
                self.facts.pod_handlers.tell(ours, revision, self.now.uid)
            handled = max(handled, pod_cut)
            self._tell(pod_cut)
            if stands_until - since_ns >= delay and place:
                at_ns = since_ns + self.rules.handlers.batch_ns
                self._probe(job, pod_cut, at_ns, ours, start, skip)
            for _ in range(_TIMERS):
                timer_ns = self.timer_ns
                if timer_ns is None or timer_ns + SERVED_AFTER_NS > stands_until or not self._open:
                    break
                self.timer_ns = None
                self._probe(job, pod_cut, max(timer_ns, since_ns), ours, start, skip)
            if not self._open:
                return

    def _probe(
        self,
        job: Revision[JobView],
        pod_cut: int,
        now_ns: int,
        memory: JobMemory,
        start: int,
        skip: frozenset[int],
    ) -> None:
        """One sync in which the record's rules had nothing to do: do the others do something?"""
        refused = self.facts.refused.creations(now_ns) is not None
        ours = self.rerunner.recorded(
            job,
            pod_cut,
            memory,
            now_ns,
            start=start,
            assume=Assumptions(refusals=refused, silent=True),
            skip=skip,
            earliest_ns=job.recv_ns,
        )
        if ours is None or ours.result is None:
            return  # they would have acted, so they were not served then
        copy = self.memory.copy()
        theirs = self.rerunner.by_other_rules(
            self._view(job), pod_cut, copy, self.rules, ours, start=start
        )
        if not acts(theirs) and theirs.result is not None and not theirs.result.error:
            if theirs.result.wake_after_ns is not None:
                self._arm(ours, theirs)
            return
        self.memory = copy
        self._compare(ours, theirs, now_ns, str(job.rv))
        self._keep(ours, theirs, job.position)
        self._arm(ours, theirs)


def _endings(left: JobStatus, right: JobStatus, differing: list[str]) -> str:
    def said(status: JobStatus) -> str:
        finished = status.finished
        if finished is None:
            return "not finished"
        return f"{finished.type} ({finished.reason})" if finished.reason else finished.type

    if said(left) != said(right):
        return f"{said(left)} by the record's rules, {said(right)} by the others"
    return f"status: {', '.join(differing)} differ at the end"
